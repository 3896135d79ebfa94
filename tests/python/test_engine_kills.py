"""Nothing survives a run: kill -9 of any part, at any moment, while others are stopped or frozen.

Workers fork, leave daemons in sessions of their own, hide from whoever reads /proc and ignore SIGTERM. After every kill nothing
of the run lives, its ports can be bound and the next run starts. 200 kills, with and without a control group, as this user and
as another one; ROOST_SOAK makes them 20,000.

The documented gap: guardian and supervisor killed in the same instant, without a control group, when the driver is killed too
(a living driver adopts what they leave). Then workers die by their parent-death signal, but not what they left in other
sessions.
"""

import json
import os
import random
import signal
import socket
import subprocess
from pathlib import Path

import pytest

from chance import dice as roll
from conftest import WHO
from engine import ROOST, Engine, children_of, wait_gone, wait_state
from run_under_test import words_of
from verdicts import LeftOver

KILLS = 20_000 if os.environ.get("ROOST_SOAK") == "1" else 200
SHARDS = 8  # tests that pytest can deal out
PATIENCE = 20.0  # seconds: far beyond what is measured in the bench, for a machine that is busy


def parts_of(driver: int) -> dict[str, list[int]]:
    """Who there is now, by the family tree: it may be too early for the run's own page."""
    registries = [pid for pid in children_of(driver) if "--registry-server" in words_of(pid)]
    guardians = [pid for pid in children_of(driver) if pid not in registries]
    supervisors = [pid for guardian in guardians for pid in children_of(guardian)]
    return {
        "driver": [driver],
        "guardian": guardians,
        "registry": registries,
        "supervisor": supervisors,
        "worker": [pid for supervisor in supervisors for pid in children_of(supervisor)],
    }


def has_begun(part: str, pid: int) -> bool:
    """Whether it executes its program. A process that is stopped before that holds up its parent, in the kernel."""
    word = {"worker": "engine_worker", "registry": "--registry-server"}.get(part, "--guardian")
    return word in words_of(pid)


def send(pid: int, number: int) -> None:
    try:
        os.kill(pid, number)
    except ProcessLookupError:
        pass


def kill(pids: list[int]) -> None:
    for pid in pids:
        send(pid, signal.SIGKILL)


def is_gap(victims: set[str]) -> bool:
    """Nobody is left to sweep."""
    return {"driver", "guardian", "supervisor"} <= victims


def can_bind(port: int) -> bool:
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            return False
    return True


def choose(dice: random.Random) -> list[str]:
    while True:
        victims = dice.sample(
            ["driver", "guardian", "supervisor", "worker", "registry"], dice.choice([1, 1, 1, 2, 2, 3])
        )
        if not is_gap(set(victims)):
            return victims


def check_records(engine: Engine, pids: set[int], what: str) -> None:
    """Every life that was heard of has one record, and no life has two."""
    runs = [run for run in engine.runs() if (run / "records.jsonl").exists()]
    records = engine.records(runs[-1]) if pids else []
    names = [(record["component"], record["rank"], record["life"]) for record in records]
    assert len(set(names)) == len(names), f"{what}: {records}"
    unknown = sum(record["pid"] == 0 for record in records)  # lost between its start and the word of it
    assert len(pids - {record["pid"] for record in records}) <= unknown, f"{what}: {pids} {records}"


def put_to_sleep(engine: Engine, parts: dict[str, list[int]], victims: list[str], dice: random.Random) -> list[str]:
    """Stops guards that are not to be killed, or freezes the control group with all that is in it."""
    if engine.has_cgroup and dice.random() < 0.1:
        for group in engine.cgroups():
            try:
                (group / "cgroup.freeze").write_text("1")
            except OSError:
                continue  # it is being removed
            return ["supervisor", "worker"]
        return []
    able = ["guardian", "supervisor", "worker"]
    if "driver" not in victims and parts["worker"]:
        able.append("registry")  # the driver continues it, once the run has begun
    sleepers = [part for part in able if part not in victims and dice.random() < 0.15]
    for part in sleepers:
        for pid in parts[part]:
            if has_begun(part, pid):
                send(pid, signal.SIGSTOP)
    return sleepers


