"""What goes wrong around the Ray engine: versions, addresses, nodes that are late, lost or not as they should be.

Tests without a cluster come first; then those that need one of their own."""

import json
import os
import re
import subprocess
import sys
import textwrap
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from engine import wait_gone
from ray_cluster import HEALTH, ROOT, WAIT, RayCluster, free_port, last_json

pytestmark = pytest.mark.ray

IS_SOAK = os.environ.get("ROOST_SOAK") == "1"


def soak(test: Any) -> Any:
    """A test that takes minutes: there only in `make soak`, as a skipped test would count as a failed one."""
    return test if IS_SOAK else None


def ask(script: str, *, path: Path | None = None, **variables: str) -> subprocess.CompletedProcess[str]:
    """A driver without a cluster; `path` comes before everything that is installed."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("RAY_", "ROOST_"))}
    env = kept | ({"PYTHONPATH": str(path)} if path else {}) | variables
    return subprocess.run(
        [sys.executable, "-c", textwrap.dedent(script)], env=env, capture_output=True, text=True, timeout=WAIT
    )


OPEN = """
    import json, roost, sys
    try:
        roost.Cluster(num_nodes=1, engine="ray")
    except roost.Error as error:
        print(json.dumps([type(error).__name__, error.code, str(error), "ray" in sys.modules and getattr(sys.modules["ray"], "asked", None)]))
    """


@pytest.mark.parametrize(
    ("module", "said"),
    [
        (
            "raise ModuleNotFoundError(\"No module named 'ray'\", name='ray')",
            "the engine 'ray' needs Ray, which is not installed (pip install 'ray[default]>=2.47')",
        ),
        (
            "__version__ = '2.46.9'",
            "Ray 2.46.9 is too old: the engine 'ray' needs 2.47 or newer (pip install -U 'ray[default]' on every node)",
        ),
    ],
)
def test_a_ray_that_is_missing_or_too_old_is_said_before_anything_is_done(
    tmp_path: Path, module: str, said: str
) -> None:
    """R12, with a stub of the module."""
    (tmp_path / "ray.py").write_text(
        f"asked = []\n{module}\ndef init(*args, **kwargs): asked.append(kwargs)\ndef is_initialized(): return False\n"
    )
    done = ask(OPEN, path=tmp_path)
    assert json.loads(done.stdout)[:3] == ["EngineError", "engine", said], done.stderr
    assert not json.loads(done.stdout)[3]


def test_a_ray_with_known_faults_is_warned_about(tmp_path: Path) -> None:
    (tmp_path / "ray.py").write_text("__version__ = '2.50.1'\ndef is_initialized(): return True\n")
    done = ask(OPEN, path=tmp_path)
    assert "Ray 2.50.1 has known security faults: update it to 2.54 or newer on every node" in done.stderr
    assert "Ray was initialised before the Cluster" in json.loads(done.stdout)[2]


def test_an_address_where_nobody_answers_is_said_at_once() -> None:
    done = ask(OPEN, RAY_ADDRESS=f"127.0.0.1:{free_port()}")
    kind, code, said, _ = json.loads(done.stdout)
    assert (
        (kind, code) == ("EngineError", "engine")
        and said.startswith("nobody answers at 127.0.0.1:")
        and "which RAY_ADDRESS names" in said
    )


def test_a_described_cluster_is_planned_against_and_not_run_on() -> None:
    import roost

    cluster = roost.Cluster(cluster="2x2", engine="ray")
    assert cluster.num_accelerators == 4
    with pytest.raises(roost.EngineError, match="to plan against: leave cluster out to run on Ray's own nodes"):
        roost.Worker.create_group().launch(cluster)


def test_versions_are_read_whatever_is_behind_them() -> None:
    from roost._ray.join import next_namespace, version_numbers

    assert [version_numbers(text) for text in ("2.60.0", "2.47.0rc1", "3.0.0.dev0", "2.50", "x")] == [
        (2, 60, 0),
        (2, 47, 0),
        (3, 0, 0),
        (2, 50),
        (),
    ]
    assert [next_namespace(set(taken)) for taken in ([], ["roost"], ["roost", "roost_1"], ["roost_1"], ["other"])] == [
        "roost",
        "roost_1",
        "roost_2",
        "roost",
        "roost",
    ]


def test_a_rank_on_another_node_or_with_other_variables_is_not_as_planned() -> None:
    from roost._ray.actor import Report
    from roost._ray.launch import differences

    report = Report.__new__(Report)
    report.node_id, report.variables = "a1", {"RANK": "0", "WORLD_SIZE": "2", "LOCAL_RANK": None}
    assert differences({"RANK": "0", "WORLD_SIZE": "2"}, report, "a1") == []
    assert differences({"RANK": "1", "LOCAL_RANK": "0"}, report, "b2") == [
        "it runs on node a1 and not on b2",
        "RANK is '0' and not '1'",
        "LOCAL_RANK is None and not '0'",
    ]


# --- with a cluster


@pytest.fixture(scope="module")
def small() -> Iterator[RayCluster]:
    """One node; tests add others, and kill them."""
    with RayCluster(nodes=1, gpus=2, environment=HEALTH) as cluster:
        yield cluster


LOST = """
    import json, os, sys, time
    import ray, roost
    sys.path.insert(0, os.getcwd())
    from lost import Sitter
    cluster = roost.Cluster(num_nodes=2, engine="ray")
    group = Sitter.create_group().launch(cluster, roost.NodePlacementStrategy([0, 1]), name="sitters")
    call = group.sit()
    print("ready", flush=True)
    input()
    start = time.monotonic()
    try:
        call.wait()
    except roost.WorkerError as error:
        told = [str(error).splitlines()[0], error.rank, error.node_rank, [outcome.kind for outcome in error.outcomes], time.monotonic() - start]
    try:
        Sitter.create_group().launch(cluster, roost.NodePlacementStrategy([1]), name="late")
    except roost.EngineError as error:
        print(json.dumps([*told, str(error)]), flush=True)
    """


def test_late_and_lost_nodes_are_told(small: RayCluster) -> None:
    """R4, and waiting: a node that is missing is named every five seconds; one that is lost takes its ranks with it."""
    (small.folder / "lost.py").write_text(
        "import time\nfrom roost import Worker\nclass Sitter(Worker):\n    def sit(self):\n        time.sleep(0 if self._rank == 0 else 600)\n"
    )
    path = f"{small.environment['PYTHONPATH']}:{small.folder}"
    often = "import roost._ray.join as joining\njoining.SAY_EVERY = 0.5\n"  # of the usual five seconds
    late = small.run(
        often
        + "import roost\ntry:\n    roost.Cluster(num_nodes=2, engine='ray', timeout=3)\nexcept roost.Timeout as error:\n    print(error)"
    )
    assert (
        "1 of 2 nodes are missing; there: 127.0.0.2 (2 GPU, 8 CPU), after 3 seconds (on each missing node: RAY_AUTH_MODE=token ray start --address=127.0.0.2:"
        in late.stdout
    )
    assert 1 <= late.stderr.count("waiting for nodes: 1 of 2 nodes are missing; there: 127.0.0.2 (2 GPU, 8 CPU)") <= 5
    driver = small.start(textwrap.dedent(LOST), PYTHONPATH=path)
    try:
        small.add_node(3, gpus=2, variables={"PYTHONPATH": path})
        assert driver.stdout and driver.stdin
        line = next((line for line in driver.stdout if line.startswith("ready")), None)
        assert line, driver.stderr.read() if driver.stderr else ""
        small.kill_node(3)
        out, err = driver.communicate("\n", timeout=WAIT)
    finally:
        driver.kill()
    told = last_json(out, err)
    assert "rank 1 of group 'sitters' (node 1" in told[0] and "node 1 (127.0.0.3)" in told[0], err
    assert told[1:4] == [1, 1, ["value", "unknown"]] and told[4] < 60
    assert told[5].startswith("node 1 (127.0.0.3) is lost")


LOST_FIRST = """
    import json, os, sys
    import ray, roost, roost._ray.nodes, roost._ray.transport
    sys.path.insert(0, os.getcwd())
    from lost import Sitter
    roost._ray.nodes.rank_texts = lambda env: {"ROOST_NODE_RANK": env.get("ROOST_NODE_RANK", "1")}
    roost._ray.transport.AGAIN_SECONDS = 1
    cluster = roost.Cluster(num_nodes=2, engine="ray")
    group = Sitter.create_group().launch(cluster, roost.NodePlacementStrategy([1]), name="sitters")
    print("ready", flush=True)
    input()
    while sum(node["Alive"] for node in ray.nodes()) != 1:
        pass
    found = [group.sit().wait()]
    engine = cluster._engine_link()
    for wish in (
        lambda: Sitter.create_group().launch(cluster, roost.NodePlacementStrategy([1]), name="late"),
        lambda: engine.reserve({engine.ids[1]: {0}}, 5),
        lambda: engine.find_managers(),
        lambda: roost.NodeManager.get_proxy().get_num_gpus_per_node(),
        lambda: engine._ports.lease(0, (1,), "test"),
    ):
        try:
            wish()
        except roost.EngineError as error:
            found.append(str(error))
    print(json.dumps(found), flush=True)
    """


def test_without_node_rank_0_calls_go_on_and_what_needs_its_managers_says_so(small: RayCluster) -> None:
    path = f"{small.environment['PYTHONPATH']}:{small.folder}"
    (small.folder / "lost.py").write_text(
        "from roost import Worker\nclass Sitter(Worker):\n    def sit(self):\n        return 7\n"
    )
    small.await_nodes(1)
    driver = small.start(textwrap.dedent(LOST_FIRST), PYTHONPATH=path)
    try:
        small.add_node(6, gpus=2, variables={"PYTHONPATH": path, "ROOST_NODE_RANK": "0"})
        assert driver.stdout and driver.stdin
        line = next((line for line in driver.stdout if line.startswith("ready")), None)
        assert line, driver.stderr.read() if driver.stderr else ""
        small.kill_node(6)
        out, err = driver.communicate("\n", timeout=WAIT)
    finally:
        driver.kill()
    called, launched, held, managers, asked, leased = last_json(out, err)
    cure = "(managers end with node rank 0 and with their driver: groups that run can still be called, new ones need a new run)"
    assert called == [7]
    assert launched == f"node 0 (127.0.0.6) is lost: Ray knows it no more {cure}"
    assert held.startswith("the NodeManager of the run does not answer: ") and held.endswith(cure)
    assert managers.startswith("the managers of the run in namespace 'roost' have ended: ")
    assert asked.startswith("the NodeManager of the run has ended: ") and asked.endswith(cure)
    assert leased.startswith("node 0 (127.0.0.6) is lost")


def test_a_node_without_roost_or_with_another_is_named_with_the_cure(small: RayCluster, tmp_path: Path) -> None:
    """R10, R12: what a probe says, or that it dies, is an error with the node in it."""
    for name, text in {
        "none": "raise ImportError('no roost here')",
        "old": "from types import SimpleNamespace\n_roost = SimpleNamespace(version='0.0.1', Cluster=lambda text: SimpleNamespace(node=lambda rank: {}))",
    }.items():
        (tmp_path / name / "roost").mkdir(parents=True)
        (tmp_path / name / "roost" / "__init__.py").write_text(text + "\n")
    path = str(ROOT / "tests/python")
    open_two = textwrap.dedent(OPEN).replace("num_nodes=1", "num_nodes=2")
    small.await_nodes(1)
    small.add_node(4, gpus=2, variables={"PYTHONPATH": f"{tmp_path / 'none'}:{path}"})
    first = small.run(open_two)
    small.kill_node(4)
    small.await_nodes(1)
    small.add_node(5, gpus=2, variables={"PYTHONPATH": f"{tmp_path / 'old'}:{path}"})
    second = small.run(open_two)
    third = small.run(
        "import roost._ray.nodes as nodes, os\ndef dying():\n    import os\n    os._exit(1)\ndying.__module__ = '__main__'\nnodes.probe = dying\n"
        + open_two
    )
    said = [last_json(done.stdout, done.stderr)[2] for done in (first, second, third)]
    assert (
        said[0].startswith("node 127.0.0.4 has no working roost for ")
        and "ImportError: no roost here (install roost " in said[0]
    )
    assert said[1].startswith("node 127.0.0.5 has roost 0.0.1, but this is ") and said[1].endswith(
        "(install the same version on every node)"
    )
    assert said[2].startswith("the probe on node 127.0.0.") and " failed: " in said[2]


def test_a_cluster_without_a_token_is_warned_about_and_refused_by_a_process_that_has_one() -> None:
    """R13. One that only has it at hand joins without. And a port holder that dies at its start is told with its node."""
    with RayCluster(nodes=1, gpus=1, token=False) as cluster:
        token = cluster.folder / "token"
        token.write_text("f" * 64)
        warned = "import roost._ray.join as joining\njoining.has_other_hosts = lambda: True\nimport roost\nroost.Cluster(num_nodes=1, engine='ray')"
        done = cluster.run(warned, RAY_AUTH_MODE=None, RAY_AUTH_TOKEN_PATH=str(token))
        refused = cluster.run(textwrap.dedent(OPEN), RAY_AUTH_MODE="token", RAY_AUTH_TOKEN_PATH=str(token))
        # Of a node in another network than the driver's.
        dying = "import roost._ray.engine, roost._ray.ports as ports\nroost._ray.engine.own_place = lambda: None\nclass Dying:\n    def __init__(self, run_id):\n        import os\n        os._exit(1)\n    def lease(self, counts, owner): pass\nDying.__module__ = '__main__'\nports.PortHolder = Dying\n"
        unstarted = cluster.run(dying + textwrap.dedent(OPEN))
    assert (
        done.returncode == 0
        and "this Ray cluster has no token: any host that reaches it can run programs as you" in done.stderr
    )
    kind, code, said, _ = last_json(refused.stdout, refused.stderr)
    assert (kind, code) == ("EngineError", "engine") and "f" * 64 not in refused.stdout + refused.stderr
    assert (
        said
        == "node 127.0.0.2 was started without a token, but this process wants one (set RAY_AUTH_MODE=disabled for this process, or start every node with RAY_AUTH_MODE=token)"
    )
    kind, code, said, _ = last_json(unstarted.stdout, unstarted.stderr)
    assert kind == "EngineError" and said.startswith(
        "no port can be leased on node 0 (127.0.0.2): the worker on node 0 (127.0.0.2) has ended: "
    ), said


HEADLESS = """
import os, roost, time
class Sleeper(roost.Worker):
    def pid(self): return os.getpid()
