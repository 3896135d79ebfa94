"""Where tests launch groups of workers: this process as their driver, or a script in a process of its own.

The suite of workers runs on every engine that `ENGINES` names: a test takes the fixture `workers` (one home for a
file) or `own_workers` (one for the test), and asks it for clusters."""

import os
import subprocess
import sys
import textwrap
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import roost
from engine import Engine
from roost._work.group import GROUPS

# The stage of the Ray engine runs the same files with the other one.
ENGINES = [os.environ.get("ROOST_TEST_ENGINE", "local")]


class WorkerHome:
    """A private home for the runs of an engine."""

    def __init__(self, name: str, home: Path) -> None:
        self.name = name
        self.engine = Engine(home)
        self.home = self.modules = home  # modules: where workers find some, once it is in sys.path
        self._patch = pytest.MonkeyPatch()
        for variable in list(os.environ):
            if variable.startswith(("ROOST", "RLINF_", "XDG_")) and variable not in self.engine.env:
                self._patch.delenv(variable)
        for variable, value in self.engine.env.items():
            if os.environ.get(variable) != value:
                self._patch.setenv(variable, value)

    def cluster(self, spec: str = "1x4", **words: object) -> roost.Cluster:
        return roost.Cluster(cluster=spec, engine=self.name, timeout=120, **words)  # type: ignore[arg-type]

    def script(self, text: str, *, timeout: float = 120, **env: str) -> subprocess.CompletedProcess[str]:
        """Runs a program as its users do: in a file of its own."""
        path = self.home / "script.py"
        path.write_text(textwrap.dedent(text))
        env = {"ROOST_CLUSTER": "1x8", "ROOST_ENGINE": self.name} | env
        return subprocess.run(
            [sys.executable, path],
            env=self.engine.env | env,
            cwd=self.home,
            capture_output=True,
            text=True,
            timeout=timeout,
        )

    def log(self, group: str, rank: int = 0, stream: str = "stdout") -> str:
        """What a rank has written, in the newest run of that name."""
        [*_, run] = [run for run in self.engine.runs() if (run / group).is_dir()]
        return self.engine.log(run, group, rank, stream)

    def close(self) -> None:
        GROUPS.close()
        self._patch.undo()
        self.engine.wait_empty()


def make_home(name: str, home: Path) -> Iterator[WorkerHome]:
    if name == "ray":
        from ray_home import RayHome

        made: Any = RayHome(home)
    else:
        made = WorkerHome(name, home)
    yield made
    made.close()
