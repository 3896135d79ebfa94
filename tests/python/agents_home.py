"""A run on several nodes without any engine between them: the bridge is local_bridge.py, and the nodes are this machine."""

import json
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from run_under_test import STUBBORN, WAIT, Run, shell
from verdicts import LeftOver

ROOT = Path(__file__).resolve().parents[2]
ROOST = os.environ.get("ROOST", str(ROOT / "build/roost"))
NODES = 3
EVERYWHERE = "0-5:0-2"


class Home:
    """A place to run in, with three nodes of two accelerators."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.started: list[subprocess.Popen[bytes]] = []
        nodes = [
            {"node_rank": rank, "id": f"id{rank}", "address": f"10.0.0.{rank + 1}", "num_accelerators": 2}
            for rank in range(NODES)
        ]
        (folder / "nodes.json").write_text(json.dumps({"roost": 1, "cluster": {"nodes": nodes}}))
        python = folder / "python"
        python.write_text(f'#!/bin/sh\nexec {sys.executable} {ROOT / "tests/python/local_bridge.py"} "$@"\n')
        python.chmod(0o755)
        (folder / "run").mkdir(mode=0o700)
        self.env = {
            "HOME": str(folder),
            "XDG_RUNTIME_DIR": str(folder / "run"),
            "PATH": os.environ["PATH"],
            "ROOST_PYTHON": str(python),
            "ROOST_PROGRAM": ROOST,
            "PYTHONPATH": os.environ.get("PYTHONPATH", ""),
            "MINE": "secret",
        }

    def start(self, placement: dict[str, str], launch: dict[str, Any], *options: str, **more: str) -> "AgentsRun":
        text = {
            "cluster": {"num_nodes": NODES, "component_placement": placement},
            "roost": {"logs": {"dir": "runs"}, "launch": launch},
        }
        (self.folder / "c.yaml").write_text(json.dumps(text))
        return AgentsRun(self, ["run", "--engine", "ray", "--cluster", "nodes.json", *options, "c.yaml"], more)

    def roost(self, *words: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [ROOST, *words], env=self.env, cwd=self.folder, capture_output=True, text=True, timeout=WAIT
        )


class AgentsRun(Run):
    def __init__(self, home: Home, words: list[str], more: dict[str, str]) -> None:
        super().__init__([ROOST, *words], home.env | more, home.folder)
        home.started.append(self.process)

    def left(self, has_folders: bool = False) -> LeftOver:
        """What of it is on this machine. Folders may be, where the guardians of the nodes, whose machine this is, were killed with
        everything else."""
        folders = [] if has_folders else self.home.glob("roost-agent-*")
        groups = Path("/sys/fs/cgroup/unified").glob(f"roost-{self.id}")
        return LeftOver([*map(str, self.pids()), *map(str, folders), *map(str, groups)])

    def is_gone(self, has_folders: bool = False) -> bool:
        deadline = time.monotonic() + WAIT
        while left := self.left(has_folders):
            assert time.monotonic() < deadline, left
            time.sleep(0.01)
        return True

    def guards(self, node: int) -> dict[str, int]:
        """The guardian ("roost") and the supervisor ("roost-super") of a node."""
        return {
            Path(f"/proc/{pid}/comm").read_text().strip(): pid for pid in self.pids(f"--guardian {self.id}.{node} ")
        }


def begin(home: Home, *options: str, **more: str) -> AgentsRun:
    run = home.start({"a": EVERYWHERE}, {"a": shell(STUBBORN)}, *options, **more)
    run.await_lines(NODES, "up")
    return run
