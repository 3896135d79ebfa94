"""What a group asks of an engine. Two engines answer: roost._local and roost._ray."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, Protocol

from roost import _roost
from roost._nodes import NodeInfo

if TYPE_CHECKING:
    from roost._handle import CallSite, Handle

Kind = Literal["value", "error", "unknown", "not_run", "pending"]
Answered = tuple[Any, float, Mapping[str, float] | None]  # a value, the method's own time, and its timers


@dataclass(frozen=True)
class Surroundings:
    """What workers are told of the cluster beside their environment; of the nodes they are on only."""

    nodes: Mapping[int, NodeInfo] = field(default_factory=dict)  # by node rank
    first_accelerators: Mapping[int, int] = field(default_factory=dict)  # the cluster-wide number of a node's first one
    hardware_types: Mapping[str, str | None] = field(default_factory=dict)  # by the label of the node group


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
class Outcome:
    """How a call ended on one rank; "pending" has not."""

    rank: int
    kind: Kind
    value: Any = None
    error: str = ""  # one line
    traceback: str = ""  # the worker's own, when kind is "error"
    exception: BaseException | None = None  # the worker's exception itself, where it can be carried
    seconds: float | None = None  # the method's own time, by the worker's clock
    timers: Mapping[str, float] = field(default_factory=dict)  # what the worker timed during the call, by tag
    end: dict[str, Any] | None = None  # its exit record, when the worker has ended


class SentCall(Protocol):
    """A call on its way: what is asked of every one. It may be used from several threads."""

    def wait(self, timeout: float | None, /) -> bool:
        """Until each rank has its outcome; False when time is up."""

    def done(self) -> bool: ...

    def values(self, timeout: float, /) -> tuple[list[Any], list[Answered]] | None:
        """Waits at most so long: the value of every rank, and all that each answered with; None when not all have one."""


class CallLink(Protocol):
    """The same call: what is asked of some only."""

    def has_failed(self) -> bool:
        """Whether a rank is known to have no value; never waits."""

    async def async_wait(self) -> None:
        """Until each rank has its outcome, without holding the event loop up."""

    def outcomes(self) -> list[Outcome]:
        """In the order of the ranks asked; those that have none yet are pending."""


class GroupLink(Protocol):
    """A running group."""

    world_size: int

    def caller(self, site: "CallSite") -> "Callable[..., Handle]":
        """What sends its arguments to the site's ranks, and answers with Handle(site, SentCall)."""

    def look(self, call: Any) -> CallLink:
        """More about a call that one of its callers has sent."""

    def close(self) -> None:
        """Ends the workers. Again: nothing."""


class EngineLink(Protocol):
    """A cluster's engine."""

    @property
    def namespace(self) -> str: ...

    def launch(self, request: LaunchRequest) -> GroupLink:
        """Returns when every rank is ready. Raises WorkerError with a constructor's own error, Timeout, or
        EngineError; then nothing of the group is left."""

    def find_group(self, name: str) -> GroupLink:
        """A group of this run that another process launched."""

    def allocate(
        self, cls: type, name: str, node_rank: int, gpu_id: int | None, variables: Mapping[str, str], interpreter: str | None, max_concurrency: int | None,
        args: Sequence[Any], kwargs: Mapping[str, Any], disable_distributed_log: bool = False,
    ) -> Any:  # fmt: skip
        """One process of any class on a node, with that accelerator of it; its handle, without waiting."""

    def close(self) -> None: ...
