"""The cluster that placements are computed on."""

import json
import logging
import os
import sys
from collections.abc import Callable, Iterable
from functools import partial
from typing import TYPE_CHECKING, Any

from roost import _roost
from roost._arguments import as_count, as_int, as_path, as_text, check_seconds
from roost._attach import attach, section_of
from roost._config import node_group_configs, read_config
from roost._described import describe, describes_cluster
from roost._errors import EngineError
from roost._managers import newest_cluster, set_cluster
from roost._nodes import Accelerator, HardwareInfo, HardwareResource, NodeGroupInfo, NodeInfo
from roost._words import warn

if TYPE_CHECKING:
    from roost._engine import EngineLink
    from roost._ray import RayEngine


class Allocate:
    """``cluster.allocate(...)``, and ``Cluster.allocate(...)`` for the newest cluster of this process."""

    def __get__(self, cluster: "Cluster | None", owner: type) -> Callable[..., Any]:
        from roost._allocate import allocate

        return partial(allocate, newest_cluster() if cluster is None else cluster)


class Cluster:
    """Nodes, accelerators and node groups to plan against.

    Where the nodes come from, first that applies: ``cluster`` (a spec such as ``"2x8"``, a snapshot
    file, or ``"local"``), ``num_nodes`` with ``num_gpus_per_node``, the environment's
    ``ROOST_CLUSTER``, ``roost.cluster`` of the config, this machine.

    ``cluster_cfg`` is the path of a config, a whole config with a ``cluster`` key, or that section
    (a dict, a DictConfig or a ClusterConfig). ``num_nodes=0`` takes all nodes there are.

    Making one starts nothing; a WorkerGroup that is launched on it does. ``timeout`` is how many seconds its workers
    have to become ready, ``namespace`` the name that others find its runs and its managers by. Several clusters may be there at a
    time, each as its own arguments say. With no arguments it is the cluster of a living run of this user: of
    ``namespace``, of ``ROOST_NAMESPACE``, or the only one there is.

    >>> cluster = Cluster(cluster="2x8 A800")
    >>> cluster.num_nodes, cluster.num_accelerators
    (2, 16)
    >>> cluster.get_node_info(1).accelerator_model
    'A800'
    >>> Cluster(num_nodes=2, num_gpus_per_node=8).get_node_group("node").hardware_resource_count
    2
    """

    NAMESPACE = "roost"  # of runs on Ray; further ones at the same time have roost_1, roost_2, ...

    _namespace: str | None = None
    _is_attached = False  # to a namespace that another process keeps
    _is_on_ray = False
    _is_planned_only = False  # meant for Ray, but described by the caller
    _timeout = 600.0
    _logs_dir: str | None = None
    _link: "EngineLink | None" = None

    def __init__(
        self,
        num_nodes: int | None = None,
        cluster_cfg: Any = None,
        distributed_log_dir: str | os.PathLike[str] | None = None,
        *,
        num_gpus_per_node: int | None = None,
        engine: str | None = None,
        cluster: str | os.PathLike[str] | None = None,
        namespace: str | None = None,
        timeout: float = 600,
    ) -> None:
        check_unused(distributed_log_dir, engine, namespace, timeout)
        self._namespace, self._timeout = namespace, float(timeout)
        self._logs_dir = None if distributed_log_dir is None else os.path.abspath(distributed_log_dir)
        is_attaching = num_nodes is None and cluster_cfg is None and num_gpus_per_node is None and cluster is None
        if is_attaching and attaches_to_ray(engine):
            self._take_engine(attach_ray(namespace))
            return
        if is_attaching:
            self._namespace, self._is_attached = attach(self, namespace), True
            set_cluster(self)
            return
        count = None if num_nodes is None else as_int("num_nodes", num_nodes)
        config = None if cluster_cfg is None else read_config("cluster_cfg", cluster_cfg)
        if config is not None and count == 0:
            raise _roost.Error("num_nodes=0 takes all nodes and is for clusters without a config")
        self._is_planned_only = choose_engine(engine, config) == "ray"
        if cluster is None and self._is_planned_only:
            joined = open_ray(config, cluster_cfg, count, namespace, timeout)
            self._take_engine(joined)
            if num_gpus_per_node is not None:
                warn_of_counts(joined.value, as_count("num_gpus_per_node", num_gpus_per_node))
            if self._logs_dir is not None:
                self._ray_engine().keep_logs(self._logs_dir)
            return
        if num_gpus_per_node is not None and cluster is not None:
            raise TypeError("num_gpus_per_node and cluster say the same: pass one of them")
        text = os.fsencode(os.environ.get("ROOST_CLUSTER", "")) or None
        if cluster is not None:
            text = as_path("cluster", cluster, "a spec, a path or 'local'")
        elif num_gpus_per_node is not None:
            if count is None and config is None:
                raise TypeError("num_gpus_per_node says nothing of how many nodes there are: pass num_nodes or cluster_cfg too")
            text = even_spec("num_nodes", config.num_nodes if count is None and config else count, num_gpus_per_node)
        elif not text and not (config and config.cluster):
            text = b"local"
        self._value = _roost.Cluster(text, config, count or 0)
        self._config = config
        self._section = section_of(cluster_cfg)
        set_cluster(self)
        warn(self._value.warnings, 2)

    @classmethod
    def _of(cls, value: _roost.Cluster, config: _roost.Config | None, section: Any) -> "Cluster":
        """A cluster that was built already."""
        self = cls.__new__(cls)
        self._value, self._config, self._section = value, config, section
        return self

    def _take_engine(self, engine: "RayEngine") -> None:
        self._link, self._value, self._config = engine, engine.value, engine.config
        self._section, self._is_on_ray = None, True
        set_cluster(self)

    def _ray_engine(self) -> "RayEngine":
        from roost._ray import RayEngine

        if not isinstance(self._link, RayEngine):
            raise EngineError("this cluster is not on Ray: make it with engine='ray'")
        return self._link

    allocate = Allocate()

    @property
    def namespace(self) -> str:
        """Of the managers of this cluster; they are started when this is first asked for."""
        return self._engine_link().namespace

    @property
    def num_nodes(self) -> int:
        return self._value.num_nodes

    @property
    def num_accelerators(self) -> int:
        """Accelerators of all nodes."""
        return self._value.num_accelerators

    @property
    def num_gpus_per_node(self) -> int:
        """Accelerators of a node; an error where nodes differ."""
        counts = self._value.accelerator_counts
        if len(counts) != 1:
            raise _roost.Error(f"nodes differ in their accelerators: {sorted(counts)}")
        return counts.pop()

    @property
    def nodes(self) -> list[NodeInfo]:
        """In node order; records of the caller's own."""
        return [self.get_node_info(rank) for rank in range(self.num_nodes)]

    @property
    def node_groups(self) -> list[NodeGroupInfo]:
        """Configured groups in the order written, then ``cluster`` and ``node``; records of the caller's own."""
        return [self._make_group(group) for group in self._value.groups]

    def _make_group(self, group: tuple[str, str | None, list[int], int]) -> NodeGroupInfo:
        label, hardware_type, node_ranks, _ = group
        configs = node_group_configs(self._config) if self._config else []
        env_configs = next((config.env_configs for config in configs if config.label == label), None)
        return NodeGroupInfo._of(label, [self.get_node_info(rank) for rank in node_ranks], hardware_type, env_configs)

    def get_node_info(self, node_rank: int) -> NodeInfo:
        node = make_node(self._value.node(node_rank))
        if self._is_on_ray:
            self._ray_engine().complete(node)
        return node

    def get_node_group(self, label: str | None = None) -> NodeGroupInfo | None:
        """The group with that label, ``cluster`` when none is named, or None."""
        wanted = "cluster" if label is None else as_text("label", label)
        return next((self._make_group(group) for group in self._value.groups if group[0] == wanted), None)

    def _engine_link(self) -> "EngineLink":
        """The engine that runs groups on this cluster; there is none before it is asked for."""
        if self._link is None and self._is_planned_only:
            raise EngineError("this cluster was made from a spec or a snapshot, to plan against: leave cluster out to run on Ray's own nodes")
        if self._link is None:
            from roost._local import LocalEngine

            self._link = LocalEngine(self)
        return self._link

    def __reduce__(self) -> Any:
        raise TypeError("cannot pickle a Cluster: make it again where it is needed, with the same arguments")

    def __repr__(self) -> str:
        return f"<roost.Cluster: {self.num_nodes} nodes, {self.num_accelerators} accelerators>"


