"""What roost.slime asks of an engine: bundles to reserve, where they are, and trainers in them. The modules
roost._local.bundles and roost._ray.bundles implement it."""

import importlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol, cast

from roost._plan.cluster import PlanningCluster

Say = Callable[[str], None]


@dataclass(frozen=True)
class Bundle:
    """Where a bundle is."""

    index: int
    node_id: str
    address: str | None
    gpu_id: int | str
    visible: str | None  # the node's list of visible devices; None = it has none


@dataclass(frozen=True)
class Seat:
    """Where a rank is, as messages name it."""

    cluster_node_rank: int
    visible_accelerators: list[str]


@dataclass(frozen=True)
class ReserveRequest:
    """Bundles of one GPU and one CPU each, to be reserved as one group."""

    num_bundles: int
    num_cpus: float  # of the bundles and of everything that will run beside them
    timeout: float
    say: Say  # takes what is waited for, every few seconds


@dataclass(frozen=True)
class TrainerRequest:
    """Trainers to start, rank by rank, each in a bundle."""

    cls: type
    name: str  # of the group, for messages
    bundles: Sequence[Bundle]  # by rank
    fraction: float  # of its GPU, and as much of a CPU, that a trainer takes
    preload: str | None = None  # a library, for trainers that offload
    is_replaying: bool = False
    own: Mapping[str, str] = field(default_factory=dict)  # the user's variables


class Trainers(Protocol):
    """The running trainers of a group."""

    handles: list[Any]  # by rank
    is_closed: bool

    def check(self, timeout: float) -> None:
        """Waits for all constructors. Raises WorkerError with the constructor's own error, or Timeout."""

    def send(self, method: str, calls: Sequence[tuple[tuple[Any, ...], dict[str, Any]]]) -> list[Any]:
        """Calls a method of each rank with its own arguments; references in them are resolved first. Returns
        references by rank, without waiting."""

    def gather(self, method: str, references: Sequence[Any], timeout: float) -> list[Any]:
        """The values by rank. Raises WorkerError for a rank that failed, and Timeout with the ranks that have not answered."""

    def close(self) -> None:
        """Ends the processes; they are gone when it returns. A second call does nothing."""


class Reservation(Protocol):
    """A placement group, as the engine has it."""

    group: Any  # what users see of it

    def find(self, timeout: float, known: Sequence[Bundle] = ()) -> list[Bundle]:
        """Learns where the bundles are, by their index. Those that are known and have not moved are not looked at again."""

    def has_moved(self, known: Sequence[Bundle]) -> bool:
        """Whether a bundle is on another node than is known. Raises EngineError for a group that is gone."""

    def start(self, request: TrainerRequest) -> Trainers:
        """Starts trainers without waiting for their constructors."""

    def remove(self) -> None:
        """Gives the bundles back, and ends what runs in them. A second call does nothing."""


class BundleModule(Protocol):
    """The module of an engine."""

    def reserve(self, cluster: PlanningCluster | None, request: ReserveRequest) -> Reservation:
        """Returns when all bundles are reserved. Raises Timeout, and then nothing is."""

    def reservation_of(self, group: Any) -> Reservation:
        """That of a group which this function or another program has reserved."""

    def get(self, references: Sequence[Any], timeout: float | None) -> list[Any]:
        """The values of references, in their order."""


class LocalReference:
    """The base of references of the local engine; those of Ray are Ray's own."""


class PlacementGroup:
    """A placement group of the local engine, with the names of Ray's: ``id``, ``bundle_specs``, ``bundle_count``."""

    def __init__(self, group_id: str, bundle_count: int) -> None:
        self.id, self.bundle_count = group_id, bundle_count
        self.reservation: Reservation | None = None  # of the process that has it

    def __getstate__(self) -> dict[str, Any]:
        return {"id": self.id, "bundle_count": self.bundle_count, "reservation": None}

    @property
    def bundle_specs(self) -> list[dict[str, float]]:
        return [{"GPU": 1.0, "CPU": 1.0} for _ in range(self.bundle_count)]

    def __repr__(self) -> str:
        return f"<roost placement group {self.id!r} of {self.bundle_count} bundles>"


MODULES = {"local": "roost._local.bundles", "ray": "roost._ray.bundles"}


def load_bundles(engine: str) -> BundleModule:
    """Ray is optional, and large: a program that does not use it never imports it."""
    return cast(BundleModule, importlib.import_module(MODULES[engine]))


def engine_of(group: Any) -> str:
    """The engine that has reserved a group."""
    return "local" if isinstance(group, PlacementGroup) else "ray"


def group_key(group: Any) -> str:
    """The same for all copies of a group."""
    return group.id if isinstance(group, PlacementGroup) else str(group.id.hex())
