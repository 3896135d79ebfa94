"""Managers of `roost run`: its processes ask them, others attach, and nothing of them outlives the run."""

import fcntl
import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from engine import PATIENCE, Engine, is_alive, wait_gone
from puppets import Puppet

ASK = """
import json, os, sys
import roost
rank = int(os.environ["RANK"])
address = roost.WorkerAddress("actor", rank)
roost.WorkerManager.get_proxy().register_worker(address, roost.WorkerInfo(address, rank, node_port=100 + rank))
collectives = roost.CollectiveManager.get_proxy()
info = roost.WorkerManager.get_proxy().get_worker_info(address)
collectives.register_collective_group(roost.CollectiveGroupInfo(f"own{rank}", [info]))
nodes = roost.NodeManager.get_proxy()
devices = roost.DeviceLockManager.get_proxy()
devices.acquire_devices(address, [rank])
is_port_free = roost.PortLockManager.get_proxy().acquire(0, f"actor:{rank}", 30000 + rank)
cluster = roost.Cluster()
print(json.dumps({
    "worker": info.node_port,
    "port": is_port_free,
    "collective": collectives.get_collective_group(f"own{rank}") is not None,
    "gpus": nodes.get_num_gpus_per_node(),
    "master": [nodes.get_master_ip(), nodes.get_master_port()],
    "cluster": [cluster.num_nodes, cluster.num_accelerators, cluster.namespace],
    "groups": [group.label for group in cluster.node_groups],
    "variables": [env.env_vars for group in cluster.node_groups for env in group.env_configs or []],
    "components": sorted(nodes.get_cluster_config().component_placement),
    "namespace": os.environ["ROOST_NAMESPACE"],
    "own": os.environ["MASTER_PORT"],
}))
"""


def asking(engine: Engine, name: str = "train.yaml", cluster: str = "2x4 A800", **section: object) -> Path:
    """A config whose processes ask every manager, and print what they heard."""
    path = engine.home / name
    section = {"num_nodes": 2, "component_placement": {"actor": "0-1"}} | section
    launch = {"actor": {"command": [sys.executable, "-c", ASK]}}
    path.write_text(json.dumps({"cluster": section, "roost": {"cluster": cluster, "launch": launch}}))
    return path


def heard(engine: Engine, *ranks: int) -> list[dict]:
    return [json.loads(engine.log(engine.runs()[-1], "actor", rank)) for rank in ranks]


def living(engine: Engine, name: str = "up", cluster: str = "1x8") -> tuple[subprocess.Popen, dict]:
    """A run that pauses, and its page."""
    pipe = engine.pipe(name)
    config = engine.config({"actor": {"do": [f"say={pipe.path}", "pause"]}}, f"{name}.yaml", cluster=cluster)
    driver = engine.start(config)
    pipe.lines(1)
    return driver, engine.page(engine.runs()[-1])


MASTER_PORT = "roost.NodeManager.get_proxy().get_master_port()"


def sockets(engine: Engine) -> list[Path]:
    return [*engine.runtime.rglob("*.registry"), *engine.runtime.rglob("*.sock")]


def leases(engine: Engine) -> list[Path]:
    """Those that somebody holds: who was killed leaves a file that is nobody's."""
    return [path for path in engine.runtime.rglob("*.ports") if is_locked(path)]


def is_locked(path: Path) -> bool:
    with path.open() as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
    return False


def puppet(engine: Engine, **env: str) -> Puppet:
    return Puppet(engine.env | env)


def test_every_process_of_a_run_asks_each_manager_and_attaches(plain_engine: Engine) -> None:
    group = {"label": "a800", "node_ranks": 0, "env_configs": [{"node_ranks": 0, "env_vars": [{"A": "1"}]}]}
    done = plain_engine.run(asking(plain_engine, node_groups=[group]))
    assert done.returncode == 0, done.stderr
    first, second = heard(plain_engine, 0, 1)
    assert [first["worker"], second["worker"]] == [100, 101]
    assert first["collective"] and second["collective"] and first["port"] and second["port"]
    assert first["gpus"] == 4 and first["cluster"] == [2, 8, "roost"]
    assert first["groups"] == ["a800", "cluster", "node"] and first["variables"] == [[{"A": "1"}]]
    assert first["components"] == ["actor"] and first["namespace"] == "roost"
    assert first["master"] == second["master"] and first["master"][0] == "127.0.0.1"
    assert first["master"][1] >= 1024 and str(first["master"][1]) != first["own"]
    assert sockets(plain_engine) == leases(plain_engine) == []


