"""A Ray cluster of several nodes on this machine, for tests.

Every node is a raylet of its own with its own loopback address and fake accelerators. What was learned
the hard way is kept in one place here: nodes start one after another, from a process of their own that
holds nothing else; home, token and temporary directory are the cluster's own, with short paths (Unix
socket paths end at 107 bytes); nothing is found by address "auto", and nobody calls `ray stop`, which
ends other people's Ray. However a test ends, its cluster is gone: the process that holds it ends with
its standard input.

    with RayCluster(nodes=4, gpus=8) as cluster:
        done = cluster.drive("import roost; ...")
        assert cluster.left() == [[], [], 0]
"""

import json
import os
import secrets
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from verdicts import LeftOver, TimedOut

ROOT = Path(__file__).resolve().parents[2]
# Nobody else's settings reach a test's Ray.
# Where roost is installed it is compiled; without bytecode every process would do that anew, a twentieth of what it takes to start.
FOREIGN = ("RAY_", "ROOST_", "RLINF_", "CUDA_VISIBLE_DEVICES", "XDG_", "PYTHONDONTWRITEBYTECODE")
WAIT = 300  # a watchdog, ten times what is needed
# A lost node is noticed sooner than by default.
HEALTH = {
    "RAY_health_check_initial_delay_ms": "1000",
    "RAY_health_check_period_ms": "500",
    "RAY_health_check_timeout_ms": "1000",
    "RAY_health_check_failure_threshold": "4",
}

# Every raylet takes the machine for its own and starts workers ahead of need, a second of CPU each.
FRUGAL = {"RAY_worker_maximum_startup_concurrency": "1", "RAY_prestart_worker_first_driver": "0"}


def free_port() -> int:
    """A port that is free now; the head's is chosen by us, as Ray's own choice can be taken."""
    with socket.socket() as probe:
        probe.bind(("", 0))
        return int(probe.getsockname()[1])


def merged(environment: Mapping[str, str], variables: Mapping[str, str | None]) -> dict[str, str]:
    """Without what is None."""
    return {name: value for name, value in {**environment, **variables}.items() if value is not None}


def last_json(out: str, err: str = "") -> Any:
    """The last line of JSON that a driver printed; Ray's own lines may come behind it."""
    for line in reversed(out.splitlines()):
        try:
            return json.loads(line)
        except ValueError:
            continue
    raise AssertionError(f"the driver printed no JSON:\n{out}\n{err}")


class NotUp(RuntimeError):
    """The nodes did not start."""


# Runs scripts one after the other, in one namespace; groups of workers end with the script that launched them.
SESSION = """
import contextlib, io, json, os, sys, traceback
answers = os.fdopen(os.dup(1), "w")
os.dup2(2, 1)
names = {"__name__": "__main__"}
for line in sys.stdin:
    printed, error = io.StringIO(), ""
    try:
        with contextlib.redirect_stdout(printed):
            exec(compile(json.loads(line), "<script>", "exec"), names)
    except BaseException:
        error = traceback.format_exc()
    if "roost" in sys.modules:
        from roost._work.group import GROUPS
        for group in [group for group in GROUPS._running.values() if group is not None]:
            group._close()
    print(json.dumps([printed.getvalue(), error]), file=answers, flush=True)
"""

JOIN = """
import json, os, time
import ray
ray.init(address=os.environ["RAY_ADDRESS"], namespace="looking", log_to_driver=False, logging_level="error")
from ray._private.state import actors as all_actors
from ray.util.placement_group import placement_group_table
"""

LOOK = """
deadline = time.monotonic() + SECONDS
while True:
    actors = [entry["Name"] or entry["ActorClassName"] for entry in all_actors().values() if entry["State"] != "DEAD"]
    groups = [group["state"] for group in placement_group_table().values() if group["state"] != "REMOVED"]
    taken = ray.cluster_resources().get("GPU", 0) - ray.available_resources().get("GPU", 0)
    if (not actors and not groups and not taken) or time.monotonic() > deadline:
        break
    time.sleep(0.1)  # Ray tells nobody of it
print(json.dumps([actors, groups, taken]))
"""

REMOVE = """
from ray.util.placement_group import PlacementGroup, remove_placement_group
groups = [number for number, group in placement_group_table().items() if group["state"] != "REMOVED"]
for number in groups:
    remove_placement_group(PlacementGroup(ray.PlacementGroupID.from_hex(number)))
print(json.dumps(groups))
"""


