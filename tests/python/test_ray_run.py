"""`roost run --engine ray` on four nodes with eight accelerators each: the same commands, environment, logs and exit
codes as on one machine, and nothing left behind however it ends.

One cluster serves all tests. Runs are planned against a snapshot, but for one that asks the cluster itself. The tests
that need every node come first, then one loses a node; the others have two, as each node takes a second and more of
every run. Rules that no engine has a part in are in test_agents*.py."""

import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from ray_cluster import HEALTH, RayCluster
from run_under_test import STUBBORN, WAIT, Run, all_pids, shell, until, variables_of, words_of
from verdicts import LeftOver

pytestmark = pytest.mark.ray

NODES = 4
FEW = 2


def listens(pid: int) -> bool:
    """Whether a process accepts connections from a network."""
    try:
        sockets = {os.readlink(path) for path in Path(f"/proc/{pid}/fd").iterdir()}
        rows = [
            line.split()
            for name in ("tcp", "tcp6")
            for line in Path(f"/proc/{pid}/net/{name}").read_text().splitlines()[1:]
        ]
    except OSError:
        return False
    return any(row[3] == "0A" and f"socket:[{row[9]}]" in sockets for row in rows)


class Nodes:
    """The cluster, and a place to run in."""

    def __init__(self, cluster: RayCluster) -> None:
        self.cluster = cluster
        self.runs: list[Run] = []
        self.lost: set[int] = set()
        self.home = cluster.folder / "w"
        self.home.mkdir()
        self.probe(NODES)

    def probe(self, count: int) -> None:
        self.count = count
        self.everywhere = f"0-{8 * count - 1}:0-{count - 1}"  # a process on every node, with all of its accelerators
        (self.home / "nodes.json").write_text(self.roost("probe", "--engine", "ray", "--json").stdout)

    def lose(self, last: int) -> None:
        self.cluster.kill_node(last)
        self.lost.add(last)

    def environment(self, **more: str) -> dict[str, str]:
        return self.cluster.driver(ROOST_PYTHON=sys.executable, ROOST_PROGRAM=self.cluster.environment["ROOST"], **more)

    def roost(self, *words: str, **more: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [self.cluster.environment["ROOST"], *words],
            env=self.environment(**more),
            cwd=self.home,
            capture_output=True,
            text=True,
            timeout=WAIT,
        )

    def config(self, placement: dict[str, str], launch: dict[str, Any]) -> str:
        text = {
            "cluster": {"num_nodes": self.count, "component_placement": placement},
            "roost": {"logs": {"dir": "runs"}, "launch": launch},
        }
        (self.home / "c.yaml").write_text(json.dumps(text))
        return "c.yaml"

    def start(self, placement: dict[str, str], launch: dict[str, Any], *options: str, **more: str) -> Run:
        self.config(placement, launch)
        return self.run("run", "--engine", "ray", "--cluster", "nodes.json", *options, "c.yaml", **more)

    def run(self, *words: str, **more: str) -> Run:
        self.runs.append(Run([self.cluster.environment["ROOST"], *words], self.environment(**more), self.home))
        return self.runs[-1]

    def left(self, run_id: str, seconds: float = 30) -> LeftOver:
        """What is left of a run, on the machine and in the cluster: nothing, it is hoped."""
        alive = lambda: [words_of(pid) for pid in all_pids() if variables_of(pid).get("ROOST_RUN_ID") == run_id]  # noqa: E731
        deadline = time.monotonic() + seconds
        while (processes := alive()) and time.monotonic() < deadline:
            time.sleep(0.05)
        folders = [str(path) for path in Path("/tmp").glob(f"roost-agent-{run_id}-*")]
        return LeftOver([processes, folders, *self.cluster.left(seconds)])


NOTHING: list[Any] = [[], [], [], [], 0]


