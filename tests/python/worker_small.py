"""Workers that import next to nothing, for tests that launch very many."""

import os
import signal
from pathlib import Path

from roost import Worker


class Marking(Worker):
    """Leaves a file when it has been made."""

    def __init__(self, folder: str) -> None:
        super().__init__()
        Path(folder, str(self._rank)).touch()


class Small(Worker):
    def add(self, number: int) -> int:
        return number + self._rank

    def die(self) -> None:
        os.kill(os.getpid(), signal.SIGKILL)