class Session:
    """A driver for script after script: joining a cluster takes longer than most of what tests do there."""

    def __init__(self, cluster: "RayCluster") -> None:
        number, path = tempfile.mkstemp(dir=cluster.folder, prefix="session", suffix=".log")
        self.log = Path(path)
        with os.fdopen(number, "w") as log:
            self.process = subprocess.Popen(
                [sys.executable, "-c", SESSION],
                env=cluster.driver(),
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                text=True,
                cwd=cluster.folder,
            )

    def drive(self, script: str) -> Any:
        """As RayCluster.drive."""
        assert self.process.stdin and self.process.stdout
        print(json.dumps(script), file=self.process.stdin, flush=True)
        line = self.process.stdout.readline()
        assert line, f"the driver has ended:\n{self.log.read_text()}"
        out, error = json.loads(line)
        assert not error, f"{error}\n{self.log.read_text()}"
        return last_json(out, self.log.read_text()) if out else None

    def close(self) -> None:
        assert self.process.stdin and self.process.stdout
        self.process.stdin.close()
        try:
            self.process.wait(timeout=60)
        except subprocess.TimeoutExpired:  # a cluster without a head is not left at once
            self.process.kill()
            self.process.wait()
        self.process.stdout.close()


class RayCluster:
    """Nodes with addresses 127.0.0.2, .3, ...; the first that is listed is the head.

    `addresses` gives the last number of each node's address, in the order they join, the head's first.
    `variables` are environment variables of single nodes, by their place in that order. `is_frugal`: nodes start only the
    workers that are asked for, one after the other, and processes load less (plain_ray/); for benches, Ray is left as it is. `shows_lines`: what workers write
    reaches their driver.
    """

    def __init__(
        self,
        nodes: int = 4,
        gpus: int | list[int] = 8,
        *,
        addresses: list[int] | None = None,
        variables: dict[int, dict[str, str]] | None = None,
        token: bool = True,
        cpus: int = 8,
        environment: dict[str, str] | None = None,
        is_frugal: bool = True,
        shows_lines: bool = False,
    ) -> None:
        self.last_bytes = addresses or list(range(2, 2 + nodes))
        counts = gpus if isinstance(gpus, list) else [gpus] * len(self.last_bytes)
        self.folder = Path(tempfile.mkdtemp(prefix="rr", dir="/tmp"))
        (self.folder / "h").mkdir()
        self.environment = {name: value for name, value in os.environ.items() if not name.startswith(FOREIGN)}
        self.environment |= (
            {
                "HOME": str(self.folder / "h"),
                "XDG_RUNTIME_DIR": str(self.folder / "h"),
                "RAY_TMPDIR": str(self.folder),
                "RAY_USAGE_STATS_ENABLED": "0",
                "RAY_AUTH_MODE": "token" if token else "disabled",
                "PYTHONPATH": f"{ROOT}/tests/python/plain_ray:{ROOT}/tests/python"
                if is_frugal
                else f"{ROOT}/tests/python",
                "PYTHONUNBUFFERED": "1",
                "ROOST": os.environ.get("ROOST", str(ROOT / "build/roost")),
            }
            | (FRUGAL if is_frugal else {})
            | (environment or {})
        )
        if token:
            path = self.folder / "token"
            path.write_text(secrets.token_hex(32))
            path.chmod(0o600)
            self.environment["RAY_AUTH_TOKEN_PATH"] = str(path)
        self.nodes = [
            {"address": f"127.0.0.{last}", "gpus": count, "cpus": cpus, "variables": (variables or {}).get(index, {})}
            for index, (last, count) in enumerate(zip(self.last_bytes, counts, strict=True))
        ]
        self.shows_lines = shows_lines or not is_frugal
        self.holder: subprocess.Popen[str] | None = None
        self.looker: Session | None = None

    def __enter__(self) -> Self:
        # Ray gives a node 30 seconds to start, whatever else the machine does.
        for tries_left in (2, 1, 0):
            try:
                self._start()
                return self
            except NotUp:
                self._end()
                if not tries_left:
                    self.close()
                    raise
            except BaseException:
                self.close()
                raise
        raise AssertionError("unreachable")

    def _start(self) -> None:
        self.port = free_port()
        self.address = f"127.0.0.{self.last_bytes[0]}:{self.port}"
        self.log = open(self.folder / "holder.log", "w")
        self.holder = subprocess.Popen(
            [sys.executable, str(ROOT / "tests/python/ray_holder.py")],
            env=self.environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self.log,
            text=True,
            start_new_session=True,
        )
        self.tell({"nodes": self.nodes, "port": self.port, "shows_lines": self.shows_lines})

    def tell(self, request: Any) -> Any:
        """Sends the holder a request and returns its answer."""
        assert self.holder and self.holder.stdin and self.holder.stdout
        self.holder.stdin.write(json.dumps(request) + "\n")
        self.holder.stdin.flush()
        line = self.holder.stdout.readline()
        if not line:
            raise NotUp(f"the cluster did not come up:\n{(self.folder / 'holder.log').read_text()}")
        return json.loads(line)

    def add_node(self, last: int, gpus: int = 8, cpus: int = 8, variables: dict[str, str] | None = None) -> None:
        """Another node, while the cluster is running."""
        self.tell({"add": {"address": f"127.0.0.{last}", "gpus": gpus, "cpus": cpus, "variables": variables or {}}})

    def kill_node(self, last: int) -> None:
        """Kills a raylet as a lost machine would."""
        self.tell({"kill": f"127.0.0.{last}"})

    def kill_head(self) -> None:
        """Kills the control store: the cluster has no head any more."""
        self.tell({"kill": "gcs"})

    def pause_head(self) -> None:
        """The control store says nothing more, and hangs up on nobody."""
        self.tell({"signal": signal.SIGSTOP})

    def resume_head(self) -> None:
        self.tell({"signal": signal.SIGCONT})

    def restart_head(self) -> None:
        """Starts a control store on the port of the one that was killed. It remembers nothing."""
        self.tell({"restart": "gcs"})

    def driver(self, **variables: str | None) -> dict[str, str]:
        """The environment of a process that joins this cluster; None = without that variable."""
        return merged(self.environment | {"RAY_ADDRESS": self.address}, variables)

    def start(self, script: str, *arguments: str, **variables: str | None) -> subprocess.Popen[str]:
        """A driver, in a session of its own."""
        return subprocess.Popen(
            [sys.executable, "-c", script, *arguments],
            env=self.driver(**variables),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
            cwd=self.folder,
        )

    def run(
        self, script: str, *arguments: str, timeout: float = WAIT, **variables: str | None
    ) -> subprocess.CompletedProcess[str]:
        """A driver, to its end; nothing of its session is left behind when it takes too long."""
        driver = self.start(script, *arguments, **variables)
        try:
            out, err = driver.communicate(timeout=timeout)
        except subprocess.TimeoutExpired:
            os.killpg(driver.pid, signal.SIGKILL)
            out, err = driver.communicate()
            raise TimedOut(f"the driver hangs:\n{out}\n{err}") from None
        return subprocess.CompletedProcess(driver.args, driver.returncode, out, err)

    def drive(self, script: str, *arguments: str, **variables: str | None) -> Any:
        """What a driver prints last, which is JSON; its failure is the test's."""
        done = self.run(script, *arguments, **variables)
        assert done.returncode == 0, f"{done.stdout}\n{done.stderr}"
        return last_json(done.stdout, done.stderr)

    def left(self, seconds: float = 30) -> LeftOver:
        """What is in the cluster when nobody should be, after so long at most: actors and placement groups that live,
        and devices that are taken."""
        return LeftOver(self._look(LOOK.replace("SECONDS", str(seconds))))

    def kept(self) -> list[str]:
        """What is kept for the managers of runs."""
        return self._look(
            "from ray.experimental.internal_kv import _internal_kv_list as keys\nprint(json.dumps([key.decode() for key in keys('', namespace='roost')]))"
        )  # type: ignore[no-any-return]

    def pid_of(self, name: str) -> int:
        """The process of the one living actor with this name."""
        (pid,) = self._look(
            f"print(json.dumps([entry['Pid'] for entry in all_actors().values() if entry['State'] == 'ALIVE' and entry['Name'] == {name!r}]))"
        )
        return int(pid)

    def remove_groups(self) -> list[str]:
        """Removes every placement group, as anybody in the cluster can; their numbers."""
        return self._look(REMOVE)  # type: ignore[no-any-return]

    def await_nodes(self, count: int) -> None:
        """Until the cluster has noticed who came and who was lost."""
        self._look(f"while sum(node['Alive'] for node in ray.nodes()) != {count}: time.sleep(0.1)\nprint('null')")

    def _look(self, script: str) -> Any:
        if self.looker is None:
            self.looker = Session(self)
            self.looker.drive(JOIN)
        return self.looker.drive(script)

    def close(self) -> None:
        if self.looker:
            self.looker.close()
            self.looker = None
        self._end()
        shutil.rmtree(self.folder, ignore_errors=True)

    def _end(self) -> None:
        if self.holder:
            assert self.holder.stdin and self.holder.stdout
            self.holder.stdin.close()
            try:
                self.holder.wait(timeout=60)
            except subprocess.TimeoutExpired:
                pass
            try:
                os.killpg(self.holder.pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
            self.holder.wait()
            self.holder.stdout.close()
            self.log.close()
            self.holder = None

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
