"""A `roost run` under test: what it prints, keeps and records, and which processes are its."""

import functools
import json
import os
import re
import subprocess
import textwrap
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from verdicts import TimedOut

WAIT = 300  # a watchdog, ten times what is needed
# A shell that says what it hears and ends for nobody, with a child in a session of its own.
STUBBORN = "trap 'echo got INT' INT; trap 'echo got USR1' USR1; trap '' TERM; setsid sleep 1000 & echo up; while :; do sleep 0.05; done"


def until(is_so: Callable[[], Any], what: str) -> Any:
    """What is_so gives, once it is something."""
    deadline = time.monotonic() + WAIT
    while not (found := is_so()):
        if time.monotonic() > deadline:
            raise TimedOut(f"still not: {what}")
        time.sleep(0.02)
    return found


def shell(text: str, **more: Any) -> dict[str, Any]:
    """Launch settings of a component."""
    return {"command": ["sh", "-c", textwrap.dedent(text)], **more}


def variables_of(pid: int) -> dict[str, str]:
    try:
        entries = Path(f"/proc/{pid}/environ").read_bytes().decode(errors="replace").split("\0")
    except OSError:
        return {}
    return dict(entry.split("=", 1) for entry in entries if "=" in entry)


def words_of(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes().decode(errors="replace").replace("\0", " ")
    except OSError:
        return ""


def all_pids() -> list[int]:
    return [int(name) for name in os.listdir("/proc") if name.isdigit()]


class Run:
    """In a folder whose config keeps logs in `runs`. Who makes one ends its process."""

    def __init__(self, words: list[str], env: dict[str, str], home: Path) -> None:
        self.home = home
        self.before = set((home / "runs").glob("*"))
        with open(home / "out", "w") as out, open(home / "err", "w") as err:
            self.process = subprocess.Popen(
                words, env=env, cwd=home, stdout=out, stderr=err, stdin=subprocess.DEVNULL, start_new_session=True
            )

    @property
    def out(self) -> str:
        return (self.home / "out").read_text()

    @property
    def err(self) -> str:
        return (self.home / "err").read_text()

    def await_lines(self, count: int, pattern: str) -> list[str]:
        def found() -> list[str]:
            lines = re.findall(pattern, self.out)
            assert self.process.poll() is None or len(lines) >= count, (
                f"it ended with {self.process.returncode}:\n{self.out}\n{self.err}"
            )
            return lines if len(lines) >= count else []

        return until(found, f"{count} lines of {pattern}")  # type: ignore[no-any-return]

    def end(self) -> int:
        try:
            return self.process.wait(timeout=WAIT)
        except subprocess.TimeoutExpired:
            raise TimedOut(f"it goes on:\n{self.out}\n{self.err}") from None

    @functools.cached_property
    def folder(self) -> Path:
        (folder,) = until(lambda: set((self.home / "runs").glob("*")) - self.before, "there is a run")
        return folder  # type: ignore[no-any-return]

    @property
    def id(self) -> str:
        return self.folder.name

    def records(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in (self.folder / "records.jsonl").read_text().splitlines()]

    def log(self, component: str, rank: int, stream: str = "stdout") -> bytes:
        return (self.folder / component / str(rank) / f"{stream}.log").read_bytes()

    def pids(self, words: str = "") -> list[int]:
        """The processes of this run with these words."""
        return [
            pid for pid in all_pids() if variables_of(pid).get("ROOST_RUN_ID") == self.id and words in words_of(pid)
        ]

    def pid_of(self, words: str) -> int:
        """The first of them, when there is one."""
        return until(lambda: self.pids(words), words)[0]  # type: ignore[no-any-return]
