"""The local engine: groups as processes of this machine, over the C library's groups and calls."""

import asyncio
import json
import os
import shutil
import sys
import sysconfig
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any, cast

from roost import _roost
from roost._codec import decode, encode
from roost._engine import Kind, LaunchRequest, Outcome
from roost._errors import EngineError, Timeout
from roost._handle import failure_of
from roost._host import Answer, Failure
from roost._screen import Screen
from roost._serve import START, SearchPath, Start, read_value
from roost._warm import library_modules

POLL = 0.1  # seconds until a coroutine looks again although nobody has told it to


class LocalEngine:
    """Groups that this process launches; each is a run of its own, and has the namespace in common with the others."""

    def __init__(self, cluster: _roost.Cluster, config: _roost.Config | None, namespace: str | None) -> None:
        self._cluster, self._config, self._given = cluster, config, namespace
        self.namespace = namespace or ""

    def launch(self, request: LaunchRequest) -> "LocalGroup":
        start = Start(
            request.cls, request.args, request.kwargs, request.max_concurrency, request.catch_system_failure, request.surroundings
        )  # fmt: skip
        message = encode((SearchPath(sys.executable, sys.prefix, search_path()), start))
        extra = dict(request.env)
        if request.catch_system_failure:
            extra["CATCH_SYSTEM_FAILURE"] = "1"
        group = _roost.Group(
            self._config, self._cluster, request.placements, request.name, worker_command(request), dict(os.environ), extra,
            find_program(), self._given, os.environ.get("ROOST_CGROUP") != "never",
            port_base=int(os.environ.get("ROOST_PORT_BASE", "0")), forker=forker_command(request),
        )  # fmt: skip
        screen = None if request.disable_distributed_log else Screen(group.dir, group.name, range(group.size))
        running = LocalGroup(group, screen)
        try:
            starting = group.call(START, message, None, None)
            wait_ready(group, request)
            del starting
        except BaseException:
            running.close()
            raise
        return running

    def find_group(self, name: str) -> "LocalGroup":
        raise EngineError(f"group {name!r} is not of this process, and on the local engine only the process that launched a group can call it")

    def close(self) -> None:
        """Nothing is held between groups."""


def search_path() -> list[str]:
    return [entry or os.getcwd() for entry in sys.path]


def worker_command(request: LaunchRequest) -> list[str]:
    main = str(Path(__file__).with_name("_worker_main.py"))
    command = [sys.executable, "-P", main]
    paths = set(request.interpreters.values())
    if len(paths) == 1 and len(request.interpreters) == len(request.placements):
        return [paths.pop(), "-P", main]
    return command + [f"{rank}={path}" for rank, path in request.interpreters.items()]


def forker_command(request: LaunchRequest) -> list[str] | None:
    """The warm program that forks the workers; None where each has to be started by itself."""
    if not request.warm or request.interpreters:
        return None
    order = {"path": search_path(), "modules": library_modules(request.cls), "main": "roost._worker_main"}
    return [sys.executable, "-P", "-m", "roost._fork_server", json.dumps(order)]


def find_program() -> str:
    """The roost program that came with this package."""
    here = Path(__file__).parent
    places = [here.parent.parent / "roost", Path(sys.executable).parent / "roost", Path(sysconfig.get_path("scripts")) / "roost"]
    for place in places:
        if place.is_file() and os.access(place, os.X_OK):
            return str(place)
    found = shutil.which("roost")
    if found is None:
        raise EngineError(f"the roost program is not there: it was looked for at {', '.join(map(str, places))} and on PATH")
    return found


def wait_ready(group: _roost.Group, request: LaunchRequest) -> None:
    problem = group.wait_ready(request.timeout)
    if problem is None:
        return
    code, message, rank = problem
    if code == "timeout":
        raise Timeout(f"group {request.name!r} was not ready after {request.timeout:g} s: {message}")
    if code != "worker" or rank < 0:
        raise EngineError(f"group {request.name!r} could not be started: {message}")
    known = group.rank(rank)
    outcome = read_refusal(rank, known["bytes"]) if known["state"] == "refused" else Outcome(rank, "unknown", error=message, end=known["end"])
    raise failure_of(request.name, outcome, request.placements, "to start", outcomes=[outcome]) from outcome.exception