def test_what_is_attached_to_has_the_overrides_of_the_command_line(plain_engine: Engine) -> None:
    done = plain_engine.run(
        asking(plain_engine),
        "cluster.node_groups=[{label: late, node_ranks: '0,1'}]",
        "+algorithm.note='# no: \"comment\"'",
    )
    assert done.returncode == 0, done.stderr
    assert heard(plain_engine, 0)[0]["groups"] == ["late", "cluster", "node"]


def test_what_is_attached_to_has_the_files_beside_the_config(plain_engine: Engine) -> None:
    config = asking(plain_engine)
    whole = json.loads(config.read_text())
    (config.parent / "base.yaml").write_text(
        json.dumps({"cluster": {"node_groups": [{"label": "beside", "node_ranks": 1}]}})
    )
    config.write_text(json.dumps({"defaults": ["base", "_self_"]} | whole))
    done = plain_engine.run(config, "--hydra")
    assert done.returncode == 0, done.stderr
    assert heard(plain_engine, 0)[0]["groups"] == ["beside", "cluster", "node"]


def test_another_process_attaches_to_one_of_two_runs_by_its_namespace(plain_engine: Engine) -> None:
    first, page = living(plain_engine, "first", "1x8")
    other = puppet(plain_engine)
    try:
        assert other.do("roost.Cluster().num_accelerators") == 8  # the only one there is
        second, later = living(plain_engine, "second", "1x2")
        assert [page["namespace"], later["namespace"]] == ["roost", "roost_1"]
        assert other.do("[roost.Cluster(namespace=name).num_accelerators for name in ('roost', 'roost_1')]") == [8, 2]
        named = puppet(plain_engine, ROOST_NAMESPACE="roost_1")
        try:
            assert named.do("roost.Cluster().namespace") == "roost_1"
            other.do("cluster = roost.Cluster(namespace='roost')")
            assert named.do(MASTER_PORT) != other.do(MASTER_PORT)
        finally:
            named.end()
    finally:
        other.end()
    for driver in (first, second):
        driver.send_signal(signal.SIGTERM)
    assert [plain_engine.finish_one(driver) for driver in (first, second)] == [143, 143]
    assert sockets(plain_engine) == leases(plain_engine) == []


@pytest.mark.parametrize("victim", ["driver", "guardian", "supervisor", "registry"])
def test_nothing_of_the_managers_is_left_after_a_kill(engine: Engine, victim: str) -> None:
    driver, page = living(engine)
    assert page["namespace"] == "roost" and is_alive(page["registry_pid"])
    assert page["registry_pid"] in engine.left(), "it is known as a part of the run"
    os.kill(driver.pid if victim == "driver" else page[f"{victim}_pid"], signal.SIGKILL)
    if victim == "driver":
        driver.communicate(timeout=PATIENCE)
        engine.running.remove(driver)
    else:
        if victim == "registry":
            driver.send_signal(signal.SIGTERM)  # a run goes on without its managers
        assert engine.finish(driver).returncode == (143 if victim == "registry" else 5)
    wait_gone([page["registry_pid"]])
    engine.wait_empty()
    assert engine.cgroups() == []
    assert sockets(engine) == leases(engine) == []
    again, page = living(engine, "again")
    assert page["namespace"] == "roost", "it is free again"
    again.send_signal(signal.SIGTERM)
    assert engine.finish(again).returncode == 143


LAST = """
import os, signal, sys
import roost
def end(number, frame):
    print(roost.NodeManager.get_proxy().get_num_gpus_per_node(), flush=True)
    sys.exit(0)
roost.NodeManager.get_proxy()
signal.signal(signal.SIGINT, end)
with open(sys.argv[1], "w") as pipe:
    print("up", file=pipe)
while True:
    signal.pause()
"""


def test_managers_answer_until_the_last_process_has_ended(engine: Engine) -> None:
    pipe = engine.pipe("up")
    driver = engine.start(
        engine.config({"actor": {"command": [sys.executable, "-c", LAST, str(pipe.path)]}}, cluster="1x8")
    )
    assert pipe.lines(1) == [["up"]]
    driver.send_signal(signal.SIGINT)
    done = engine.finish(driver)
    assert done.returncode == 130 and "[actor/0] 8" in done.stdout, done
    assert sockets(engine) == leases(engine) == []


def test_a_run_that_cannot_begin_leaves_no_managers(plain_engine: Engine) -> None:
    done = plain_engine.run(plain_engine.config({"actor": {"command": ["/nowhere/train"]}}))
    assert done.returncode == 5
    plain_engine.wait_empty()
    assert sockets(plain_engine) == leases(plain_engine) == []
