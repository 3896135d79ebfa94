"""The thread that reads answers while no thread waits for them.

A worker whose answers nobody reads stops when its connection is full, and whoever depends on it stops, too. What is read
and when is decided in C (`src/rpc/reader.c`); the thread is there without the GIL."""

import os
import threading
import time

from roost import _roost

END_SECONDS = 5.0  # the thread ends at once when the last group is closed
TURN_SECONDS = 0.05


class Reading:
    """One thread for all groups of this process: it begins with the first of them and ends with the last."""

    def __init__(self) -> None:
        self._reader: _roost.Reader | None = None
        self._thread: threading.Thread | None = None
        self._lock = threading.Lock()

    def add(self, group: _roost.Group) -> None:
        """Reads for the group until it is closed."""
        with self._lock:
            reader = self._reader or _roost.Reader()
            reader.add(group)
            if self._reader is None:
                self._thread = threading.Thread(target=self._run, args=(reader,), name="roost-reader", daemon=True)
                self._thread.start()
                self._reader = reader

    def _run(self, reader: _roost.Reader) -> None:
        while not self._is_over(reader):
            reader.run()

    def _is_over(self, reader: _roost.Reader) -> bool:
        """Whether no group is left; then the next one begins another thread."""
        with self._lock:
            if reader.has_groups:
                return False
            self._reader = None
            return True

    def settle(self) -> None:
        """Waits for the end of the thread when the last group was closed: a program may count its threads, or fork."""
        thread = self._thread
        deadline = time.monotonic() + END_SECONDS
        while thread and thread is not threading.current_thread() and thread.is_alive() and time.monotonic() < deadline:
            with self._lock:
                if self._reader is not None and self._reader.has_groups:  # perhaps since a moment ago
                    return
            thread.join(TURN_SECONDS)

    def forget(self) -> None:
        """In a fork, which has neither the thread nor the groups: all as in the beginning."""
        self._reader = self._thread = None
        self._lock = threading.Lock()


READING = Reading()
os.register_at_fork(after_in_child=READING.forget)
