"""The kinds of errors beside roost.Error and roost.RankError: what engines and workers can do wrong."""

from collections.abc import Sequence
from typing import Any

from roost import _roost


class EngineError(_roost.Error, RuntimeError):
    """An engine cannot do what was asked of it.

    >>> issubclass(EngineError, RuntimeError) and issubclass(EngineError, _roost.Error)
    True
    """

    code = "engine"


class Timeout(_roost.Error, TimeoutError):
    """Something did not happen in the time it was given."""

    code = "timeout"


class WorkerError(_roost.Error, RuntimeError):
    """A rank failed: which, where, and with what traceback; ``outcomes`` holds every rank's.

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


def shorten(text: str, most: int) -> str:
    """A text of about that many characters: the beginning and the end of one that has more."""
    if len(text) <= most:
        return text
    half = most // 2
    return f"{text[:half]} ... ({len(text) - 2 * half} characters) ... {text[-half:]}"


# As people import them: tracebacks and pickles name them so.
for kind in (EngineError, Timeout, WorkerError):
    kind.__module__ = "roost"