@pytest.fixture(scope="module")
def nodes() -> Iterator[Nodes]:
    with RayCluster(
        nodes=NODES, gpus=8, variables={1: {"OF_THE_NODE": "one"}, 2: {"OF_THE_NODE": "two"}}, environment=HEALTH
    ) as cluster:
        yield Nodes(cluster)


@pytest.fixture(scope="module")
def few(nodes: Nodes) -> Nodes:
    """The first two of them, from now on."""
    for last in {4, 5} - nodes.lost:
        nodes.lose(last)
    nodes.cluster.await_nodes(FEW)
    nodes.probe(FEW)
    return nodes


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


# --- with all nodes


def test_a_run_is_the_same_as_on_one_machine_but_for_where_it_is(nodes: Nodes) -> None:
    """Placed by the live cluster; each process tells its environment."""
    told = 'mkdir -p "$TOLD"; env -0 > "$TOLD/$ROOST_COMPONENT.$RANK"; i=0; while [ $i -lt 300 ]; do echo "line $i of $RANK"; i=$((i+1)); done; echo "this is stderr" >&2; pwd'
    launch = {
        "actor": shell(told, ports={"http": 1, "more": 2}, env={"TOLD": str(nodes.home / "ray")}),
        "env": shell(told, env={"TOLD": str(nodes.home / "ray")}),
    }
    config = nodes.config({"actor": "0-31:0-7", "env": "3-4,20"}, launch)
    run = nodes.run("run", "--engine", "ray", config, RLINF_MINE="yes", MINE="secret")
    assert run.end() == 0, run.err
    lines = [f"line {i} of " for i in range(300)]
    for component, size in (("actor", 8), ("env", 3)):
        for rank in range(size):
            whole = "".join(f"{line}{rank}\n" for line in lines) + f"{nodes.home}\n"
            assert run.log(component, rank).decode() == whole
            assert [line for line in run.out.splitlines() if line.startswith(f"[{component}/{rank}] ")] == [
                f"[{component}/{rank}] {line}" for line in whole.splitlines()
            ]
            assert f"[{component}/{rank}] this is stderr" in run.err
    assert "simulated" not in run.err and "is done" in run.err
    assert nodes.left(run.id) == NOTHING
    page = json.loads((run.folder / "run.json").read_text())
    assert page["engine"] == "ray" and page["namespace"] == "roost"
    records = run.records()
    assert len(records) == 12 and records[-1]["failed"] is False and all(record["code"] == 0 for record in records[:-1])

    here = nodes.roost(
        "run",
        "--engine",
        "local",
        "--cluster",
        "nodes.json",
        config,
        f"roost.launch.actor.env.TOLD={nodes.home}/local",
        f"roost.launch.env.env.TOLD={nodes.home}/local",
    )
    assert here.returncode == 0, here.stderr
    read = lambda path: dict(entry.split("=", 1) for entry in path.read_text().split("\0") if entry)  # noqa: E731
    differ = {
        "ROOST_RUN_ID",
        "ROOST_NAMESPACE",
        "CLUSTER_NAMESPACE",
        "MASTER_ADDR",
        "MASTER_PORT",
        "TOLD",
        "ROOST_PORT_HTTP",
        "ROOST_PORT_MORE",
    }
    of_driver = set(nodes.environment())
    of_nodes = {
        name
        for pid in all_pids()
        if words_of(pid).partition(" ")[0].endswith("/raylet/raylet") and str(nodes.cluster.folder) in words_of(pid)
        for name in variables_of(pid)
    } | {"RLINF_MINE", "RAY_ADDRESS", "ROOST_ENGINE"}
    assert "OF_THE_NODE" in of_nodes and not {"OMP_NUM_THREADS", "PYTHONBREAKPOINT"} & of_nodes
    ports = set()
    for path in sorted((nodes.home / "local").iterdir()):
        local, ray = read(path), read(nodes.home / "ray" / path.name)
        added = {
            name: value
            for name, value in local.items()
            if name not in of_driver and name not in differ | {"PWD", "OLDPWD", "SHLVL", "_"}
        }
        assert added.items() <= ray.items(), path.name
        component, rank = path.name.split(".")
        assert (
            added["RANK"] == rank
            and "CUDA_VISIBLE_DEVICES" in added
            and ("ROOST_PORT_MORE_COUNT" in added) == (component == "actor")
        )
        assert ray["ROOST_RUN_ID"] == run.id and ray["ROOST_NAMESPACE"] == ray["CLUSTER_NAMESPACE"] == "roost"
        assert ray["MASTER_ADDR"] == "127.0.0.2" and ray["PWD"] == str(nodes.home)
        assert (
            ray.get("OF_THE_NODE") == {1: "one", 2: "two"}.get(int(ray["CLUSTER_NODE_RANK"]))
            and ray["RLINF_MINE"] == "yes"
            and "MINE" not in ray
        )
        # All else is of the node, and nothing of Ray's own processes there.
        assert set(ray) - set(local) <= of_nodes, path.name
        ports.add((path.name.split(".")[0], ray["MASTER_PORT"]))
        if path.name.startswith("actor"):
            ports.add((path.name, ray["ROOST_PORT_HTTP"]))
    assert len(ports) == 2 + 8 and len({port for _, port in ports}) == 10


