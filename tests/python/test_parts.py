"""A run on several nodes without any engine between them: the bridge is local_bridge.py, and the nodes are this machine.

What one supervisor decides for all of them, what their parts do, and what is left when one of them is gone."""

import asyncio
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import textwrap
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from roost import _roost

ROOT = Path(__file__).resolve().parents[2]
ROOST = os.environ.get("ROOST", str(ROOT / "build/roost"))
WAIT = 120  # a watchdog
NODES = 3
EVERYWHERE = "0-5:0-2"


def until(is_so: Callable[[], Any], what: str) -> Any:
    deadline = time.monotonic() + WAIT
    while not (found := is_so()):
        assert time.monotonic() < deadline, f"still not: {what}"
        time.sleep(0.01)
    return found


class Home:
    """A place to run in, with three nodes of two accelerators."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.started: list[subprocess.Popen[bytes]] = []
        nodes = [{"node_rank": rank, "id": f"id{rank}", "address": f"10.0.0.{rank + 1}", "num_accelerators": 2} for rank in range(NODES)]
        (folder / "nodes.json").write_text(json.dumps({"roost": 1, "cluster": {"nodes": nodes}}))
        python = folder / "python"
        python.write_text(f'#!/bin/sh\nexec {sys.executable} {ROOT / "tests/python/local_bridge.py"} "$@"\n')
        python.chmod(0o755)
        (folder / "run").mkdir(mode=0o700)
        self.env = {"HOME": str(folder), "XDG_RUNTIME_DIR": str(folder / "run"), "PATH": os.environ["PATH"], "ROOST_PYTHON": str(python), "ROOST_PROGRAM": ROOST, "PYTHONPATH": os.environ.get("PYTHONPATH", ""), "MINE": "secret"}

    def start(self, placement: dict[str, str], launch: dict[str, Any], *options: str, **more: str) -> "Run":
        text = {"cluster": {"num_nodes": NODES, "component_placement": placement}, "roost": {"logs": {"dir": "runs"}, "launch": launch}}
        (self.folder / "c.yaml").write_text(json.dumps(text))
        return Run(self, ["run", "--engine", "ray", "--cluster", "nodes.json", *options, "c.yaml"], more)

    def roost(self, *words: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run([ROOST, *words], env=self.env, cwd=self.folder, capture_output=True, text=True, timeout=WAIT)


class Run:
    def __init__(self, home: Home, words: list[str], more: dict[str, str]) -> None:
        self.home = home
        with open(home.folder / "out", "w") as out, open(home.folder / "err", "w") as err:
            self.process = subprocess.Popen([ROOST, *words], env=home.env | more, cwd=home.folder, stdout=out, stderr=err, stdin=subprocess.DEVNULL, start_new_session=True)
        home.started.append(self.process)

    @property
    def out(self) -> str:
        return (self.home.folder / "out").read_text()

    @property
    def err(self) -> str:
        return (self.home.folder / "err").read_text()

    @property
    def folder(self) -> Path:
        (found,) = until(lambda: list((self.home.folder / "runs").glob("*")), "there is a run")
        return found  # type: ignore[no-any-return]

    def await_lines(self, count: int, text: str) -> None:
        def are_there() -> bool:
            assert self.process.poll() is None or self.out.count(text) >= count, f"{self.out}\n{self.err}"
            return self.out.count(text) >= count

        until(are_there, f"{count} times {text}")

    def end(self) -> int:
        try:
            return self.process.wait(timeout=WAIT)
        finally:
            self.process.kill()

    def records(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in (self.folder / "records.jsonl").read_text().splitlines()]

    def log(self, component: str, rank: int, stream: str = "stdout") -> bytes:
        return (self.folder / component / str(rank) / f"{stream}.log").read_bytes()

    def pids(self, words: str = "") -> list[int]:
        found = []
        for pid in filter(str.isdigit, os.listdir("/proc")):
            try:
                environ = Path(f"/proc/{pid}/environ").read_bytes().split(b"\0")
                line = Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
            except OSError:
                continue
            if f"ROOST_RUN_ID={self.folder.name}".encode() in environ and words in line:
                found.append(int(pid))
        return found

    def left(self, has_folders: bool = False) -> list[str]:
        """What of it is on this machine. Folders may be, where the guardians of the nodes, whose machine this is, were killed with
        everything else."""
        folders = [] if has_folders else self.home.folder.glob("roost-part-*")
        groups = Path("/sys/fs/cgroup/unified").glob(f"roost-{self.folder.name}")
        return [*map(str, self.pids()), *map(str, folders), *map(str, groups)]

    def is_gone(self, has_folders: bool = False) -> bool:
        deadline = time.monotonic() + WAIT
        while left := self.left(has_folders):
            assert time.monotonic() < deadline, left
            time.sleep(0.01)
        return True

    def guards(self, node: int) -> dict[str, int]:
        """The guardian ("roost") and the supervisor ("roost-super") of a node."""
        return {Path(f"/proc/{pid}/comm").read_text().strip(): pid for pid in self.pids(f"--guardian {self.folder.name}.{node} ")}


@pytest.fixture
def home(tmp_path: Path) -> Iterator[Home]:
    made = Home(tmp_path)
    yield made
    for process in made.started:  # of a test that failed
        process.kill()
        process.wait()


def shell(text: str, **more: Any) -> dict[str, Any]:
    return {"command": ["sh", "-c", textwrap.dedent(text)], **more}


def test_every_process_has_its_nodes_environment_ports_and_logs(home: Home) -> None:
    told = 'echo "$RANK of $WORLD_SIZE on $CLUSTER_NODE_RANK:$CUDA_VISIBLE_DEVICES at $MASTER_ADDR in $ROOST_NAMESPACE, $OF_THE_NODE, [$MINE], $RLINF_X"; pwd; echo "$MASTER_PORT $ROOST_PORT_HTTP" >&2'
    run = home.start({"a": "0-5", "b": "5"}, {"a": shell(told, ports={"http": 2}), "b": shell(told, cwd="sub")}, RLINF_X="along")
    (home.folder / "sub").mkdir(exist_ok=True)
    assert run.end() == 0, run.err
    ports = set()
    for rank in range(6):
        node, device = divmod(rank, 2)
        assert run.log("a", rank).decode() == f"{rank} of 6 on {node}:{device} at 10.0.0.1 in far, {node}, [], \n{home.folder}\n"
        ports.add(tuple(run.log("a", rank, "stderr").split()))
    assert len({port for _, port in ports}) == 6 and len({master for master, _ in ports}) == 1
    assert run.log("b", 0).decode() == f"0 of 1 on 2:1 at 10.0.0.3 in far, 2, [], \n{home.folder}/sub\n"
    assert "[a/3] 3 of 6 on 1:1" in run.out and "simulated" not in run.err
    asked = json.loads((home.folder / "asked.json").read_text())
    assert [(part["node"], part["id"], part["devices"]) for part in asked["parts"]] == [(rank, f"id{rank}", [0, 1]) for rank in range(NODES)]
    assert asked["run"] == run.folder.name and asked["reserve"] is True and asked["address"] is None and asked["num_nodes"] == NODES
    assert json.loads((run.folder / "run.json").read_text())["engine"] == "ray"
    assert run.is_gone()


def test_only_nodes_with_processes_have_parts(home: Home) -> None:
    run = home.start({"a": "2,5", "b": "0-5"}, {"a": shell("echo $CLUSTER_NODE_RANK")}, "--component", "a")
    assert run.end() == 0, run.err
    assert [run.log("a", rank) for rank in (0, 1)] == [b"1\n", b"2\n"]
    parts = json.loads((home.folder / "asked.json").read_text())["parts"]
    assert [(part["node"], part["devices"]) for part in parts] == [(1, [0]), (2, [1])]


def test_all_that_was_written_is_there_before_the_end_is_told(home: Home) -> None:
    """More than the channels hold, without a last end of line; and one who never stops keeps nobody from ending."""
    launch = {"a": shell('yes "says $RANK" | head -c 9000001; yes bad | head -c 700001 >&2'), "endless": shell("while :; do echo and on and on; done")}
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
        "lines": shell("sleep 0.$RANK; touch up.l$RANK; echo it is up; exec sleep 1000", ready={"line": "is up"}, after=["files"]),
        "ports": {"command": [sys.executable, "-c", listen], "ports": {"x": 1}, "ready": {"port": "x"}},
        "quick": shell("touch up.q$RANK; exec sleep 1000", after=["ports"]),
        "last": shell("ls up.* | wc -l; exit 21", after=["lines", "ports", "quick"]),
    }  # fmt: skip
    run = home.start(dict.fromkeys(launch, EVERYWHERE) | {"last": "5"}, launch, "-v")
    assert run.end() == 21, run.err
    assert int(run.log("last", 0)) >= 9  # those that are ready at once have only been started
    said = re.findall(r"(\w+) is ready", run.err)
    assert said.index("files") < said.index("lines") and said.index("ports") < said.index("quick")
    assert run.is_gone()


@pytest.mark.parametrize(
    ("text", "ready", "said", "status"),
    [
        ("exec sleep 1000", {"file": "never", "timeout": 1}, r"a/\d: not ready after 1 seconds: its file is not there", 5),
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
    run = home.start({"a": EVERYWHERE}, {"a": shell("trap 'exit 0' TERM; [ $RANK = 1 ] && exit 7; while :; do sleep 0.05; done")})
    assert run.end() == 7
    assert "stopping: a/1 failed" in run.err and "first failure: a/1 exited with 7" in run.err
    records = run.records()
    assert (records[0]["rank"], records[0]["code"], len(records)) == (1, 7, NODES + 1)


def test_lives_follow_each_other_where_they_were(home: Home) -> None:
    lives = shell('echo "life on $CLUSTER_NODE_RANK"; [ -e lived.$RANK ] || { touch lived.$RANK; exit 9; }', restart={"on-failure": 1})
    run = home.start({"a": EVERYWHERE, "b": "0"}, {"a": lives, "b": shell("exit 200")}, "--keep-going")
    assert run.end() == 1, run.err
    for rank in range(NODES):
        assert run.log("a", rank).decode() == f"life on {rank}\n" * 2
    ended = sorted((record["rank"], record["life"], record["code"]) for record in run.records()[:-1] if record["component"] == "a")
    assert ended == [(rank, life, 9 if life == 1 else 0) for rank in range(NODES) for life in (1, 2)]


def test_what_cannot_be_started_is_said_with_its_node(home: Home) -> None:
    run = home.start({"a": EVERYWHERE}, {"a": {"command": ["/nowhere/%{RANK}"]}})
    assert run.end() == 5
    assert re.search(r"first failure: a/(\d): node \1 \(10.0.0.\d\): cannot run the program '/nowhere/\1': No such file or directory", run.err), run.err
    assert run.is_gone()


STUBBORN = "trap 'echo got INT' INT; trap 'echo got USR1' USR1; trap '' TERM; setsid sleep 1000 & echo up; while :; do sleep 0.05; done"


def begin(home: Home, *options: str, **more: str) -> Run:
    run = home.start({"a": EVERYWHERE}, {"a": shell(STUBBORN)}, *options, **more)
    run.await_lines(NODES, "up")
    return run


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
    assert home.roost("stop", run.folder.name).returncode == 0
    assert run.end() == 128 + signal.SIGTERM, run.err
    assert run.is_gone()


# --- who dies


@pytest.mark.parametrize("who", ["driver", "guardian", "supervisor", "bridge"])
def test_nothing_is_left_whoever_is_killed_here(home: Home, who: str) -> None:
    run = begin(home, "--grace", "0.3")
    guards = run.pids(f"--guardian {run.folder.name} ")
    (supervisor,) = (pid for pid in guards if Path(f"/proc/{pid}/comm").read_text() == "roost-super\n")
    (guardian,) = set(guards) - {supervisor}
    (bridge,) = run.pids("local_bridge.py")
    os.kill({"driver": run.process.pid, "guardian": guardian, "supervisor": supervisor, "bridge": bridge}[who], signal.SIGKILL)
    assert run.end() == (-signal.SIGKILL if who == "driver" else 5)
    assert run.is_gone(has_folders=True)
    if who == "bridge":
        assert "the bridge to the nodes has ended (signal 9)" in run.err
    if who in ("bridge", "supervisor"):
        assert [record["reason"] for record in run.records()[:NODES]] == ["lost"] * NODES


@pytest.mark.parametrize(("who", "said"), [("roost", "node 1 (10.0.0.2): the guardian of the run is gone"), ("roost-super", "node 1 (10.0.0.2) is lost")])
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
    assert {record["rank"]: record["reason"] for record in run.records()[:-1]} == {0: "killed-by-roost", 1: "killed-by-roost", 2: "lost"}
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
        ("alter:1:CUDA_VISIBLE_DEVICES=0:CUDA_VISIBLE_DEVICES=1", "roost: a/1: it is not as planned: its variables on node 1 (10.0.0.2) are not what was sent there"),
        ("alter:2:echo up:echo ap", "roost: a/2: it is not as planned: its command on node 2 (10.0.0.3) is not what was sent there"),
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


# --- before it begins


def test_the_engine_is_the_options_else_the_environments_else_the_configs(home: Home) -> None:
    nodes = shell("echo $OF_THE_NODE")
    home.start({"a": EVERYWHERE}, {"a": nodes}).end()
    for words, more, status, said in (
        (["c.yaml", "roost.engine=ray"], {}, 0, "[a/2] 2"),
        (["c.yaml", "roost.engine=local"], {"ROOST_ENGINE": "ray"}, 0, "[a/2] 2"),
        (["--engine", "local", "c.yaml", "roost.engine=ray"], {"ROOST_ENGINE": "ray"}, 0, "[a/2] \n"),
        (["c.yaml"], {"ROOST_ENGINE": ""}, 0, "[a/2] \n"),
    ):
        run = Run(home, ["run", "--cluster", "nodes.json", *words], more)
        assert run.end() == status, run.err
        assert said in run.out and ("simulated" in run.err) == (said == "[a/2] \n"), words


def test_what_a_part_is_told_is_put_in_order() -> None:
    """Calls of an actor of Ray may overtake each other."""
    from collections import deque

    from roost._ray_part import Part

    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    ours.setblocking(False)
    part = Part.__new__(Part)
    part._carrier, part._unsent, part._heard, part._early, part._is_over = _roost.Carrier(ours.detach()), deque(), 0, {}, False
    message = lambda number: (number, b"%d" % number, None)  # noqa: E731

    async def say() -> list[int]:
        await part.say(2, [message(4)])
        await part.say(0, [message(1), message(2)])
        await part.say(1, [message(3)])
        await part.say(3, [])
        other = _roost.Carrier(theirs.detach())
        return [received[0] for _ in range(4) if (received := other.receive())]

    assert asyncio.run(say()) == [1, 2, 3, 4]


@pytest.mark.parametrize(
    ("fault", "said", "cure"),
    [
        ("refuse", "roost: error: there is no way", "= find one"),
        ("garbage", "roost: error: the bridge to Ray gave no answer that can be read", "= let ROOST_PYTHON be a Python with the same roost as this program"),
        ("end:early", "roost: error: there is no ground\n", ""),
        ("gone:1", "roost: error: node 1 (10.0.0.2) is lost: it was too far away", "= `ray status` lists the nodes"),
    ],
)
def test_what_keeps_a_run_from_beginning_is_said(home: Home, fault: str, said: str, cure: str) -> None:
    run = home.start({"a": EVERYWHERE}, {"a": shell("true")}, FAULT=fault)
    assert run.end() == 5
    assert said in run.err and cure in run.err, run.err
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


def test_a_python_that_is_not_one_is_said_with_its_cure(home: Home, tmp_path: Path) -> None:
    cure = "= set ROOST_PYTHON to a Python that has roost and ray"
    run = home.start({"a": EVERYWHERE}, {"a": shell("true")}, ROOST_PYTHON="/nowhere/python")
    assert run.end() == 5 and "cannot start the bridge to the nodes: No such file or directory" in run.err and cure in run.err
    run = home.start({"a": EVERYWHERE}, {"a": shell("true")}, ROOST_PYTHON="/bin/false")
    assert run.end() == 5 and "the bridge to the nodes has ended before the run began (status 1)" in run.err and cure in run.err
    (tmp_path / "ray.py").write_text("raise ModuleNotFoundError(\"No module named 'ray'\", name='ray')\n")
    run = home.start({"a": EVERYWHERE}, {"a": shell("true")}, ROOST_PYTHON=sys.executable, PYTHONPATH=f"{tmp_path}:{home.env['PYTHONPATH']}")
    assert run.end() == 5 and "the engine 'ray' needs Ray, which is not installed" in run.err and "pip install 'ray[default]>=2.47'" in run.err
