"""The host of a worker: makes it, runs its methods by name, and returns an answer for each.

It knows neither connections nor Ray: each engine passes calls to `Host.run` (from any thread) or to
`Host.run_async` (on its event loop), and sends the answers. An answer holds what the method returned
or raised; no exception of a method leaves this module."""

import asyncio
import contextlib
import faulthandler
import functools
import importlib
import inspect
import os
import pickle
import signal
import sys
import threading
import traceback
import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from time import perf_counter
from types import CoroutineType, TracebackType
from typing import Any, NoReturn

from roost import _roost
from roost._plan.errors import shorten
from roost._work.call import Outcome
from roost._work.codec import pickle_value
from roost._work.engine import Surroundings
from roost._work.worker import Hosting, call_timers

ERROR_MAX = 1000  # characters of an exception's text in the line that reports it
ASYNC_CONCURRENCY = 1000  # calls at once to a class with async methods, as on Ray
FAILURE_SIGNALS = (signal.SIGINT, signal.SIGQUIT, signal.SIGUSR1, signal.SIGUSR2)
CRASH_SIGNALS = (signal.SIGSEGV, signal.SIGABRT)


@dataclass(frozen=True)
class Failure:
    """An exception of a worker, as it can be carried anywhere."""

    error: str  # one line, and not a long one
    traceback: str  # the worker's
    carried: bytes | None = None  # the exception itself, pickled

    @classmethod
    def of(cls, raised: BaseException, frames_of_ours: int = 0) -> "Failure":
        """The first `frames_of_ours` frames of the traceback are the host's, and are left out."""
        frames: TracebackType | None = raised.__traceback__
        for _ in range(frames_of_ours):
            frames = frames.tb_next if frames else None
        try:
            words = str(raised).strip()
        except Exception:
            words = "its text cannot be made"
        line = (
            f"{type(raised).__name__}: {shorten(words.splitlines()[0], ERROR_MAX)}" if words else type(raised).__name__
        )
        try:
            text = "".join(traceback.format_exception(type(raised), raised, frames))
        except Exception:
            text = line + "\n"
        return cls(line, text, carry(raised))

    @property
    def exception(self) -> BaseException | None:
        """The exception again, where this process can make it."""
        try:
            raised = pickle.loads(self.carried) if self.carried else None
        except Exception:  # many exceptions pickle and cannot be made again
            return None
        return raised if isinstance(raised, BaseException) else None


def carry(raised: BaseException) -> bytes | None:
    try:
        return pickle_value(raised.with_traceback(None), None)
    except Exception:
        return None


@dataclass(slots=True)
class Answer:
    """What a method gave, or how it failed."""

    value: Any = None
    failure: Failure | None = None
    seconds: float = 0.0
    timers: Mapping[str, float] | None = None

    def outcome(self, rank: int) -> Outcome:
        if self.failure is None:
            return Outcome(rank, "value", self.value, seconds=self.seconds, timers=self.timers or {})
        failure = self.failure
        return Outcome(
            rank,
            "error",
            error=failure.error,
            traceback=failure.traceback,
            exception=failure.exception,
            seconds=self.seconds,
            timers=self.timers or {},
        )

    def unsendable(self, method: str, raised: BaseException) -> "Answer":
        """The answer instead of this one, whose value cannot be sent."""
        failure = Failure.of(raised)
        said = f"what {method!r} returned cannot be sent: {failure.error}"
        return Answer(None, Failure(said, f"{said}\n\n{failure.traceback}"), self.seconds, self.timers)


def failed(
    method: str, raised: BaseException, seconds: float, timers: Mapping[str, float] | None, frames_of_ours: int = 1
) -> Answer:
    return Answer(None, Failure.of(tamed(raised, repr(method)), frames_of_ours), seconds, timers)


def tamed(raised: BaseException, doing: str) -> BaseException:
    """A worker does not end its process by SystemExit: it fails."""
    if isinstance(raised, SystemExit):
        return RuntimeError(f"{doing} called sys.exit({raised.code!r})").with_traceback(raised.__traceback__)
    return raised


def end_child(method: str, raised: BaseException | None) -> NoReturn:
    """A process that the method forked has come back from it. Nobody asked it anything, and what is here is its
    parent's: it ends, as a program does that comes to its end there."""
    status = 1
    if isinstance(raised, SystemExit) and (raised.code is None or isinstance(raised.code, int)):
        status = raised.code or 0
    elif raised is not None:
        traceback.print_exception(raised)
    else:
        print(
            f"roost: a process that {method} forked has come back from it, and is ended: end it with os._exit() before",
            file=sys.stderr,
        )
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(Exception):
            stream.flush()
    os._exit(status)


def has_async_methods(cls: type) -> bool:
    """Whether calls are answered on an event loop: a public method is a coroutine function."""
    return any(not name.startswith("_") and is_async(inspect.getattr_static(cls, name)) for name in dir(cls))


def is_async(found: Any) -> bool:
    while isinstance(found, functools.partialmethod):
        found = found.func
    return inspect.iscoroutinefunction(found)


