"""Trainers of roost.slime on Ray: actors of the user's own class, each in the bundle of its slot.

Their handles are Ray's own and their calls return Ray's own references, as slime's code expects."""

import contextlib
import os
import re
import secrets
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from roost import _roost
from roost._plan.config import environment
from roost._plan.errors import EngineError, fault, warn
from roost._ray.environment import own_place
from roost._ray.group import Rank, RayCall, death_words, kill_actors
from roost._ray.join import check_alive, state
from roost._ray.ports import RayPorts
from roost._ray.session import Session
from roost._work.bundles import Seat, TrainerRequest
from roost._work.call import CallSite, Handle, Outcome, wait_named

END_SECONDS = 30.0
FAILED_MAKING = "error raised in its creation task, "  # Ray's words for a constructor that raised


@dataclass(frozen=True)
class Place:
    """A node, as a process on it sees it."""

    address: str
    owner: tuple[int, str]  # who shares its ports: the user and the network namespace


class ActorCall(RayCall):
    """References of one call to all ranks, as outcomes."""

    def __init__(self, ray: Session, method: str, ranks: Sequence[Rank], refs: Sequence[Any]) -> None:
        super().__init__(ray, method, [], b"")
        self._ranks, self._refs = ranks, list(refs)
        self._outcomes: list[Outcome | None] = [None] * len(refs)
        self._is_sent = [True] * len(refs)

    def _read(self, rank: Rank, answer: Any) -> Outcome:
        return Outcome(rank.rank, "value", answer)

    def _outcome(self, index: int, ref: Any) -> Outcome:
        errors, rank = self._ray.exceptions, self._ranks[index]
        try:
            return Outcome(rank.rank, "value", self._ray.get(ref))
        except errors.RayTaskError as error:
            cause = error.cause if isinstance(getattr(error, "cause", None), BaseException) else error
            line = (str(cause).strip().splitlines() or [""])[0]
            words = f"{type(cause).__name__}: {line}" if line else type(cause).__name__
            return Outcome(rank.rank, "error", error=words, traceback=plain(str(error)), exception=cause)
        except (errors.RayActorError, errors.NodeDiedError, errors.ObjectLostError) as error:
            return self._death(rank, error)
        except Exception as error:
            return Outcome(rank.rank, "error", error=f"{type(error).__name__}: {error}", exception=error)

    def _death(self, rank: Rank, error: Exception) -> Outcome:
        """Of an actor that has ended. The error of a constructor comes as the text of its traceback alone."""
        _, is_made, trace = plain(str(error)).partition(FAILED_MAKING)
        if not is_made:
            return Outcome(rank.rank, "unknown", error=death_words(error, rank.node))
        return Outcome(rank.rank, "error", error=trace.strip().splitlines()[-1], traceback=trace.strip())


def plain(text: str) -> str:
    """Ray's text without its colours."""
    return re.sub(r"\x1b\[[0-9;]*m", "", text)


