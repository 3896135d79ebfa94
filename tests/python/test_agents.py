"""A run on several nodes, without an engine between them: what one supervisor decides for all of them, and what their agents do."""

import json
import re
import signal
import sys
from typing import Any

import pytest

from agents_home import EVERYWHERE, NODES, Home, begin
from run_under_test import shell, until


def test_every_process_has_its_nodes_environment_ports_and_logs(home: Home) -> None:
    told = 'echo "$RANK of $WORLD_SIZE on $CLUSTER_NODE_RANK:$CUDA_VISIBLE_DEVICES at $MASTER_ADDR in $ROOST_NAMESPACE, $OF_THE_NODE, [$MINE], $RLINF_X"; pwd; echo "$MASTER_PORT $ROOST_PORT_HTTP" >&2'
    run = home.start(
        {"a": "0-5", "b": "5"}, {"a": shell(told, ports={"http": 2}), "b": shell(told, cwd="sub")}, RLINF_X="along"
    )
    (home.folder / "sub").mkdir(exist_ok=True)
    assert run.end() == 0, run.err
    ports = set()
    for rank in range(6):
        node, device = divmod(rank, 2)
        assert (
            run.log("a", rank).decode()
            == f"{rank} of 6 on {node}:{device} at 10.0.0.1 in far, {node}, [], \n{home.folder}\n"
        )
        ports.add(tuple(run.log("a", rank, "stderr").split()))
    assert len({port for _, port in ports}) == 6 and len({master for master, _ in ports}) == 1
    assert run.log("b", 0).decode() == f"0 of 1 on 2:1 at 10.0.0.3 in far, 2, [], \n{home.folder}/sub\n"
    assert "[a/3] 3 of 6 on 1:1" in run.out and "simulated" not in run.err
    asked = json.loads((home.folder / "asked.json").read_text())
    assert [(agent["node"], agent["id"], agent["devices"]) for agent in asked["agents"]] == [
        (rank, f"id{rank}", [0, 1]) for rank in range(NODES)
    ]
    assert (
        asked["run"] == run.folder.name
        and asked["reserve"] is True
        and asked["address"] is None
        and asked["num_nodes"] == NODES
        and asked["wait_ms"] == 600000
    )
    assert [node["id"] for node in asked["view"]["nodes"]] == [
        f"id{rank}" for rank in range(NODES)
    ] and "component_placement" in asked["view"]["config"]["text"]
    assert json.loads((run.folder / "run.json").read_text())["engine"] == "ray"
    assert run.is_gone()


def test_only_nodes_with_processes_have_agents(home: Home) -> None:
    run = home.start({"a": "2,5", "b": "0-5"}, {"a": shell("echo $CLUSTER_NODE_RANK")}, "--component", "a")
    assert run.end() == 0, run.err
    assert [run.log("a", rank) for rank in (0, 1)] == [b"1\n", b"2\n"]
    agents = json.loads((home.folder / "asked.json").read_text())["agents"]
    assert [(agent["node"], agent["devices"]) for agent in agents] == [(1, [0]), (2, [1])]