def wake(engine: Engine, driver: subprocess.Popen, victims: list[str], sleepers: list[str]) -> None:
    """What a person does about a run that hangs: Ctrl-C, twice, or `roost stop` when its driver is gone."""
    if "driver" not in victims:
        driver.send_signal(signal.SIGTERM)
        if "supervisor" in sleepers:
            driver.send_signal(signal.SIGINT)
    elif {"guardian", "supervisor"} & set(sleepers):
        engine.ask("ps")  # ends a run that did not come to have a page
        for run in engine.runs():
            page = run / "run.json"
            if page.exists() and page.stat().st_size:
                engine.ask("stop", "--now", run.name)


def one_kill(engine: Engine, config: Path, dice: random.Random, pending: set[int]) -> bool:
    """Whether somebody was killed: it may have been too early for that."""
    pipe, held = engine.pipe("up"), engine.pipe("held")
    victims = choose(dice)
    driver = engine.start(config, "--grace", "0.05", stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    # A moment by chance: after so many workers have spoken, or so long after the start.
    heard = dice.randrange(8)
    said = pipe.lines(heard, dice.uniform(0, 0.05) if heard == 0 else PATIENCE)
    parts = parts_of(driver.pid)
    has_killed = any(parts[victim] for victim in victims)
    sleepers = put_to_sleep(engine, parts, victims, dice)
    for victim in victims:
        pids = parts[victim]
        kill(pids if victim != "worker" else dice.sample(pids, min(len(pids), dice.randint(1, 3))))
    # There was nobody yet, or one that starts again, or one that a run can do without.
    if sleepers or set(victims) <= {"worker", "registry"} or ("driver" not in victims and not has_killed):
        wake(engine, driver, victims, sleepers)
    what = f"killed {victims} and stopped {sleepers} after {heard}"
    print(what)  # pytest shows it when the test has failed
    try:
        driver.wait(PATIENCE)
    except subprocess.TimeoutExpired:
        raise AssertionError(f"{what}: the driver goes on") from None
    engine.running.remove(driver)
    if "driver" not in victims:
        assert engine.left() == [], f"{what}: the driver ended before its run"
    engine.wait_empty(PATIENCE)
    assert held.wait_end(PATIENCE)
    check_records(engine, {int(line[1]) for line in said}, what)
    pending |= {int(line[2]) for line in said}
    pending -= {port for port in pending if can_bind(port)}
    for made in (pipe, held):
        engine.drop(made)
    return has_killed


@pytest.mark.parametrize("shard", range(SHARDS))
def test_nothing_survives(any_engine: Engine, shard: int) -> None:
    engine = any_engine
    dice = roll(shard, engine.has_cgroup, engine.user is None)
    hold = [f"hold={engine.home}/held", "ignore=15"]
    say = [f"say={engine.home}/up", "pause"]
    config = engine.config(
        {
            "actor": {
                "ranks": "0-3",
                "do": [*hold, "@0:daemon", "@1:child", "@2:hidden", "@2:child", "@3:locked", *say],
            },
            "env": {
                "ranks": "4-7",
                "do": [*hold, "child", "daemon", "@0:hidden", "@1:chain", *say],
                "restart": "always",
                "ports": {"http": 1},
            },
        }
    )
    pending: set[int] = set()  # ports that were leased and could not be bound since
    left_to_do = -(-KILLS // (SHARDS * len(WHO)))  # a shard runs as each user, with and without a control group
    while left_to_do > 0:
        left_to_do -= one_kill(engine, config, dice, pending)
    assert pending == set()  # nobody else has ports of this share
    # A guardian killed between making its control group and the next step: removed when stale.
    left = LeftOver(group for group in engine.cgroups() if (group / "cgroup.procs").read_text())
    assert left == []
    engine.remove_cgroups()
    done = engine.run(engine.config({"actor": {"ranks": "0-3", "do": ["exit=0"]}}, "next.yaml"))
    assert done.returncode == 0, done.stderr


def ps_all(engine: Engine) -> str:
    return subprocess.run(
        [str(ROOST), "ps", "--all", "--json"],
        env=engine.env,
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=True,
    ).stdout


def start_held(engine: Engine) -> tuple[subprocess.Popen, dict[str, list[int]], object]:
    pipe, held = engine.pipe("up"), engine.pipe("held")
    do = [f"hold={held.path}", "ignore=15", "daemon", "child", f"say={pipe.path}", "pause"]
    driver = engine.start(engine.config({"actor": {"ranks": "0-3", "do": do}}))
    pipe.lines(4)
    ps_all(engine)  # a supervisor that answers has told the driver of the starts
    return driver, parts_of(driver.pid), held


@pytest.mark.parametrize("victim", ["driver", "guardian", "supervisor"])
def test_after_a_kill_of_one_everything_is_gone(engine: Engine, victim: str) -> None:
    driver, parts, held = start_held(engine)
    kill(parts[victim])
    assert held.wait_end(PATIENCE)
    if victim == "driver":
        driver.communicate()
        engine.running.remove(driver)
    else:
        done = engine.finish(driver)
        assert done.returncode == 5
        words = "the guardian of the run is gone" if victim == "guardian" else "the supervisor of the run is gone"
        assert words in done.stderr
    engine.wait_empty(PATIENCE)
    assert engine.cgroups() == []
    assert list(engine.runtime.rglob("*.sock")) == []
    assert list(engine.runtime.rglob("*.registry")) == []


def test_lives_that_ended_with_their_supervisor_are_recorded_as_lost(engine: Engine) -> None:
    driver, parts, _ = start_held(engine)
    kill(parts["supervisor"])
    done = engine.finish(driver)
    assert done.returncode == 5
    assert "4 lost" in done.stderr
    records = engine.records(engine.runs()[0])
    assert sorted(record["rank"] for record in records) == [0, 1, 2, 3]
    assert {record["reason"] for record in records} == {"lost"}


def end_driver(engine: Engine, driver: subprocess.Popen) -> None:
    """One that was killed."""
    driver.communicate()
    engine.running.remove(driver)


def test_lives_are_recorded_as_lost_when_driver_and_supervisor_are_killed(engine: Engine) -> None:
    driver, parts, held = start_held(engine)
    kill(parts["supervisor"] + parts["driver"])  # in this order: a supervisor alone would end them itself
    assert held.wait_end(PATIENCE)
    end_driver(engine, driver)
    wait_gone(parts["guardian"])
    records = engine.records(engine.runs()[0])
    assert sorted(record["rank"] for record in records) == [0, 1, 2, 3]
    assert len({record["pid"] for record in records} & set(parts["worker"])) == 4
    assert {record["reason"] for record in records} == {"lost"}
    # Who looks at the crashed run afterwards adds its end, and nothing else.
    assert "crashed" in ps_all(engine)
    assert engine.records(engine.runs()[0]) == records


def test_lives_have_one_record_each_when_driver_and_guardian_are_killed(engine: Engine) -> None:
    driver, parts, held = start_held(engine)
    kill(parts["driver"] + parts["guardian"])
    assert held.wait_end(PATIENCE)
    end_driver(engine, driver)
    wait_gone(parts["supervisor"])
    records = engine.records(engine.runs()[0])
    assert sorted(record["rank"] for record in records) == [0, 1, 2, 3]
    assert len({record["pid"] for record in records} & set(parts["worker"])) == 4
    assert {record["reason"] for record in records} == {"killed-by-roost"}
    ps_all(engine)
    assert engine.records(engine.runs()[0]) == records


def test_lives_have_one_record_each_when_guardian_and_supervisor_are_killed(engine: Engine) -> None:
    driver, parts, _ = start_held(engine)
    [guardian] = parts["guardian"]
    os.kill(guardian, signal.SIGSTOP)  # so that it is the driver who records
    wait_state(guardian, "T")
    kill(parts["supervisor"] + [guardian])
    assert "4 lost" in engine.finish(driver).stderr
    records = engine.records(engine.runs()[0])
    assert sorted(record["rank"] for record in records) == [0, 1, 2, 3]
    assert {record["reason"] for record in records} == {"lost"}


def test_who_next_looks_records_the_lives_of_a_run_that_was_killed_whole(engine: Engine) -> None:
    pipe, held = engine.pipe("up"), engine.pipe("held")
    do = ["@0:exit=0", f"hold={held.path}", f"say={pipe.path}", "pause"]
    driver = engine.start(
        engine.config({"actor": {"ranks": "0-3", "do": do}, "env": {"ranks": "4", "do": [f"say={pipe.path}", "pause"]}})
    )
    pipe.lines(4)
    parts = parts_of(driver.pid)
    for supervisor in parts["supervisor"]:  # the same instant
        os.kill(supervisor, signal.SIGSTOP)
        wait_state(supervisor, "T")
    kill(parts["driver"] + parts["guardian"] + parts["supervisor"])
    assert held.wait_end(PATIENCE)
    end_driver(engine, driver)
    engine.wait_empty(PATIENCE)
    run = engine.runs()[0]
    before = engine.records(run, may_be_cut=True)  # of rank 0, when it was reaped in time
    assert "crashed" in ps_all(engine)
    records = engine.records(run)
    assert records[: len(before)] == before
    assert sorted((record["component"], record["rank"]) for record in records) == [
        ("actor", 0),
        ("actor", 1),
        ("actor", 2),
        ("actor", 3),
        ("env", 0),
    ]
    assert {record["reason"] for record in records if (record["component"], record["rank"]) != ("actor", 0)} == {"lost"}
    assert json.loads((run / "records.jsonl").read_text().splitlines()[-1]) == {
        "end": True,
        "failed": True,
        "crashed": True,
    }
    assert sorted(path.name for path in run.iterdir()) == ["actor", "env", "records.jsonl", "run.json"]
    ps_all(engine)
    assert engine.records(run) == records
    engine.remove_cgroups()


def test_a_living_driver_sweeps_when_guardian_and_supervisor_are_killed(engine: Engine) -> None:
    driver, parts, held = start_held(engine)
    kill(parts["guardian"] + parts["supervisor"])
    assert held.wait_end(PATIENCE)
    assert engine.finish(driver).returncode == 5
    assert engine.cgroups() == []


def test_driver_and_guardian_killed_together_leave_nothing(engine: Engine) -> None:
    driver, parts, held = start_held(engine)
    kill(parts["driver"] + parts["guardian"])
    assert held.wait_end(PATIENCE)
    end_driver(engine, driver)
    wait_gone(parts["supervisor"])
    engine.wait_empty(PATIENCE)
    assert engine.cgroups() == []


def test_without_anybody_left_the_workers_themselves_die(engine: Engine) -> None:
    """The gap: what workers left in other sessions is not promised then; here there is no such thing."""
    pipe, held = engine.pipe("up"), engine.pipe("held")
    driver = engine.start(
        engine.config(
            {"actor": {"ranks": "0-3", "do": [f"hold={held.path}", "ignore=15", f"say={pipe.path}", "pause"]}}
        )
    )
    pipe.lines(4)
    parts = parts_of(driver.pid)
    kill(parts["driver"] + parts["guardian"] + parts["supervisor"])
    assert held.wait_end(PATIENCE)
    end_driver(engine, driver)
    engine.wait_empty(PATIENCE)
    engine.remove_cgroups()  # empty directories of the kernel's: all that is left
