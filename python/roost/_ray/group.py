"""A worker group on Ray: one named actor for each rank, and calls to them.

A call is Ray's actor call, and ends in exactly one outcome for each rank."""

import asyncio
import os
import secrets
import threading
import time
from collections.abc import Callable, Sequence
from typing import Any

from roost._ray.actor import failed_reading, unpack, unreadable, write_call
from roost._ray.logs import RayLogs, Source
from roost._ray.session import check_owner
from roost._work.call import Answered, CallSite, Handle, Outcome
from roost._work.host import Answer

MARK_SECONDS = 2.0
DEAD = 4  # in Ray's table of actors


def death_words(error: BaseException, node: str) -> str:
    """Ray's cause of an actor's end, in a line, with the node's rank."""
    words = " ".join(line.strip() for line in str(error).splitlines() if line.strip())
    return f"the worker on {node} has ended: {rays_cause(words)[:400]}"


def rays_cause(words: str) -> str:
    """Why an actor has ended, by Ray's text, without what Ray adds to every end."""
    for start in ("The actor is dead because ", "The actor died because "):
        if start in words:
            words = words.partition(start)[2]
    return words.partition(" Some common causes")[0]


class Rank:
    """One actor, as the driver knows it."""

    def __init__(self, rank: int, actor: Any, node: str) -> None:
        self.rank, self.actor, self.node = rank, actor, node
        self.call: Any = getattr(actor, "call", None)  # kept: Ray makes a new object at each access
        self.end: str | None = None  # why it has ended, once that is known
        self.source: Source | None = None  # of its output

    @classmethod
    def gone(cls, rank: int) -> "Rank":
        """One that had ended before it was looked for."""
        made = cls(rank, None, "its node")
        made.end = "the worker on its node has ended before the group was found"
        return made


def is_known_dead(ray: Any, rank: Rank) -> bool:
    """Whether Ray knows in this process that the actor has ended. Ray learns it within milliseconds, but reports it only when a
    call fails. Versions before about 2.49 do not show it; then every call is sent."""
    if rank.actor is None:
        return True
    try:
        return bool(ray._private.worker.global_worker.core_worker.get_local_actor_state(rank.actor._actor_id) == DEAD)
    except AttributeError:
        return False


class RayCall:
    """A call on its way."""

    def __init__(self, ray: Any, method: str, ranks: Sequence[Rank], payload: Any) -> None:
        self._ray, self._method, self._ranks = ray, method, ranks
        self._refs: list[Any] = [None] * len(ranks)
        self._outcomes: list[Outcome | None] = [None] * len(ranks)
        self._is_sent = [
            not is_known_dead(ray, rank) for rank in ranks
        ]  # what Ray refuses to send certainly does not run
        self._lock = threading.Lock()
        self._pid = os.getpid()
        for index, rank in enumerate(ranks):
            if rank.end is not None:
                self._outcomes[index] = Outcome(rank.rank, "not_run", error=rank.end)
                continue
            try:
                self._refs[index] = rank.call.remote(payload)
            except Exception as error:  # Ray knows that it is gone: nothing was sent
                rank.end = death_words(error, rank.node)
                self._outcomes[index] = Outcome(rank.rank, "not_run", error=rank.end)

    def _waiting(self) -> list[Any]:
        check_owner(self._pid, "a call belongs to the process that made it")
        refs = [ref for ref, outcome in zip(self._refs, self._outcomes, strict=True) if outcome is None]
        if refs:
            self._ray.check()
        return refs

    def wait(self, timeout: float | None) -> bool:
        refs = self._waiting()
        if not refs:
            return True
        start = time.monotonic()
        try:
            # The usual way, and a quick one: every rank has a value, and all are fetched at once.
            answers = self._ray.get(refs, timeout=timeout)
        except self._ray.exceptions.GetTimeoutError:
            return False
        except Exception:  # some rank has no value: each rank is read by itself
            rest = None if timeout is None else max(0.0, start + timeout - time.monotonic())
            _, left = self._ray.wait(refs, num_returns=len(refs), timeout=rest, fetch_local=False)
            return not left
        with self._lock:
            come = dict(zip(refs, answers, strict=True))
            for index, ref in enumerate(self._refs):
                if self._outcomes[index] is None and ref in come:
                    self._outcomes[index] = self._read(self._ranks[index], come[ref])
                    self._refs[index] = None
        return True

    def _read(self, rank: Rank, answer: Answer | bytes) -> Outcome:
        try:
            return unpack(answer).outcome(rank.rank)
        except Exception as error:
            return unread(rank, error)

    def values(self, timeout: float) -> tuple[list[Any], list[Answered]] | None:
        if not self.wait(timeout) or any(outcome is None or outcome.kind != "value" for outcome in self._outcomes):
            return None
        answers: list[Answered] = [
            (outcome.value, outcome.seconds or 0.0, outcome.timers) for outcome in self._outcomes if outcome is not None
        ]
        return [value for value, _, _ in answers], answers

    def done(self) -> bool:
        refs = self._waiting()
        return not refs or not self._ray.wait(refs, num_returns=len(refs), timeout=0, fetch_local=False)[1]

    def has_failed(self) -> bool:
        self._take()
        return any(outcome is not None and outcome.kind != "value" for outcome in self._outcomes)

    async def async_wait(self) -> None:
        refs = self._waiting()
        if refs:
            # outcomes() reports how each of them ended.
            await asyncio.gather(*(asyncio.wrap_future(ref.future()) for ref in refs), return_exceptions=True)

    def outcomes(self) -> list[Outcome]:
        self._take()
        return [
            outcome or Outcome(rank.rank, "pending") for rank, outcome in zip(self._ranks, self._outcomes, strict=True)
        ]

    def _take(self) -> None:
        """Takes what has come."""
        with self._lock:
            refs = self._waiting()
            if not refs:
                return
            ready, _ = self._ray.wait(refs, num_returns=len(refs), timeout=0, fetch_local=False)
            come = set(ready)
            for index, ref in enumerate(self._refs):
                if self._outcomes[index] is None and ref in come:
                    self._outcomes[index] = self._outcome(index, ref)
                    self._refs[index] = None

    def _outcome(self, index: int, ref: Any) -> Outcome:
        errors, rank = self._ray.exceptions, self._ranks[index]
        try:
            return unpack(self._ray.get(ref)).outcome(rank.rank)
        except errors.ActorUnavailableError as error:  # it may come back; whether the method ran is not known
            return Outcome(
                rank.rank, "unknown", error=f"the worker on {rank.node} does not answer: {str(error).splitlines()[0]}"
            )
        except (errors.RayActorError, errors.NodeDiedError, errors.OwnerDiedError, errors.ObjectLostError) as error:
            rank.end = rank.end or death_words(error, rank.node)
            return Outcome(rank.rank, "unknown" if self._is_sent[index] else "not_run", error=rank.end)
        except (
            errors.RayTaskError
        ) as error:  # the host raises nothing: Ray could not read what it was sent, or send what it answered
            cause = error.cause if isinstance(getattr(error, "cause", None), BaseException) else error
            if isinstance(cause, errors.RaySystemError):
                return unreadable(self._method, failed_reading(cause)).outcome(rank.rank)
            return Answer().unsendable(self._method, cause).outcome(rank.rank)
        except Exception as error:
            return unread(rank, error)


