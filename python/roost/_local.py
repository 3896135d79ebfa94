"""The local engine: groups as processes of this machine, over the C library's groups and calls."""

import asyncio
import contextlib
import json
import logging
import os
import select
import sys
import threading
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from roost import _roost
from roost._attach import start_keeper
from roost._codec import encode
from roost._engine import Kind, LaunchRequest, Outcome
from roost._errors import EngineError, Timeout
from roost._handle import CallSite, Handle, failure_of
from roost._host import Answer, Failure
from roost._managers import set_namespace
from roost._program import find_program
from roost._reader import READING
from roost._screen import Screen
from roost._serve import START, SearchPath, Start, read_failure, read_value
from roost._settings import has_cgroup, port_base
from roost._warm import library_modules
from roost._words import warn

if TYPE_CHECKING:
    from roost._cluster import Cluster
    from roost._local_allocate import Allocated


class LocalEngine:
    """Groups that this process launches on a cluster. Each is a run of its own; they have a namespace, and its managers, in
    common. Those are there from the first launch on."""

    def __init__(self, cluster: "Cluster") -> None:
        self._cluster = cluster
        self._keeper: _roost.Keeper | None = None
        self._driver = 0  # the process that started it
        self._lock = threading.Lock()

    @property
    def namespace(self) -> str:
        """Of the groups, with managers in it: those of a cluster that was found there, or a keeper of its own."""
        if self._cluster._is_attached:
            assert self._cluster._namespace is not None
            return self._cluster._namespace
        with self._lock:
            if self._keeper is None:
                self._keeper = start_keeper(self._cluster, self._cluster._namespace)
                self._driver = os.getpid()
            elif self._driver == os.getpid() and has_ended(self._keeper):  # a forked process uses those of its parent
                self._keeper = self._start_again(self._keeper)
            return self._keeper.namespace

    def _start_again(self, lost: _roost.Keeper) -> _roost.Keeper:
        """In the namespace of the one that was lost, which workers that run know; in another where somebody has taken it since."""
        lost.close()
        message = "the managers of namespace '%s' have ended and are started again: what was registered and locked there is lost"
        logging.getLogger("roost").warning(message, lost.namespace)
        try:
            return start_keeper(self._cluster, lost.namespace)
        except EngineError:
            if self._cluster._namespace is not None:
                raise
            return start_keeper(self._cluster)

    def launch(self, request: LaunchRequest) -> "LocalGroup":
        running = self.start(request)
        try:
            wait_ready(running._group, request)
        except BaseException:
            running.close()
            raise
        running.starting = None
        running.tell()
        return running

    def start(self, request: LaunchRequest) -> "LocalGroup":
        """The group as it starts: what it is called with waits until it can answer."""
        may_have_cgroup, first_port = has_cgroup(), port_base()
        start = Start(
            request.cls, request.args, request.kwargs, request.max_concurrency, request.catch_system_failure, request.surroundings
        )  # fmt: skip
        message = encode((SearchPath(sys.executable, sys.prefix, search_path()), start))
        extra = dict(request.env)
        if request.catch_system_failure:
            extra["CATCH_SYSTEM_FAILURE"] = "1"
        try:
            group = _roost.Group(
                self._cluster._config, self._cluster._value, request.placements, request.name, worker_command(request), dict(os.environ),
                extra, find_program(), self.namespace, may_have_cgroup,
                logs_dir=self._cluster._logs_dir, port_base=first_port, forker=forker_command(request),
            )  # fmt: skip
        except _roost.Error as error:
            if error.code != "engine":
                raise
            raise as_engine_error(error) from None
        READING.add(group)
        warn(group.warnings, 4)
        screen = None if request.disable_distributed_log else Screen(group.dir, group.name, range(group.size))
        running = LocalGroup(group, screen, self)
        running.starting = group.call(START, message, None, None)
        return running

    def allocate(
        self, cls: type, name: str, node_rank: int, gpu_id: int | None, variables: Mapping[str, str], interpreter: str | None, max_concurrency: int | None,
        args: Sequence[Any], kwargs: Mapping[str, Any], disable_distributed_log: bool = False,
    ) -> "Allocated":  # fmt: skip
        from roost._local_allocate import allocate_locally

        return allocate_locally(self, cls, name, node_rank, gpu_id, variables, interpreter, max_concurrency, args, kwargs, disable_distributed_log)

    def find_group(self, name: str) -> "LocalGroup":
        raise EngineError(f"group {name!r} is not of this process, and on the local engine only the process that launched a group can call it")

    def close(self) -> None:
        """Ends the managers; its groups are closed already. Another launch begins anew."""
        with self._lock:
            if self._keeper is not None:
                set_namespace(None)
                self._keeper.close()
                self._keeper = None


