"""Errors and warnings: those of engines and workers, and how all of them are made and written as JSON."""

import warnings
from collections.abc import Iterable, Sequence
from typing import Any, TypeVar

from roost import _roost

Kind = TypeVar("Kind", bound=_roost.Error)


class WholeText:
    """`message` of an error that was raised without a hint: its text."""

    def __get__(self, error: _roost.Error | None, owner: type) -> str:
        return "" if error is None else str(error)


# The C library sets `message` of its own errors, and fault() that of errors with a hint; both come before this.
for kind_of_library in (_roost.Error, _roost.RankError):
    kind_of_library.message = WholeText()  # type: ignore[assignment]


class EngineError(_roost.Error, RuntimeError):
    """The engine could not do what the program asked for. ``code`` and ``hint`` say more.

    >>> issubclass(EngineError, RuntimeError) and issubclass(EngineError, _roost.Error)
    True
    """

    code = "engine"


class Timeout(_roost.Error, TimeoutError):
    """A wait has reached its timeout. Waiting again is allowed where the text does not say otherwise."""

    code = "timeout"


class WorkerError(_roost.Error, RuntimeError):
    """A worker failed: it raised, ended, or could not be started.

    ``rank``, ``node_rank`` and ``accelerators`` say which worker and where; ``traceback`` is the worker's own traceback,
    and ``outcomes`` has the outcome of every rank that was called.

    >>> error = WorkerError("rank 3 failed", rank=3, node_rank=1, accelerators=["0"])
    >>> error.rank, error.node_rank, error.accelerators, error.traceback
    (3, 1, ['0'], '')
    """

    code = "worker"

    def __init__(
        self,
        message: str,
        *,
        rank: int = -1,
        node_rank: int = -1,
        accelerators: Sequence[str] = (),
        traceback: str = "",
        outcomes: Sequence[Any] = (),
    ) -> None:
        super().__init__(message)
        self.rank = rank
        self.node_rank = node_rank
        self.accelerators = accelerators
        self.traceback = traceback
        self.outcomes = outcomes


def fault(kind: type[Kind], message: str, **fields: Any) -> Kind:
    """An error with these fields (code, key, hint), ready to be raised. Its text is the message and the hint."""
    error = kind(f"{message} ({fields['hint']})" if fields.get("hint") else message)
    error.message = message
    for name, value in fields.items():
        setattr(error, name, value)
    return error


# The kind of error for a code that comes as JSON, from the managers or from C.
KINDS: dict[str, type[_roost.Error]] = {
    "access": EngineError,
    "engine": EngineError,
    "fit": _roost.RankError,
    "io": EngineError,
    "rank": _roost.RankError,
    "timeout": Timeout,
}


def make_error(code: str, message: str, hint: str = "") -> _roost.Error:
    """The error that error_fields has written."""
    return fault(KINDS.get(code, _roost.Error), message, code=code, hint=hint)


def error_fields(error: _roost.Error) -> dict[str, str]:
    """An error as JSON carries it, the hint apart from the message."""
    return {"code": error.code, "message": error.message, "hint": error.hint}


def shorten(text: str, most: int) -> str:
    """A text of about that many characters: the beginning and the end of one that has more."""
    if len(text) <= most:
        return text
    half = most // 2
    return f"{text[:half]} ... ({len(text) - 2 * half} characters) ... {text[-half:]}"


class PlanWarning(UserWarning):
    """Something in a config or a cluster that is legal but looks like a mistake."""


def warn(said: Iterable[tuple[str, str, str, str]], stacklevel: int) -> None:
    """Passes the planner's warnings on to Python; `stacklevel` counts from the caller."""
    for _, place, message, hint in said:
        text = (f"{place}: " if place else "") + message + (f" ({hint})" if hint else "")
        warnings.warn(text, PlanWarning, stacklevel=stacklevel + 1)


# The names under which programs import them, for tracebacks and pickles.
for kind in (EngineError, PlanWarning, Timeout, WorkerError):
    kind.__module__ = "roost"
