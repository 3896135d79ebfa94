"""How the proxies of a process reach the managers of a run on Ray: by calls of the manager's actor. A call is repeated while
Ray restarts the manager, and an answer of an earlier life is never taken."""

import contextlib
import itertools
import json
import os
import secrets
import sys
import threading
import time
from typing import Any

from roost import _roost
from roost._plan.errors import EngineError, fault, make_error
from roost._ray.join import MANAGERS_GONE, again, who_asks
from roost._ray.managers import NAMES
from roost._ray.session import check_joined
from roost._work.managers import read_answer

TOLD = "blocking_get_inside_async_warned"  # of Ray
AGAIN_SECONDS = 30.0  # while a manager is made again
TAKE_BACK_SECONDS = 5.0  # for a word on what is late; without one it is given up
PAUSE = 0.1


def actor_of(method: str) -> str:
    """The manager that answers; locks and ports are WorkerManager's too."""
    name = method.partition(".")[0]
    return name if name in NAMES else "WorkerManager"


def late(method: str, timeout: float | None) -> _roost.Error:
    return make_error("timeout", f"{method} was not answered after {timeout or 0:g} seconds")


class RayTransport:
    """How proxies of this process reach the managers: a call of the actor that has the memory."""

    def __init__(self, ray: Any, namespace: str, managers: dict[str, Any] | None = None) -> None:
        self._ray, self._namespace, self._managers = ray, namespace, managers or {}
        self._numbers = itertools.count(1)
        self._epochs: dict[str, int] = {}  # the last epoch of each manager that this process has seen
        self._lock = threading.Lock()
        self._pid = 0
        self._owner = 0

    def _who(self) -> int:
        with self._lock:
            if self._pid != os.getpid():
                self._pid, self._owner = os.getpid(), secrets.randbits(63)
            return self._owner

    def _manager(self, name: str) -> Any:
        if name not in self._managers:
            try:
                self._managers[name] = self._ray.get_actor(name, namespace=self._namespace)
            except ValueError as error:
                raise LookupError(str(error)) from error
        return self._managers[name]

    def call(self, method: str, args: list[Any], timeout: float | None = None) -> Any:
        check_joined()
        owner, number = self._who(), next(self._numbers)
        request = json.dumps(
            {"id": number, "call": method, "args": args}, ensure_ascii=False, allow_nan=False, default=vars
        ).encode()
        try:
            answer = self._insist(method, owner, number, request, timeout)
        except (
            BaseException
        ):  # timeout, lost manager, Ctrl-C: the request may have arrived, and no caller waits for it now
            with contextlib.suppress(Exception):
                self._ray.check()
                again(self._manager(actor_of(method)).give_up).remote(owner, number)
            raise
        return read_answer(answer)

    def _insist(self, method: str, owner: int, number: int, request: bytes, timeout: float | None) -> bytes:
        errors, name = self._ray.exceptions, actor_of(method)
        deadline = None if timeout is None else time.monotonic() + timeout
        missing_since: float | None = None
        while True:
            began = time.monotonic()
            try:
                ref = self._manager(name).ask.remote(
                    self._epochs.get(name, 0), owner, who_asks(self._ray), number, request
                )
                answer = self._take(name, *self._wait(method, ref, owner, number, deadline, timeout))
                if answer is not None:
                    return answer
            except (errors.ActorUnschedulableError, errors.RayActorError, LookupError) as error:
                # It is being made again; what was asked is asked again, under the same number.
                now = time.monotonic()
                if missing_since is None or now - began > 1:  # the manager has answered in between
                    missing_since = now
                if now - missing_since > AGAIN_SECONDS:
                    raise fault(
                        EngineError,
                        f"the {name} of the run has ended: {str(error).splitlines()[0]}",
                        hint=MANAGERS_GONE,
                    ) from error
                if deadline is not None and now >= deadline:
                    raise late(method, timeout) from None
                time.sleep(PAUSE)

    def _take(self, name: str, epoch: int, answer: bytes | None) -> bytes | None:
        """The answer of this life of the manager; None when it wants to be asked again, knowing its epoch. LookupError when it
        is not the one to ask: it is over."""
        with self._lock:
            known = self._epochs.get(name, 0)
            self._epochs[name] = max(known, epoch)
        if answer is None and epoch <= known:
            raise LookupError(f"a {name} of epoch {epoch} answers, and not that of epoch {max(known, epoch + 1)}")
        return answer if epoch >= known else None

    def _wait(
        self, method: str, ref: Any, owner: int, number: int, deadline: float | None, timeout: float | None
    ) -> tuple[int, bytes | None]:
        """The answer; what is not answered in time is taken back, unless it has just been."""
        try:
            return self._get(ref, None if deadline is None else max(0.0, deadline - time.monotonic()))  # type: ignore[no-any-return]
        except self._ray.exceptions.GetTimeoutError:
            with contextlib.suppress(self._ray.exceptions.GetTimeoutError):  # the manager does not answer
                if not self._get(
                    again(self._manager(actor_of(method)).cancel).remote(owner, number), TAKE_BACK_SECONDS
                ):
                    epoch, answer = self._get(ref, TAKE_BACK_SECONDS)
                    if answer != b"":  # b"": it was cancelled, and the answer to that was lost
                        return epoch, answer
            raise late(method, timeout) from None

    def _get(self, ref: Any, timeout: float | None) -> Any:
        """Ray warns once when an async actor blocks in ray.get. Here that is intended, so the warning is not used up."""
        worker = sys.modules.get("ray._private.worker")
        was_told = getattr(worker, TOLD, None)
        if was_told is False:
            setattr(worker, TOLD, True)
        try:
            return self._ray.get(ref, timeout=timeout)
        finally:
            if was_told is False:
                setattr(worker, TOLD, False)
