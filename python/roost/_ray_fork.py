"""Forks of a process that has joined Ray. Ray's threads are not in them: whatever they ask Ray would wait for ever."""

import os

from roost._arguments import fault
from roost._errors import EngineError

joined: int | None = None  # the process that has


def note_join() -> None:
    """This process has joined."""
    global joined
    joined = os.getpid()


def check_joined() -> None:
    if joined is not None and joined != os.getpid():
        raise fault(
            EngineError, "this process is a fork of one that has joined Ray, and Ray does not work in a fork",
            hint="start processes with subprocess, or with multiprocessing's spawn",
        )  # fmt: skip


def check_owner(pid: int, words: str) -> None:
    """As on the local engine."""
    if pid != os.getpid():
        raise RuntimeError(f"{words}, and this is a fork of it")
