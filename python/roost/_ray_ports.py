"""Ports of the nodes of a run on Ray: leased there, until those they are for have ended, or the run; on the node of this
process by itself, on others by an actor."""

import secrets
import threading
from collections.abc import Callable, Sequence
from typing import Any

from roost import _roost
from roost._arguments import fault
from roost._errors import EngineError, Timeout
from roost._ray_cluster import again
from roost._ray_group import death_words, kill_actors
from roost._ray_managers import ended
from roost._ray_nodes import own_environment

LEASE_SECONDS = 120.0
LOOK_AT = 32  # single actors
TRIES = 10  # of a run whose keeper is killed, or whose new one finds ports that the old one gave away


class PortKeeper:
    """Leases of the node it is on; an actor on nodes of others."""

    def __init__(self, run_id: str, env: list[str] | None = None) -> None:
        self._run_id, self._env = run_id, env
        self._leases: dict[str, list[_roost.Leases]] = {}  # by who they are for

    def lease(self, counts: tuple[int, ...], owner: str) -> list[int]:
        leases = _roost.Leases(counts, self._run_id, self._env or own_environment())
        # Whoever the ports are for binds them; until they are freed nobody else is given them.
        leases.release()
        self._leases.setdefault(owner, []).append(leases)
        return leases.ports

    def free(self, owner: str) -> None:
        self._leases.pop(owner, None)


class RayPorts:
    """The keepers of a run, made when they are needed. `env_here` is the environment of a node that this process is on."""

    def __init__(
        self, ray: Any, run_id: str, affinity: Callable[[int], Any], node_words: Callable[[int], str], check_node: Callable[[int], None],
        env_here: Callable[[int], list[str] | None],
    ) -> None:  # fmt: skip
        self._ray, self._run_id = ray, run_id
        self._affinity, self._node_words, self._check_node, self._env_here = affinity, node_words, check_node, env_here
        self._lock = threading.RLock()  # several threads may launch groups, and a signal handler end them meanwhile
        self._own: dict[int, PortKeeper] = {}
        self._keepers: dict[int, Any] = {}  # actors
        self._leased: dict[int, dict[str, set[int]]] = {}  # by node, and who they are for

    def lease(self, node_rank: int, counts: tuple[int, ...], owner: str) -> list[int]:
        """The first port of a block of each size, until the owner's are freed."""
        with self._lock:
            return self._lease(node_rank, counts, owner)

    def lease_wants(self, wants: Sequence[tuple[int, int, str | None, int, bool]], owner: str) -> tuple[int, ...]:
        """The first port of each want of processes (_roost.Processes), leased on the node of its rank."""
        by_node: dict[int, list[int]] = {}
        for index, (_, node_rank, *_) in enumerate(wants):
            by_node.setdefault(node_rank, []).append(index)
        ports = [0] * len(wants)
        for node_rank, indices in by_node.items():
            for index, port in zip(indices, self.lease(node_rank, tuple(wants[index][3] for index in indices), owner), strict=True):
                ports[index] = port
        return tuple(ports)

    def _lease(self, node_rank: int, counts: tuple[int, ...], owner: str) -> list[int]:
        if (own := self._own_keeper(node_rank)) is not None:
            return own.lease(counts, owner)
        leased = self._leased.setdefault(node_rank, {})
        leased.setdefault(owner, set())  # before it is asked: what nobody waits for any more may still be leased
        for left in reversed(range(TRIES)):
            ports = self._ask(node_rank, counts, owner, is_last=left == 0)
            if ports is None:
                continue  # the keeper was killed: another takes its place
            blocks = {port + offset for port, count in zip(ports, counts, strict=True) for offset in range(count)}
            if not blocks & set().union(*leased.values()):  # a new keeper does not know what the old one gave away
                leased[owner].update(blocks)
                return ports
        raise fault(EngineError, f"no port can be leased on {self._node_words(node_rank)} that this run has not given away", hint="launch again: who keeps them was killed")

    def free(self, owner: str) -> None:
        """Without waiting for an answer: of a keeper that is gone nothing is leased any more. Said once: the run may end, and
        its keepers with it, in the next moment, and Ray tells people of what it would ask again."""
        with self._lock:
            for keeper in self._own.values():
                keeper.free(owner)
            for node_rank, leased in self._leased.items():
                if leased.pop(owner, None) is not None and node_rank in self._keepers and self._ray.is_joined:
                    self._keepers[node_rank].free.remote(owner)

    def close(self) -> None:
        with self._lock:
            self._own.clear()
            kill_actors(self._ray, list(self._keepers.values()))
            self._keepers.clear()

    def _ask(self, node_rank: int, counts: tuple[int, ...], owner: str, is_last: bool) -> list[int] | None:
        errors, where = self._ray.exceptions, self._node_words(node_rank)
        try:
            return self._ray.get(again(self._keeper(node_rank).lease).remote(counts, owner), timeout=LEASE_SECONDS)  # type: ignore[no-any-return]
        except errors.GetTimeoutError as error:
            raise fault(Timeout, f"no port was leased on {where} after {LEASE_SECONDS:g} seconds: the actor that leases them there does not answer", hint="look at the raylet's log there; `ray status` lists the nodes") from error
        except (errors.RayActorError, errors.ActorUnschedulableError) as error:
            del self._keepers[node_rank]
            self._check_node(node_rank)
            if any(self._leased[node_rank].values()) and not is_last:
                return None
            raise fault(EngineError, f"no port can be leased on {where}: {death_words(error, where)}", hint="`ray status` lists the nodes") from error

    def _own_keeper(self, node_rank: int) -> PortKeeper | None:
        if node_rank not in self._own and (env := self._env_here(node_rank)) is not None:
            self._own[node_rank] = PortKeeper(self._run_id, env)
        return self._own.get(node_rank)

    def _keeper(self, node_rank: int) -> Any:
        if node_rank not in self._keepers:
            options = {"num_cpus": 0, "max_restarts": 0, "scheduling_strategy": self._affinity(node_rank)}
            self._keepers[node_rank] = self._ray.remote(PortKeeper).options(**options).remote(self._run_id)
        return self._keepers[node_rank]


class SinglePorts:
    """Single actors, and whose their ports are. Nobody tells of their ends, so they are looked for now and then."""

    def __init__(self, ports: RayPorts) -> None:
        self._ports = ports
        self._known: dict[str, tuple[Any, str]] = {}  # by the actor's id: itself, and the owner of its ports
        self._look_at = LOOK_AT

    def owner(self) -> str:
        """A name for the ports of the next."""
        if len(self._known) >= self._look_at:
            for who in ended({f"actor:{number}" for number in self._known}):
                self._ports.free(self._known.pop(who.removeprefix("actor:"))[1])
            self._look_at = max(LOOK_AT, 2 * len(self._known))
        return secrets.token_hex(8)

    def note(self, actor: Any, owner: str) -> None:
        self._known[actor._actor_id.hex()] = (actor, owner)

    def actors(self) -> list[Any]:
        return [actor for actor, _ in self._known.values()]
