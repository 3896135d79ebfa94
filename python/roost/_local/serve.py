"""The life of a worker on the local engine: requests from its connection, answers to its driver."""

import asyncio
import sys
import threading
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from types import CoroutineType
from typing import Any

from roost import _roost
from roost._work.codec import decode, encode
from roost._work.engine import Surroundings
from roost._work.host import ASYNC_CONCURRENCY, Answer, Failure, Host, has_async_methods
from roost._work.worker import call_timers

START = "__start__"


class SearchPath:
    """The driver's sys.path; read from a message, it is this process's from then on, before what follows it is read."""

    def __init__(self, executable: str, prefix: str, entries: list[str]) -> None:
        self.facts = (executable, prefix, entries)

    def __reduce__(self) -> Any:
        return use_search_path, self.facts


def use_search_path(executable: str, prefix: str, entries: list[str]) -> None:
    if executable == sys.executable:
        sys.path[:] = entries
    else:  # another interpreter has libraries of its own
        sys.path += [entry for entry in entries if entry not in sys.path and not entry.startswith(prefix)]


class Start:
    """What a worker is made from, as the first request carries it."""

    def __init__(
        self,
        cls: type,
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
        max_concurrency: int | None,
        catch_system_failure: bool,
        surroundings: Surroundings,
    ) -> None:
        self.cls, self.args, self.kwargs = cls, args, kwargs
        self.max_concurrency, self.catch_system_failure, self.surroundings = (
            max_concurrency,
            catch_system_failure,
            surroundings,
        )


def read_value(message: memoryview) -> Answer:
    value, seconds, timers = decode(message)
    return Answer(value, None, seconds, timers)


def read_failure(message: memoryview) -> Answer:
    (answer,) = decode(message)
    assert isinstance(answer, Answer)
    return answer


def send(request: _roost.Request, method: str, answer: Answer) -> None:
    """Sends what read_value reads; an error, and what cannot be sent, as read_failure reads it."""
    if answer.failure is None:
        try:
            request.reply_value((answer.value, answer.seconds, answer.timers or None))
            return
        except BaseException as raised:
            answer = answer.unsendable(method, raised)
    try:
        request.fail(encode((answer,)))
    except _roost.Error:
        pass  # the driver has gone


def read_call(request: _roost.Request) -> tuple[tuple[Any, ...], dict[str, Any]] | None:
    """Arguments of the request; None when they cannot be read, and that is answered."""
    try:
        args, kwargs = request.value()
        return args, kwargs
    except BaseException as raised:
        failure = Failure.of(raised, 1)
        said = f"the arguments of {request.method!r} cannot be read: {failure.error}"
        send(request, request.method, Answer(None, Failure(said, failure.traceback, failure.carried)))
        return None


def answer_request(host: Host, request: _roost.Request) -> None:
    call = read_call(request)
    if call is not None:
        send(request, request.method, host.run(request.method, *call))


def serve(connection: _roost.WorkerSocket, environ: Mapping[str, str]) -> int:
    """Makes the worker and answers until the driver has gone; the exit status of the process."""
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(line_buffering=True)
    request = connection.next()
    if request is None:
        return 0
    assert request.method == START
    try:
        _, start = decode(request.payload)
    except BaseException as raised:
        return refuse(connection, request, Failure.of(raised, 1))
    if has_loop(start):
        life = live_on_loop(connection, request, start, environ)
        del start, request  # it lives as long as the worker, and what the constructor was given need not
        return asyncio.run(life)
    host = make_host(start, environ)
    if host.failure is not None:
        return refuse(connection, request, host.failure)
    accept(connection, request)
    count, start, request = start.max_concurrency or 1, None, None
    if count == 1:
        return live(connection, host)
    return live_in_threads(connection, host, count)


def has_loop(start: Start) -> bool:
    return has_async_methods(start.cls)


def make_host(start: Start, environ: Mapping[str, str]) -> Host:
    return Host(start.cls, start.args, start.kwargs, environ, start.surroundings, start.catch_system_failure)


def accept(connection: _roost.WorkerSocket, request: _roost.Request) -> None:
    request.reply([])
    connection.ready([])


def refuse(connection: _roost.WorkerSocket, request: _roost.Request, failure: Failure) -> int:
    print(failure.traceback, file=sys.stderr, end="", flush=True)
    parts = encode((Answer(None, failure),))
    try:
        connection.refuse(parts)
        request.fail(parts)
    except _roost.Error:
        pass  # the driver has gone
    return 1


def live(connection: _roost.WorkerSocket, host: Host) -> int:
    """One call after the other, in the main thread; what is not usual about one is done here."""

    def answer(request: _roost.Request) -> None:
        answer_request(host, request)

    def finish(
        request: _roost.Request,
        value: Any,
        raised: BaseException | None,
        seconds: float,
        timers: dict[str, float] | None,
    ) -> None:
        send(request, request.method, host.finish(request.method, value, raised, seconds, timers))

    connection.serve(host.worker, call_timers.set, CoroutineType, answer, finish)
    return 0


def live_in_threads(connection: _roost.WorkerSocket, host: Host, count: int) -> int:
    """As many calls at once as there are threads; more are left in the connection."""
    free = threading.Semaphore(count)

    def work(request: _roost.Request) -> None:
        try:
            answer_request(host, request)
        finally:
            free.release()

    with ThreadPoolExecutor(count, "roost-call") as pool:
        while True:
            free.acquire()
            request = connection.next()
            if request is not None:
                pool.submit(work, request)
            elif connection.is_over:
                return 0
            del request


async def live_on_loop(
    connection: _roost.WorkerSocket, first: _roost.Request, start: Start, environ: Mapping[str, str]
) -> int:
    """Everything on one event loop in the main thread: the worker is made there too."""
    host = make_host(start, environ)
    if host.failure is not None:
        return refuse(connection, first, host.failure)
    accept(connection, first)
    free = asyncio.Semaphore(start.max_concurrency or ASYNC_CONCURRENCY)
    del start, first
    readable, tasks = asyncio.Event(), set[asyncio.Task[None]]()
    asyncio.get_running_loop().add_reader(connection.fd, readable.set)

    async def work(request: _roost.Request) -> None:
        try:
            call = read_call(request)
            if call is not None:
                send(request, request.method, await host.run_async(request.method, *call))
        finally:
            free.release()

    while True:
        await free.acquire()
        request = connection.next(0)
        while request is None and not connection.is_over:
            readable.clear()
            await readable.wait()
            request = connection.next(0)
        if request is None:
            break
        task = asyncio.ensure_future(work(request))
        tasks.add(task)
        task.add_done_callback(tasks.discard)
        del request, task
    asyncio.get_running_loop().remove_reader(connection.fd)
    return 0
