"""Cluster.allocate() on this machine: a process of any class, and a handle of it with the words of an actor's."""

import os
from collections.abc import Mapping, Sequence
from typing import Any

from roost import _roost
from roost._allocate import place_one
from roost._engine import LaunchRequest, Outcome
from roost._group import GROUPS, check_name, look_around
from roost._handle import CallSite, Handle, failure_of
from roost._local import LocalEngine, LocalGroup, read_refusal


def allocate_locally(
    engine: LocalEngine, cls: type, name: str, node_rank: int, gpu_id: int | None, variables: Mapping[str, str], interpreter: str | None,
    max_concurrency: int | None, args: Sequence[Any], kwargs: Mapping[str, Any], disable_distributed_log: bool,
) -> "Allocated":  # fmt: skip
    cluster = engine._cluster
    placements = place_one(cluster, node_rank, gpu_id)
    request = LaunchRequest(
        cls=cls,
        args=tuple(args),
        kwargs=dict(kwargs),
        name=check_name(name.replace(":", ".")),  # "other:1" too is the name of a folder
        placements=placements,
        max_concurrency=max_concurrency,
        disable_distributed_log=disable_distributed_log,
        catch_system_failure=os.environ.get("RLINF_CATCH_FAILURE") == "1",
        env=dict(variables),
        surroundings=look_around(cluster, placements),
        interpreters={} if interpreter is None else {0: interpreter},
    )
    GROUPS.reserve(name)
    try:
        handle = Allocated(name, engine.start(request), placements)
    except BaseException:
        GROUPS.leave(name)
        raise
    GROUPS.enter(name, handle)  # type: ignore[arg-type]
    return handle


class Allocated:
    """A process by hand. ``handle.method.remote(x)``, or ``handle.method(x)``, calls it; what that answers with has
    ``wait(timeout=None)`` for the value, ``done()`` and ``async_wait()``."""

    def __init__(self, name: str, link: LocalGroup, placements: _roost.Placements) -> None:
        self._name, self._link, self._placements = name, link, placements

    def __getattr__(self, method: str) -> "Method":
        if method.startswith("_"):
            raise AttributeError(f"{method!r} is private to the class of {self._name!r}")
        return Method(self, method)

    def _close(self) -> None:
        """Ends the process."""
        self._link.close()
        GROUPS.leave(self._name)

    def __repr__(self) -> str:
        return f"<roost process {self._name!r}>"


class Method:
    """A method of an allocated process."""

    def __init__(self, owner: Allocated, name: str) -> None:
        self._owner, self._name = owner, name

    def remote(self, *args: Any, **kwargs: Any) -> "Value":
        owner = self._owner
        call = owner._link.caller(CallSite(owner._name, self._name, None, owner._placements, owner._link))
        return Value(owner, call(*args, **kwargs))

    __call__ = remote


class Value:
    """What a method of an allocated process will have answered."""

    def __init__(self, owner: Allocated, handle: Handle) -> None:
        self._owner, self._handle = owner, handle

    def wait(self, timeout: float | None = None) -> Any:
        self._check(self._handle.done())
        try:
            value = self._handle.wait(timeout)[0]
            self._owner._link.tell()
            return value
        except _roost.Error:
            self._check(True)
            raise

    async def async_wait(self, timeout: float | None = None) -> Any:
        try:
            return (await self._handle.async_wait(timeout))[0]
        except _roost.Error:
            self._check(True)
            raise

    def done(self) -> bool:
        return self._handle.done()

    def _check(self, may_have_failed: bool) -> None:
        """A constructor that failed is why nothing answers: its own error is what to tell."""
        owner = self._owner
        known: dict[str, Any] = owner._link._group.rank(0) if may_have_failed else {"state": ""}
        if known["state"] == "refused":
            outcome: Outcome = read_refusal(0, known["bytes"])
            raise failure_of(owner._name, outcome, owner._placements, "to start", outcomes=[outcome]) from outcome.exception