def test_all_that_was_written_is_there_before_the_end_is_told(home: Home) -> None:
    """More than the connections hold, without a last end of line; and one who never stops keeps nobody from ending."""
    launch = {
        "a": shell('yes "says $RANK" | head -c 9000001; yes bad | head -c 700001 >&2'),
        "endless": shell("while :; do echo and on and on; done"),
    }
    run = home.start({"a": EVERYWHERE, "endless": "0"}, launch, "--quiet", "--keep-going", "--grace", "0")
    until(lambda: (run.folder / "records.jsonl").exists() and len(run.records()) == NODES, "three have ended")
    for rank in range(NODES):
        said = f"says {rank}\n".encode()
        assert run.log("a", rank) == (said * (9000001 // len(said) + 1))[:9000001]
        assert run.log("a", rank, "stderr") == (b"bad\n" * 200000)[:700001]
    run.process.send_signal(signal.SIGTERM)
    assert run.end() == 128 + signal.SIGTERM
    assert run.is_gone()


def test_components_wait_for_those_of_other_nodes(home: Home) -> None:
    listen = "import os, socket, time; time.sleep(int(os.environ['RANK'])/5); open('up.p'+os.environ['RANK'],'w'); s=socket.socket(); s.bind(('127.0.0.1', int(os.environ['ROOST_PORT_X']))); s.listen(); time.sleep(1000)"
    launch = {
        "files": shell("sleep 0.$RANK; touch up.f$RANK; exec sleep 1000", ready={"file": "up.f%{RANK}"}),
        "lines": shell(
            "sleep 0.$RANK; touch up.l$RANK; echo it is up; exec sleep 1000", ready={"line": "is up"}, after=["files"]
        ),
        "ports": {"command": [sys.executable, "-c", listen], "ports": {"x": 1}, "ready": {"port": "x"}},
        "quick": shell("touch up.q$RANK; exec sleep 1000", after=["ports"]),
        "last": shell("ls up.* | wc -l; exit 21", after=["lines", "ports", "quick"]),
    }
    run = home.start(dict.fromkeys(launch, EVERYWHERE) | {"last": "5"}, launch, "-v")
    assert run.end() == 21, run.err
    assert int(run.log("last", 0)) >= 9  # those that are ready at once have only been started
    said = re.findall(r"(\w+) is ready", run.err)
    assert said.index("files") < said.index("lines") and said.index("ports") < said.index("quick")
    assert run.is_gone()


@pytest.mark.parametrize(
    ("text", "ready", "said", "status"),
    [
        (
            "exec sleep 1000",
            {"file": "never", "timeout": 1},
            r"a/\d: not ready after 1 seconds: its file is not there",
            5,
        ),
        ("echo hm", {"line": "up"}, r"a/\d: it ended before it was ready: its line has not been printed", 1),
    ],
)
def test_who_is_not_ready_ends_the_run(home: Home, text: str, ready: dict[str, Any], said: str, status: int) -> None:
    run = home.start({"a": EVERYWHERE}, {"a": shell(text, ready=ready)})
    assert run.end() == status
    assert re.search(said, run.err), run.err
    assert run.is_gone()


def test_a_run_ends_after_the_guardian_of_every_node(home: Home) -> None:
    """Where the nodes are this machine, the run's own guardian ends theirs: one that has much to remove comes first."""
    litter = "import os, time; log = os.path.dirname(os.readlink('/proc/self/fd/1')); [open(f'{log}/{i}', 'w').close() for i in range(20000)]; print('up', flush=True); time.sleep(1000)"
    run = home.start({"a": "5"}, {"a": {"command": [sys.executable, "-c", litter]}})
    run.await_lines(1, "up")
    run.process.send_signal(signal.SIGTERM)
    assert run.end() == 128 + signal.SIGTERM
    assert run.left() == []


def test_one_failure_stops_all_nodes(home: Home) -> None:
    run = home.start(
        {"a": EVERYWHERE}, {"a": shell("trap 'exit 0' TERM; [ $RANK = 1 ] && exit 7; while :; do sleep 0.05; done")}
    )
    assert run.end() == 7
    assert "stopping: a/1 failed" in run.err and "first failure: a/1 on node 1 (10.0.0.2) exited with 7" in run.err
    records = run.records()
    assert (records[0]["rank"], records[0]["code"], len(records)) == (1, 7, NODES + 1)


def test_lives_follow_each_other_where_they_were(home: Home) -> None:
    lives = shell(
        'echo "life on $CLUSTER_NODE_RANK"; [ -e lived.$RANK ] || { touch lived.$RANK; exit 9; }',
        restart={"on-failure": 1},
    )
    run = home.start({"a": EVERYWHERE, "b": "0"}, {"a": lives, "b": shell("exit 200")}, "--keep-going")
    assert run.end() == 1, run.err
    for rank in range(NODES):
        assert run.log("a", rank).decode() == f"life on {rank}\n" * 2
    ended = sorted(
        (record["rank"], record["life"], record["code"]) for record in run.records()[:-1] if record["component"] == "a"
    )
    assert ended == [(rank, life, 9 if life == 1 else 0) for rank in range(NODES) for life in (1, 2)]


def test_what_cannot_be_started_is_said_with_its_node(home: Home) -> None:
    run = home.start({"a": EVERYWHERE}, {"a": {"command": ["/nowhere/%{RANK}"]}})
    assert run.end() == 5
    assert re.search(
        r"first failure: a/(\d): node \1 \(10.0.0.\d\): cannot run the program '/nowhere/\1': No such file or directory",
        run.err,
    ), run.err
    assert run.err.count("cannot run") == 2, "when it happens, for the first of them, and at the end"
    assert run.is_gone()


def test_signals_reach_everybody_and_the_second_one_kills(home: Home) -> None:
    run = begin(home, "--grace", "1000")
    run.process.send_signal(signal.SIGUSR1)
    run.await_lines(NODES, "got USR1")
    run.process.send_signal(signal.SIGINT)
    run.await_lines(NODES, "got INT")
    run.process.send_signal(signal.SIGINT)
    assert run.end() == 128 + signal.SIGINT, run.err
    assert [record["reason"] for record in run.records()[:-1]] == ["killed-by-roost"] * NODES
    assert run.is_gone()


def test_who_does_not_end_in_time_is_killed(home: Home) -> None:
    run = begin(home, "--grace", "0.3")
    run.process.send_signal(signal.SIGTERM)
    assert run.end() == 128 + signal.SIGTERM, run.err
    assert run.is_gone()


def test_others_see_it_and_stop_it(home: Home) -> None:
    run = begin(home, "--grace", "0.3")
    (shown,) = json.loads(home.roost("ps", "--json").stdout)["runs"]
    assert shown["run"] == run.folder.name
    assert home.roost("logs", run.folder.name).stdout.count("up") == NODES
    assert home.roost("logs", run.folder.name, "--since", "1h", "--grep", "up").stdout.count("up") == NODES
    assert home.roost("stop", run.folder.name).returncode == 0
    assert run.end() == 128 + signal.SIGTERM, run.err
    assert run.is_gone()
