"""The managers of a run on Ray: named actors on node rank 0, over the C registry.

Ray keeps one of each for as long as the driver lives: a killed one is made again, by Ray, from the same
arguments, with the next epoch. What NodeManager tells is among them. What was registered or locked with a
manager that is gone is gone with it; workers are registered again by the driver."""

import asyncio
import itertools
import json
import logging
import os
import secrets
import threading
import time
import warnings
from typing import Any

from roost import _roost
from roost._errors import EngineError
from roost._managers import make_error, read_answer
from roost._ray_nodes import own_environment

log = logging.getLogger("roost")

# NodeManager comes last: it tells others of the run.
NAMES = ("WorkerManager", "CollectiveManager", "NodeManager")
LOOK_SECONDS = 1.0  # between looks for processes that have ended
AGAIN_SECONDS = 30.0  # while a manager is made again
PAUSE = 0.1


class Manager:
    """One manager; its methods run on one event loop, and nothing waits in between but answers that come later."""

    def __init__(self, view: str | None, described: dict[str, Any], run_id: str, who: str) -> None:
        import ray

        self._registry = _roost.Registry(view)
        self._described, self._run_id, self._who = described, run_id, who
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # Ray's own, about how it asks itself
            self._epoch = 1 + int(ray.get_runtime_context().was_current_actor_reconstructed)
        self._held: dict[str, set[int]] = {}
        self._leases: list[_roost.Leases] = []
        self._waiting: dict[tuple[int, int], asyncio.Future[bytes]] = {}
        self._owners: dict[int, str] = {}  # Ray's id of the actor that each is
        self._watch: asyncio.Task[None] | None = None

    async def describe(self) -> dict[str, Any]:
        """What the run is, for processes that attach to it."""
        return self._described

    async def epoch(self) -> tuple[str, int, int]:
        return self._run_id, self._epoch, os.getpid()

    # --- the registry

    async def answer(self, owner: int, actor: str, number: int, request: bytes) -> bytes:
        """The registry's answer to request `number` of a process, which is that actor (or none)."""
        if actor and owner not in self._owners:
            self._owners[owner] = actor
            self._watch = self._watch or asyncio.create_task(self._watch_owners())
        answer = self._registry.answer(owner, request)
        self._hand_out()
        if answer is not None:
            return answer
        future: asyncio.Future[bytes] = asyncio.get_running_loop().create_future()
        self._waiting[owner, number] = future
        try:
            return await future
        finally:
            self._waiting.pop((owner, number), None)

    def _hand_out(self) -> None:
        """Answers that somebody waits for."""
        for owner, answer in self._registry.later():
            future = self._waiting.get((owner, json.loads(answer)["id"]))
            if future is not None and not future.done():
                future.set_result(answer)

    async def _watch_owners(self) -> None:
        """Who has ended holds nothing any more."""
        while True:
            await asyncio.sleep(LOOK_SECONDS)
            for owner, actor in list(self._owners.items()):
                if await asyncio.to_thread(has_ended, actor):
                    del self._owners[owner]
                    self._registry.owner_gone(owner)
                    self._hand_out()

    # --- devices of the run

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
        return await asyncio.to_thread(lease_ports, self._leases, counts, self._run_id)


class PortKeeper:
    """Leases ports of a node for as long as the run lasts; on node rank 0 WorkerManager does it."""

    def __init__(self, run_id: str) -> None:
        self._run_id = run_id
        self._leases: list[_roost.Leases] = []

    def lease(self, counts: tuple[int, ...]) -> list[int]:
        return lease_ports(self._leases, counts, self._run_id)


def lease_ports(kept: list[_roost.Leases], counts: tuple[int, ...], run_id: str) -> list[int]:
    leases = _roost.Leases(counts, run_id, own_environment())
    # Whoever the ports are for binds them; until the run ends nobody else is given them.
    leases.release()
    kept.append(leases)
    return leases.ports


def has_ended(actor: str) -> bool:
    from ray._private.state import actors

    try:
        entry = actors(actor)
    except Exception:  # the control store does not answer: nothing is known
        return False
    return bool(entry) and entry.get("State") == "DEAD"


class RayTransport:
    """How proxies of this process reach the managers: a call of the actor that has the memory."""

    def __init__(self, ray: Any, namespace: str, managers: dict[str, Any] | None = None) -> None:
        self._ray, self._namespace, self._managers = ray, namespace, managers or {}
        self._numbers = itertools.count(1)
        self._lock = threading.Lock()
        self._pid = 0
        self._owner = 0

    def _who(self) -> int:
        with self._lock:
            if self._pid != os.getpid():
                self._pid, self._owner = os.getpid(), secrets.randbits(63)
            return self._owner

    def _manager(self, method: str) -> Any:
        """The actor that answers; locks and ports are WorkerManager's too."""
        name = method.partition(".")[0]
        name = name if name in NAMES else "WorkerManager"
        if name not in self._managers:
            self._managers[name] = self._ray.get_actor(name, namespace=self._namespace)
        return self._managers[name]

    def _send(self, method: str, args: list[Any], number: int) -> Any:
        request = json.dumps({"id": number, "call": method, "args": args}, ensure_ascii=False, allow_nan=False, default=vars).encode()
        actor = self._ray.get_runtime_context().get_actor_id() or ""
        return self._manager(method).answer.remote(self._who(), actor, number, request)

    def call(self, method: str, args: list[Any], timeout: float | None = None) -> Any:
        ray = self._ray
        name, start = method.partition(".")[0], time.monotonic()
        while True:
            number = next(self._numbers)
            try:
                return read_answer(ray.get(self._send(method, args, number), timeout=timeout))
            except ray.exceptions.GetTimeoutError:
                request = json.dumps({"id": 0, "call": "Registry.cancel", "args": [number]}).encode()
                self._manager(method).answer.remote(self._who(), "", 0, request)
                raise make_error("timeout", f"{method} was not answered after {timeout:g} seconds", "") from None
            except ray.exceptions.RayActorError as error:
                # It is being made again; what was asked is asked again, as its memory is new.
                if time.monotonic() - start > min(AGAIN_SECONDS, timeout or AGAIN_SECONDS):
                    raise EngineError(f"the {name} of the run has ended: {str(error).splitlines()[0]}") from error
                time.sleep(PAUSE)


