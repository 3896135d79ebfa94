"""Waiting for the ranks of a group on Ray: who is not ready yet is told while it lasts, and when time is up."""

import logging
import time
from collections.abc import Iterator, Sequence
from typing import Any

from roost._arguments import fault
from roost._errors import Timeout
from roost._ray_cluster import SAY_EVERY, again, state
from roost._ray_group import Rank

log = logging.getLogger("roost")

NAMED_MAX = 3  # ranks that are named; the others are counted
# Ray's words for what an actor waits for. It calls one alive when its constructor has returned.
STATES = {
    "DEPENDENCIES_UNREADY": "Ray has not sent its class and arguments yet",
    "PENDING_CREATION": "Ray has started no process for it yet",
    "RESTARTING": "Ray is starting it again",
    "DEAD": "it has ended",
}


def reports(ray: Any, name: str, ranks: Sequence[Rank], timeout: float, deadline: float) -> Iterator[tuple[Rank, Any]]:
    """Each rank with its report, a reference that can be fetched at once, in the order they come; Timeout when some do not."""
    waiting = {again(rank.actor.report).remote(): rank for rank in ranks}
    said = time.monotonic()
    while waiting:
        left = deadline - time.monotonic()
        ready, _ = ray.wait(list(waiting), num_returns=1, timeout=max(0.0, min(left, said + SAY_EVERY - time.monotonic())))
        for ref in ready:
            yield waiting.pop(ref), ref
        now = time.monotonic()
        if not ready and now >= deadline:
            raise fault(
                Timeout, f"group {name!r} was not ready after {timeout:g} s: {readiness(name, len(ranks), list(waiting.values()))}",
                hint="look at the nodes' logs, or pass a larger timeout",
            )  # fmt: skip
        if waiting and now >= said + SAY_EVERY:
            said = now
            log.warning("waiting for group %r: %s", name, readiness(name, len(ranks), list(waiting.values())))


def readiness(name: str, count: int, late: Sequence[Rank]) -> str:
    """How many of how many, and who is not; as the C library says it of groups on this machine, with nodes and reasons."""
    named = [f"{name}/{rank.rank} on {rank.node}{reason(rank)}" for rank in late[:NAMED_MAX]]
    others = f" and {len(late) - NAMED_MAX} more" if len(late) > NAMED_MAX else ""
    return f"{count - len(late)} of {count} processes of {name!r} are ready; {', '.join(named)}{others} {'is' if len(late) == 1 else 'are'} not"


def reason(rank: Rank) -> str:
    """What it waits for, where Ray knows."""
    try:
        entry = state().actors(rank.actor._actor_id.hex())
        word = STATES.get(entry["State"])
        if entry["State"] == "PENDING_CREATION" and entry.get("Pid"):
            word = "its constructor has not returned"
    except Exception:  # Ray does not say
        word = None
    return f" ({word})" if word else ""
