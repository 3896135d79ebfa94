"""Leases ports on the nodes of a run on Ray, until their owner or the run has ended. This process leases those of its own node;
an actor leases those of another node."""

import secrets
import threading
from collections.abc import Callable, Sequence
from typing import Any

from roost import _roost
from roost._plan.config import environment
from roost._plan.errors import EngineError, Timeout, fault
from roost._ray.group import death_words, kill_actors
from roost._ray.join import again, ended

LEASE_SECONDS = 120.0
LOOK_AT = 32  # single actors
TRIES = 10  # of a run whose holder is killed, or whose new one finds ports that the old one gave away


class PortHolder:
    """Leases of the node it is on; an actor on nodes of others."""

    def __init__(self, run_id: str, env: list[str] | None = None) -> None:
        self._run_id, self._env = run_id, env
        self._leases: dict[str, list[_roost.Leases]] = {}  # by owner

    def lease(self, counts: tuple[int, ...], owner: str) -> list[int]:
        leases = _roost.Leases(counts, self._run_id, self._env or environment())
        # The owner binds the ports. Until they are freed, no other process gets them.
        leases.release()
        self._leases.setdefault(owner, []).append(leases)
        return leases.ports

    def free(self, owner: str) -> None:
        self._leases.pop(owner, None)


class RayPorts:
    """The holders of a run, made when they are needed. `env_here` is the environment of a node that this process is on."""

    def __init__(
        self,
        ray: Any,
        run_id: str,
        affinity: Callable[[int], Any],
        node_words: Callable[[int], str],
        check_node: Callable[[int], None],
        env_here: Callable[[int], list[str] | None],
    ) -> None:
        self._ray, self._run_id = ray, run_id
        self._affinity, self._node_words, self._check_node, self._env_here = affinity, node_words, check_node, env_here
        self._lock = (
            threading.RLock()
        )  # several threads may launch groups, and a signal handler may end them at the same time
        self._own: dict[int, PortHolder] = {}
        self._holders: dict[int, Any] = {}  # actors
        self._leased: dict[int, dict[str, set[int]]] = {}  # by node and owner

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
            for index, port in zip(
                indices, self.lease(node_rank, tuple(wants[index][3] for index in indices), owner), strict=True
            ):
                ports[index] = port
        return tuple(ports)

    def _lease(self, node_rank: int, counts: tuple[int, ...], owner: str) -> list[int]:
        if (own := self._own_holder(node_rank)) is not None:
            return own.lease(counts, owner)
        leased = self._leased.setdefault(node_rank, {})
        leased.setdefault(owner, set())  # before the request: ports may be leased even if this process stops waiting
        for left in reversed(range(TRIES)):
            ports = self._lease_there(node_rank, counts, owner, is_last=left == 0)
            if ports is None:
                continue  # the holder was killed: another takes its place
            blocks = {port + offset for port, count in zip(ports, counts, strict=True) for offset in range(count)}
            if not blocks & set().union(*leased.values()):  # a new holder does not know what the old one gave away
                leased[owner].update(blocks)
                return ports
        raise fault(
            EngineError,
            f"no port can be leased on {self._node_words(node_rank)} that this run has not given away",
            hint="launch again: who keeps them was killed",
        )

    def free(self, owner: str) -> None:
        """Without waiting for an answer: of a holder that is gone nothing is leased any more. Said once: the run may end, and
        its holders with it, in the next moment, and Ray tells people of what it would ask again."""
        with self._lock:
            for holder in self._own.values():
                holder.free(owner)
            for node_rank, leased in self._leased.items():
                if leased.pop(owner, None) is not None and node_rank in self._holders and self._ray.is_joined:
                    self._holders[node_rank].free.remote(owner)

    def close(self) -> None:
        with self._lock:
            self._own.clear()
            kill_actors(self._ray, list(self._holders.values()))
            self._holders.clear()

    def _lease_there(self, node_rank: int, counts: tuple[int, ...], owner: str, is_last: bool) -> list[int] | None:
        errors, where = self._ray.exceptions, self._node_words(node_rank)
        try:
            lease = again(self._holder(node_rank).lease)
            ports: list[int] = self._ray.get(lease.remote(counts, owner), timeout=LEASE_SECONDS)
            return ports
        except errors.GetTimeoutError as error:
            raise fault(
                Timeout,
                f"no port was leased on {where} after {LEASE_SECONDS:g} seconds: the actor that leases them there does not answer",
                hint="look at the raylet's log there; `ray status` lists the nodes",
            ) from error
        except (errors.RayActorError, errors.ActorUnschedulableError) as error:
            del self._holders[node_rank]
            self._check_node(node_rank)
            if any(self._leased[node_rank].values()) and not is_last:
                return None
            raise fault(
                EngineError,
                f"no port can be leased on {where}: {death_words(error, where)}",
                hint="`ray status` lists the nodes",
            ) from error

    def _own_holder(self, node_rank: int) -> PortHolder | None:
        if node_rank not in self._own and (env := self._env_here(node_rank)) is not None:
            self._own[node_rank] = PortHolder(self._run_id, env)
        return self._own.get(node_rank)

    def _holder(self, node_rank: int) -> Any:
        if node_rank not in self._holders:
            options = {"num_cpus": 0, "max_restarts": 0, "scheduling_strategy": self._affinity(node_rank)}
            self._holders[node_rank] = self._ray.remote(PortHolder).options(**options).remote(self._run_id)
        return self._holders[node_rank]


class SinglePorts:
    """The single actors, and the owners of their ports. Ray does not report when they end, so they are looked up now and then."""

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