def has_ended(keeper: _roost.Keeper) -> bool:
    """Whether it is gone, though nobody closed it: it was killed. For the process that started it."""
    try:
        return os.waitid(os.P_PID, keeper.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None
    except ChildProcessError:  # somebody has waited for it already
        return True


def as_engine_error(error: _roost.Error) -> EngineError:
    made = EngineError(str(error))
    made.code, made.hint = error.code, error.hint
    return made


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
    return read_failure(memoryview(message)).outcome(rank)


def end_of(group: _roost.Group, rank: int) -> dict[str, Any] | None:
    """The exit record of a worker that has ended."""
    return group.rank(rank)["end"] if 0 <= rank < group.size else None


class LocalGroup:
    def __init__(self, group: _roost.Group, screen: Screen | None, engine: LocalEngine) -> None:
        self._group, self._screen = group, screen
        self._engine: LocalEngine | None = engine  # whose managers its workers ask, also when nobody has the Cluster any more
        self.world_size = group.size
        self.starting: _roost.Call | None = None  # what the workers are made from, until they have taken it
        self._watches: dict[asyncio.AbstractEventLoop, Watch] = {}
        self._lock = threading.Lock()

    def caller(self, site: CallSite) -> Callable[..., Handle]:
        return _roost.Caller(self._group, site.method, site.chosen, Handle, site)

    def look(self, call: _roost.Call) -> "LocalCall":
        return LocalCall(self, call)

    def tell(self) -> None:
        """What the user should know of how it runs."""
        if (note := self._group.note()) is not None:
            logging.getLogger("roost").warning("%s", note)

    def close(self) -> None:
        self._group.close()
        READING.settle()
        self._engine = None
        if self._screen is not None:
            self._screen.close()

    def watch(self) -> "Watch":
        """What tells coroutines of the running loop that outcomes have come."""
        with self._lock:
            self._watches = {loop: watch for loop, watch in self._watches.items() if not loop.is_closed()}
            loop = asyncio.get_running_loop()
            if loop not in self._watches:
                self._watches[loop] = Watch(loop, self._group)
            return self._watches[loop]


class Watch:
    """Reads for the group while coroutines of the loop wait, and hears of what other threads have read. They look for their
    outcomes after they have entered it: what comes later is told."""

    def __init__(self, loop: asyncio.AbstractEventLoop, group: _roost.Group) -> None:
        self._loop, self._group = loop, group
        self._waiters: set[asyncio.Future[None]] = set()
        self._users = 0
        self._news = -1
        self._news = os.eventfd(0, os.EFD_CLOEXEC | os.EFD_NONBLOCK)
        self._either = select.epoll()  # readable when one of the two is: loops take long to watch something
        self._either.register(self._news, select.EPOLLIN)
        self._either.register(group.fd, select.EPOLLIN)

    def __del__(self) -> None:
        """Also of one that is still entered, by a coroutine that goes with it: nothing is written to a descriptor that is closed."""
        news, self._news = self._news, -1
        if news >= 0:
            self._group.unlisten(news)
            os.close(news)

    def __enter__(self) -> "Watch":
        if self._users == 0:
            self._loop.add_reader(self._either.fileno(), self._pump)
            self._group.listen(self._news)
        self._users += 1
        return self

    def __exit__(self, *raised: object) -> None:
        self._users -= 1
        if self._users == 0:
            self._group.unlisten(self._news)
            if not self._loop.is_closed():
                self._loop.remove_reader(self._either.fileno())

    async def wait(self) -> None:
        """Until something may have come."""
        waiter = self._loop.create_future()
        self._waiters.add(waiter)
        try:
            await waiter
        finally:
            self._waiters.discard(waiter)

    def _pump(self) -> None:
        self._group.pump()
        with contextlib.suppress(BlockingIOError):  # what has come changes nothing
            os.eventfd_read(self._news)
        for waiter in self._waiters:
            if not waiter.done():
                waiter.set_result(None)


class LocalCall:
    """What is asked of a call that has no usual end."""

    def __init__(self, group: LocalGroup, call: _roost.Call) -> None:
        self._group, self._call = group, call

    def has_failed(self) -> bool:
        return any(word not in ("value", "pending") for _, word, _, _ in self._call.outcomes())

    async def async_wait(self) -> None:
        if self._call.done():
            return
        with self._group.watch() as watch:
            while not self._call.done():
                await watch.wait()

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
        return read_failure(message).outcome(rank)
    except Exception:
        pass
    return Outcome(rank, "error", error=bytes(message).decode(errors="replace"))
