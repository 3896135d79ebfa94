"""Groups of workers on Ray, as they come to be: one that is launched, to the moment when every rank has said that it is
what was planned, and one that runs already and is found by its name."""

import os
import secrets
from typing import TYPE_CHECKING, Any

from roost._arguments import fault
from roost._engine import LaunchRequest, Outcome
from roost._errors import EngineError
from roost._handle import failure_of
from roost._host import Answer
from roost._ray_cluster import again, is_taken, state, told
from roost._ray_group import AsyncHosted, Hosted, Rank, RayGroup, death_words, differences, kill_actors, named_actors, payload_of, rank_names, wait_names_free
from roost._ray_logs import Source
from roost._ray_ready import reports

if TYPE_CHECKING:
    from roost._ray import RayEngine

NAME_SECONDS = 30.0
SIZE_SECONDS = 5.0
COMMANDS = "; components of `roost run` are commands, which cannot be called"


def own_folder() -> str | None:
    """Where workers work, as on this machine; one that was removed is nobody's."""
    try:
        return os.getcwd()
    except OSError:
        return None


class Launch:
    """A group on its way. What fails leaves nothing of it."""

    def __init__(self, engine: "RayEngine", request: LaunchRequest, deadline: float) -> None:
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
        from roost._host import has_async_methods

        engine, request, ray = self._engine, self._request, self._ray
        actor = ray.remote(AsyncHosted if has_async_methods(request.cls) else Hosted)
        payload = ray.put(payload_of(ray, request))
        ranks: list[Rank] = []
        try:
            for rank, (name, (variables, interpreter)) in enumerate(zip(self._names, environments, strict=True)):
                node_rank = request.placements[rank].cluster_node_rank
                made = actor.options(
                    **engine.options(name, node_rank, variables, request.interpreters.get(rank) or interpreter, request.max_concurrency)
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
        """It is there, made its worker, and is where and what the plan says."""
        engine, request = self._engine, self._request
        node_rank = request.placements[rank.rank].cluster_node_rank
        try:
            report = self._ray.get(ref)
        except Exception as error:
            outcome = Outcome(rank.rank, "unknown", error=death_words(error, rank.node))
            raise failure_of(request.name, outcome, request.placements, "to start", outcomes=[outcome]) from error
        if engine._logs:
            rank.source = Source(request.name, rank.rank, engine._nodes[node_rank]["address"], report.pid, not request.disable_distributed_log)
            engine._logs.know(rank.source)
        if report.failure is not None:
            outcome = Answer(failure=report.failure).outcome(rank.rank)
            raise failure_of(request.name, outcome, request.placements, "to start", outcomes=[outcome]) from outcome.exception
        wrong = differences(self._planned[rank.rank], report, engine.ids[node_rank])
        if wrong:
            raise fault(EngineError, f"rank {rank.rank} of '{request.name}' is not as planned: {'; '.join(wrong[:5])}", hint="something between Ray and the worker changes its environment: sitecustomize, a plugin of Ray, py_executable")


def find_group(engine: "RayEngine", name: str) -> RayGroup:
    """One that any process of the run has launched."""
    ray = engine._ray
    taken = named_actors(ray, engine.namespace)
    found = {int(rank): f"{group}:{rank}" for group, _, rank in (other.rpartition(":") for other in taken) if group == name and rank.isdecimal()}
    if not found:
        known = sorted({other.rpartition(":")[0] for other in taken if ":" in other})
        raise fault(EngineError, f"there is no group '{name}' in namespace '{engine.namespace}'", hint=f"running are: {', '.join(known) or 'none'}{COMMANDS if any(other.startswith('part/') for other in taken) else ''}", code="name")
    with told(ray, f"group '{name}' has just ended", "launch it again"):
        actors = {rank: ray.get_actor(actor, namespace=engine.namespace) for rank, actor in found.items()}
    size = max(world_size(ray, list(actors.values())), *(rank + 1 for rank in actors), 1)
    return RayGroup(ray, name, [Rank(rank, actors[rank], words_of(engine, actors[rank])) if rank in actors else Rank.gone(rank) for rank in range(size)])


def words_of(engine: "RayEngine", actor: Any) -> str:
    """The node of an actor, which Ray knows also of one that is busy."""
    try:
        node_id = state().actors(actor._actor_id.hex())["Address"]["NodeID"]
        return engine.node_words(engine.ids.index(node_id))
    except (KeyError, TypeError, ValueError):  # it has just ended
        return "its node"


def world_size(ray: Any, actors: list[Any]) -> int:
    """As any of them tells that is not busy; 0 when all are."""
    answered, _ = ray.wait([again(actor.report).remote() for actor in actors], num_returns=1, timeout=SIZE_SECONDS)
    try:
        return int(ray.get(answered[0]).variables["WORLD_SIZE"]) if answered else 0
    except Exception:  # it has just ended
        return 0
