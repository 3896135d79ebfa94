"""Workers' output on the driver's screen: a thread follows their log files and shows whole lines, each with its rank.

Nothing is kept of what was read: a line that is not whole yet is read again. What a group wrote before it was closed
is shown before close returns."""

import os
import re
import sys
import threading
from collections.abc import Sequence
from pathlib import Path

CHUNK = 1 << 16  # a line that is longer is shown in pieces
PAUSE = 0.2  # seconds between two looks
FILES_A_PAUSE = 1000  # with more, looks are rarer
CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")


def escape(found: re.Match[str]) -> str:
    return f"\\x{ord(found[0]):02x}"


class Followed:
    """One log file."""

    def __init__(self, path: Path, label: str, is_error: bool) -> None:
        self._path, self._label, self._is_error, self._at = path, label, is_error, 0

    def show(self, is_last: bool) -> None:
        """What has been written since; with `is_last` also a line that was never ended."""
        try:
            if self._path.stat().st_size <= self._at:
                return
            with self._path.open("rb") as file:
                file.seek(self._at)
                while data := file.read(CHUNK):
                    whole = data.rfind(b"\n") + 1
                    if whole == 0 and (is_last or len(data) == CHUNK):
                        whole = len(data)
                    if whole == 0:
                        return
                    self._at += whole
                    file.seek(self._at)
                    self._print(data[:whole])
        except OSError:
            pass  # not there yet, or not any more

    def _print(self, data: bytes) -> None:
        screen = sys.stderr if self._is_error else sys.stdout
        lines = data.decode(errors="replace").removesuffix("\n").split("\n")
        shown = "".join(f"{self._label} {CONTROL.sub(escape, line)}\n" for line in lines)
        try:
            screen.write(shown)
            screen.flush()
        except (OSError, ValueError, AttributeError):
            pass  # nobody looks


class Screen:
    """Follows the workers of a group until it is closed."""

    def __init__(self, folder: str, name: str, ranks: Sequence[int]) -> None:
        self._files = [
            Followed(Path(folder) / name / str(rank) / f"{stream}.log", f"[{name}/{rank}]", stream == "stderr") for rank in ranks for stream in ("stdout", "stderr")
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
