"""A call to the workers of a group: how it ends on each rank, and the handle that `group.method(...)` returns."""

import asyncio
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, NoReturn, Protocol

from roost import _roost
from roost._plan.arguments import check_seconds
from roost._plan.errors import EngineError, Timeout, WorkerError, shorten

Kind = Literal["value", "error", "unknown", "not_run", "pending"]
Answered = tuple[Any, float, Mapping[str, float] | None]  # a value, the method's own time, and its timers

REDUCTIONS: dict[str, Callable[[Sequence[float]], float]] = {
    "max": max,
    "min": min,
    "mean": lambda values: sum(values) / len(values),
}
TRACEBACK_MAX = 20_000  # characters of a traceback in the text of an error; its attribute has all of it
GLANCE = 0.25  # seconds between two looks for a rank that has failed while others go on
GRACE = 1.0  # seconds that the others have from then on: they may wait for the failed one, and for ever


@dataclass(frozen=True)
class Outcome:
    """How a call ended on one rank; "pending" where it has not ended."""

    rank: int
    kind: Kind
    value: Any = None
    error: str = ""  # one line
    traceback: str = ""  # the worker's own, when kind is "error"
    exception: BaseException | None = None  # the worker's exception itself, where it can be carried
    seconds: float | None = None  # the method's own time, by the worker's clock
    timers: Mapping[str, float] = field(default_factory=dict)  # what the worker timed during the call, by tag
    end: dict[str, Any] | None = None  # its exit record, when the worker has ended


class Call(Protocol):
    """A call that was sent. Both engines implement it. Several threads may use one at a time."""

    def wait(self, timeout: float | None, /) -> bool:
        """Waits until each rank has its outcome; False when time is up."""

    def done(self) -> bool:
        """Whether each rank has its outcome."""

    def values(self, timeout: float, /) -> tuple[list[Any], list[Answered]] | None:
        """Waits at most `timeout` seconds: the value of every rank, and all that each rank answered with. None unless
        every rank has a value."""

    def has_failed(self) -> bool:
        """Whether a rank is known to have no value. Never waits."""

    async def async_wait(self) -> None:
        """Waits until each rank has its outcome, without blocking the event loop."""

    def outcomes(self) -> list[Outcome]:
        """The outcomes in the order of the ranks called; "pending" where there is none yet."""


class HasRanks(Protocol):
    """A running group, as far as a call needs it."""

    world_size: int


class CallSite:
    """What all calls of a method to the same ranks have in common; ranks None = all."""

    def __init__(
        self,
        group: str,
        method: str,
        ranks: tuple[int, ...] | None,
        placements: _roost.Placements | None,
        link: HasRanks,
        doc: str | None = None,
    ) -> None:
        self.group, self.method, self.chosen, self.placements, self.link, self.doc = (
            group,
            method,
            ranks,
            placements,
            link,
            doc,
        )

    @property
    def ranks(self) -> Sequence[int]:
        return range(self.link.world_size) if self.chosen is None else self.chosen

    def refuse(self) -> NoReturn:
        raise EngineError(f"group {self.group!r} is closed")


