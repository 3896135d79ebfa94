"""The managers of a run on Ray: named actors on node rank 0, over the C registry.

Ray keeps one of each for as long as the driver lives: a killed one is made again, by Ray, from the same arguments,
with the next epoch. What it remembered it has from a friend, another manager, which is told of every change before
whoever asked for it is answered: registrations, locks and devices outlive the process. Two managers killed at the same
moment may forget."""

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

log = logging.getLogger("roost")

# NodeManager comes last: it tells others of the run.
NAMES = ("WorkerManager", "CollectiveManager", "NodeManager")
FRIENDS = {"WorkerManager": "NodeManager", "CollectiveManager": "NodeManager", "NodeManager": "WorkerManager"}
LOOK_SECONDS = 1.0  # between looks for processes that have ended
AGAIN_SECONDS = 30.0  # while a manager is made again
FRIEND_SECONDS = 10.0
TAIL_MAX = 1000  # changes after which the whole is told anew
PAUSE = 0.1

# ("ask", owner, actor, request, number, answer), ("gone", owner), ("hold", token, devices) or ("let_go", token)
Change = tuple[Any, ...]


class Memory:
    """What a manager remembers: all of it as changes that make it, and those since, each with its place."""

    def __init__(self, epoch: int) -> None:
        self.epoch = epoch
        self.edition = 0  # how often the whole was told anew
        self.whole: list[Change] = []
        self.tail: dict[int, Change] = {}

    def changes(self) -> list[Change]:
        return self.whole + [self.tail[place] for place in sorted(self.tail)]