def test_order_and_readiness_hold_across_nodes(nodes: Nodes) -> None:
    """The last node is ready last, each by another sign; who comes after sees all of them."""
    listen = "import os, socket, time; open('seen.port.'+os.environ['RANK'],'w'); s=socket.socket(); s.bind(('127.0.0.1', int(os.environ['ROOST_PORT_HTTP']))); s.listen(); time.sleep(1000)"
    launch = {
        "files": {
            **shell("sleep 0.$RANK; touch seen.file.$RANK; exec sleep 1000"),
            "ready": {"file": "seen.file.%{RANK}", "timeout": 100},
        },
        "lines": {
            **shell("sleep 0.$RANK; touch seen.line.$RANK; echo now ready; exec sleep 1000"),
            "ready": {"line": "now ready", "timeout": 100},
            "after": ["files"],
        },
        "ports": {
            "command": [sys.executable, "-c", listen],
            "ports": {"http": 1},
            "ready": {"port": "http", "timeout": 100},
        },
        "last": shell("ls seen.* | wc -l; kill -9 $$", after=["lines", "ports"]),
    }
    run = nodes.start(dict.fromkeys(launch, nodes.everywhere), launch)
    assert run.end() == 128 + signal.SIGKILL, run.err
    counts = [
        run.log("last", rank)
        for rank in range(NODES)
        if (run.folder / "last" / str(rank)).exists() and run.log("last", rank)
    ]
    assert counts and set(counts) == {b"12\n"}
    assert re.search(r"first failure: last/(\d) on node \1 \(127.0.0.\d\) was ended by SIGKILL", run.err), run.err
    assert nodes.left(run.id) == NOTHING


def begin_stubborn(nodes: Nodes) -> Run:
    run = nodes.start({"a": nodes.everywhere}, {"a": shell(STUBBORN)}, "--grace", "0.2")
    run.await_lines(nodes.count, r"up")
    return run


def test_a_lost_node_ends_the_run(nodes: Nodes) -> None:
    run = begin_stubborn(nodes)
    nodes.lose(5)
    assert run.end() == 5, run.err
    assert "the agent on node 3 (127.0.0.5) is lost: its node has died" in run.err, run.err
    assert {record["rank"]: record["reason"] for record in run.records()[:-1]} == {
        0: "killed-by-roost",
        1: "killed-by-roost",
        2: "killed-by-roost",
        3: "lost",
    }
    assert nodes.left(run.id) == NOTHING


# --- with two of them


