"""The records of the managers: addresses of workers, what a worker reports of itself, and collective groups."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, Self

from roost import _roost
from roost._plan.arguments import as_rank, as_text, is_int
from roost._plan.nodes import HardwareInfo


@dataclass(frozen=True, order=True)
class WorkerAddress:
    """The address of a worker: the name of its group, and the ranks that lead to it.

    >>> address = WorkerAddress("actor", 3).get_child_address(1)
    >>> str(address), address.get_parent_address().rank, address.root_group_name
    ('actor:3:1', 3, 'actor')
    >>> WorkerAddress.from_text("actor:3:1") == WorkerAddress("actor", [3, 1])
    True
    """

    root_group_name: str
    rank_path: tuple[int, ...] = ()

    def __init__(self, root_group_name: str, ranks: int | Sequence[int] = ()) -> None:
        path = (ranks,) if is_int(ranks) else tuple(ranks)  # type: ignore[arg-type]
        _roost.check_group_name(as_text("root_group_name", root_group_name))
        object.__setattr__(self, "root_group_name", root_group_name)
        object.__setattr__(self, "rank_path", tuple(as_rank("a rank of the address", rank) for rank in path))
        _roost.check_address(str(self))

    @classmethod
    def from_text(cls, text: str) -> Self:
        """The address that a text such as ``actor:3:1`` names. Raises roost.Error where it names none."""
        _roost.check_address(as_text("address", text))
        name, *ranks = text.split(":")
        return cls(name, [int(rank) for rank in ranks])

    def get_name(self) -> str:
        """The address as text, such as ``actor:3:1``."""
        return ":".join([self.root_group_name, *map(str, self.rank_path)])

    @property
    def rank(self) -> int:
        """The last rank of the path; -1 for a group itself."""
        return self.rank_path[-1] if self.rank_path else -1

    def get_parent_address(self) -> "WorkerAddress":
        """The address without its last rank. Raises roost.Error for the address of a group."""
        if not self.rank_path:
            raise _roost.Error(f"'{self}' is a group: it has no parent")
        return WorkerAddress(self.root_group_name, self.rank_path[:-1])

    def get_child_address(self, rank: int) -> "WorkerAddress":
        """The address of a worker inside this one."""
        return WorkerAddress(self.root_group_name, (*self.rank_path, rank))

    def __str__(self) -> str:
        return self.get_name()


def address_text(value: Any) -> str:
    """An address as JSON carries it."""
    return (
        value
        if isinstance(value, str)
        else str(value)
        if isinstance(value, WorkerAddress)
        else as_text("address", value)
    )


@dataclass
class WorkerInfo:
    """What the managers know of a worker: by the worker itself, or by the run that started its process.

    ``ports`` are the leased ports of the process, by name; of a block, the first. ``state`` is ``"waiting"``,
    ``"running"`` or ``"ended"``.
    """

    address: WorkerAddress
    rank: int
    group_world_size: int = 1
    cluster_node_rank: int = 0
    accelerator_type: str = "NO_ACCEL"
    accelerator_model: str = ""
    accelerator_rank: int = -1
    node_ip: str = ""
    node_port: int = 0
    available_accelerators: list[Any] = field(default_factory=list)
    hardware_infos: list[Any] = field(default_factory=list)
    ports: dict[str, int] = field(default_factory=dict)
    state: str = "running"

    def to_json(self) -> dict[str, Any]:
        """The record as JSON can hold it."""
        kind = self.accelerator_type
        infos = [asdict(info) if isinstance(info, HardwareInfo) else info for info in self.hardware_infos]
        return {
            **vars(self),
            "address": address_text(self.address),
            "accelerator_type": getattr(kind, "value", kind),
            "hardware_infos": infos,
        }

    @classmethod
    def from_json(cls, fields: dict[str, Any]) -> Self:
        """The record that to_json has written."""
        known = {name: value for name, value in fields.items() if name in cls.__dataclass_fields__}
        infos = [
            HardwareInfo(**info) if isinstance(info, dict) and set(info) == {"type", "model", "config"} else info
            for info in fields.get("hardware_infos", [])
        ]
        return cls(**known | {"address": WorkerAddress.from_text(fields["address"]), "hardware_infos": infos})


@dataclass
class CollectiveGroupInfo:
    """A collective group: workers that communicate with each other under one name."""

    group_name: str
    workers: list[WorkerInfo] = field(default_factory=list)
    world_size: int = -1

    def __post_init__(self) -> None:
        self.world_size = len(self.workers) if self.world_size < 0 else self.world_size

    def to_json(self) -> dict[str, Any]:
        """The record as JSON can hold it."""
        return {
            "group_name": self.group_name,
            "workers": [worker.to_json() for worker in self.workers],
            "world_size": self.world_size,
        }

    @classmethod
    def from_json(cls, fields: dict[str, Any]) -> Self:
        """The record that to_json has written."""
        return cls(
            fields["group_name"],
            [WorkerInfo.from_json(worker) for worker in fields["workers"]],
            fields.get("world_size", -1),
        )
