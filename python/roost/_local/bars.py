"""Progress bars of workers on the driver's terminal, in rows below everything else.

The terminal belongs to the driver's program too, which prints when it likes. So the cursor always stands where the program left
it, and the rows are drawn below: what the program prints next does not mix with them, and moves them at their next drawing.
One process has one set of rows for all of its groups."""

import os
import sys
import threading
from typing import Any

BARS_MAX = 32  # rows, and at most half of the terminal: as `roost run`
CLEAR = "\x1b[J"  # from the cursor to the end of the terminal
DOWN = "\x1bD"  # one row, in the same column; the last row scrolls
UP = "\x1b[{}A"
SAVE, RESTORE = "\x1b7", "\x1b8"

Key = tuple[str, int, bool]  # group, rank, and whether it is standard error


def size_of(screen: Any) -> os.terminal_size | None:
    """The size of the terminal that a stream writes to; None where there is no terminal that could show bars."""
    try:
        if not screen.isatty() or os.environ.get("TERM") in (None, "", "dumb"):
            return None
        size = os.get_terminal_size(screen.fileno())
    except (OSError, ValueError, AttributeError):
        return None  # closed, no stream, or one of a notebook
    return size if size.columns > 1 and size.lines > 1 else None


def find_terminal() -> Any:
    """The stream that the rows are written to; None without a terminal."""
    return next((screen for screen in (sys.stderr, sys.stdout) if size_of(screen) is not None), None)


def write(screen: Any, text: str) -> None:
    try:
        screen.write(text)
        screen.flush()
    except (OSError, ValueError, AttributeError):
        pass  # the screen is closed


class Bars:
    """The rows, and the lines that are written above them."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._texts: dict[Key, str] = {}
        self._is_drawn = False
        self._is_stale = False

    def update(self, key: Key, text: str) -> None:
        """The newest state of a bar; an empty one takes it away."""
        with self._lock:
            if self._texts.get(key, "") == text:
                return
            if text:
                self._texts[key] = text
            else:
                del self._texts[key]
            self._is_stale = True

    def print(self, screen: Any, lines: str) -> None:
        """Whole lines of a worker. The rows go away for lines on the terminal, until they are drawn again."""
        with self._lock:
            if self._is_drawn and size_of(screen) is not None:
                write(find_terminal(), CLEAR)
                self._is_drawn, self._is_stale = False, True
            write(screen, lines)

    def draw(self) -> None:
        """Call it at most five times a second."""
        with self._lock:
            if not self._is_stale:
                return
            terminal = find_terminal()
            size = size_of(terminal)
            if size is None:
                return
            rows = [self._texts[key] for key in sorted(self._texts)][: min(BARS_MAX, size.lines // 2)]
            room = DOWN * len(rows) + UP.format(len(rows)) if rows else ""
            below = SAVE + "".join(f"\r\n{row}" for row in rows) + RESTORE if rows else ""
            write(terminal, CLEAR + room + below)
            self._is_drawn, self._is_stale = bool(rows), False

    def forget(self) -> None:
        """In a fork: the rows are the parent's, and so may be the lock."""
        self.__init__()  # type: ignore[misc]


BARS = Bars()
os.register_at_fork(after_in_child=BARS.forget)