ENGINES = ("local", "ray")


def choose_engine(asked: str | None, config: _roost.Config | None) -> str:
    """The argument, ROOST_ENGINE, the config's, else local."""
    chosen = asked or os.environ.get("ROOST_ENGINE") or (config.engine if config else None) or "local"
    if chosen not in ENGINES:
        raise EngineError(f"ROOST_ENGINE is {chosen!r}: the engines are {' and '.join(ENGINES)}")
    return chosen


def attaches_to_ray(asked: str | None) -> bool:
    """Whether Cluster() looks for its run on Ray: as it was told, or as a process of Ray's."""
    if asked or os.environ.get("ROOST_ENGINE"):
        return choose_engine(asked, None) == "ray"
    ray = sys.modules.get("ray")
    return ray is not None and bool(ray.is_initialized())


def warn_of_counts(value: _roost.Cluster, wanted: int) -> None:
    """On Ray the nodes are what they are, whatever was expected of them."""
    for rank in range(value.num_nodes):
        found = value.node(rank)["num_accelerators"]
        if found != wanted:
            logging.getLogger("roost").warning("num_gpus_per_node is %d, but node %d has %d accelerators: on Ray the nodes tell, leave it out", wanted, rank, found)
            return


def open_ray(config: _roost.Config | None, cluster_cfg: Any, num_nodes: int | None, namespace: str | None, timeout: float) -> Any:
    from roost._ray_open import open_cluster

    return open_cluster(config, section_of(cluster_cfg), num_nodes, namespace, timeout, lambda warnings: warn(warnings, 6))