class RayTrainers:
    """The trainers of one TrainGroup."""

    def __init__(self, ray: Session, group: Any, request: TrainerRequest, places: Mapping[str, Place]) -> None:
        self._ray, self._group, self._request = ray, group, request
        self._places = places
        self._nodes = list(dict.fromkeys(bundle.node_id for bundle in request.bundles))  # by rank of the node
        self._ports = RayPorts(
            ray,
            f"slime-{secrets.token_hex(4)}",
            self._affinity,
            self._node_words,
            self._check_node,
            self._environment_here,
        )
        self.handles: list[Any] = []
        self._ranks: list[Rank] = []
        self.world_size = len(request.bundles)
        self.is_closed = False

    # --- nodes

    def _affinity(self, node_rank: int) -> Any:
        from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

        return NodeAffinitySchedulingStrategy(self._nodes[node_rank], soft=False)

    def _node_words(self, node_rank: int) -> str:
        return f"node {self._places[self._nodes[node_rank]].address}"

    def _check_node(self, node_rank: int) -> None:
        check_alive(self._ray, {self._nodes[node_rank]: self._node_words(node_rank)})

    def _environment_here(self, node_rank: int) -> list[str] | None:
        """The environment for leases, where this process shares its ports with the processes of that node."""
        node_id = self._nodes[node_rank]
        if node_id != self._ray.get_runtime_context().get_node_id() or self._places[node_id].owner != own_place():
            return None
        return environment(os.environ)

    # --- start

    def start(self) -> None:
        """Makes the actors without waiting for their constructors. Nothing is left where that fails."""
        try:
            (port,) = self._ports.lease(0, (1,), "master")
            self._create(self._places[self._nodes[0]].address, port)
        except BaseException:
            self.close()
            raise

    def _create(self, master_addr: str, master_port: int) -> None:
        from ray.util.scheduling_strategies import PlacementGroupSchedulingStrategy

        request, size = self._request, self.world_size
        actor = self._ray.remote(request.cls)
        for rank, bundle in enumerate(request.bundles):
            made = actor.options(
                num_gpus=request.fraction,
                num_cpus=request.fraction,
                max_restarts=0,
                max_task_retries=0,
                runtime_env={"env_vars": self._variables(rank, master_addr, master_port)},
                scheduling_strategy=PlacementGroupSchedulingStrategy(
                    self._group, placement_group_bundle_index=bundle.index
                ),
            ).remote(size, rank, master_addr, master_port)
            self.handles.append(made)
            self._ranks.append(Rank(rank, made, self._node_words(self._nodes.index(bundle.node_id))))

    def _variables(self, rank: int, master_addr: str, master_port: int) -> dict[str, str]:
        request, bundle = self._request, self._request.bundles[rank]
        variables, warnings = _roost.trainer_variables(
            rank,
            self.world_size,
            master_addr,
            master_port,
            str(bundle.gpu_id),
            bundle.visible,
            request.preload,
            request.is_replaying,
            environment(os.environ),
            environment(request.own),
        )
        if rank == 0:
            warn(warnings, 6)
        return variables

    # --- calls

    def check(self, timeout: float) -> None:
        self.gather("__init__", [handle.__ray_ready__.remote() for handle in self.handles], timeout)

    def send(self, method: str, calls: Sequence[tuple[tuple[Any, ...], dict[str, Any]]]) -> list[Any]:
        self._ray.check()
        return [
            self._method(handle, method).remote(*args, **kwargs)
            for handle, (args, kwargs) in zip(self.handles, calls, strict=True)
        ]

    def _method(self, handle: Any, method: str) -> Any:
        try:
            return getattr(handle, method)
        except AttributeError:
            raise AttributeError(f"class {self._request.cls.__name__} has no method {method!r}") from None

    def gather(self, method: str, references: Sequence[Any], timeout: float) -> list[Any]:
        seats: Any = [Seat(self._nodes.index(bundle.node_id), [str(bundle.gpu_id)]) for bundle in self._request.bundles]
        site = CallSite(self._request.name, method, None, seats, self)
        return wait_named(Handle(site, ActorCall(self._ray, method, self._ranks, references)), timeout)

    # --- end

    def close(self) -> None:
        if self.is_closed:
            return
        self.is_closed = True
        handles, self.handles = self.handles, []
        if not self._ray.is_joined:
            return
        with contextlib.ExitStack() as ends:
            ends.callback(self._ports.close)
            try:
                processes = processes_of(handles)
            finally:
                kill_actors(self._ray, handles)
            self._wait_gone(processes)

    def _wait_gone(self, processes: Mapping[str, list[int]]) -> None:
        from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

        task = self._ray.remote(num_cpus=0, max_retries=0)(wait_gone)
        asked = {
            task.options(scheduling_strategy=NodeAffinitySchedulingStrategy(node, soft=False)).remote(
                pids, END_SECONDS
            ): node
            for node, pids in processes.items()
        }
        deadline = time.monotonic() + 2 * END_SECONDS
        while asked:
            ready, _ = self._ray.wait(list(asked), num_returns=1, timeout=max(0.0, deadline - time.monotonic()))
            if not ready:
                return  # a node that does not answer: Ray ends its processes with it
            for ref in ready:
                node = asked.pop(ref)
                try:
                    left = self._ray.get(ref)
                except Exception:  # the node is lost, and its processes with it
                    continue
                if left:
                    raise fault(
                        EngineError,
                        f"processes of '{self._request.name}' on node {self._places[node].address} were killed {END_SECONDS:g} seconds ago and are still there: {', '.join(map(str, left))}",
                        hint="they may hang in a driver of the system: see their state there",
                    )


def processes_of(handles: Sequence[Any]) -> dict[str, list[int]]:
    """The processes of actors that have one, by Ray's id of their node."""
    found: dict[str, list[int]] = {}
    for handle in handles:
        entry = state().actors(handle._actor_id.hex())
        if entry and entry.get("Pid"):
            found.setdefault(entry["Address"]["NodeID"], []).append(int(entry["Pid"]))
    return found


def wait_gone(pids: list[int], timeout: float) -> list[int]:
    """Runs on their node: waits until these processes have ended, and returns those that have not."""
    import os
    import select
    import time

    deadline, left = time.monotonic() + timeout, []
    for pid in pids:
        try:
            watch = os.pidfd_open(pid)
        except ProcessLookupError:
            continue
        try:
            if not select.select([watch], [], [], max(0.0, deadline - time.monotonic()))[0]:
                left.append(pid)
        finally:
            os.close(watch)
    return left


wait_gone.__module__ = "__main__"  # cloudpickle sends what belongs to the main script by value
