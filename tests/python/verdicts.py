"""Two failures that tools/retry.py knows by name: a test that fails with one of them is never tried again."""

from typing import Any


class LeftOver(list[Any]):
    """What is left of a run: processes, control groups, folders. A list like any other, but an assertion that finds it not
    empty shows its name."""

    def __repr__(self) -> str:
        return f"LeftOver({super().__repr__()})"


class TimedOut(AssertionError):
    """Something that a test waits for does not come before its watchdog ends the wait."""
