"""Workers' output on the driver's screen: a thread follows their log files and shows whole lines, each with its rank.

Lines look as the program shows them: colours pass on a terminal, a progress bar is its newest state, and the rest that a
terminal would interpret is escaped. On a terminal a progress bar has a row (bars.py) until its line ends. Nothing is kept of
what was read: a line that is not whole yet is read again. What a group wrote before it was closed is shown before close
returns."""

import os
import sys
import threading
from collections.abc import Sequence
from pathlib import Path

from roost import _roost
from roost._local.bars import BARS, size_of
from roost._work.logs import has_color

CHUNK = 1 << 18  # enough for a line of any length: a longer one is cut
PAUSE = 0.2  # seconds between two looks
FILES_A_PAUSE = 1000  # with more, looks are rarer


class Followed:
    """One log file."""

    def __init__(self, path: Path, component: str, rank: int, is_error: bool) -> None:
        self._path, self._component, self._rank, self._is_error = path, component, rank, is_error
        self._at = self._memo = 0
        self._bar = ""

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

    def forget_bar(self) -> None:
        """A bar that nothing came after has no row any more."""
        BARS.update((self._component, self._rank, self._is_error), "")

    def _print(self, data: bytes, is_end: bool) -> int:
        """Shows the whole lines; returns how many bytes are done with."""
        screen = sys.stderr if self._is_error else sys.stdout
        size = size_of(screen)
        width = size.columns if size is not None else 0
        lines, taken, self._memo, self._bar = _roost.show_lines(
            self._component, self._rank, data, self._memo, is_end, has_color(screen), width, self._bar
        )
        if lines:
            BARS.print(screen, lines)
        BARS.update((self._component, self._rank, self._is_error), self._bar)
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
            BARS.draw()

    def close(self) -> None:
        """Shows the rest."""
        if self._owner != os.getpid() or self._is_over.is_set():
            return
        self._is_over.set()
        self._thread.join()
        for file in self._files:
            file.show(True)
            file.forget_bar()
        BARS.draw()
