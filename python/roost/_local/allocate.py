"""The handle of a process that Cluster.allocate() started on this machine. It has the words of a Ray actor's handle."""

from typing import Any

from roost import _roost
from roost._local.group import LocalGroup, read_refusal
from roost._work.call import CallSite, Handle, Outcome, failure_of
from roost._work.group import GROUPS


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
        """Raises the error of a constructor that failed: it is why no answer comes."""
        owner = self._owner
        known: dict[str, Any] = owner._link._group.rank(0) if may_have_failed else {"state": ""}
        if known["state"] == "refused":
            outcome: Outcome = read_refusal(0, known["bytes"])
            raise failure_of(
                owner._name, outcome, owner._placements, "to start", outcomes=[outcome]
            ) from outcome.exception
