"""What a Cluster and its worker groups ask of an engine. The packages roost._local and roost._ray implement it."""

import importlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Protocol, cast

from roost import _roost
from roost._plan.cluster import PlanningCluster
from roost._plan.nodes import NodeInfo
from roost._work.call import CallSite, Handle


@dataclass(frozen=True)
class ClusterRequest:
    """The arguments of Cluster() that its engine needs."""

    namespace: str | None = None  # for the run and its managers; None = the engine chooses
    timeout: float = 600.0  # for nodes to come, and for workers to become ready
    logs_dir: str | None = None
    num_nodes: int | None = None
    num_gpus_per_node: int | None = None  # as the caller expects it
    config: _roost.Config | None = None
    section: Any = None  # the config's `cluster` section, where it came as a mapping


@dataclass(frozen=True)
class Surroundings:
    """What workers learn of the cluster beside their environment, for the nodes they are on."""

    nodes: Mapping[int, NodeInfo] = field(default_factory=dict)  # by node rank
    first_accelerators: Mapping[int, int] = field(default_factory=dict)  # the cluster-wide number of a node's first one
    hardware_types: Mapping[str, str | None] = field(default_factory=dict)  # by the label of the node group

    @classmethod
    def of(cls, cluster: PlanningCluster, placements: _roost.Placements) -> "Surroundings":
        """Those of the workers with these placements."""
        used = set(memoryview(placements.column("cluster_node_rank")))
        firsts, first = {}, 0
        for rank in range(max(used) + 1):
            firsts[rank] = first
            first += cluster._value.node(rank)["num_accelerators"]
        return cls(
            nodes={rank: cluster.get_node_info(rank) for rank in sorted(used)},
            first_accelerators={rank: firsts[rank] for rank in sorted(used)},
            hardware_types={label: kind for label, kind, _, _ in cluster._value.groups},
        )


@dataclass(frozen=True)
class LaunchRequest:
    """Workers to start: one for each placement."""

    cls: type
    args: tuple[Any, ...]
    kwargs: dict[str, Any]
    name: str
    placements: _roost.Placements
    max_concurrency: int | None = None
    catch_system_failure: bool = False
    disable_distributed_log: bool = False
    warm: bool = True
    timeout: float = 600.0  # until all ranks are ready
    env: dict[str, str] = field(default_factory=dict)  # for every rank, over what roost sets
    surroundings: Surroundings = Surroundings()
    interpreters: Mapping[int, str] = field(default_factory=dict)  # by rank, where a node group names one


@dataclass(frozen=True)
class AllocateRequest:
    """One process of any class to start on a node, as Cluster.allocate() asks for it."""

    cls: type
    args: tuple[Any, ...]
    kwargs: dict[str, Any]
    name: str
    node_rank: int
    gpu_id: int | None  # the accelerator of the node that the process uses; None = none
    placements: _roost.Placements  # of this one process
    env: dict[str, str]  # over what roost sets
    interpreter: str | None = None
    max_concurrency: int | None = None
    disable_distributed_log: bool = False

    @property
    def group_name(self) -> str:
        """The name of a worker group of this one process: "other:1" cannot be the name of a folder."""
        return self.name.replace(":", ".")


class GroupLink(Protocol):
    """A running worker group."""

    world_size: int

    def caller(self, site: CallSite) -> Callable[..., Handle]:
        """A function that sends its arguments to the site's ranks and returns Handle(site, Call)."""

    def close(self) -> None:
        """Ends the workers. A second call does nothing."""


class EngineLink(Protocol):
    """The engine of one Cluster."""

    @property
    def namespace(self) -> str: ...

    def launch(self, request: LaunchRequest) -> GroupLink:
        """Returns when every rank is ready. Raises WorkerError with a constructor's own error, Timeout, or
        EngineError; then nothing of the group is left."""

    def find_group(self, name: str) -> GroupLink:
        """A group of this run that another process launched."""

    def allocate(self, request: AllocateRequest) -> Any:
        """Starts one process and returns its handle without waiting."""

    def complete(self, node: NodeInfo) -> None:
        """Fills in what only the engine knows of a node."""

    def close(self) -> None: ...


class EngineModule(Protocol):
    """The module of an engine."""

    def begin(self, cluster: PlanningCluster, request: ClusterRequest) -> EngineLink:
        """Begins a run. An engine with nodes of its own makes them the nodes of the cluster."""

    def attach(self, cluster: PlanningCluster, request: ClusterRequest) -> EngineLink:
        """Finds a living run: that of the namespace, or the only one. Its nodes become the nodes of the cluster."""


class EngineEntry(NamedTuple):
    """An engine, before it is imported."""

    module: str
    has_own_nodes: bool  # it finds the nodes itself, unless the caller describes some to plan against
    opener: str | None  # the module whose open_managers starts the managers of a Cluster that has no engine yet


ENGINES = {
    "local": EngineEntry("roost._local.engine", False, "roost._local.registry_server"),
    "ray": EngineEntry("roost._ray.run", True, None),
}


def load_engine(name: str) -> EngineModule:
    """Imports an engine. Ray is optional, and large: a program that does not use an engine never imports it."""
    return cast(EngineModule, importlib.import_module(ENGINES[name].module))


def open_managers(name: str, cluster: PlanningCluster, namespace: str | None) -> Any:
    """Starts the managers of a new Cluster, without its engine, which takes longer to import. None: the engine itself does that."""
    opener = ENGINES[name].opener
    return None if opener is None else importlib.import_module(opener).open_managers(cluster, namespace)
