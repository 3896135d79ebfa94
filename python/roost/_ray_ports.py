"""Ports of the nodes of a run on Ray: leased there, by an actor a node, until those they are for have ended, or the run."""

from collections.abc import Callable
from typing import Any

from roost import _roost
from roost._arguments import fault
from roost._errors import EngineError, Timeout
from roost._ray_cluster import again
from roost._ray_group import death_words
from roost._ray_nodes import own_environment

LEASE_SECONDS = 120.0
TRIES = 10  # of a run whose keeper is killed, or whose new one finds ports that the old one gave away


class PortKeeper:
    """The actor."""

    def __init__(self, run_id: str) -> None:
        self._run_id = run_id
        self._leases: dict[str, list[_roost.Leases]] = {}  # by who they are for

    def lease(self, counts: tuple[int, ...], owner: str) -> list[int]:
        leases = _roost.Leases(counts, self._run_id, own_environment())
        # Whoever the ports are for binds them; until they are freed nobody else is given them.
        leases.release()
        self._leases.setdefault(owner, []).append(leases)
        return leases.ports

    def free(self, owner: str) -> None:
        self._leases.pop(owner, None)


class RayPorts:
    """The keepers of a run, made when they are needed."""

    def __init__(self, ray: Any, run_id: str, affinity: Callable[[int], Any], node_words: Callable[[int], str], check_node: Callable[[int], None]) -> None:
        self._ray, self._run_id = ray, run_id
        self._affinity, self._node_words, self._check_node = affinity, node_words, check_node
        self._keepers: dict[int, Any] = {}
        self._leased: dict[int, dict[str, set[int]]] = {}  # by node, and who they are for

    @property
    def keepers(self) -> dict[int, Any]:
        return self._keepers

    def lease(self, node_rank: int, counts: tuple[int, ...], owner: str) -> list[int]:
        """The first port of a block of each size, until the owner's are freed."""
        for left in reversed(range(TRIES)):
            ports = self._ask(node_rank, counts, owner, is_last=left == 0)
            if ports is None:
                continue  # the keeper was killed: another takes its place
            leased = self._leased.setdefault(node_rank, {})
            blocks = {port + offset for port, count in zip(ports, counts, strict=True) for offset in range(count)}
            if not blocks & set().union(*leased.values()):  # a new keeper does not know what the old one gave away
                leased.setdefault(owner, set()).update(blocks)
                return ports
        raise fault(EngineError, f"no port can be leased on {self._node_words(node_rank)} that this run has not given away", hint="launch again: who keeps them was killed")

    def free(self, owner: str) -> None:
        """Without waiting: of a keeper that is gone nothing is leased any more."""
        for node_rank, leased in self._leased.items():
            if leased.pop(owner, None) and node_rank in self._keepers:
                self._keepers[node_rank].free.remote(owner)

    def _ask(self, node_rank: int, counts: tuple[int, ...], owner: str, is_last: bool) -> list[int] | None:
        errors, where = self._ray.exceptions, self._node_words(node_rank)
        try:
            return self._ray.get(again(self._keeper(node_rank).lease).remote(counts, owner), timeout=LEASE_SECONDS)  # type: ignore[no-any-return]
        except errors.GetTimeoutError as error:
            raise fault(Timeout, f"no port was leased on {where} after {LEASE_SECONDS:g} seconds", hint="look at the raylet's log there") from error
        except errors.RayActorError as error:
            del self._keepers[node_rank]
            self._check_node(node_rank)
            if self._leased.get(node_rank) and not is_last:
                return None
            raise fault(EngineError, f"no port can be leased on {where}: {death_words(error, where)}", hint="`ray status` lists the nodes") from error

    def _keeper(self, node_rank: int) -> Any:
        if node_rank not in self._keepers:
            options = {"num_cpus": 0, "max_restarts": 0, "scheduling_strategy": self._affinity(node_rank)}
            self._keepers[node_rank] = self._ray.remote(PortKeeper).options(**options).remote(self._run_id)
        return self._keepers[node_rank]
