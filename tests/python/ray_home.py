"""The suite of workers on Ray: this process is the driver of one cluster of four nodes, for as long as it lives.

A test asks for clusters by a spec, as on the local engine: the first nodes of the real cluster, with that many of
their accelerators, in the same run."""

import atexit
import copy
import json
import os
import shutil
import subprocess
import sys
import tempfile
import textwrap
from pathlib import Path
from typing import Any

import roost
from engine import Engine
from ray_cluster import RayCluster
from roost._plan.config import read_config
from roost._work.group import GROUPS
from roost._work.managers import set_cluster


class Shared:
    """The cluster and its run."""

    cluster: RayCluster | None = None
    modules = Path()  # of tests: a folder where workers look for some
    base: roost.Cluster | None = None


def open_shared() -> roost.Cluster:
    if Shared.base is None:
        Shared.modules = Path(tempfile.mkdtemp(prefix="rm", dir="/tmp"))
        atexit.register(shutil.rmtree, Shared.modules, ignore_errors=True)
        # With all that ray[default] has, as users have it; the tests of the engine itself have a plain Ray.
        variables = {
            "RAY_worker_maximum_startup_concurrency": "2",
            "PYTHONPATH": f"{Path(__file__).parent}:{Shared.modules}",
        }
        Shared.cluster = RayCluster(nodes=4, gpus=8, shows_lines=True, environment=variables).__enter__()
        atexit.register(Shared.cluster.close)
        for name in [name for name in os.environ if name.startswith(("RAY_", "ROOST_", "RLINF_"))]:
            if name != "ROOST_TEST_ENGINE":
                del os.environ[name]
        os.environ.update(
            {
                name: value
                for name, value in Shared.cluster.driver().items()
                if name.startswith(("RAY_", "HOME", "XDG_"))
            }
        )
        Shared.base = roost.Cluster(num_nodes=4, engine="ray", timeout=120)
        atexit.register(Shared.base._engine_link().close)
    return Shared.base


def part_of(base: roost.Cluster, spec: str, config: Any = None) -> roost.Cluster:
    """The first nodes of the cluster with fewer accelerators."""
    from roost._ray.nodes import build_cluster

    size, _, model = spec.partition(" ")
    count, each = map(int, size.split("x"))
    nodes = [
        {
            "node_rank": node.node_rank,
            "id": node.ray_id,
            "address": node.node_ip,
            "num_cpus": node.num_cpus,
            "num_accelerators": each,
        }
        | ({"accelerator_model": model} if model else {})
        for node in base.nodes[:count]
    ]
    engine = copy.copy(base._engine_link())
    engine._is_owner = False
    engine.value = build_cluster(json.dumps({"roost": 1, "cluster": {"nodes": nodes}}), config, count)
    engine._nodes = [engine.value.node(rank) for rank in range(count)]
    engine.ids = engine.ids[:count]
    engine.config = config
    part = roost.Cluster._of(engine.value, config, None)
    part._timeout, part._engine, part._link = 120.0, "ray", engine
    set_cluster(part)
    return part


class RayHome:
    """As worker_home.WorkerHome, on Ray."""

    name = "ray"

    def __init__(self, home: Path) -> None:
        self.base = open_shared()
        # Reserved up to here: the parts share the reserver of the run.
        self.base._engine_link().reserver()
        self.home, self.modules = home, Shared.modules
        self.engine = Engine(home)  # for pipes and places

    def cluster(self, spec: str = "1x4", **words: Any) -> roost.Cluster:
        """As roost.Cluster, of the words that the suite uses."""
        return part_of(
            self.base, spec, read_config("cluster_cfg", words["cluster_cfg"]) if "cluster_cfg" in words else None
        )

    def script(self, text: str, *, timeout: float = 120, **env: str) -> subprocess.CompletedProcess[str]:
        path = self.home / "script.py"
        path.write_text(textwrap.dedent(text))
        assert Shared.cluster
        env = Shared.cluster.driver(ROOST_ENGINE="ray", PYTHONPATH=str(self.home), RAY_DEDUP_LOGS="0") | env
        return subprocess.run(
            [sys.executable, path], env=env, cwd=self.home, capture_output=True, text=True, timeout=timeout
        )

    def log(self, group: str, rank: int = 0, stream: str = "stdout") -> str:
        """What a rank has written, by the newest file in which Ray noted its name; without what Ray notes."""
        assert Shared.cluster
        files = Shared.cluster.folder.glob(f"ray/session_*/logs/worker-*.{stream[3:]}")
        for path in sorted(files, key=lambda path: path.stat().st_mtime_ns, reverse=True):
            lines = path.read_text().splitlines(keepends=True)
            if f":actor_name:{group}:{rank}\n" in lines:
                return "".join(line for line in lines if not line.startswith(":"))
        raise AssertionError(f"no file of Ray has the output of {group}:{rank}")

    def close(self) -> None:
        """Ends the groups; the run goes on, for the next test."""
        for group in list(GROUPS._running.values()):
            if group is not None:
                group._close()
