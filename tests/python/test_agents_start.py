"""A run on several nodes, without an engine between them: which engine it is, what keeps it from beginning, and how long that is waited for."""

import asyncio
import contextlib
import json
import os
import pty
import re
import signal
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from agents_home import EVERYWHERE, ROOST, AgentsRun, Home
from roost import _roost
from run_under_test import WAIT, shell, until


def test_the_engine_is_the_options_else_the_environments_else_the_configs(home: Home) -> None:
    nodes = shell("echo $OF_THE_NODE")
    home.start({"a": EVERYWHERE}, {"a": nodes}).end()
    for words, more, status, said in (
        (["c.yaml", "roost.engine=ray"], {}, 0, "[a/2] 2"),
        (["c.yaml", "roost.engine=local"], {"ROOST_ENGINE": "ray"}, 0, "[a/2] 2"),
        (["--engine", "local", "c.yaml", "roost.engine=ray"], {"ROOST_ENGINE": "ray"}, 0, "[a/2] \n"),
        (["c.yaml"], {"ROOST_ENGINE": ""}, 0, "[a/2] \n"),
    ):
        run = AgentsRun(home, ["run", "--cluster", "nodes.json", *words], more)
        assert run.end() == status, run.err
        assert said in run.out and ("simulated" in run.err) == (said == "[a/2] \n"), words


def test_what_a_agent_is_told_is_put_in_order() -> None:
    """Calls of an actor of Ray may overtake each other."""
    from collections import deque

    from roost._ray.agent import Agent

    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    ours.setblocking(False)
    agent = Agent.__new__(Agent)
    agent._link, agent._unsent, agent._heard, agent._early, agent._is_over = (
        _roost.AgentLink(ours.detach()),
        deque(),
        0,
        {},
        False,
    )
    message = lambda number: (number, b"%d" % number, None)  # noqa: E731

    async def say() -> list[int]:
        await agent.say(2, [message(4)])
        await agent.say(0, [message(1), message(2)])
        await agent.say(1, [message(3)])
        await agent.say(3, [])
        other = _roost.AgentLink(theirs.detach())
        return [received[0] for _ in range(4) if (received := other.receive())]

    assert asyncio.run(say()) == [1, 2, 3, 4]


@pytest.mark.parametrize(
    ("fault", "said", "cure"),
    [
        ("refuse", "roost: error: there is no way", "= find one"),
        (
            "garbage",
            "roost: error: the bridge to Ray gave no answer that can be read",
            "= let ROOST_PYTHON be a Python with the same roost as this program",
        ),
        ("end:early", "roost: error: there is no ground\n", ""),
        (
            "gone:1",
            "roost: error: the agent on node 1 (10.0.0.2) is lost: it was too far away",
            "= `ray status` lists the nodes",
        ),
    ],
)
def test_what_keeps_a_run_from_beginning_is_said(home: Home, fault: str, said: str, cure: str) -> None:
    run = home.start({"a": EVERYWHERE}, {"a": shell("true")}, FAULT=fault)
    assert run.end() == 5
    assert said in run.err and cure in run.err, run.err
    assert list((home.folder / "runs").glob("*")) == []


@pytest.mark.parametrize("who", ["1", "1,2"])
def test_nodes_that_do_not_answer_are_waited_for_within_a_bound(home: Home, who: str) -> None:
    run = home.start({"a": EVERYWHERE}, {"a": shell("true", ports={"http": 1})}, "--wait", "1", FAULT=f"mute:{who}")
    assert run.end() == 5
    assert (
        f"roost: error: {len(who.split(','))} of 3 nodes have not leased their ports after 10 seconds; the first is node 1 (10.0.0.2)\n"
        in run.err
    ), run.err
    assert "= see whether that node is busy or stopped, or give it more time" in run.err, run.err
    assert list((home.folder / "runs").glob("*")) == []


def test_ports_that_a_node_does_not_have_are_said_with_the_node(home: Home) -> None:
    run = home.start({"a": EVERYWHERE}, {"a": shell("true", ports=dict.fromkeys("abcdef", 4096))})
    assert run.end() == 5
    assert re.search(r"error: node \d \(10.0.0.\d\): ", run.err) and "  = " in run.err, run.err


def test_a_run_can_be_stopped_before_it_begins(home: Home) -> None:
    python = home.folder / "python"
    python.write_text("#!/bin/sh\ntouch begun\nexec sleep 1000\n")
    run = home.start({"a": EVERYWHERE}, {"a": shell("true")})
    until((home.folder / "begun").exists, "the bridge is there")
    run.process.send_signal(signal.SIGWINCH)
    run.process.send_signal(signal.SIGINT)
    assert run.end() == 128 + signal.SIGINT
    assert run.err == "roost: SIGINT: stopped before it began\n"
    assert list((home.folder / "runs").glob("*")) == []


