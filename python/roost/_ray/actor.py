"""The actor that hosts one worker on Ray, and the bytes of a call to it. Runs in the process of the actor.

An actor hosts its worker as a process of the local engine does (roost._work.host). Ray never repeats a call of a method of
the user's by itself."""

import contextlib
import os
import pickle
import pickletools
import sys
from collections.abc import Sequence
from typing import Any

from roost._ray.environment import node_environment
from roost._ray.session import Session, note_join
from roost._ray.transport import RayTransport
from roost._work.codec import ByValue, pickle_value
from roost._work.engine import LaunchRequest, Surroundings
from roost._work.host import Answer, Failure, Host
from roost._work.managers import set_transport

BY_VALUE = "ray.cloudpickle"  # what Ray, and payload_of, send classes of the main script with
INLINE_BYTES = 64 << 10  # arguments up to this go along with each call, larger ones are stored once


class Report:
    """What a rank reports of itself: as it was started, before its constructor could change anything."""

    def __init__(self, names: Sequence[str]) -> None:
        import ray

        self.failure: Failure | None = None
        self.node_id: str = ray.get_runtime_context().get_node_id()
        self.pid = os.getpid()
        self.variables = {name: os.environ.get(name) for name in names}


class Hosted:
    """The actor."""

    def __init__(
        self,
        payload: bytes,
        names: Sequence[str],
        surroundings: Surroundings,
        catch_system_failure: bool,
        folder: str | None = None,
    ) -> None:
        import ray
        from ray import cloudpickle

        label_output(repr(self))
        if folder is not None:
            with contextlib.suppress(OSError):  # the node does not have it
                os.chdir(folder)

        ByValue.module = BY_VALUE
        if "OMP_NUM_THREADS" not in {*names, *node_environment()}:
            # Ray's, for actors that ask for no CPU; before anything of the worker's is loaded that reads it.
            os.environ.pop("OMP_NUM_THREADS", None)
        self._report = Report(names)
        self._host: Host | None = None
        try:
            cls, args, kwargs = cloudpickle.loads(payload)
        except BaseException as raised:
            self._report.failure = Failure.of(raised)
            return
        set_transport(RayTransport(Session(ray), os.environ["ROOST_NAMESPACE"]))
        note_join()
        self._host = Host(cls, args, kwargs, os.environ, surroundings, catch_system_failure)
        self._report.failure = self._host.failure

    def __repr__(self) -> str:
        """What Ray shows before each line that the worker writes."""
        return os.environ["WORKER_NAME"]

    def report(self) -> Report:
        return self._report

    def mark(self, mark: str) -> None:
        """Behind all that was written before."""
        for number, stream in ((1, sys.stdout), (2, sys.stderr)):
            stream.flush()
            os.write(number, f"{mark}\n".encode())

    def call(self, payload: bytes) -> Answer | bytes:
        assert self._host
        read = read_call(payload)
        return read if isinstance(read, Answer) else pack(read[0], self._host.run(*read))


class AsyncHosted(Hosted):
    """The actor of a class with async methods: its calls share an event loop."""

    async def report(self) -> Report:  # type: ignore[override]
        return Hosted.report(self)

    async def mark(self, mark: str) -> None:  # type: ignore[override]
        Hosted.mark(self, mark)

    async def call(self, payload: bytes) -> Answer | bytes:  # type: ignore[override]
        assert self._host
        read = read_call(payload)
        return read if isinstance(read, Answer) else pack(read[0], await self._host.run_async(*read))


def label_output(label: str) -> None:
    """Labels the output of a constructor with the rank. Ray labels output with the class name until the constructor has
    returned, so this writes Ray's marker for the actor's name at once."""
    with contextlib.suppress(ImportError):  # another version of Ray
        from ray._private.ray_constants import LOG_PREFIX_ACTOR_NAME as prefix

        for stream in (sys.stdout, sys.stderr):
            print(f"{prefix}{label}", file=stream, flush=True)


def read_call(payload: Any) -> tuple[str, tuple[Any, ...], dict[str, Any]] | Answer:
    """Method and arguments, or the answer that they cannot be read."""
    if isinstance(payload, tuple):
        return payload
    try:
        return pickle.loads(payload)  # type: ignore[no-any-return]
    except BaseException as raised:
        # The first word of what was sent.
        method = next(word for _, word, _ in pickletools.genops(payload) if isinstance(word, str))
        return unreadable(method, Failure.of(raised, 1))


def failed_reading(raised: BaseException) -> Failure:
    """The failure to read a large value, which Ray raises inside an error of its own."""
    inner, trace = getattr(raised, "client_exc", None), getattr(raised, "traceback_str", None)
    if not isinstance(inner, BaseException):
        return Failure.of(raised, 1)
    failure = Failure.of(inner)
    return Failure(failure.error, trace or failure.traceback, failure.carried)


def unreadable(method: str, failure: Failure) -> Answer:
    return Answer(
        None,
        Failure(f"the arguments of {method!r} cannot be read: {failure.error}", failure.traceback, failure.carried),
    )


def pack(method: str, answer: Answer) -> Answer | bytes:
    """The answer as it is sent: a small one as bytes, which Ray does not pickle again. An answer that cannot be sent becomes an
    error."""
    memory: list[pickle.PickleBuffer] = []
    try:
        packed = pickle_value((answer.value, answer.failure, answer.seconds, answer.timers), memory)
    except Exception as raised:
        return answer.unsendable(method, raised)
    return answer if memory or len(packed) > INLINE_BYTES else packed


def payload_of(ray: Any, request: LaunchRequest) -> bytes:
    return ray.cloudpickle.dumps((request.cls, request.args, request.kwargs))  # type: ignore[no-any-return]


def write_call(ray: Any, method: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """What is sent along with a call: bytes, which Ray hands on unread. Large arguments, and memory that arrays lend,
    are put into Ray's store once, for all ranks."""
    memory: list[pickle.PickleBuffer] = []
    payload = pickle_value((method, args, kwargs), memory, BY_VALUE)
    return ray.put((method, args, kwargs)) if memory or len(payload) > INLINE_BYTES else payload


def unpack(answer: Answer | bytes) -> Answer:
    return Answer(*pickle.loads(answer)) if isinstance(answer, bytes) else answer
