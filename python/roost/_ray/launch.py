"""How a worker group on Ray comes to be: launched, until every rank reports that it is what was planned, or found by its
name while it runs."""

import logging
import os
import secrets
import time
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Protocol

from roost import _roost
from roost._plan.errors import EngineError, Timeout, fault
from roost._ray.actor import AsyncHosted, Hosted, Report, payload_of
from roost._ray.group import Rank, RayGroup, death_words, kill_actors, named_actors, rank_names, wait_names_free
from roost._ray.join import SAY_EVERY, again, is_taken, state, told
from roost._ray.logs import RayLogs, Source
from roost._ray.ports import RayPorts
from roost._work.call import Outcome, failure_of
from roost._work.engine import LaunchRequest
from roost._work.host import Answer, has_async_methods

log = logging.getLogger("roost")

NAME_SECONDS = 30.0
SIZE_SECONDS = 5.0
COMMANDS = "; components of `roost run` are commands, which cannot be called"
# Ray's words for what an actor waits for. It calls one alive when its constructor has returned.
STATES = {
    "DEPENDENCIES_UNREADY": "Ray has not sent its class and arguments yet",
    "PENDING_CREATION": "Ray has started no process for it yet",
    "RESTARTING": "Ray is starting it again",
    "DEAD": "it has ended",
}


class LaunchSite(Protocol):
    """The run that a group is launched in: RayEngine, as far as a launch needs it."""

    _ray: Any
    _nodes: list[dict[str, Any]]
    _ports: RayPorts
    _logs: RayLogs | None
    namespace: str
    ids: list[str]

    def environments(self, request: LaunchRequest, owner: str) -> list[tuple[dict[str, str], str | None]]: ...

    def options(
        self,
        name: str,
        node_rank: int,
        variables: Mapping[str, str],
        interpreter: str | None,
        max_concurrency: int | None,
    ) -> dict[str, Any]: ...

    def node_words(self, node_rank: int) -> str: ...

    def taken(self, name: str) -> EngineError: ...


def own_folder() -> str | None:
    """The working directory of the workers, as on the local engine; None where it was removed."""
    try:
        return os.getcwd()
    except OSError:
        return None


class Launch:
    """The launch of one group. A failure leaves nothing of the group."""

    def __init__(self, engine: LaunchSite, request: LaunchRequest, deadline: float) -> None:
        self._engine, self._ray, self._request, self._deadline = engine, engine._ray, request, deadline
        self._names = rank_names(request.name, len(request.placements))
        self._planned: list[dict[str, str]] = []  # the variables of each rank

    def begin(self) -> RayGroup:
        engine, request = self._engine, self._request
        owner = secrets.token_hex(8)  # a name may be used again
        try:
            ranks = self._create(engine.environments(request, owner))
        except BaseException:
            engine._ports.free(owner)
            raise
        group = RayGroup(self._ray, request.name, ranks, engine._logs, lambda: engine._ports.free(owner))
        try:
            for rank, ref in reports(self._ray, request.name, ranks, request.timeout, self._deadline):
                self._check(rank, ref)
        except BaseException:
            group.close()
            wait_names_free(self._ray, set(self._names), engine.namespace, NAME_SECONDS)
            raise
        return group

    def _create(self, environments: list[tuple[dict[str, str], str | None]]) -> list[Rank]:
        engine, request, ray = self._engine, self._request, self._ray
        actor = ray.remote(AsyncHosted if has_async_methods(request.cls) else Hosted)
        payload = ray.put(payload_of(ray, request))
        ranks: list[Rank] = []
        try:
            for rank, (name, (variables, interpreter)) in enumerate(zip(self._names, environments, strict=True)):
                node_rank = request.placements[rank].cluster_node_rank
                made = actor.options(
                    **engine.options(
                        name,
                        node_rank,
                        variables,
                        request.interpreters.get(rank) or interpreter,
                        request.max_concurrency,
                    )
                ).remote(payload, sorted(variables), request.surroundings, request.catch_system_failure, own_folder())
                ranks.append(Rank(rank, made, engine.node_words(node_rank)))
                self._planned.append(variables)
        except BaseException as error:
            kill_actors(ray, [rank.actor for rank in ranks])
            wait_names_free(ray, set(self._names[: len(ranks)]), engine.namespace, NAME_SECONDS)
            if is_taken(ray, error):
                raise engine.taken(self._names[len(ranks)]) from error
            raise
        return ranks

    def _check(self, rank: Rank, ref: Any) -> None:
        """Checks that a rank has started, has made its worker, and is as planned."""
        engine, request = self._engine, self._request
        node_rank = request.placements[rank.rank].cluster_node_rank
        try:
            report = self._ray.get(ref)
        except Exception as error:
            outcome = Outcome(rank.rank, "unknown", error=death_words(error, rank.node))
            raise failure_of(request.name, outcome, request.placements, "to start", outcomes=[outcome]) from error
        if engine._logs:
            rank.source = Source(
                request.name,
                rank.rank,
                engine._nodes[node_rank]["address"],
                report.pid,
                not request.disable_distributed_log,
            )
            engine._logs.add_source(rank.source)
        if report.failure is not None:
            outcome = Answer(failure=report.failure).outcome(rank.rank)
            raise failure_of(
                request.name, outcome, request.placements, "to start", outcomes=[outcome]
            ) from outcome.exception
        wrong = differences(self._planned[rank.rank], report, engine.ids[node_rank])
        if wrong:
            raise fault(
                EngineError,
                f"rank {rank.rank} of '{request.name}' is not as planned: {'; '.join(wrong[:5])}",
                hint="something between Ray and the worker changes its environment: sitecustomize, a plugin of Ray, py_executable",
            )