class Manager:
    """One manager; its methods run on one event loop, and nothing waits in between but answers that come later."""

    def __init__(self, view: str | None, described: dict[str, Any], run_id: str, who: str) -> None:
        import ray

        self._ray = ray
        self._registry = _roost.Registry(view)
        self._described, self._run_id, self._who = described, run_id, who
        self._name: str = ray.get_runtime_context().get_actor_name() or ""
        self._held: dict[str, dict[str, set[int]]] = {}  # by token
        self._waiting: dict[tuple[int, int], tuple[asyncio.Future[bytes], str, bytes]] = {}
        self._owners: dict[int, str] = {}  # Ray's id of the actor that each is
        self._watch: asyncio.Task[None] | None = None
        self._memory = Memory(1)
        self._copies: dict[str, Memory] = {}  # what friends remember
        self._answered: dict[tuple[int, int], bytes] = {}  # changes of late, should somebody ask again
        self._keeping = asyncio.Lock()  # a friend hears of changes one after the other
        self._ready: asyncio.Future[None] | None = None
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # Ray's own, about how it asks itself
            self._is_again = bool(ray.get_runtime_context().was_current_actor_reconstructed)
        if self._is_again:  # it does not wait to be asked: its friends' memory is here, too
            ray.get_runtime_context().current_actor.epoch.remote()

    async def describe(self) -> dict[str, Any]:
        """What the run is, for processes that attach to it."""
        return self._described

    async def epoch(self) -> tuple[str, int, int]:
        await self._remembering()
        return self._run_id, self._memory.epoch, os.getpid()

    # --- memory

    async def _remembering(self) -> None:
        """Once, before anything is answered."""
        if self._is_again and self._ready is None:
            self._ready = asyncio.ensure_future(self._recall())
        if self._ready is not None:
            await asyncio.shield(self._ready)

    async def _recall(self) -> None:
        found = await self._ask_friend(FRIENDS[self._name], "recall", self._name)
        self._memory.epoch = (found.epoch if found else 1) + 1
        for change in found.changes() if found else []:
            self._apply(change)
        self._registry.later()  # nobody waits
        self._tell_anew()
        for name, friend in FRIENDS.items():
            if friend == self._name and (copy := await self._ask_friend(name, "remembered")) is not None:
                self._copies[name] = copy
        await self._ask_friend(FRIENDS[self._name], "remember_all", self._name, self._memory)

    async def _ask_friend(self, name: str, method: str, *args: Any) -> Any:
        """None when it is not there: then it will ask itself, as soon as it is."""
        try:
            friend = await asyncio.to_thread(self._ray.get_actor, name, self._ray.get_runtime_context().namespace)
            return await asyncio.wait_for(getattr(friend, method).remote(*args), FRIEND_SECONDS)
        except (ValueError, TimeoutError, self._ray.exceptions.RayError) as error:
            log.info("%s gives %s no answer: %s", name, self._name, error)
            return None

    async def recall(self, name: str) -> Memory | None:
        """What a friend that was killed remembered."""
        return self._copies.get(name)

    async def remembered(self) -> Memory | None:
        return None if self._is_again and (self._ready is None or not self._ready.done()) else self._memory

    async def remember_all(self, name: str, memory: Memory) -> None:
        self._copies[name] = memory

    async def remember(self, name: str, epoch: int, edition: int, place: int, change: Change) -> bool:
        """False: the whole is needed."""
        copy = self._copies.get(name)
        if copy is None or (copy.epoch, copy.edition) != (epoch, edition):
            return False
        copy.tail[place] = change
        return True

    def _apply(self, change: Change) -> None:
        match change:
            case ("ask", owner, actor, request, number, answer):
                if actor:
                    self._owners[owner] = actor
                self._registry.answer(owner, request)
                self._note_answer(owner, number, answer)
            case ("gone", owner):
                self._registry.owner_gone(owner)
            case ("hold", token, devices):
                self._held[token] = {node: set(numbers) for node, numbers in devices.items()}
            case ("let_go", token):
                self._held.pop(token, None)

    def _tell_anew(self) -> None:
        memory = self._memory
        memory.edition += 1
        memory.whole = [("ask", owner, self._owners.get(owner, ""), request, 0, b"") for owner, request in self._registry.requests()]
        memory.whole += [("hold", token, {node: sorted(numbers) for node, numbers in devices.items()}) for token, devices in self._held.items()]
        memory.tail.clear()

    def _note_answer(self, owner: int, number: int, answer: bytes) -> None:
        if number:
            self._answered[owner, number] = answer
        if len(self._answered) > TAIL_MAX:
            del self._answered[next(iter(self._answered))]

    async def _keep(self, change: Change) -> None:
        """A friend knows of it when this returns, unless there is none."""
        memory, friend = self._memory, FRIENDS[self._name]
        async with self._keeping:
            place = len(memory.tail)
            memory.tail[place] = change
            if len(memory.tail) <= max(TAIL_MAX, len(memory.whole)):
                if await self._ask_friend(friend, "remember", self._name, memory.epoch, memory.edition, place, change) is not False:
                    return
            self._tell_anew()  # what has happened is in it
            await self._ask_friend(friend, "remember_all", self._name, memory)

    # --- the registry

    async def answer(self, owner: int, actor: str, number: int, request: bytes) -> bytes:
        """The registry's answer to request `number` of a process, which is that actor (or none). The same number again
        is the same request: its answer was lost."""
        await self._remembering()
        if (known := self._answered.get((owner, number))) is not None:
            return known
        if actor and owner not in self._owners:
            self._owners[owner] = actor
        if self._owners and self._watch is None:
            self._watch = asyncio.create_task(self._watch_owners())
        before = self._registry.changes
        answer = self._registry.answer(owner, request)
        if answer is None:
            future: asyncio.Future[bytes] = asyncio.get_running_loop().create_future()
            self._waiting[owner, number] = future, actor, request
            try:
                return await future
            finally:
                self._waiting.pop((owner, number), None)
        if self._registry.changes != before:
            self._note_answer(owner, number, answer)
            await self._keep(("ask", owner, actor, request, number, answer))
            await self._hand_out()
        return answer

    async def _hand_out(self) -> None:
        """Answers that somebody waits for."""
        for owner, answer in self._registry.later():
            future, actor, request = self._waiting.get((owner, json.loads(answer)["id"]), (None, "", b""))
            if future is not None and not future.done():
                await self._keep(("ask", owner, actor, request, 0, b""))
                future.set_result(answer)

    async def _watch_owners(self) -> None:
        """Who has ended holds nothing any more."""
        while True:
            await asyncio.sleep(LOOK_SECONDS)
            for owner, actor in list(self._owners.items()):
                if await asyncio.to_thread(has_ended, actor):
                    del self._owners[owner]
                    self._registry.owner_gone(owner)
                    await self._keep(("gone", owner))
                    await self._hand_out()

    # --- devices of the run

    async def hold(self, token: str, wanted: dict[str, list[int]]) -> tuple[dict[str, list[int]], dict[str, list[int]]]:
        """What of it nobody in the run holds yet is held under the token from now on; and what the run holds with it."""
        await self._remembering()
        if token not in self._held:
            held = self._all_held()
            missing = {node: set(numbers) - held.get(node, set()) for node, numbers in wanted.items()}
            self._held[token] = {node: numbers for node, numbers in missing.items() if numbers}
            await self._keep(("hold", token, plain(self._held[token])))
        return plain(self._held[token]), plain(self._all_held())

    async def let_go(self, token: str) -> None:
        await self._remembering()
        if self._held.pop(token, None) is not None:
            await self._keep(("let_go", token))

    async def holds(self) -> tuple[dict[str, list[int]], str]:
        await self._remembering()
        return plain(self._all_held()), self._who

    def _all_held(self) -> dict[str, set[int]]:
        found: dict[str, set[int]] = {}
        for devices in self._held.values():
            for node, numbers in devices.items():
                found.setdefault(node, set()).update(numbers)
        return found


def plain(devices: dict[str, set[int]]) -> dict[str, list[int]]:
    return {node: sorted(numbers) for node, numbers in sorted(devices.items()) if numbers}


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
        number = next(self._numbers)
        while True:
            try:
                return read_answer(ray.get(self._send(method, args, number), timeout=timeout))
            except ray.exceptions.GetTimeoutError:
                request = json.dumps({"id": 0, "call": "Registry.cancel", "args": [number]}).encode()
                self._manager(method).answer.remote(self._who(), "", 0, request)
                raise make_error("timeout", f"{method} was not answered after {timeout:g} seconds", "") from None
            except ray.exceptions.RayActorError as error:
                # It is being made again; what was asked is asked again, under the same number.
                if time.monotonic() - start > min(AGAIN_SECONDS, timeout or AGAIN_SECONDS):
                    raise EngineError(f"the {name} of the run has ended: {str(error).splitlines()[0]}") from error
                time.sleep(PAUSE)


