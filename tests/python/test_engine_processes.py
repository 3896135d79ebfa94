"""The managers of `roost run` know every process of the run: where it is, its ports, and how it is doing."""

import json
import os
import signal
import sys
import time

from engine import PATIENCE, Engine, wait_state
from puppets import Puppet

WORKERS = "roost.WorkerManager.get_proxy()"
# What a process hears of the others; its own port is in its environment.
ASK = """
import json, os, roost
workers = roost.WorkerManager.get_proxy()
info = workers.get_worker_info("rollout:1")
print(json.dumps({
    "groups": workers.get_group_names(),
    "ranks": [worker.rank for worker in workers.get_workers("rollout")],
    "port": info.ports["http"], "ip": info.node_ip, "node": info.cluster_node_rank, "world": info.group_world_size,
    "type": info.accelerator_type, "devices": info.available_accelerators, "rank": info.accelerator_rank,
    "master": workers.get_worker_info("actor:0").node_port, "own": int(os.environ["MASTER_PORT"]),
}))
"""


def await_states(puppet: Puppet, group: str, wanted: list[str]) -> None:
    """The managers hear of a change a moment after it has happened."""
    deadline = time.monotonic() + PATIENCE
    states: list[str] = []
    while time.monotonic() < deadline:
        states = puppet.do(f"[worker.state for worker in {WORKERS}.get_workers({group!r})]")
        if states == wanted:
            return
    raise AssertionError(states)


def test_a_process_is_known_with_its_node_ports_and_accelerators(plain_engine: Engine) -> None:
    config = plain_engine.config(
        {
            "actor": {"ranks": "0", "command": [sys.executable, "-c", ASK], "after": ["rollout"]},
            "rollout": {"ranks": "4-7:0-1", "command": ["sh", "-c", "echo $ROOST_PORT_HTTP"], "ports": {"http": 2}},
        }
    )
    done = plain_engine.run(config)
    assert done.returncode == 0, done.stderr
    run = plain_engine.runs()[-1]
    heard = json.loads(plain_engine.log(run, "actor"))
    assert heard["groups"] == ["actor", "rollout"] and heard["ranks"] == [0, 1]
    assert heard["port"] == int(plain_engine.log(run, "rollout", 1)) and heard["ip"] == "127.0.0.1"
    assert [heard[key] for key in ("node", "world", "type", "rank")] == [0, 2, "NV_GPU", 6]
    assert heard["devices"] == [6, 7] and heard["master"] == heard["own"]


def test_the_state_of_a_process_follows_its_life_and_its_own_record_wins(plain_engine: Engine) -> None:
    pipe, gate = plain_engine.pipe("up"), plain_engine.home / "gate"
    os.mkfifo(gate)
    config = plain_engine.config(
        {
            "a": {"ranks": "0-1", "do": [f"say={pipe.path}", "pause"]},
            "b": {"command": ["sh", "-c", f"read word < {gate}"], "restart": "never"},
        }
    )
    driver = plain_engine.start(config, "--keep-going")
    pipe.lines(2)
    other = Puppet(plain_engine.env)
    try:
        await_states(other, "a", ["running", "running"])
        await_states(other, "b", ["running"])
        # Its own record counts while the process that made it lives.
        other.do(f"{WORKERS}.register_worker('a:0', roost.WorkerInfo(roost.WorkerAddress('a', 0), 0, node_port=7))")
        assert other.do(f"[worker.node_port for worker in {WORKERS}.get_workers('a')][0]") == 7
        assert other.do(f"{WORKERS}.unregister_worker('a:0')") == 1
        assert other.do(f"{WORKERS}.get_worker_info('a:0').node_port") >= 1024
        gate.write_text("go\n")
        await_states(other, "b", ["ended"])
        await_states(other, "a", ["running", "running"])
    finally:
        other.end()
    driver.send_signal(signal.SIGTERM)
    plain_engine.finish(driver)


def test_managers_that_are_stopped_do_not_stop_the_run_and_hear_the_rest_later(plain_engine: Engine) -> None:
    count = 400
    pipe = plain_engine.pipe("up")
    config = plain_engine.config(
        {
            "first": {"do": [f"say={pipe.path}", "pause"]},
            "many": {"ranks": f"0-{count - 1}", "command": ["true"], "after": ["first"]},
        }
    )
    driver = plain_engine.start(config, "--keep-going", "--quiet")
    pipe.lines(1)
    page = plain_engine.page(plain_engine.runs()[-1])
    os.kill(page["registry_pid"], signal.SIGSTOP)
    wait_state(page["registry_pid"], "T")
    records = plain_engine.runs()[-1] / "records.jsonl"
    deadline = time.monotonic() + PATIENCE
    while records.read_text().count("many") < count and time.monotonic() < deadline:
        os.sched_yield()
    os.kill(page["registry_pid"], signal.SIGCONT)
    other = Puppet(plain_engine.env)
    try:
        await_states(other, "many", ["ended"] * count)
    finally:
        other.end()
    driver.send_signal(signal.SIGTERM)
    plain_engine.finish(driver)