def read_refusal(rank: int, message: bytes) -> Outcome:
    answer = decode(memoryview(message))
    assert isinstance(answer, Answer)
    return answer.outcome(rank)


def end_of(group: _roost.Group, rank: int) -> dict[str, Any] | None:
    """The exit record of a worker that has ended."""
    return group.rank(rank)["end"] if 0 <= rank < group.size else None


class LocalGroup:
    def __init__(self, group: _roost.Group, screen: Screen | None) -> None:
        self._group, self._screen = group, screen
        self.world_size = group.size
        self._watches: dict[asyncio.AbstractEventLoop, Watch] = {}
        self._lock = threading.Lock()

    def call(self, method: str, args: tuple[Any, ...], kwargs: dict[str, Any], ranks: Sequence[int] | None) -> "LocalCall":
        return LocalCall(self, self._group.call(method, encode((args, kwargs)), ranks, None))

    def close(self) -> None:
        self._group.close()
        if self._screen is not None:
            self._screen.close()

    def watch(self) -> "Watch":
        """What tells coroutines of the running loop that answers have come."""
        with self._lock:
            self._watches = {loop: watch for loop, watch in self._watches.items() if not loop.is_closed()}
            loop = asyncio.get_running_loop()
            return self._watches.setdefault(loop, Watch(loop, self._group))


class Watch:
    """Pumps the group when its descriptor is readable, while somebody on the loop waits for that."""

    def __init__(self, loop: asyncio.AbstractEventLoop, group: _roost.Group) -> None:
        self._loop, self._group = loop, group
        self._waiters: set[asyncio.Future[None]] = set()

    async def wait(self) -> None:
        """Until something may have come. Another thread may have taken it, and told nobody: so not for long."""
        waiter = self._loop.create_future()
        if not self._waiters:
            self._loop.add_reader(self._group.fd, self._pump)
        self._waiters.add(waiter)
        try:
            await asyncio.wait({waiter}, timeout=POLL)
        finally:
            self._waiters.discard(waiter)
            if not self._waiters:
                self._loop.remove_reader(self._group.fd)

    def _pump(self) -> None:
        self._group.pump()
        for waiter in self._waiters:
            if not waiter.done():
                waiter.set_result(None)


class LocalCall:
    def __init__(self, group: LocalGroup, call: _roost.Call) -> None:
        self._group, self._call = group, call

    def wait(self, timeout: float | None) -> bool:
        return self._call.wait(timeout)

    def done(self) -> bool:
        return self._call.done()

    def has_failed(self) -> bool:
        return any(word not in ("value", "pending") for _, word, _, _ in self._call.outcomes())

    async def async_wait(self) -> None:
        while not self._call.done():
            await self._group.watch().wait()

    def outcomes(self) -> list[Outcome]:
        return [self._read(*outcome) for outcome in self._call.outcomes()]

    def _read(self, rank: int, word: str, message: _roost.Answer | bytes, why: str) -> Outcome:
        if word == "value":
            return read_answer(memoryview(message)).outcome(rank)
        if word == "error":
            return read_error(rank, memoryview(message))
        end = None if word == "pending" else end_of(self._group._group, rank)
        return Outcome(rank, cast(Kind, word.replace(" ", "_")), error=why, end=end)


def read_answer(message: memoryview) -> Answer:
    try:
        return read_value(message)
    except Exception as raised:
        failure = Failure.of(raised, 1)
        return Answer(None, Failure(f"what it returned cannot be read here: {failure.error}", failure.traceback))


def read_error(rank: int, message: memoryview) -> Outcome:
    """The worker's error; a request that was dropped unanswered has the library's own words."""
    try:
        answer = decode(message)
        if isinstance(answer, Answer):
            return answer.outcome(rank)
    except Exception:
        pass
    return Outcome(rank, "error", error=bytes(message).decode(errors="replace"))