def unread(rank: Rank, raised: Exception) -> Outcome:
    failure = failed_reading(raised)
    return Outcome(
        rank.rank, "error", error=f"what it returned cannot be read here: {failure.error}", traceback=failure.traceback
    )


class RayGroup:
    """A running group."""

    def __init__(
        self,
        ray: Any,
        name: str,
        ranks: list[Rank],
        logs: RayLogs | None = None,
        free_ports: Callable[[], None] = lambda: None,
    ) -> None:
        self._ray, self.name, self._ranks, self._logs, self._free_ports = ray, name, ranks, logs, free_ports
        self.world_size = len(ranks)
        self._is_closed = False
        self._is_cut_off = False  # Ray had been shut down when it was closed
        self._pid = os.getpid()

    @property
    def actors(self) -> list[Any]:
        return [rank.actor for rank in self._ranks if rank.actor is not None]

    def caller(self, site: CallSite) -> Callable[..., Handle]:
        method, ranks = site.method, [self._ranks[rank] for rank in site.ranks]

        def call(*args: Any, **kwargs: Any) -> Handle:
            check_owner(self._pid, "a group belongs to the process that launched it")
            if self._is_closed and not self._is_cut_off:
                site.refuse()
            self._ray.check()
            return Handle(site, RayCall(self._ray, method, ranks, write_call(self._ray, method, args, kwargs)))

        call.__name__, call.__doc__ = method, site.doc
        return call

    def _mark(self, mark: str) -> list[Source]:
        """Ranks that are busy, or gone, write none."""
        asked = {rank.actor.mark.remote(mark): rank.source for rank in self._ranks if rank.source and rank.end is None}
        done, _ = self._ray.wait(list(asked), num_returns=len(asked), timeout=MARK_SECONDS) if asked else ([], [])
        return [asked[ref] for ref in done if not is_failed(self._ray, ref)]

    def close(self) -> None:
        if self._is_closed or self._pid != os.getpid():
            return
        self._is_closed = True
        self._is_cut_off = not self._ray.is_joined
        if self._logs is not None and self._logs.is_kept and not self._is_cut_off:
            self._logs.drain(f"roost-mark-{secrets.token_hex(8)}", self._mark)
        kill_actors(self._ray, self.actors)
        self._free_ports()
        for rank in self._ranks:
            rank.end = rank.end or "the group was closed"
        if self._logs is not None:
            self._logs.forget([rank.source for rank in self._ranks if rank.source])


def is_failed(ray: Any, ref: Any) -> bool:
    try:
        ray.get(ref)
    except Exception:
        return True
    return False


def kill_actors(ray: Any, actors: Sequence[Any]) -> None:
    """Those of a session that is over ended with it."""
    for actor in actors if ray.is_joined else ():
        try:
            ray.kill(actor, no_restart=True)
        except Exception:  # it is gone already, or so is Ray
            pass


def wait_names_free(ray: Any, names: set[str], namespace: str, timeout: float) -> set[str]:
    """Names that still are taken when time is up; a killed name is not free at once."""
    deadline = time.monotonic() + timeout
    while taken := names & named_actors(ray, namespace):
        if time.monotonic() >= deadline:
            return taken
        time.sleep(0.05)
    return set()


def named_actors(ray: Any, namespace: str) -> set[str]:
    entries = ray.util.list_named_actors(all_namespaces=True)
    return {entry["name"] for entry in entries if entry["namespace"] == namespace}


def rank_names(name: str, world_size: int) -> list[str]:
    return [f"{name}:{rank}" for rank in range(world_size)]
