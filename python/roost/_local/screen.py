"""Workers' output on the driver's screen: a thread follows their log files and shows whole lines, each with its rank.

Lines look as the program shows them: colours pass on a terminal, a progress bar is its newest state, and the rest that a
terminal would interpret is escaped. Nothing is kept of what was read: a line that is not whole yet is read again. What a
group wrote before it was closed is shown before close returns."""

import os
import sys
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from roost import _roost

CHUNK = 1 << 18  # enough for a line of any length: a longer one is cut
PAUSE = 0.2  # seconds between two looks
FILES_A_PAUSE = 1000  # with more, looks are rarer


def has_color(screen: Any) -> bool:
    """Whether colours are on for a stream, by the rule of the program's `--color auto`."""
    try:
        is_terminal = screen.isatty()
    except (ValueError, AttributeError):
        return False  # closed, or no stream
    return _roost.color_is_on(is_terminal, os.environ.get("NO_COLOR"), os.environ.get("TERM"))


class Followed:
    """One log file."""

    def __init__(self, path: Path, component: str, rank: int, is_error: bool) -> None:
        self._path, self._component, self._rank, self._is_error = path, component, rank, is_error
        self._at = self._memo = 0

    def show(self, is_last: bool) -> None:
        """What has been written since; with `is_last` also a line that was never ended."""
        try:
            if self._path.stat().st_size <= self._at:
                return
            with self._path.open("rb") as file:
                file.seek(self._at)
                while data := file.read(CHUNK):
                    is_end = is_last and len(data) < CHUNK
                    self._at += self._print(data, is_end)
                    if len(data) < CHUNK:
                        return
                    file.seek(self._at)
        except OSError:
            pass  # not there yet, or not any more

    def _print(self, data: bytes, is_end: bool) -> int:
        """Shows the whole lines; returns how many bytes are done with."""
        screen = sys.stderr if self._is_error else sys.stdout
        lines, taken, self._memo = _roost.show_lines(
            self._component, self._rank, data, self._memo, is_end, has_color(screen)
        )
        try:
            if lines:
                screen.write(lines)
                screen.flush()
        except (OSError, ValueError, AttributeError):
            pass  # the screen is closed
        return taken


class Screen:
    """Follows the workers of a group until it is closed."""

    def __init__(self, folder: str, name: str, ranks: Sequence[int]) -> None:
        self._files = [
            Followed(Path(folder) / name / str(rank) / f"{stream}.log", name, rank, stream == "stderr")
            for rank in ranks
            for stream in ("stdout", "stderr")
        ]
        self._owner = os.getpid()
        self._is_over = threading.Event()
        self._thread = threading.Thread(target=self._follow, name="roost-screen", daemon=True)
        self._thread.start()

    def _follow(self) -> None:
        while not self._is_over.wait(PAUSE * max(1.0, len(self._files) / FILES_A_PAUSE)):
            for file in self._files:
                file.show(False)

    def close(self) -> None:
        """Shows the rest."""
        if self._owner != os.getpid() or self._is_over.is_set():
            return
        self._is_over.set()
        self._thread.join()
        for file in self._files:
            file.show(True)