class Handle:
    """A call to some ranks of a group: what ``group.method(...)`` returns. Any thread may use it, as often as it likes."""

    __slots__ = ("__weakref__", "_answers", "_call", "_settled", "_site")

    def __init__(self, site: CallSite, call: Call) -> None:
        self._site, self._call = site, call
        self._answers: list[Answered] | None = None
        self._settled: list[Outcome] | None = None

    def wait(self, timeout: float | None = None) -> list[Any]:
        """Waits for all ranks and returns their results in the order of the ranks called.

        ``timeout`` is in seconds; None waits for ever. Raises WorkerError when a rank has failed. Raises Timeout when
        time is up: the call goes on then, and can be waited for again. After a failure the other ranks have one more
        second to answer: they may depend on the failed one.
        """
        if timeout is None and self._answers is None:  # the usual way, and a quick one
            told = self._call.values(GLANCE)
            if told is not None:
                values, self._answers = told
                return values
        patience = Patience(timeout)
        while not self._call.wait(patience.slice()):
            if patience.is_over(self._call.has_failed()):
                break
        return self._results(timeout)

    async def async_wait(self, timeout: float | None = None) -> list[Any]:
        """As ``wait``, for code on an event loop."""
        patience = Patience(timeout)
        waiting = asyncio.ensure_future(self._call.async_wait())
        try:
            while not (await asyncio.wait({waiting}, timeout=patience.slice()))[0]:
                if patience.is_over(self._call.has_failed()):
                    break
        finally:
            waiting.cancel()
        return self._results(timeout)

    def done(self) -> bool:
        """Whether every rank has answered or never will."""
        return self._settled is not None or self._call.done()

    @property
    def outcomes(self) -> list[Outcome]:
        """How the call ended on each rank called, in that order; "pending" where it has not ended."""
        if self._settled is None and self._answers is not None:  # the objects that wait() answered with
            told = zip(self._site.ranks, self._answers, strict=True)
            self._settled = [
                Outcome(rank, "value", value, seconds=seconds, timers=timers or {})
                for rank, (value, seconds, timers) in told
            ]
        if self._settled is None:
            is_done = self._call.done()
            outcomes = self._call.outcomes()
            if not is_done:
                return outcomes
            self._settled = outcomes
        return self._settled

    def consume_duration(self, reduction_type: str = "max") -> float:
        """Waits, then reduces the seconds that the method took on each rank to one number.

        ``reduction_type`` is "max", "min" or "mean". A rank counts what the method timed under its own name, or else its
        whole time. Raises what ``wait`` raises.
        """
        reduce = find_reduction(reduction_type)
        self.wait()
        return reduce([outcome.timers.get(self._site.method, outcome.seconds or 0.0) for outcome in self.outcomes])

    def consume_durations(self, reduction_type: str = "max", return_per_rank: bool = False) -> Any:
        """Waits, then reduces what the ranks timed during this call, for each tag: ``{tag: seconds}``.

        With ``return_per_rank`` it returns ``(durations, [{tag: seconds} of each rank])``. Raises what ``wait`` raises.
        """
        reduce = find_reduction(reduction_type)
        self.wait()
        per_rank = [dict(outcome.timers) for outcome in self.outcomes]
        tags = dict.fromkeys(tag for timers in per_rank for tag in timers)
        durations = {tag: reduce([timers[tag] for timers in per_rank if tag in timers]) for tag in tags}
        return (durations, per_rank) if return_per_rank else durations

    def _results(self, timeout: float | None) -> list[Any]:
        outcomes = self.outcomes
        failed = [outcome for outcome in outcomes if outcome.kind not in ("value", "pending")]
        if failed:
            raise self._worker_error(failed, outcomes) from failed[0].exception
        pending = [outcome.rank for outcome in outcomes if outcome.kind == "pending"]
        if pending:
            words = f"{self._site.method!r} of group {self._site.group!r} is not done after {timeout:g} s: {len(pending)} of {len(outcomes)} ranks"
            raise Timeout(f"{words} have not answered ({name_ranks(pending)})")
        return [outcome.value for outcome in outcomes]

    def _worker_error(self, failed: list[Outcome], outcomes: list[Outcome]) -> WorkerError:
        first = failed[0]
        return failure_of(
            self._site.group,
            first,
            self._site.placements,
            f"in {self._site.method!r}",
            also_failed([o.rank for o in failed[1:]]),
            outcomes,
        )

    def __repr__(self) -> str:
        state = "done" if self.done() else "on its way"
        return (
            f"<roost call of {self._site.method!r} to {len(self._site.ranks)} ranks of {self._site.group!r}: {state}>"
        )


def wait_named(handle: Handle, timeout: float) -> list[Any]:
    """handle.wait(); a Timeout has the ranks that have not answered as ``ranks``."""
    try:
        return handle.wait(timeout)
    except Timeout as error:
        error.ranks = [outcome.rank for outcome in handle.outcomes if outcome.kind == "pending"]  # type: ignore[attr-defined]
        raise


class Patience:
    """When a wait is over: at its deadline, or a moment after the first failure."""

    def __init__(self, timeout: float | None) -> None:
        if timeout is not None:
            check_seconds("timeout", timeout)
        self._deadline = None if timeout is None else time.monotonic() + timeout
        self._grace_end: float | None = None

    def slice(self) -> float:
        ends = [end for end in (self._deadline, self._grace_end) if end is not None]
        return max(0.0, min([GLANCE, *(end - time.monotonic() for end in ends)]))

    def is_over(self, has_failed: bool) -> bool:
        now = time.monotonic()
        if has_failed and self._grace_end is None:
            self._grace_end = now + GRACE
        return any(end is not None and now >= end for end in (self._deadline, self._grace_end))


def find_reduction(word: str) -> Callable[[Sequence[float]], float]:
    if word not in REDUCTIONS:
        raise _roost.Error(f"reduction_type must be 'max', 'min' or 'mean', not {word!r}")
    return REDUCTIONS[word]


def also_failed(ranks: Sequence[int]) -> str:
    return f"; so did {name_ranks(ranks)}" if ranks else ""


def name_ranks(ranks: Sequence[int], most: int = 8) -> str:
    shown = ", ".join(map(str, ranks[:most])) + (f" and {len(ranks) - most} more" if len(ranks) > most else "")
    return f"rank{'s' if len(ranks) > 1 else ''} {shown}"


def failure_of(
    group: str,
    outcome: Outcome,
    placements: _roost.Placements | None,
    doing: str,
    more: str = "",
    outcomes: Sequence[Outcome] = (),
) -> WorkerError:
    """The WorkerError of a rank that failed: one line, then the worker's traceback."""
    place = placements[outcome.rank] if placements is not None else None
    devices = place.visible_accelerators if place else []
    where = (
        f" (node {place.cluster_node_rank}{', accelerators ' + ','.join(devices) if devices else ''})" if place else ""
    )
    before = "it had ended before: " if outcome.kind == "not_run" else ""
    words = f"rank {outcome.rank} of group {group!r}{where} failed {doing}: {before}{outcome.error}{more}"
    if outcome.traceback:
        words += "\n\n" + shorten(outcome.traceback.rstrip("\n"), TRACEBACK_MAX)
    return WorkerError(
        words,
        rank=outcome.rank,
        node_rank=place.cluster_node_rank if place else -1,
        accelerators=devices,
        traceback=outcome.traceback,
        outcomes=outcomes,
    )