class Running:
    """A method while it runs: what it times, how long it takes, and then its answer. Nothing is raised out of it."""

    def __init__(self, method: str, seconds: float = 0.0, timers: dict[str, float] | None = None) -> None:
        """`seconds` and `timers` are of what has run before."""
        self._method, self._seconds, self._pid = method, seconds, os.getpid()
        self._timers: dict[str, float] = {} if timers is None else timers
        self.value: Any = None
        self.answer = Answer()

    def __enter__(self) -> "Running":
        self._before = call_timers.set(self._timers)
        self._begin = perf_counter()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, raised: BaseException | None, frames: TracebackType | None
    ) -> bool:
        if os.getpid() != self._pid:
            end_child(repr(self._method), raised)
        seconds = self._seconds + perf_counter() - self._begin
        call_timers.reset(self._before)
        self.answer = (
            Answer(self.value, None, seconds, self._timers)
            if raised is None
            else failed(self._method, raised, seconds, self._timers)
        )
        return True


class Host:
    """The worker of this process, and its methods. `failure` is set where its constructor failed."""

    def __init__(
        self,
        cls: type,
        args: tuple[Any, ...],
        kwargs: Mapping[str, Any],
        environ: Mapping[str, str],
        surroundings: Surroundings = Surroundings(),
        catch_system_failure: bool = False,
    ) -> None:
        self.is_async = has_async_methods(cls)
        self.failure: Failure | None = None
        self._worker: Any = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._loop_lock = threading.Lock()
        self._pid = os.getpid()
        Hosting.environ, Hosting.surroundings = environ, surroundings
        try:
            prepare_process(environ, catch_system_failure)
            self._worker = cls(*args, **kwargs)
        except BaseException as raised:
            if os.getpid() != self._pid:
                end_child(f"the constructor of {cls.__name__}", raised)
            self.failure = Failure.of(tamed(raised, f"the constructor of {cls.__name__}"), 1)
        if os.getpid() != self._pid:
            end_child(f"the constructor of {cls.__name__}", None)

    @property
    def worker(self) -> Any:
        return self._worker

    def run(self, method: str, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Answer:
        """Runs a method to its end; one that is a coroutine function on an event loop beside this thread."""
        with Running(method) as running:
            running.value = self._find(method)(*args, **kwargs)
            if type(running.value) is CoroutineType:
                running.value = self._await(running.value)
        return running.answer

    async def run_async(self, method: str, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Answer:
        """The same on the running event loop; a plain method holds it up."""
        with Running(method) as running:
            running.value = self._find(method)(*args, **kwargs)
            if inspect.isawaitable(running.value):
                running.value = await running.value
        return running.answer

    def finish(
        self, method: str, value: Any, raised: BaseException | None, seconds: float, timers: dict[str, float] | None
    ) -> Answer:
        """The answer of a method that was called elsewhere, and took so long: what it gave may be awaited still."""
        if os.getpid() != self._pid:
            end_child(repr(method), raised)
        if raised is not None:
            return failed(method, raised, seconds, timers, 0)
        with Running(method, seconds, timers) as running:
            running.value = self._await(value) if type(value) is CoroutineType else value
        return running.answer

    def _await(self, value: "CoroutineType[Any, Any, Any]") -> Any:
        return asyncio.run_coroutine_threadsafe(value, self._get_loop()).result()

    def _find(self, method: str) -> Any:
        if method.startswith("_"):
            raise ValueError(f"{method!r} is private: only public methods can be called")
        found = getattr(self._worker, method)
        if not callable(found):
            raise TypeError(f"{method!r} is not a method")
        return found

    def _get_loop(self) -> asyncio.AbstractEventLoop:
        with self._loop_lock:
            if self._loop is None:
                self._loop = asyncio.new_event_loop()
                threading.Thread(target=self._loop.run_forever, name="roost-methods", daemon=True).start()
            return self._loop


# --- the process of a worker, before its worker is made


def prepare_process(environ: Mapping[str, str], catch_system_failure: bool) -> None:
    _roost.allow_tracing()
    if catch_system_failure:
        catch_failures()
    load_extension(environ)


def catch_failures() -> None:
    """A signal of the list prints the stack of every thread, whatever they are doing, and kills the process."""
    faulthandler.disable()  # Ray, or PYTHONFAULTHANDLER, may have enabled it: then it would stay below what comes now
    for number in (*FAILURE_SIGNALS, *CRASH_SIGNALS):
        _roost.die_on(number)
    # They go on to the handlers that were there before, the ones above.
    faulthandler.enable(file=sys.__stderr__ or 2)
    for number in FAILURE_SIGNALS:
        faulthandler.register(number, file=sys.__stderr__ or 2, chain=True)
    _roost.heed_parent(signal.SIGTERM)  # a group that is closed has not failed


def load_extension(environ: Mapping[str, str]) -> None:
    """RLINF_EXT_MODULE is imported and its register() called; what goes wrong is a warning."""
    name = environ.get("RLINF_EXT_MODULE")
    if not name:
        return
    try:
        importlib.import_module(name).register()
    except Exception as error:
        warnings.warn(f"RLINF_EXT_MODULE {name!r} could not be loaded: {type(error).__name__}: {error}", stacklevel=2)