cluster = roost.Cluster(num_nodes=2, engine="ray")
group = Sleeper.create_group().launch(cluster, roost.NodePlacementStrategy([0, 1]), name="sleepers")
print("ready", *group.pid().wait(), flush=True)
input()
cluster._engine_link()._ports.lease(1, (1,), "test")
time.sleep(300)
"""


@soak
@pytest.mark.parametrize("is_back", [False, True], ids=["for good", "for seconds"])
def test_the_loss_of_the_head_is_told_within_a_bound(is_back: bool) -> None:
    """R5: no hang, Ray's word of it, a status that is not 0, and no worker that lives on. A head that comes back remembers
    nothing: who belongs to the old one is refused, and Ray ends it."""
    with RayCluster(nodes=2, gpus=1, environment={"RAY_gcs_rpc_server_reconnect_timeout_s": "10"}) as cluster:
        driver = cluster.start(HEADLESS)
        try:
            assert driver.stdout
            ready = next(line for line in driver.stdout if line.startswith("ready"))
            cluster.kill_head()
            begin = time.monotonic()
            if is_back:
                cluster.restart_head()
            _, err = driver.communicate("\n", timeout=200)
            assert time.monotonic() - begin < 100  # ten times what Ray waits for it
            wait_gone([int(pid) for pid in ready.split()[1:]], patience=150)
        finally:
            driver.kill()
    assert driver.returncode not in (0, None) and re.search(
        "WrongClusterID: .* GCS after it has restarted" if is_back else "GCS|gcs", err
    ), err


CALLS = 200 if IS_SOAK else 40

COUNTED = """
import json, roost, sys
from counting import Counter
cluster = roost.Cluster(num_nodes=2, engine="ray")
group = Counter.create_group().launch(cluster, roost.NodePlacementStrategy([0, 1]), name="counters")
kinds = []
for number in range(int(sys.argv[1])):
    handle = group.add(number)
    try:
        handle.wait()
    except roost.WorkerError as error:
        pass
    kinds.append([outcome.kind for outcome in handle.outcomes])
