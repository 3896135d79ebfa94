"""The handle of an actor that Cluster.allocate() started: Ray's own, whose methods can also be called as on this machine."""

import asyncio
import functools
import os
from typing import Any

from roost._plan.errors import Timeout
from roost._ray.group import rays_cause
from roost._ray.session import check_owner
from roost._work.call import Outcome, failure_of


def as_allocated(ray: Any, actor: Any, name: str, placements: Any) -> Any:
    """The same handle, for Ray too: it can be passed on, killed and looked at like any other. Where it is passed to another
    process, it arrives as Ray's plain handle."""
    ray_class: Any = type(actor)
    actor.__class__ = handle_class(ray_class)
    actor.__dict__["_roost_of"] = (ray, name, placements)
    return actor


@functools.cache
def handle_class(ray_class: Any) -> type:
    """Ray's class of handles, with methods that are called at once."""
    from ray.actor import ActorMethod

    class AllocatedActor(ray_class):  # type: ignore[misc]
        def __getattribute__(self, name: str) -> Any:
            return as_method(self, name, super().__getattribute__(name), ActorMethod)

        def __getattr__(self, name: str) -> Any:
            return as_method(self, name, super().__getattr__(name), ActorMethod)

    return AllocatedActor


def as_method(actor: Any, name: str, found: Any, ray_method: type) -> Any:
    """A method of the actor as one that can be called; everything else as it is."""
    if name.startswith("_") or type(found) is not ray_method:
        return found
    return Method(actor, name, found)


class Method:
    """A method of an allocated actor. ``handle.method(x)`` returns an object with ``wait()``; ``handle.method.remote(x)``,
    ``options`` and ``bind`` are Ray's."""

    def __init__(self, actor: Any, name: str, method: Any) -> None:
        self._actor, self._name, self._method = actor, name, method

    def __call__(self, *args: Any, **kwargs: Any) -> "Value":
        ray, name, placements = self._actor.__dict__["_roost_of"]
        return Value(ray, name, placements, self._name, self._method.remote(*args, **kwargs))

    def __getattr__(self, name: str) -> Any:
        return getattr(self._method, name)


class Value:
    """What a method of an allocated actor will have answered: as roost._local.allocate.Value."""

    def __init__(self, ray: Any, name: str, placements: Any, method: str, ref: Any) -> None:
        self._ray, self._name, self._placements, self._method, self._ref = ray, name, placements, method, ref
        self._pid = os.getpid()

    def wait(self, timeout: float | None = None) -> Any:
        """The value. Raises WorkerError with the cause where the method or the constructor raised, and Timeout."""
        check_owner(self._pid, "a call belongs to the process that made it")
        try:
            return self._ray.get(self._ref, timeout=timeout)
        except self._ray.exceptions.GetTimeoutError:
            raise Timeout(f"'{self._method}' of '{self._name}' was not answered after {timeout or 0:g} s") from None
        except self._ray.exceptions.RayError as error:
            raise self._failure(error) from error

    async def async_wait(self, timeout: float | None = None) -> Any:
        """As wait(), for coroutines."""
        return await asyncio.to_thread(self.wait, timeout)

    def done(self) -> bool:
        """Whether there is an answer."""
        return bool(self._ray.wait([self._ref], timeout=0, fetch_local=False)[0])

    def _failure(self, error: Any) -> Exception:
        """The error of the method or constructor; without one, what became of the call is not known."""
        cause = getattr(error, "cause", None)
        if cause is not None:
            words = f"{type(cause).__name__}: {cause}"
            outcome = Outcome(0, "error", error=words, traceback=str(error), exception=cause)
        else:
            outcome = Outcome(0, "unknown", error=rays_cause(" ".join(str(error).split())))
        return failure_of(self._name, outcome, self._placements, f"in {self._method!r}", outcomes=[outcome])
