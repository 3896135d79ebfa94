"""A run on several nodes, without an engine between them: who dies or misbehaves, what is said of it, and that nothing is left."""

import os
import re
import shutil
import signal
from pathlib import Path

import pytest

from agents_home import EVERYWHERE, NODES, Home, begin
from run_under_test import STUBBORN, all_pids, shell, until, words_of


@pytest.mark.parametrize("who", ["driver", "guardian", "supervisor", "bridge"])
def test_nothing_is_left_whoever_is_killed_here(home: Home, who: str) -> None:
    run = begin(home, "--grace", "0.3")
    guards = run.pids(f"--guardian {run.folder.name} ")
    (supervisor,) = (pid for pid in guards if Path(f"/proc/{pid}/comm").read_text() == "roost-super\n")
    (guardian,) = set(guards) - {supervisor}
    (bridge,) = run.pids("local_bridge.py")
    os.kill(
        {"driver": run.process.pid, "guardian": guardian, "supervisor": supervisor, "bridge": bridge}[who],
        signal.SIGKILL,
    )
    assert run.end() == (-signal.SIGKILL if who == "driver" else 5)
    assert run.is_gone(has_folders=True)
    if who == "bridge":
        assert "the bridge to the nodes has ended (signal 9)" in run.err
    if who in ("bridge", "supervisor"):
        assert [record["reason"] for record in run.records()[:NODES]] == ["lost"] * NODES


def hidden(home: Home) -> list[int]:
    """Processes of the run that cleared their environment."""
    return [pid for pid in all_pids() if f"hidden {home.folder}" in words_of(pid)]


@pytest.mark.parametrize("kills_agents", [False, True], ids=["agents live", "agents killed too"])
def test_nothing_is_left_when_both_guards_are_killed_here(home: Home, kills_agents: bool) -> None:
    """The agents are on the same machine: their guardians know of processes that nobody else finds. Where those were killed too,
    their control groups do. The run itself has none: here it would hold the agents too, which are under Ray elsewhere."""
    hide = f"setsid env -i sh -c 'while :; do sleep 1; done; : hidden {home.folder}' & echo up; wait"
    run = home.start({"a": EVERYWHERE}, {"a": shell(hide)}, "--grace", "0.3", ROOST_CGROUP="never")
    run.await_lines(NODES, "up")
    assert len(until(lambda: hidden(home) if len(hidden(home)) >= NODES else [], "hidden processes")) >= NODES
    agents = [pid for node in range(NODES) for pid in run.guards(node).values()]
    here = run.pids(f"--guardian {run.id} ")
    victims = [*here, *agents] if kills_agents else here
    for number in (signal.SIGSTOP, signal.SIGKILL):  # one instant
        for pid in victims:
            os.kill(pid, number)
    assert run.end() == 5
    # Nothing is left to others: what was swept is gone before the driver.
    assert hidden(home) == []
    assert run.is_gone(has_folders=kills_agents)
    assert list(Path("/sys/fs/cgroup/unified").glob(f"roost-{run.id}*")) == []


@pytest.mark.parametrize(
    ("who", "said"),
    [("roost", "node 1 (10.0.0.2): the guardian of the run is gone"), ("roost-super", "node 1 (10.0.0.2) is lost")],
)
def test_nothing_is_left_whoever_is_killed_on_a_node(home: Home, who: str, said: str) -> None:
    run = begin(home, "--grace", "0.3")
    os.kill(run.guards(1)[who], signal.SIGKILL)
    assert run.end() == 5, run.err
    assert said in run.err
    reasons = {record["rank"]: record["reason"] for record in run.records()[:-1]}
    assert len(reasons) == NODES and reasons[0] == reasons[2] == "killed-by-roost"
    assert reasons[1] == "lost" or who == "roost"
    assert run.is_gone()


def test_a_lost_node_ends_the_run_with_its_name(home: Home) -> None:
    run = begin(home, "--grace", "0.3", FAULT="lose:2:pulled")
    (home.folder / "pulled").touch()
    assert run.end() == 5, run.err
    assert "node 2 (10.0.0.3) is lost: somebody pulled the plug" in run.err
    assert {record["rank"]: record["reason"] for record in run.records()[:-1]} == {
        0: "killed-by-roost",
        1: "killed-by-roost",
        2: "lost",
    }
    assert run.is_gone()


