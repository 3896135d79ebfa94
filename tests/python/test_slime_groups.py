"""roost.slime on this machine: the suite of slime_suite.py, and what only the local engine does."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from engine import Engine
from slime_suite import PRELUDE, SUITE, Script

HERE = Path(__file__).parent


def drive(engine: Engine, body: str, spec: str = "4x8") -> Any:
    """The JSON that a driver prints last."""
    env = engine.env | {"PYTHONPATH": os.pathsep.join([str(HERE), engine.env.get("PYTHONPATH", "")])}
    text = f"{PRELUDE}\ncluster = roost.Cluster(cluster={spec!r})\n{body}"
    done = subprocess.run(
        [sys.executable, "-c", text], env=env, cwd=engine.home, capture_output=True, text=True, timeout=300
    )
    assert done.returncode == 0, f"{done.stdout}\n{done.stderr}"
    engine.wait_empty()
    return json.loads(done.stdout.splitlines()[-1])


@pytest.mark.parametrize("script", SUITE, ids=lambda script: script.sentence)
def test_on_this_machine(script: Script, plain_engine: Engine) -> None:
    assert drive(plain_engine, script.text) == script.answer


def test_slots_follow_the_nodes_and_the_accelerators_on_them(plain_engine: Engine) -> None:
    found = drive(
        plain_engine,
        """
first = create_placement_groups(job(actor_num_gpus_per_node=3, rollout_num_gpus=0), cluster)
second = create_placement_groups(job(actor_num_gpus_per_node=4, rollout_num_gpus=0), cluster)
found = [first["actor"][1:], second["actor"][1:]]
remove_placement_groups(first)
third = create_placement_groups(job(actor_num_gpus_per_node=3, rollout_num_gpus=0), cluster)
print(json.dumps([*found, third["actor"][1:]]))
""",
        "5x2",
    )
    assert found == [[[0, 1, 2], [0, 1, 0]], [[0, 1, 2, 3], [1, 0, 1, 0]], [[0, 1, 2], [0, 1, 0]]]


def test_accelerators_that_are_taken_or_missing_are_counted(plain_engine: Engine) -> None:
    found = drive(
        plain_engine,
        """
pgs = create_placement_groups(job(rollout_num_gpus=2), cluster)
print(json.dumps([
    refused(create_placement_groups, job(rollout_num_gpus=0), cluster, timeout=0),
    refused(create_placement_groups, job(actor_num_nodes=9, rollout_num_gpus=0), cluster),
]))
""",
        "1x8",
    )
    assert found[0] == [
        "Timeout",
        "no placement group after 0 seconds: 2 of 8 accelerators are free, 4 are asked for; other placement groups of this Cluster hold the rest "
        "(remove a group with remove_placement_groups(); nothing is reserved)",
    ]
    assert found[1][0] in ("RankError", "Error") and "36" in found[1][1]


def test_the_plan_is_printed_before_anything_is_reserved(plain_engine: Engine) -> None:
    env = plain_engine.env | {"PYTHONPATH": str(HERE)}
    text = f"{PRELUDE}\ncreate_placement_groups(job(), roost.Cluster(cluster='1x8'))"
    done = subprocess.run([sys.executable, "-c", text], env=env, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    assert done.stderr.splitlines()[0] == "roost: disaggregated: 8 GPUs, 10 CPUs; rollout from slot 4"
    assert "roost: actor    0-3    0-3    0.4" in done.stderr.splitlines()


def test_a_driver_that_is_killed_leaves_no_trainer(plain_engine: Engine) -> None:
    env = plain_engine.env | {"PYTHONPATH": str(HERE)}
    text = f"""{PRELUDE}
pgs = create_placement_groups(job(), roost.Cluster(cluster="1x8"))
group = TrainGroup(job(), 1, 4, pgs["actor"], actor_cls=Trainer)
group.create(timeout=60)
print("up", flush=True)
sys.stdin.read()
"""
    driver = subprocess.Popen(
        [sys.executable, "-c", text],
        env=env,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    assert driver.stdout and driver.stdout.readline() == "up\n"
    driver.kill()
    driver.communicate()
    plain_engine.wait_empty()


def test_a_reference_that_never_comes_does_not_keep_the_program_from_ending(plain_engine: Engine) -> None:
    env = plain_engine.env | {"PYTHONPATH": str(HERE)}
    text = f"""{PRELUDE}
args = job(use_critic=True, num_rollout=2)
pgs = create_placement_groups(args, roost.Cluster(cluster="1x8"))
actor, critic = [TrainGroup(args, 1, 2, pgs["actor"], role=role, actor_cls=Faulty) for role in ("actor", "critic")]
actor.create(timeout=60), critic.create(timeout=60)
references = actor.async_train(1, "d", external_data=critic.async_train(1, "hang"))
print(json.dumps(refused(get, references, timeout=0.5)[0]))
"""
    done = subprocess.run([sys.executable, "-c", text], env=env, capture_output=True, text=True, timeout=120)
    assert (done.returncode, done.stdout) == (0, '"Timeout"\n'), done.stderr
    plain_engine.wait_empty()