def attach_ray(namespace: str | None) -> Any:
    from roost._ray_open import attach as find

    return find(namespace)


def check_unused(distributed_log_dir: Any, engine: Any, namespace: Any, timeout: Any) -> None:
    """What planning does not use is checked all the same: scripts go on to run elsewhere."""
    if distributed_log_dir is not None:
        as_path("distributed_log_dir", distributed_log_dir)
    if engine is not None and as_text("engine", engine) not in ENGINES:
        raise EngineError(f"engine {engine!r} is not there: the engines are {' and '.join(ENGINES)}")
    if namespace is not None:
        as_text("namespace", namespace)
    check_seconds("timeout", timeout)


def even_spec(count_name: str, num_nodes: Any, num_gpus_per_node: Any) -> bytes:
    """A spec of equal nodes."""
    return b"%dx%d" % (as_count(count_name, num_nodes, 1), as_count("num_gpus_per_node", num_gpus_per_node))


def make_node(node: dict[str, Any]) -> NodeInfo:
    model = f"{node['accelerator_type']}:{(node['accelerator_model'] or 'UNKNOWN').replace(':', ' ')}"
    infos = [HardwareInfo(Accelerator.HW_TYPE, model)] * node["num_accelerators"]
    resources = [HardwareResource(Accelerator.HW_TYPE, infos)] if infos else []
    for kind in dict.fromkeys(kind for kind, _ in node["hardware"]):
        units = [HardwareInfo(kind, kind, json.loads(text)) for other, text in node["hardware"] if other == kind]
        resources.append(HardwareResource(kind, units))
    return NodeInfo(
        node_labels=node["labels"],
        node_rank=node["node_rank"],
        ray_id=node["id"] or "",
        node_ip=node["address"] or "",
        num_cpus=max(node["num_cpus"], 0),
        hardware_resources=resources,
    )


def planning_value(cluster: Any, labels: Iterable[str] = ("cluster",)) -> _roost.Cluster:
    """What the planner sees of a Cluster, or of these node groups of an object that describes one."""
    if isinstance(cluster, Cluster):
        return cluster._value
    if not describes_cluster(cluster):
        raise TypeError(f"cluster must be a Cluster or have get_node_group and get_node_info, not {type(cluster).__name__}")
    return describe(cluster, labels)