while True:
    try:
        print(json.dumps([kinds, group.counts().wait()]))
        break
    except roost.WorkerError:
        continue
"""


def test_calls_have_one_outcome_and_run_at_most_once_when_messages_are_lost() -> None:
    """R11: what Ray can ask for again it asks for again; a lost call, or a lost answer, is `unknown`."""
    # More than the launch can use up: of 80 messages and more that follow it, some are lost.
    lost = {"num_failures": 12, "req_failure_prob": 5, "resp_failure_prob": 5, "in_flight_failure_prob": 5}
    again = {"num_failures": 3, "req_failure_prob": 20, "resp_failure_prob": 20, "in_flight_failure_prob": 0}
    losing = {"CoreWorkerService.grpc_client.PushTask": lost} | {
        name: again
        for name in (
            "NodeManagerService.grpc_client.RequestWorkerLease",
            "ActorInfoGcsService.grpc_client.GetNamedActorInfo",
        )
    }
    environment = {
        "RAY_testing_rpc_failure": json.dumps(losing),
        "RAY_testing_asio_delay_us": "CoreWorkerService.grpc_server.PushTask=1000:20000",
    }
    with RayCluster(nodes=2, gpus=2, environment=environment) as cluster:
        (cluster.folder / "counting.py").write_text(
            "from collections import Counter as Counts\nfrom roost import Worker\nclass Counter(Worker):\n    def __init__(self):\n        super().__init__()\n        self.seen = Counts()\n"
            "    def add(self, number):\n        self.seen[number] += 1\n        return number\n    def counts(self):\n        return dict(self.seen)\n"
        )
        cluster.environment["PYTHONPATH"] += f":{cluster.folder}"
        kinds, counts = cluster.drive(COUNTED, str(CALLS))
    for rank in range(2):
        for number in range(CALLS):
            assert kinds[number][rank] in ("value", "unknown")
            assert counts[rank].get(str(number), 0) in ((1,) if kinds[number][rank] == "value" else (0, 1)), (
                rank,
                number,
            )
    assert 1 <= sum(outcome == "unknown" for row in kinds for outcome in row) <= 32


@soak
def test_three_hundred_actors_are_all_started_and_all_ended() -> None:
    """R14."""
    with RayCluster(nodes=4, gpus=0) as cluster:
        (cluster.folder / "adding.py").write_text(
            "from roost import Worker\nclass Adder(Worker):\n    def add(self, number):\n        return number + self._rank\n"
        )
        cluster.environment["PYTHONPATH"] += f":{cluster.folder}"
        done = cluster.run(
            "import json, ray, roost\nfrom adding import Adder\ncluster = roost.Cluster(num_nodes=4, engine='ray')\ngroup = Adder.create_group().launch(cluster, roost.NodePlacementStrategy([rank % 4 for rank in range(300)]), name='many')\n"
            "sums = group.add(1).wait()\ncount = len([entry for entry in ray.util.list_named_actors(all_namespaces=True) if entry['name'].startswith('many:')])\ngroup._close()\n"
            "from roost._ray.group import wait_names_free, rank_names\nprint(json.dumps([sums, count, sorted(wait_names_free(ray, set(rank_names('many', 300)), 'roost', 60))]))",
            timeout=1500,
        )
        assert cluster.left() == [[], [], 0]
    assert last_json(done.stdout, done.stderr) == [[rank + 1 for rank in range(300)], 300, []]
