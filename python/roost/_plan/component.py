"""Component placement: the processes of every component that a config places."""

from typing import Any, Never, Self, overload

from roost import _roost
from roost._plan.arguments import as_text
from roost._plan.cluster import PlanningCluster, planning_value
from roost._plan.config import is_mapping, read_config, resolving
from roost._plan.enums import PlacementMode
from roost._plan.strategy import (
    FlexiblePlacementStrategy,
    NodePlacementStrategy,
    PackedPlacementStrategy,
    PlacementStrategy,
)

STRATEGIES: dict[str, type[PlacementStrategy]] = {
    "flexible": FlexiblePlacementStrategy,
    "packed": PackedPlacementStrategy,
    "node": NodePlacementStrategy,
}


class ComponentPlacement:
    """The places of all components under ``cluster.component_placement``.

    ``config`` is a path, a dict or an OmegaConf DictConfig; ``cluster`` a Cluster, or any object with
    ``get_node_group(label)`` and ``get_node_info(rank)``. The constructor raises roost.Error for a mistake in any component.

    >>> from roost import Cluster, ComponentPlacement
    >>> cfg = {"cluster": {"num_nodes": 1, "component_placement": {"actor,inference": "0-7"}}}
    >>> placement = ComponentPlacement(cfg, Cluster(cluster_cfg=cfg["cluster"], num_gpus_per_node=8))
    >>> placement.components
    ['actor', 'inference']
    >>> placement.get_hardware_ranks("actor")
    [0, 1, 2, 3, 4, 5, 6, 7]
    >>> placement.get_strategy("actor") is placement.get_strategy("inference")
    True

    Node groups, robots and plain nodes in one config; ``agent`` counts nodes, ``env`` robots:

    >>> cfg = {
    ...     "cluster": {
    ...         "num_nodes": 4,
    ...         "node_groups": [
    ...             {"label": "a800", "node_ranks": "0-1"},
    ...             {"label": "4090", "node_ranks": "2-3"},
    ...             {
    ...                 "label": "robot",
    ...                 "node_ranks": "2-3",
    ...                 "hardware": {"type": "Franka", "configs": [{"node_rank": n, "robot_ip": f"10.0.{n}.{i}"} for n in (2, 3) for i in (1, 2)]},
    ...             },
    ...         ],
    ...         "component_placement": {
    ...             "actor": {"node_group": "a800", "placement": "0-8"},
    ...             "rollout": {"node_group": "4090", "placement": "0-8"},
    ...             "env": {"node_group": "robot", "placement": "0-3:0-7"},
    ...             "agent": {"node_group": "node", "placement": "0-1:0-200,2-3:201-511"},
    ...         },
    ...     }
    ... }
    >>> cluster = Cluster(cluster_cfg=cfg.get("cluster"), cluster="2x8 A800,2x8 4090")
    >>> placement = ComponentPlacement(cfg, cluster)
    >>> {name: placement.get_world_size(name) for name in placement.components}
    {'actor': 9, 'rollout': 9, 'env': 8, 'agent': 512}
    >>> [(p.cluster_node_rank, p.local_hardware_ranks) for p in placement.get_strategy("env").get_placement(cluster)][::2]
    [(2, [0]), (2, [1]), (3, [0]), (3, [1])]
    >>> [p.local_world_size for p in placement.get_strategy("agent").get_placement(cluster)][::150]
    [101, 100, 156, 155]

    Explicit and implied process ranks can be mixed:

    >>> cfg = {"cluster": {"num_nodes": 2, "component_placement": {"worker": "0-1:0-3,3-5,7-10:7-14"}}}
    >>> cluster = Cluster(cluster_cfg=cfg, cluster="2x8")
    >>> [p.local_hardware_ranks[0] for p in ComponentPlacement(cfg, cluster).get_strategy("worker").get_placement(cluster)]
    [0, 0, 1, 1, 3, 4, 5, 7, 7, 0, 0, 1, 1, 2, 2]
    """

    _is_model_parallel = False

    def __init__(self, config: Any, cluster: Any) -> None:
        model = self._is_model_parallel
        missing = None
        if is_mapping(config):
            with resolving():
                section = config["cluster"] if "cluster" in config else config
                if not is_mapping(section) or "component_placement" not in section:
                    raise _roost.Error("config must have cluster.component_placement")
                if "num_nodes" not in section:
                    missing = (
                        cluster.num_nodes if isinstance(cluster, PlanningCluster) else planning_value(cluster).num_nodes
                    )
        value = read_config("config", config, model=model, num_nodes=missing, stacklevel=3 if model else 2)
        planned_on = planning_value(cluster, [*value.labels, "cluster"])
        plan = _roost.Plan(value, planned_on, model, True)
        self._mode, self._sizes = plan.mode, plan.sizes or {}
        self._components = list(value.components)
        # What is kept can be pickled: strategies with their numbers, sizes and ranges.
        self._extents: dict[str, tuple[int, list[tuple[int, int]]]] = {}
        self._strategies: dict[str, PlacementStrategy] = {}
        self._add_strategies(plan, value.components, planned_on)

    def _add_strategies(self, plan: _roost.Plan, rules: dict[str, int], planned_on: _roost.Cluster) -> None:
        shared: dict[tuple[Any, ...], PlacementStrategy] = {}
        for name, rule in rules.items():
            rows = plan.placements(name)
            # Roles of one entry are laid out differently when their models are parallel.
            key = (rule, rows.isolate_accelerator, name if self._is_model_parallel else None)
            if key not in shared:
                shared[key] = STRATEGIES[rows.strategy]._of(rows, planned_on)
            self._strategies[name] = shared[key]
            self._extents[name] = len(rows), rows.hardware_ranges
        # The plan may know a component by another name too.
        for other, name in plan.other_names.items():
            self._strategies[other], self._extents[other] = self._strategies[name], self._extents[name]

    @property
    def components(self) -> list[str]:
        """The names of the components in the order of the config."""
        return list(self._components)

    @property
    def placement_mode(self) -> PlacementMode | None:
        """How components share the cluster; None here."""
        return None

    def _check(self, component_name: str) -> str:
        if as_text("component_name", component_name) not in self._strategies:
            raise _roost.Error(
                f"component {component_name!r} is not placed; there are {', '.join(self._components) or 'none'}"
            )
        return component_name

    def get_hardware_ranks(self, component_name: str) -> list[int]:
        """The ranks of the component's resources in its node groups. Raises roost.Error for an unknown component."""
        ranges = self._extents[self._check(component_name)][1]
        return [rank for first, last in ranges for rank in range(first, last + 1)]

    def get_world_size(self, component_name: str) -> int:
        """The number of the component's processes. Raises roost.Error for an unknown component."""
        return self._extents[self._check(component_name)][0]

    def get_strategy(self, component_name: str) -> PlacementStrategy:
        """The component's strategy; components that the config names together share one. Raises roost.Error for an unknown
        component."""
        return self._strategies[self._check(component_name)]

    def __repr__(self) -> str:
        counts = ", ".join(f"{name}: {self.get_world_size(name)}" for name in getattr(self, "_components", ()))
        return f"<roost.{type(self).__name__}: {counts}>"


