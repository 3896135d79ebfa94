"""A worker group as processes of this machine, and the calls to it, over the C library's groups and calls."""

import asyncio
import contextlib
import logging
import os
import select
import threading
from collections.abc import Callable
from typing import Any, cast

from roost import _roost
from roost._local.reader import READING
from roost._local.screen import Screen
from roost._local.serve import read_failure, read_value
from roost._work.call import CallSite, Handle, Kind, Outcome
from roost._work.host import Answer, Failure
from roost._work.script import closing_status


def read_refusal(rank: int, message: bytes) -> Outcome:
    return read_failure(memoryview(message)).outcome(rank)


def end_of(group: _roost.Group, rank: int) -> dict[str, Any] | None:
    """The exit record of a worker that has ended."""
    return group.rank(rank)["end"] if 0 <= rank < group.size else None


class LocalGroup:
    """A running worker group."""

    def __init__(self, group: _roost.Group, screen: Screen | None, engine: object) -> None:
        self._group, self._screen = group, screen
        self._engine: object | None = engine  # kept: the workers need its managers, also without the Cluster
        self.world_size = group.size
        self.starting: _roost.Call | None = None  # what the workers are made from, until they have taken it
        self._watches: dict[asyncio.AbstractEventLoop, Watch] = {}
        self._lock = threading.Lock()

    def caller(self, site: CallSite) -> Callable[..., Handle]:
        return _roost.Caller(self._group, site.method, site.chosen, Handle, site, LocalCall)

    def tell(self) -> None:
        """What the user should know of how it runs."""
        if (note := self._group.note()) is not None:
            logging.getLogger("roost").warning("%s", note)

    def close(self) -> None:
        self._group.close(closing_status())
        READING.settle()
        self._engine = None
        if self._screen is not None:
            self._screen.close()

    def watch(self) -> "Watch":
        """The watch that wakes coroutines of the running loop when outcomes have come."""
        with self._lock:
            self._watches = {loop: watch for loop, watch in self._watches.items() if not loop.is_closed()}
            loop = asyncio.get_running_loop()
            if loop not in self._watches:
                self._watches[loop] = Watch(loop, self._group)
            return self._watches[loop]


class Watch:
    """Reads for the group while coroutines of the loop wait, and learns of what other threads have read. A coroutine enters it
    first and then looks for its outcomes, so that it misses none."""

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


class LocalCall(_roost.Call):
    """A call on this machine. C has the fast half: wait, done and values."""

    __slots__ = ()

    @property
    def _group(self) -> LocalGroup:
        return cast(LocalGroup, self.site.link)

    def has_failed(self) -> bool:
        return any(word not in ("value", "pending") for _, word, _, _ in self.endings())

    async def async_wait(self) -> None:
        if self.done():
            return
        with self._group.watch() as watch:
            while not self.done():
                await watch.wait()

    def outcomes(self) -> list[Outcome]:
        return [self._read(*ending) for ending in self.endings()]

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