def test_trainers_find_servers_of_another_node_which_end_with_the_job(few: Nodes) -> None:
    """examples/serve.yaml on two nodes: the trainers are on the first, the servers on the second."""
    serve = Path(__file__).parents[2] / "examples/serve.py"
    command = [sys.executable, "-u", str(serve)]
    launch = {
        "rollout": {
            "command": [*command, "serve", "--port", "%{ROOST_PORT_HTTP}"],
            "ports": {"http": 1},
            "ready": {"port": "http"},
            "service": True,
        },
        "actor": {"command": [*command, "train", "--servers", "%{rollout.addresses.http}"], "after": ["rollout"]},
    }
    run = few.start({"actor": "0-3", "rollout": "8-11:0-1"}, launch)
    assert run.end() == 0, run.err
    lines = sorted(line for line in run.out.splitlines() if line.startswith("[actor/"))
    assert lines == [
        f"[actor/{rank}] step {step}: STEP-{step} from server {(rank + step) % 2}"
        for rank in range(4)
        for step in range(3)
    ]
    counts = dict(re.findall(r"^roost:   (\w+) +(.*)$", run.err, re.M))
    assert counts == {"actor": "4 done", "rollout": "2 done"}
    assert few.left(run.folder.name) == NOTHING


def test_every_byte_of_every_node_arrives_at_its_place_and_a_command_asks_the_managers_of_its_run(few: Nodes) -> None:
    """More than fits into any buffer on the way, without an end of line, up to the last byte before the end."""
    asks = """if True:
        import roost
        cluster, nodes = roost.Cluster(), roost.NodeManager.get_proxy()
        print(cluster.namespace, nodes.get_master_ip(), *(node.node_ip for node in cluster.nodes), *(group.label for group in cluster.node_groups))
        print(nodes.get_cluster_config().num_nodes, *(group.label for group in nodes.get_cluster_config().node_groups))
        workers = roost.WorkerManager.get_proxy()
        print(*workers.get_group_names(), *(worker.node_ip for worker in workers.get_workers("a")), *workers.get_worker_info("a:1").ports)
        while workers.get_worker_info("b:0").state != "running": pass"""
    launch = {
        "a": shell('yes "node $RANK says" | head -c 6000001; yes error | head -c 1000003 >&2', ports={"http": 1}),
        "b": {"command": [sys.executable, "-c", asks]},
    }
    config = few.config({"a": few.everywhere, "b": "15"}, launch)
    # Planned in another order than the cluster's own, and with a group: the managers tell the plan's.
    turned = json.loads((few.home / "nodes.json").read_text())
    turned["cluster"]["nodes"] = [
        node | {"node_rank": rank} for rank, node in enumerate(reversed(turned["cluster"]["nodes"]))
    ]
    (few.home / "turned.json").write_text(json.dumps(turned))
    run = few.run(
        "run",
        "--engine",
        "ray",
        "--cluster",
        "turned.json",
        "--quiet",
        config,
        "cluster.node_groups=[{label: far, node_ranks: 1}]",
    )
    assert run.end() == 0, run.err
    assert (
        run.log("b", 0).decode()
        == "roost 127.0.0.3 127.0.0.3 127.0.0.2 far cluster node\n2 far\na b 127.0.0.3 127.0.0.2 http\n"
    )
    for rank in range(FEW):
        said = f"node {rank} says\n".encode()
        assert run.log("a", rank) == (said * (6000001 // len(said) + 1))[:6000001]
        assert run.log("a", rank, "stderr") == (b"error\n" * 200000)[:1000003]


def test_a_process_that_fails_stops_all_nodes_and_gives_its_code(few: Nodes) -> None:
    run = few.start(
        {"a": "0-15:0-7"},
        {
            "a": shell(
                "trap 'echo told; exit 3' TERM; if [ $RANK = 5 ]; then echo failing; exit 7; fi; while :; do sleep 0.05; done"
            )
        },
    )
    assert run.end() == 7, run.err
    assert "first failure: a/5 on node 1 (127.0.0.3) exited with 7" in run.err and "stopping: a/5 failed" in run.err
    records = run.records()
    assert records[0]["rank"] == 5 and records[0]["code"] == 7
    assert {(record["rank"], record["code"] or record["signal"]) for record in records[1:-1]} <= {
        (rank, how) for rank in range(8) for how in (3, signal.SIGTERM)
    }
    assert len(records) == 9 and records[-1]["failed"] is True


# --- signals


def test_a_run_goes_on_when_messages_are_lost(few: Nodes) -> None:
    """R11: every tenth question to an actor is lost, and every tenth answer."""
    lost = {"num_failures": -1, "req_failure_prob": 10, "resp_failure_prob": 10, "in_flight_failure_prob": 0}
    run = few.start(
        {"a": "0-15:0-1", "b": "0-15:0-1"},
        {"a": shell("seq 100; exec sleep 1000"), "b": shell("echo last", after=["a"])},
        "--grace",
        "0.2",
        RAY_testing_rpc_failure=json.dumps({"CoreWorkerService.grpc_client.PushTask": lost}),
    )
    run.await_lines(2, "last")
    run.process.send_signal(signal.SIGTERM)
    assert run.end() == 128 + signal.SIGTERM, run.err
    assert "RpcFailureManager" in run.err  # Ray says that it loses messages
    assert [run.log("a", rank).split() for rank in range(2)] == [[b"%d" % number for number in range(1, 101)]] * 2
    assert few.left(run.id) == NOTHING


ASK = """
import json
import ray
from roost._ray.join import again, load_ray
load_ray().init(namespace="asking", logging_level="error")

class Actor:
    def answer(self):
        return 42

actor = ray.remote(Actor).options(num_cpus=0).remote()
print(json.dumps(ray.get(again(actor.answer).remote(), timeout=60)))
"""


def test_what_may_be_asked_twice_is_asked_as_often_as_it_takes(few: Nodes) -> None:
    """R11, without luck: the first five tries are lost."""
    lost = {"num_failures": 5, "req_failure_prob": 100, "resp_failure_prob": 0, "in_flight_failure_prob": 0}
    assert (
        few.cluster.drive(ASK, RAY_testing_rpc_failure=json.dumps({"CoreWorkerService.grpc_client.PushTask": lost}))
        == 42
    )


def test_signals_reach_every_node_and_the_second_one_kills(few: Nodes) -> None:
    run = few.start({"a": few.everywhere}, {"a": shell(STUBBORN)}, "--grace", "1000")
    run.await_lines(FEW, r"up")
    run.process.send_signal(signal.SIGUSR1)
    run.await_lines(FEW, r"got USR1")
    run.process.send_signal(signal.SIGINT)
    run.await_lines(FEW, r"got INT")
    run.process.send_signal(signal.SIGINT)
    assert run.end() == 128 + signal.SIGINT, run.err
    assert {record["reason"] for record in run.records()[:-1]} == {"killed-by-roost"}
    assert few.left(run.id) == NOTHING


def test_other_processes_of_the_user_see_it_and_stop_it(few: Nodes) -> None:
    run = few.start({"a": few.everywhere}, {"a": shell("echo up; exec sleep 1000")})
    run.await_lines(FEW, r"up")
    listed = json.loads(few.roost("ps", "--json").stdout)
    (shown,) = [row for row in listed["runs"] if row["run"] == run.id]
    assert [process["node"] for process in shown["status"]["processes"]] == ["node 0 (127.0.0.2)", "node 1 (127.0.0.3)"]
    assert few.roost("logs", run.id).stdout.count("up") == FEW
    ours = run.pids()
    # The bridge is a driver of Ray's, and has its port; nothing else has one.
    assert (
        len(ours) > FEW
        and [words_of(pid) for pid in ours if listens(pid) and "roost._ray.bridge" not in words_of(pid)] == []
    )
    clash = few.roost(
        "run", "--engine", "ray", "--cluster", "nodes.json", few.config({"b": "8-9"}, {"b": shell("true")})
    )
    assert (
        clash.returncode == 5
        and f"accelerators are in use by run {run.id} of " in clash.stderr
        and "node 1 (127.0.0.3): 0-1" in clash.stderr
    )
    assert few.roost("stop", run.id).returncode == 0
    assert run.end() == 128 + signal.SIGTERM, run.err
    assert few.left(run.id) == NOTHING


def test_a_run_that_waits_for_its_nodes_can_be_stopped(few: Nodes) -> None:
    config = few.config({"a": "0"}, {"a": shell("true")})
    run = few.run(
        "run", "--engine", "ray", "--cluster", "nodes.json", config, "roost.ray.address=" + few.cluster.address
    )
    bridge = run.pid_of("roost._ray.bridge")
    os.kill(bridge, signal.SIGSTOP)
    run.process.send_signal(signal.SIGINT)
    assert run.end() == 128 + signal.SIGINT
    assert "SIGINT: stopped before it began" in run.err
    assert not set((few.home / "runs").glob("*")) - run.before


# --- who dies


def test_a_killed_driver_leaves_nothing(few: Nodes) -> None:
    run = begin_stubborn(few)
    name = run.id
    run.process.kill()
    run.end()
    assert few.left(name) == NOTHING


def test_a_killed_bridge_ends_the_run(few: Nodes) -> None:
    run = begin_stubborn(few)
    os.kill(run.pid_of("roost._ray.bridge"), signal.SIGKILL)
    assert run.end() == 5
    assert "the bridge to the nodes has ended (signal 9)" in run.err
    assert [record["reason"] for record in run.records()[:-1]] == ["lost"] * FEW
    assert few.left(run.id) == NOTHING


def test_a_reservation_that_somebody_else_removes_ends_the_run(few: Nodes) -> None:
    """R9."""
    run = begin_stubborn(few)
    removed = few.cluster.remove_groups()
    assert run.end() == 5, run.err
    assert (
        f"roost: the accelerators of this run are no longer reserved: its placement group {removed[0]} was removed by somebody else\n"
        in run.err
    )
    assert len(removed) == 1 and [record["reason"] for record in run.records()[:-1]] == ["killed-by-roost"] * FEW
    assert few.left(run.id) == NOTHING


def test_a_killed_actor_ends_the_run_and_its_processes(few: Nodes) -> None:
    run = begin_stubborn(few)
    os.kill(few.cluster.pid_of("agent/1"), signal.SIGKILL)
    assert run.end() == 5, run.err
    assert "node 1 (127.0.0.3) is lost" in run.err
    assert {record["rank"]: record["reason"] for record in run.records()[:-1]} == {0: "killed-by-roost", 1: "lost"}
    assert few.left(run.id) == NOTHING


if os.environ.get("ROOST_SOAK"):

    def test_a_silent_head_does_not_keep_a_run(few: Nodes) -> None:
        """It goes on to its end, and then waits half a minute for what is to be given back."""
        run = few.start({"a": few.everywhere}, {"a": shell("echo up; while [ ! -e go ]; do sleep 0.05; done; echo on")})
        run.await_lines(FEW, r"up")
        few.cluster.pause_head()
        try:
            (few.home / "go").touch()
            assert run.end() == 0, run.err
        finally:
            few.cluster.resume_head()
        assert run.out.count("on\n") == FEW
        assert few.left(run.id) == NOTHING

    def test_a_lost_head_ends_the_run_in_bounded_time(few: Nodes) -> None:
        """Ray itself gives up after a minute; then so does the run."""
        run = begin_stubborn(few)
        few.cluster.kill_head()
        assert run.end() == 5, run.err
        assert "the bridge to the nodes has ended" in run.err or "is lost" in run.err
        until(lambda: not run.pids(), "nothing of it is left")
