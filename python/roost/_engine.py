"""What a group asks of an engine. Two engines answer: roost._local and roost._ray."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol

from roost import _roost


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


@dataclass(frozen=True)
class Outcome:
    """How a call ended on one rank."""

    rank: int
    kind: Literal["value", "error", "unknown", "not_run"]
    value: Any = None
    error: str = ""  # one line
    traceback: str = ""  # the worker's own, when kind is "error"
    exception: BaseException | None = None  # the worker's exception itself, where it can be carried
    seconds: float | None = None  # the method's own time, by the worker's clock
    end: dict[str, Any] | None = None  # its exit record, when the worker has ended


class CallLink(Protocol):
    """A call on its way."""

    def wait(self, timeout: float | None) -> bool:
        """Until each rank has its outcome; False when time is up."""

    def done(self) -> bool: ...

    async def async_wait(self) -> None: ...

    def outcomes(self) -> list[Outcome]:
        """In the order of the ranks asked; only when done."""


class GroupLink(Protocol):
    """A running group."""

    world_size: int

    def call(self, method: str, args: tuple[Any, ...], kwargs: dict[str, Any], ranks: Sequence[int] | None) -> CallLink:
        """Sends the call; ranks None = all."""

    def close(self) -> None:
        """Ends the workers. Again: nothing."""


class EngineLink(Protocol):
    """A cluster's engine."""

    namespace: str

    def launch(self, request: LaunchRequest) -> GroupLink:
        """Returns when every rank is ready. Raises WorkerError with a constructor's own error, Timeout, or
        EngineError; then nothing of the group is left."""

    def find_group(self, name: str) -> GroupLink:
        """A group of this run that another process launched."""

    def close(self) -> None: ...