def differences(planned: Mapping[str, str], report: Report, node_id: str) -> list[str]:
    """What in the report of a rank is not as planned."""
    found = []
    if report.node_id != node_id:
        found.append(f"it runs on node {report.node_id} and not on {node_id}")
    for name, value in planned.items():
        seen = report.variables.get(name)
        if seen != value:
            found.append(f"{name} is {seen!r} and not {value!r}")
    return found


# --- waiting for the ranks


def reports(ray: Any, name: str, ranks: Sequence[Rank], timeout: float, deadline: float) -> Iterator[tuple[Rank, Any]]:
    """Each rank with its report, a reference that can be fetched at once, in the order they come; Timeout when some do not."""
    waiting = {again(rank.actor.report).remote(): rank for rank in ranks}
    said = time.monotonic()
    while waiting:
        left = deadline - time.monotonic()
        ready, _ = ray.wait(
            list(waiting), num_returns=1, timeout=max(0.0, min(left, said + SAY_EVERY - time.monotonic()))
        )
        for ref in ready:
            yield waiting.pop(ref), ref
        now = time.monotonic()
        if not ready and now >= deadline:
            raise fault(
                Timeout,
                f"group {name!r} was not ready after {timeout:g} s: {readiness(name, len(ranks), list(waiting.values()))}",
                hint="look at the nodes' logs, or pass a larger timeout",
            )
        if waiting and now >= said + SAY_EVERY:
            said = now
            log.warning("waiting for group %r: %s", name, readiness(name, len(ranks), list(waiting.values())))


def readiness(name: str, count: int, late: Sequence[Rank]) -> str:
    """How many ranks are ready and which are not: the text of the C library, with nodes and reasons."""
    named = [(rank.rank, f" on {rank.node}{reason(rank)}") for rank in late[: _roost.LATE_NAMED]]
    return _roost.readiness(name, count, len(late), named)


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


# --- finding a group


def find_group(engine: LaunchSite, name: str) -> RayGroup:
    """One that any process of the run has launched."""
    ray = engine._ray
    taken = named_actors(ray, engine.namespace)
    found = {
        int(rank): f"{group}:{rank}"
        for group, _, rank in (other.rpartition(":") for other in taken)
        if group == name and rank.isdecimal()
    }
    if not found:
        known = sorted({other.rpartition(":")[0] for other in taken if ":" in other})
        raise fault(
            EngineError,
            f"there is no group '{name}' in namespace '{engine.namespace}'",
            hint=f"running are: {', '.join(known) or 'none'}{COMMANDS if any(other.startswith('agent/') for other in taken) else ''}",
            code="name",
        )
    with told(ray, f"group '{name}' has just ended", "launch it again"):
        actors = {rank: ray.get_actor(actor, namespace=engine.namespace) for rank, actor in found.items()}
    size = max(world_size(ray, list(actors.values())), *(rank + 1 for rank in actors), 1)
    return RayGroup(
        ray,
        name,
        [
            Rank(rank, actors[rank], words_of(engine, actors[rank])) if rank in actors else Rank.gone(rank)
            for rank in range(size)
        ],
    )


def words_of(engine: LaunchSite, actor: Any) -> str:
    """The node of an actor, which Ray knows also of one that is busy."""
    try:
        node_id = state().actors(actor._actor_id.hex())["Address"]["NodeID"]
        return engine.node_words(engine.ids.index(node_id))
    except (KeyError, TypeError, ValueError):  # it has just ended
        return "its node"


def world_size(ray: Any, actors: list[Any]) -> int:
    """The size of the group, from any rank that is not busy; 0 when all are."""
    answered, _ = ray.wait([again(actor.report).remote() for actor in actors], num_returns=1, timeout=SIZE_SECONDS)
    try:
        return int(ray.get(answered[0]).variables["WORLD_SIZE"]) if answered else 0
    except Exception:  # it has just ended
        return 0