def test_with_keep_going_the_other_nodes_go_on(home: Home) -> None:
    launch = {"a": shell("echo up; while [ ! -e go ]; do sleep 0.05; done; echo done"), "b": shell("true", after=["a"])}
    run = home.start({"a": EVERYWHERE, "b": EVERYWHERE}, launch, "--keep-going", FAULT="lose:2:pulled")
    run.await_lines(NODES, "up")
    (home.folder / "pulled").touch()
    until(lambda: "node 2 (10.0.0.3) is lost" in run.err, "the loss is said")
    (home.folder / "go").touch()
    assert run.end() == 5, run.err
    ended = {record["rank"]: record["reason"] for record in run.records()[:-1] if record["component"] == "a"}
    assert ended == {0: "exited", 1: "exited", 2: "lost"} and run.log("a", 1) == b"up\ndone\n"
    assert run.is_gone()


@pytest.mark.parametrize(
    "fault, said",
    [
        (
            "alter:1:CUDA_VISIBLE_DEVICES=0:CUDA_VISIBLE_DEVICES=1",
            "roost: a/1: it is not as planned: its variables on node 1 (10.0.0.2) are not what was sent there",
        ),
        (
            "alter:2:echo up:echo ap",
            "roost: a/2: it is not as planned: its command on node 2 (10.0.0.3) is not what was sent there",
        ),
    ],
)
def test_a_process_that_is_not_started_as_planned_ends_the_run(home: Home, fault: str, said: str) -> None:
    run = home.start({"a": EVERYWHERE}, {"a": shell("echo up; sleep 1000")}, "--grace", "0.3", FAULT=fault)
    assert run.end() == 5, run.err
    assert said in run.err, run.err
    assert run.is_gone()


@pytest.mark.parametrize("option", ["--grace=0.3", "--keep-going"])
def test_what_the_run_stands_on_ends_it_when_it_is_gone(home: Home, option: str) -> None:
    run = begin(home, option, FAULT="end:gone")
    (home.folder / "gone").touch()
    assert run.end() == 5, run.err
    assert "roost: the ground is gone\n" in run.err
    assert [record["reason"] for record in run.records()[:-1]] == ["killed-by-roost"] * NODES
    assert run.is_gone()


def test_what_the_run_stands_on_may_be_gone_at_the_moment_it_begins(home: Home) -> None:
    """Its driver waits for nobody's word then."""
    for _ in range(5):
        run = home.start({"a": EVERYWHERE}, {"a": shell(STUBBORN)}, "--grace", "0.1", FAULT="end:starting")
        assert run.end() == 5, run.err
        assert "the ground has just gone\n" in run.err
        assert run.is_gone()
        for folder in (home.folder / "runs").glob("*"):
            shutil.rmtree(folder)


def test_logs_that_cannot_be_kept_are_said_and_the_run_goes_on(home: Home) -> None:
    run = home.start(
        {"a": "0", "b": EVERYWHERE},
        {
            "a": shell("echo no folder > runs/$ROOST_RUN_ID/b; echo done", ready={"line": "done"}),
            "b": shell("echo hi", after=["a"]),
        },
    )
    assert run.end() == 0, run.err
    assert re.search(
        r"^roost: b/\d: its logs cannot be kept in 'b/\d' of the run's folder: Not a directory$", run.err, re.M
    ), run.err
    assert [run.err.count(f"b/{rank}: its logs cannot be kept") for rank in range(NODES)] == [2] * NODES, (
        "when it happens, and at the end"
    )
    assert (run.folder / "b").read_text() == "no folder\n"
    assert [record["reason"] for record in run.records()[:-1]] == ["exited"] * (NODES + 1)
    assert run.is_gone()


if os.environ.get("ROOST_SOAK") == "1":

    def test_a_node_that_does_not_say_that_it_has_ended_is_told(home: Home) -> None:
        """It is waited for, half a minute."""
        run = home.start({"a": EVERYWHERE}, {"a": shell("true")}, FAULT="deaf:1")
        run.end()
        assert (
            f"roost: node 1 (10.0.0.2) does not say that it has ended everything: what is left there has ROOST_RUN_ID={run.folder.name}\n"
            in run.err
        ), run.err
        assert run.is_gone()