class Size:
    """A number that placement has derived; it cannot be assigned."""

    def __set_name__(self, owner: type, name: str) -> None:
        self._name = name

    @overload
    def __get__(self, placement: None, owner: type) -> Self: ...

    @overload
    def __get__(self, placement: ComponentPlacement, owner: type) -> int: ...

    def __get__(self, placement: ComponentPlacement | None, owner: type) -> Self | int:
        return self if placement is None else placement._sizes[self._name]

    def __set__(self, placement: ComponentPlacement, value: Never) -> None:
        raise AttributeError(f"{self._name} is derived from the config and cannot be assigned")


class HybridComponentPlacement(ComponentPlacement):
    """Every component on any resources, as it is written."""

    @property
    def placement_mode(self) -> PlacementMode:
        """HYBRID."""
        return PlacementMode.HYBRID


class ModelParallelComponentPlacement(ComponentPlacement):
    """Places actor, rollout, reward and their companions by the sizes of their models.

    >>> from roost import Cluster, ModelParallelComponentPlacement
    >>> cfg = {
    ...     "cluster": {"num_nodes": 1, "component_placement": {"actor,rollout,reward": "0-3"}},
    ...     "actor": {"model": {"tensor_model_parallel_size": 4}},
    ...     "rollout": {"tensor_parallel_size": 2},
    ... }
    >>> cluster = Cluster(cluster="1x4")
    >>> placement = ModelParallelComponentPlacement(cfg, cluster)
    >>> placement.placement_mode.name, placement.is_collocated, placement.rollout_dp_size
    ('COLLOCATED', True, 2)
    >>> [p.visible_accelerators for p in placement.get_strategy("rollout").get_placement(cluster)]
    [['0', '2'], ['1', '3']]
    """

    _is_model_parallel = True

    actor_world_size = Size()
    actor_tp_size = Size()
    actor_pp_size = Size()
    actor_dp_size = Size()
    critic_world_size = Size()
    critic_tp_size = Size()
    critic_pp_size = Size()
    critic_dp_size = Size()
    inference_world_size = Size()
    inference_tp_size = Size()
    inference_pp_size = Size()
    inference_dp_size = Size()
    critic_inference_world_size = Size()
    critic_inference_tp_size = Size()
    critic_inference_pp_size = Size()
    critic_inference_dp_size = Size()
    rollout_world_size = Size()
    rollout_tp_size = Size()
    rollout_pp_size = Size()
    rollout_dp_size = Size()
    reward_world_size = Size()

    def __init__(self, config: Any, cluster: Any) -> None:
        super().__init__(config, cluster)

    @property
    def placement_mode(self) -> PlacementMode:
        """How components share the cluster, by the config: COLLOCATED, DISAGGREGATED or AUTO."""
        return PlacementMode(self._mode)

    @property
    def rollout_sync_mode(self) -> PlacementMode:
        """How rollout gets its weights: COLLOCATED, or else DISAGGREGATED."""
        return PlacementMode.COLLOCATED if self.is_collocated else PlacementMode.DISAGGREGATED

    @property
    def is_collocated(self) -> bool:
        """Whether all components use the same accelerators."""
        return self.placement_mode is PlacementMode.COLLOCATED

    @property
    def is_disaggregated(self) -> bool:
        """Whether components have accelerators of their own."""
        return self.placement_mode is PlacementMode.DISAGGREGATED

    @property
    def is_auto(self) -> bool:
        """Whether the mode is AUTO: RLinf's scheduler moves resources while the job runs."""
        return self.placement_mode is PlacementMode.AUTO

    @property
    def is_pipeline(self) -> bool:
        """Whether components run at the same time: disaggregated or auto."""
        return self.is_disaggregated or self.is_auto

    @property
    def has_dedicated_inference(self) -> bool:
        """Whether inference of the actor has accelerators of its own."""
        return bool(self._sizes["has_dedicated_inference"])

    @property
    def has_dedicated_critic_inference(self) -> bool:
        """Whether inference of the critic has accelerators of its own."""
        return bool(self._sizes["has_dedicated_critic_inference"])

    @property
    def has_dedicated_actor_inference(self) -> bool:
        """The same as has_dedicated_inference."""
        return self.has_dedicated_inference

    def has_dedicated_inference_for_role(self, role: str) -> bool:
        """Whether inference of "actor" or "critic" has accelerators of its own. Raises roost.Error for another role."""
        if role not in ("actor", "critic"):
            raise _roost.Error(f"role must be 'actor' or 'critic', not {role!r}")
        return self.has_dedicated_inference if role == "actor" else self.has_dedicated_critic_inference
