"""`roost run --engine ray` on four nodes with eight accelerators each: the same commands, environment, logs and exit
codes as on one machine, and nothing left behind however it ends.

One cluster serves all tests. Runs are planned against a snapshot that was taken once, but for one that asks the
cluster itself. The tests that lose a node come last; rules that no engine
has a part in are in test_parts.py."""

import functools
import json
import os
import re
import signal
import subprocess
import sys
import textwrap
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from ray_cluster import HEALTH, WAIT, RayCluster

pytestmark = pytest.mark.ray

NODES = 4


def until(is_so: Callable[[], Any], what: str, seconds: float = WAIT) -> Any:
    """What is_so gives, once it is something; a watchdog."""
    deadline = time.monotonic() + seconds
    while not (found := is_so()):
        assert time.monotonic() < deadline, f"still not: {what}"
        time.sleep(0.02)
    return found


def variables_of(pid: str) -> dict[str, str]:
    try:
        entries = Path(f"/proc/{pid}/environ").read_bytes().decode(errors="replace").split("\0")
    except OSError:
        return {}
    return dict(entry.split("=", 1) for entry in entries if "=" in entry)


def words_of(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes().decode(errors="replace").replace("\0", " ")
    except OSError:
        return ""


def listens(pid: str) -> bool:
    """Whether a process accepts connections from a network."""
    try:
        sockets = {os.readlink(path) for path in Path(f"/proc/{pid}/fd").iterdir()}
        rows = [line.split() for name in ("tcp", "tcp6") for line in Path(f"/proc/{pid}/net/{name}").read_text().splitlines()[1:]]
    except OSError:
        return False
    return any(row[3] == "0A" and f"socket:[{row[9]}]" in sockets for row in rows)


class Nodes:
    """The cluster, and a place to run in."""

    def __init__(self, cluster: RayCluster) -> None:
        self.cluster = cluster
        self.runs: list[Run] = []
        self.home = cluster.folder / "w"
        self.home.mkdir()
        (self.home / "nodes.json").write_text(self.roost("probe", "--engine", "ray", "--json").stdout)

    def environment(self, **more: str) -> dict[str, str]:
        return self.cluster.driver(ROOST_PYTHON=sys.executable, ROOST_PROGRAM=self.cluster.environment["ROOST"], **more)

    def roost(self, *words: str, **more: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run([self.cluster.environment["ROOST"], *words], env=self.environment(**more), cwd=self.home, capture_output=True, text=True, timeout=WAIT)

    def config(self, placement: dict[str, str], launch: dict[str, Any]) -> str:
        text = {"cluster": {"num_nodes": NODES, "component_placement": placement}, "roost": {"logs": {"dir": "runs"}, "launch": launch}}
        (self.home / "c.yaml").write_text(json.dumps(text))
        return "c.yaml"

    def start(self, placement: dict[str, str], launch: dict[str, Any], *options: str, **more: str) -> "Run":
        self.config(placement, launch)
        return Run(self, ["run", "--engine", "ray", "--cluster", "nodes.json", *options, "c.yaml"], more)

    def left(self, run_id: str, seconds: float = 30) -> list[Any]:
        """What is left of a run, on the machine and in the cluster: nothing, it is hoped."""
        alive = lambda: [words_of(int(pid)) for pid in os.listdir("/proc") if pid.isdigit() and variables_of(pid).get("ROOST_RUN_ID") == run_id]  # noqa: E731
        deadline = time.monotonic() + seconds
        while (processes := alive()) and time.monotonic() < deadline:
            time.sleep(0.05)
        folders = [str(path) for path in Path("/tmp").glob(f"roost-part-{run_id}-*")]
        return [processes, folders, *self.cluster.left(seconds)]


NOTHING: list[Any] = [[], [], [], [], 0]


class Run:
    """A `roost run`, its lines as they come."""

    def __init__(self, nodes: Nodes, words: list[str], more: dict[str, str]) -> None:
        self.nodes = nodes
        nodes.runs.append(self)
        self.before = set((nodes.home / "runs").glob("*")) if (nodes.home / "runs").exists() else set()
        self.out_path, self.err_path = nodes.home / "out", nodes.home / "err"
        with open(self.out_path, "w") as out, open(self.err_path, "w") as err:
            self.process = subprocess.Popen([nodes.cluster.environment["ROOST"], *words], env=nodes.environment(**more), cwd=nodes.home, stdout=out, stderr=err, stdin=subprocess.DEVNULL, start_new_session=True)

    @property
    def out(self) -> str:
        return self.out_path.read_text()

    @property
    def err(self) -> str:
        return self.err_path.read_text()

    def await_lines(self, count: int, pattern: str) -> list[str]:
        def found() -> list[str]:
            lines = re.findall(pattern, self.out)
            assert self.process.poll() is None or len(lines) >= count, f"it ended with {self.process.returncode}:\n{self.out}\n{self.err}"
            return lines if len(lines) >= count else []

        return until(found, f"{count} lines of {pattern}")  # type: ignore[no-any-return]

    def end(self) -> int:
        return self.process.wait(timeout=WAIT)

    @functools.cached_property
    def folder(self) -> Path:
        (folder,) = until(lambda: set((self.nodes.home / "runs").glob("*")) - self.before, "there is a run")
        return folder  # type: ignore[no-any-return]

    @property
    def id(self) -> str:
        return self.folder.name

    def records(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in (self.folder / "records.jsonl").read_text().splitlines()]

    def log(self, component: str, rank: int, stream: str = "stdout") -> bytes:
        return (self.folder / component / str(rank) / f"{stream}.log").read_bytes()

    def pid_of(self, words: str) -> int:
        """The process of this run with these words."""
        return until(lambda: next((int(pid) for pid in os.listdir("/proc") if pid.isdigit() and variables_of(pid).get("ROOST_RUN_ID") == self.id and words in words_of(int(pid))), 0), words)  # type: ignore[no-any-return]


@pytest.fixture(scope="module")
def nodes() -> Iterator[Nodes]:
    with RayCluster(nodes=NODES, gpus=8, variables={1: {"OF_THE_NODE": "one"}, 2: {"OF_THE_NODE": "two"}}, environment=HEALTH) as cluster:
        yield Nodes(cluster)


@pytest.fixture(autouse=True)
def ended(request: pytest.FixtureRequest) -> Iterator[None]:
    """A run that a failed test left does not trouble the next one."""
    yield
    if "nodes" not in request.fixturenames:
        return
    runs = request.getfixturevalue("nodes").runs
    while runs:
        process = runs.pop().process
        process.kill()
        process.wait()


def shell(text: str, **more: Any) -> dict[str, Any]:
    return {"command": ["sh", "-c", textwrap.dedent(text)], **more}


EVERYWHERE = "0-31:0-3"  # a process on every node, with all of its accelerators

# --- when all is well


def test_a_run_is_the_same_as_on_one_machine_but_for_where_it_is(nodes: Nodes) -> None:
    """Placed by the live cluster; each process tells its environment."""
    told = 'mkdir -p "$TOLD"; env -0 > "$TOLD/$ROOST_COMPONENT.$RANK"; i=0; while [ $i -lt 300 ]; do echo "line $i of $RANK"; i=$((i+1)); done; echo "this is stderr" >&2; pwd'
    launch = {"actor": shell(told, ports={"http": 1, "more": 2}, env={"TOLD": str(nodes.home / "ray")}), "env": shell(told, env={"TOLD": str(nodes.home / "ray")})}
    config = nodes.config({"actor": "0-31:0-7", "env": "3-4,20"}, launch)
    run = Run(nodes, ["run", "--engine", "ray", config], {"RLINF_MINE": "yes", "MINE": "secret"})
    assert run.end() == 0, run.err
    lines = [f"line {i} of " for i in range(300)]
    for component, size in (("actor", 8), ("env", 3)):
        for rank in range(size):
            whole = "".join(f"{line}{rank}\n" for line in lines) + f"{nodes.home}\n"
            assert run.log(component, rank).decode() == whole
            assert [line for line in run.out.splitlines() if line.startswith(f"[{component}/{rank}] ")] == [f"[{component}/{rank}] {line}" for line in whole.splitlines()]
            assert f"[{component}/{rank}] this is stderr" in run.err
    assert "simulated" not in run.err and "is done" in run.err
    assert nodes.left(run.id) == NOTHING
    page = json.loads((run.folder / "run.json").read_text())
    assert page["engine"] == "ray" and page["namespace"] == "roost"
    records = run.records()
    assert len(records) == 12 and records[-1]["failed"] is False and all(record["code"] == 0 for record in records[:-1])

    here = nodes.roost("run", "--engine", "local", "--cluster", "nodes.json", config, f"roost.launch.actor.env.TOLD={nodes.home}/local", f"roost.launch.env.env.TOLD={nodes.home}/local")
    assert here.returncode == 0, here.stderr
    read = lambda path: dict(entry.split("=", 1) for entry in path.read_text().split("\0") if entry)  # noqa: E731
    differ = {"ROOST_RUN_ID", "ROOST_NAMESPACE", "CLUSTER_NAMESPACE", "MASTER_ADDR", "MASTER_PORT", "TOLD", "ROOST_PORT_HTTP", "ROOST_PORT_MORE"}
    of_driver = set(nodes.environment())
    of_nodes = {name for pid in os.listdir("/proc") if pid.isdigit() and "/raylet/raylet" in words_of(int(pid)).partition(" ")[0] for name in variables_of(pid)} | {"RLINF_MINE"}
    assert "OF_THE_NODE" in of_nodes and not {"OMP_NUM_THREADS", "PYTHONBREAKPOINT"} & of_nodes
    ports = set()
    for path in sorted((nodes.home / "local").iterdir()):
        local, ray = read(path), read(nodes.home / "ray" / path.name)
        added = {name: value for name, value in local.items() if name not in of_driver and name not in differ | {"PWD", "OLDPWD", "SHLVL", "_"}}
        assert added.items() <= ray.items(), path.name
        component, rank = path.name.split(".")
        assert added["RANK"] == rank and "CUDA_VISIBLE_DEVICES" in added and ("ROOST_PORT_MORE_COUNT" in added) == (component == "actor")
        assert ray["ROOST_RUN_ID"] == run.id and ray["ROOST_NAMESPACE"] == ray["CLUSTER_NAMESPACE"] == "roost"
        assert ray["MASTER_ADDR"] == "127.0.0.2" and ray["PWD"] == str(nodes.home)
        assert ray.get("OF_THE_NODE") == {1: "one", 2: "two"}.get(int(ray["CLUSTER_NODE_RANK"])) and ray["RLINF_MINE"] == "yes" and "MINE" not in ray
        # All else is of the node, and nothing of Ray's own processes there.
        assert set(ray) - set(local) <= of_nodes, path.name
        ports.add((path.name.split(".")[0], ray["MASTER_PORT"]))
        if path.name.startswith("actor"):
            ports.add((path.name, ray["ROOST_PORT_HTTP"]))
    assert len(ports) == 2 + 8 and len({port for _, port in ports}) == 10


def test_a_command_attaches_to_its_run_and_asks_its_managers(nodes: Nodes) -> None:
    asks = "import roost; cluster = roost.Cluster(engine='ray'); print(cluster.num_nodes, cluster.namespace, roost.NodeManager.get_proxy().get_master_ip())"
    run = nodes.start({"a": "31"}, {"a": {"command": [sys.executable, "-c", asks], "env": {"RAY_ADDRESS": nodes.cluster.address}}})
    assert run.end() == 0, run.err
    assert run.log("a", 0) == b"4 roost 127.0.0.2\n"


def test_every_byte_of_every_node_arrives_at_its_place(nodes: Nodes) -> None:
    """More than fits into any buffer on the way, without an end of line, up to the last byte before the end."""
    run = nodes.start({"a": EVERYWHERE}, {"a": shell('yes "node $RANK says" | head -c 6000001; yes error | head -c 1000003 >&2')}, "--quiet")
    assert run.end() == 0, run.err
    for rank in range(NODES):
        said = f"node {rank} says\n".encode()
        assert run.log("a", rank) == (said * (6000001 // len(said) + 1))[:6000001]
        assert run.log("a", rank, "stderr") == (b"error\n" * 200000)[:1000003]


def test_order_and_readiness_hold_across_nodes(nodes: Nodes) -> None:
    """The last node is ready last, each by another sign; who comes after sees all of them."""
    listen = "import os, socket, time; open('seen.port.'+os.environ['RANK'],'w'); s=socket.socket(); s.bind(('127.0.0.1', int(os.environ['ROOST_PORT_HTTP']))); s.listen(); time.sleep(1000)"
    launch = {
        "files": {**shell("sleep 0.$RANK; touch seen.file.$RANK; exec sleep 1000"), "ready": {"file": "seen.file.%{RANK}", "timeout": 100}},
        "lines": {**shell("sleep 0.$RANK; touch seen.line.$RANK; echo now ready; exec sleep 1000"), "ready": {"line": "now ready", "timeout": 100}, "after": ["files"]},
        "ports": {"command": [sys.executable, "-c", listen], "ports": {"http": 1}, "ready": {"port": "http", "timeout": 100}},
        "last": shell("ls seen.* | wc -l; kill -9 $$", after=["lines", "ports"]),
    }  # fmt: skip
    run = nodes.start(dict.fromkeys(("files", "lines", "ports"), EVERYWHERE) | {"last": "0-31:0-3"}, launch)
    assert run.end() == 128 + signal.SIGKILL, run.err
    counts = [run.log("last", rank) for rank in range(NODES) if (run.folder / "last" / str(rank)).exists() and run.log("last", rank)]
    assert counts and set(counts) == {b"12\n"}
    assert re.search(r"first failure: last/\d was ended by SIGKILL", run.err), run.err
    assert nodes.left(run.id) == NOTHING


def test_a_process_that_fails_stops_all_nodes_and_gives_its_code(nodes: Nodes) -> None:
    run = nodes.start({"a": "0-31:0-7"}, {"a": shell("trap 'echo told; exit 3' TERM; if [ $RANK = 5 ]; then echo failing; exit 7; fi; while :; do sleep 0.05; done")})
    assert run.end() == 7, run.err
    assert "first failure: a/5 exited with 7" in run.err and "stopping: a/5 failed" in run.err
    records = run.records()
    assert records[0]["rank"] == 5 and records[0]["code"] == 7
    assert {(record["rank"], record["code"] or record["signal"]) for record in records[1:-1]} <= {(rank, how) for rank in range(8) for how in (3, signal.SIGTERM)}
    assert len(records) == 9 and records[-1]["failed"] is True


# --- signals

STUBBORN = "trap 'echo got INT' INT; trap 'echo got USR1' USR1; trap '' TERM; setsid sleep 1000 & echo up; while :; do sleep 0.05; done"


def test_a_run_goes_on_when_messages_are_lost(nodes: Nodes) -> None:
    """R11: every tenth question to an actor is lost, and every tenth answer."""
    lost = {"num_failures": -1, "req_failure_prob": 10, "resp_failure_prob": 10, "in_flight_failure_prob": 0}
    run = nodes.start(
        {"a": "0-15:0-1", "b": "0-15:0-1"}, {"a": shell("seq 100; exec sleep 1000"), "b": shell("echo last", after=["a"])}, "--grace", "0.2",
        RAY_testing_rpc_failure=json.dumps({"CoreWorkerService.grpc_client.PushTask": lost}),
    )  # fmt: skip
    run.await_lines(2, "last")
    run.process.send_signal(signal.SIGTERM)
    assert run.end() == 128 + signal.SIGTERM, run.err
    assert "RpcFailureManager" in run.err  # Ray says that it loses messages
    assert [run.log("a", rank).split() for rank in range(2)] == [[b"%d" % number for number in range(1, 101)]] * 2
    assert nodes.left(run.id) == NOTHING


def test_signals_reach_every_node_and_the_second_one_kills(nodes: Nodes) -> None:
    run = nodes.start({"a": EVERYWHERE}, {"a": shell(STUBBORN)}, "--grace", "1000")
    run.await_lines(NODES, r"up")
    run.process.send_signal(signal.SIGUSR1)
    run.await_lines(NODES, r"got USR1")
    run.process.send_signal(signal.SIGINT)
    run.await_lines(NODES, r"got INT")
    run.process.send_signal(signal.SIGINT)
    assert run.end() == 128 + signal.SIGINT, run.err
    assert {record["reason"] for record in run.records()[:-1]} == {"killed-by-roost"}
    assert nodes.left(run.id) == NOTHING


def test_other_processes_of_the_user_see_it_and_stop_it(nodes: Nodes) -> None:
    run = nodes.start({"a": EVERYWHERE}, {"a": shell("echo up; exec sleep 1000")})
    run.await_lines(NODES, r"up")
    listed = json.loads(nodes.roost("ps", "--json").stdout)
    assert run.id in json.dumps(listed)
    assert nodes.roost("logs", run.id).stdout.count("up") == NODES
    ours = [pid for pid in os.listdir("/proc") if pid.isdigit() and variables_of(pid).get("ROOST_RUN_ID") == run.id]
    # The bridge is a driver of Ray's, and has its port; nothing else has one.
    assert len(ours) > NODES and [words_of(int(pid)) for pid in ours if listens(pid) and "roost._ray_run" not in words_of(int(pid))] == []
    clash = nodes.roost("run", "--engine", "ray", "--cluster", "nodes.json", nodes.config({"b": "8-9"}, {"b": shell("true")}))
    assert clash.returncode == 5 and f"accelerators are in use by run {run.id} of " in clash.stderr and "node 1 (127.0.0.3): 0-1" in clash.stderr
    assert nodes.roost("stop", run.id).returncode == 0
    assert run.end() == 128 + signal.SIGTERM, run.err
    assert nodes.left(run.id) == NOTHING


def test_a_run_that_waits_for_its_nodes_can_be_stopped(nodes: Nodes) -> None:
    config = nodes.config({"a": "0"}, {"a": shell("true")})
    run = Run(nodes, ["run", "--engine", "ray", "--cluster", "nodes.json", config, "cluster.num_nodes=4", "roost.ray.address=" + nodes.cluster.address], {"PYTHONSTARTUP": ""})
    bridge = run.pid_of("roost._ray_run")
    os.kill(bridge, signal.SIGSTOP)
    run.process.send_signal(signal.SIGINT)
    assert run.end() == 128 + signal.SIGINT
    assert "SIGINT: stopped before it began" in run.err
    assert not set((nodes.home / "runs").glob("*")) - run.before


# --- who dies


def begin_stubborn(nodes: Nodes) -> Run:
    run = nodes.start({"a": EVERYWHERE}, {"a": shell(STUBBORN)}, "--grace", "0.2")
    run.await_lines(NODES, r"up")
    return run


def test_a_killed_driver_leaves_nothing(nodes: Nodes) -> None:
    run = begin_stubborn(nodes)
    name = run.id
    run.process.kill()
    run.end()
    assert nodes.left(name) == NOTHING


def test_a_killed_bridge_ends_the_run(nodes: Nodes) -> None:
    run = begin_stubborn(nodes)
    os.kill(run.pid_of("roost._ray_run"), signal.SIGKILL)
    assert run.end() == 5
    assert "the bridge to the nodes has ended (signal 9)" in run.err
    assert [record["reason"] for record in run.records()[:-1]] == ["lost"] * NODES
    assert nodes.left(run.id) == NOTHING


def test_a_reservation_that_somebody_else_removes_ends_the_run(nodes: Nodes) -> None:
    """R9."""
    run = begin_stubborn(nodes)
    removed = nodes.cluster.remove_groups()
    assert run.end() == 5, run.err
    assert f"roost: the accelerators of this run are no longer reserved: its placement group {removed[0]} was removed by somebody else\n" in run.err
    assert len(removed) == 1 and [record["reason"] for record in run.records()[:-1]] == ["killed-by-roost"] * NODES
    assert nodes.left(run.id) == NOTHING


def actor_of(address: str) -> int:
    """The process of the part's actor on a node."""
    for pid in os.listdir("/proc"):
        if pid.isdigit() and words_of(int(pid)).startswith("ray::Part") and f"--node-ip-address={address}" in parent_words(int(pid)):
            return int(pid)
    return 0


def parent_words(pid: int) -> str:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return words_of(int(fields[1])) + Path(f"/proc/{pid}/environ").read_bytes().decode(errors="replace")


def test_a_killed_actor_ends_the_run_and_its_processes(nodes: Nodes) -> None:
    run = begin_stubborn(nodes)
    os.kill(until(lambda: actor_of("127.0.0.4"), "the actor of node 2"), signal.SIGKILL)
    assert run.end() == 5, run.err
    assert "node 2 (127.0.0.4) is lost" in run.err
    assert {record["rank"]: record["reason"] for record in run.records()[:-1]} == {0: "killed-by-roost", 1: "killed-by-roost", 2: "lost", 3: "killed-by-roost"}
    assert nodes.left(run.id) == NOTHING


# --- a node that is lost: from here on there are fewer


def test_a_lost_node_ends_the_run(nodes: Nodes) -> None:
    run = begin_stubborn(nodes)
    nodes.cluster.kill_node(5)
    assert run.end() == 5, run.err
    assert "node 3 (127.0.0.5) is lost" in run.err
    assert {record["rank"]: record["reason"] for record in run.records()[:-1]} == {0: "killed-by-roost", 1: "killed-by-roost", 2: "killed-by-roost", 3: "lost"}
    assert nodes.left(run.id) == NOTHING


if os.environ.get("ROOST_SOAK"):

    def test_a_lost_head_ends_the_run_in_bounded_time(nodes: Nodes) -> None:
        """Ray itself gives up after a minute; then so does the run."""
        config = nodes.config({"a": "0-15:0-1"}, {"a": shell(STUBBORN)})
        run = Run(nodes, ["run", "--engine", "ray", "--cluster", "nodes.json", "--grace", "0.2", config, f"cluster.num_nodes={NODES - 1}"], {})
        run.await_lines(2, r"up")
        nodes.cluster.kill_head()
        assert run.end() == 5, run.err
        assert "the bridge to the nodes has ended" in run.err or "is lost" in run.err
        alive = lambda: [pid for pid in os.listdir("/proc") if pid.isdigit() and variables_of(pid).get("ROOST_RUN_ID") == run.id]  # noqa: E731
        until(lambda: not alive(), "nothing of it is left")