def test_an_older_run_is_not_meant_while_the_newest_is_beginning(home: Home) -> None:
    older = home.start({"a": "0"}, {"a": shell("echo up; exec sleep 1000")})
    older.await_lines(1, "up")
    name = older.id
    python = home.folder / "python"
    python.write_text("#!/bin/sh\ntouch begun\nexec sleep 1000\n")
    newest = home.start({"a": EVERYWHERE}, {"a": shell("true")})
    until((home.folder / "begun").exists, "the bridge is there")
    first, second = json.loads(home.roost("ps", "--json").stdout)["runs"]
    assert (first["state"], second["state"], second["run"]) == ("starting", "running", name)
    assert re.search(rf"^{first['run']} +starting +\ds +- +- +0  \n{name} +running ", home.roost("ps").stdout, re.M)
    for words in (["stop"], ["stop", first["run"]], ["logs"]):
        refused = home.roost(*words)
        assert refused.returncode == 2 and refused.stderr.startswith(
            f"roost: error: run {first['run']} is still starting\n  = wait until it runs, end it where it was started, or name another one"
        ), refused.stderr
    assert older.process.poll() is None
    newest.process.send_signal(signal.SIGINT)
    newest.process.wait(WAIT)
    assert home.roost("stop").returncode == 0  # now it is the newest
    assert older.process.wait(WAIT) == 128 + signal.SIGTERM


@pytest.mark.parametrize(("wait", "asked"), [("0", 1), ("2.5", 2500)])
def test_nodes_are_waited_for_as_long_as_is_said(home: Home, wait: str, asked: int) -> None:
    """Those that are there have time to answer, however short that is."""
    run = home.start({"a": "0"}, {"a": shell("true", ports={"http": 1})}, "--wait", wait)
    assert run.end() == 0, run.err
    assert json.loads((home.folder / "asked.json").read_text())["wait_ms"] == asked


def test_who_looks_is_told_that_ray_is_being_joined(home: Home) -> None:
    home.start({"a": EVERYWHERE}, {"a": shell("true")}).end()
    ours, theirs = pty.openpty()
    done = subprocess.run(
        [ROOST, "run", "--engine", "ray", "--cluster", "nodes.json", "c.yaml"],
        env=home.env | {"ROOST_PYTHON": "/bin/false", "NO_COLOR": "1"},
        cwd=home.folder,
        stderr=theirs,
        timeout=WAIT,
    )
    os.close(theirs)
    said = ""
    with contextlib.suppress(OSError), open(ours, "rb", buffering=0) as terminal:
        while more := terminal.read(4096):
            said += more.decode()
    assert done.returncode == 5 and said.startswith("roost: joining the Ray cluster\r\nroost: error: "), said


def test_the_bridge_runs_nothing_of_the_current_folder(home: Home) -> None:
    """Neither a module nor a Python; one that PATH has under the same name is found there."""
    for name in ("ray.py", "roost.py", "json.py"):
        (home.folder / name).write_text(f"open({str(home.folder / 'trapped')!r}, 'w')\n")
    (home.folder / "bin").mkdir()
    (home.folder / "bin" / "python").write_text(f'#!/bin/sh\nexec {sys.executable} "$@"\n')
    (home.folder / "bin" / "python").chmod(0o755)
    (home.folder / "python").write_text(f"#!/bin/sh\n: > {home.folder / 'trapped'}\n")
    for python in (sys.executable, "python"):
        more = {
            "ROOST_PYTHON": python,
            "PATH": f":{home.folder / 'bin'}:{os.environ['PATH']}",
            "RAY_ADDRESS": "127.0.0.1:1",
        }
        run = home.start({"a": EVERYWHERE}, {"a": shell("true")}, **more)
        assert (
            run.end() == 5 and "nobody answers at 127.0.0.1:1, which RAY_ADDRESS names as the Ray cluster" in run.err
        ), run.err
        assert not (home.folder / "trapped").exists()


def test_a_python_that_is_not_one_is_said_with_its_cure(home: Home, tmp_path: Path) -> None:
    cure = "= set ROOST_PYTHON to a Python that has roost and ray"
    run = home.start({"a": EVERYWHERE}, {"a": shell("true")}, ROOST_PYTHON="/nowhere/python")
    assert (
        run.end() == 5
        and "cannot start the bridge to the nodes: No such file or directory" in run.err
        and cure in run.err
    )
    run = home.start({"a": EVERYWHERE}, {"a": shell("true")}, ROOST_PYTHON="/bin/false")
    assert (
        run.end() == 5
        and "the bridge to the nodes has ended before the run began (status 1)" in run.err
        and cure in run.err
    )
    run = home.start(
        {"a": EVERYWHERE}, {"a": shell("true")}, ROOST_PYTHON="python", PATH=":.:/nowhere"
    )  # there is one in this folder
    words = "ROOST_PYTHON is 'python', and no absolute folder of PATH has a program of that name"
    assert run.end() == 5 and words in run.err and "('./python' for one in the current folder)" in run.err
    (tmp_path / "ray.py").write_text("raise ModuleNotFoundError(\"No module named 'ray'\", name='ray')\n")
    run = home.start(
        {"a": EVERYWHERE},
        {"a": shell("true")},
        ROOST_PYTHON=sys.executable,
        PYTHONPATH=f"{tmp_path}:{home.env['PYTHONPATH']}",
    )
    assert (
        run.end() == 5
        and "the engine 'ray' needs Ray, which is not installed" in run.err
        and "pip install 'ray[default]>=2.47'" in run.err
    )
