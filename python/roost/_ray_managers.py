"""The managers of a run on Ray: named actors on node rank 0, over the C registry.

Ray keeps one of each alive for as long as the driver lives: a killed one is made again, by Ray, from the
same arguments, with the next epoch. What NodeManager tells is among them; what was registered is told
again by those that registered it."""

import asyncio
import os
import warnings
from typing import Any

from roost import _roost
from roost._ray_nodes import own_environment

NAMES = ("WorkerManager", "CollectiveManager", "NodeManager")


class Manager:
    """One manager; all of its methods run on one event loop, one at a time between their waits."""

    def __init__(self, view: dict[str, Any], run_id: str, who: str) -> None:
        import ray

        self._view, self._run_id, self._who = view, run_id, who
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # Ray's own, about how it asks itself
            self._epoch = 1 + int(ray.get_runtime_context().was_current_actor_reconstructed)
        self._held: dict[str, set[int]] = {}
        self._leases: list[_roost.Leases] = []

    async def describe(self) -> dict[str, Any]:
        """What the run is, for processes that attach to it."""
        return self._view

    async def epoch(self) -> tuple[str, int, int]:
        return self._run_id, self._epoch, os.getpid()

    # --- devices

    async def hold(self, devices: dict[str, list[int]]) -> None:
        for node, numbers in devices.items():
            self._held.setdefault(node, set()).update(numbers)

    async def let_go(self, devices: dict[str, list[int]]) -> None:
        for node, numbers in devices.items():
            self._held.get(node, set()).difference_update(numbers)

    async def holds(self) -> tuple[dict[str, list[int]], str]:
        return {node: sorted(numbers) for node, numbers in self._held.items() if numbers}, self._who

    # --- ports of this node

    async def lease(self, counts: tuple[int, ...]) -> list[int]:
        return await asyncio.to_thread(self._lease, counts)

    def _lease(self, counts: tuple[int, ...]) -> list[int]:
        leases = _roost.Leases(counts, self._run_id, own_environment())
        # Whoever the ports are for binds them; until the run ends nobody else is given them.
        leases.release()
        self._leases.append(leases)
        return leases.ports


class PortKeeper:
    """Leases ports of a node for as long as the run lasts; on node rank 0 WorkerManager does it."""

    def __init__(self, run_id: str) -> None:
        self._run_id = run_id
        self._leases: list[_roost.Leases] = []

    def lease(self, counts: tuple[int, ...]) -> list[int]:
        leases = _roost.Leases(counts, self._run_id, own_environment())
        leases.release()
        self._leases.append(leases)
        return leases.ports
