"""What a worker finds when it begins, and how it begins and ends."""

import json
import os
import re
import signal
import sys
from pathlib import Path

import pytest
from engine import is_alive, wait_gone
from worker_classes import Helper
from worker_home import WorkerHome

import roost
from roost import _local


def test_workers_log_in_the_references_form_and_the_driver_shows_it(own_workers: WorkerHome, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    with Helper.create_group().launch(own_workers.cluster("1x2"), name="talk") as group:
        group.say("this").wait()
    lines = own_workers.log("talk", 0).splitlines()
    assert all(re.fullmatch(r"\[[A-Z]+ \d\d:\d\d:\d\d talk-Rank-0\]\[worker_classes\.py:\d+\] \w+ this", line) for line in lines)
    assert [line.split()[0][1:] + " " + line.split()[-2] for line in lines] == ["INFO info", "WARNING warning", "ERROR error", "INFO first"]
    assert own_workers.log("talk", 1).splitlines()[-1].endswith("last this")
    shown = capsys.readouterr().out.splitlines()
    assert sorted(line for line in shown if line.startswith("[talk/0] ")) == sorted(f"[talk/0] {line}" for line in lines)
    monkeypatch.setenv("RLINF_LOG_LEVEL", "CRITICAL")
    with Helper.create_group().launch(own_workers.cluster("1x1"), name="quiet") as group:
        group.say("this").wait()
    assert own_workers.log("quiet") == ""
    monkeypatch.setenv("RLINF_LOG_LEVEL", "debug")
    with Helper.create_group().launch(own_workers.cluster("1x1"), name="loud", disable_distributed_log=True) as group:
        group.say("this").wait()
    assert own_workers.log("loud").splitlines()[0].endswith("debug this")
    assert capsys.readouterr().out == ""


# --- warm and cold


@pytest.mark.parametrize("warm", [True, False])
def test_workers_are_processes_of_their_own_however_they_start(own_workers: WorkerHome, warm: bool) -> None:
    with Helper.create_group().launch(own_workers.cluster("1x4"), name="start", warm=warm) as group:
        sessions = group.session().wait()
        assert [session for session, _, _, _ in sessions] == [0] * 4, "each leads a session"
        assert len({parent for _, parent, _, _ in sessions}) == 1, "all are children of the supervisor"
        for rank, (_, _, files, _) in enumerate(sessions):
            names = [name.rpartition(f"/start/{rank}/")[2].partition(":")[0] for _, name in sorted(files.items())]
            assert names[:4] == ["/dev/null", "stdout.log", "stderr.log", "socket"], names
            assert set(names[4:]) <= {"socket", "anon_inode"}, "what is left is the way to the managers"
        assert [ignored for _, _, _, ignored in sessions] == [sorted({signal.SIGPIPE, signal.SIGXFSZ}, key=int)] * 4
        drawn = group.random().wait()
        assert len({number for pair in drawn for number in pair}) == 8
        assert [one["RANK"] for one in group.environment().wait()] == ["0", "1", "2", "3"]
        assert len(set(group.pid().wait())) == 4


def test_warm_workers_are_forks_of_one_interpreter(own_workers: WorkerHome) -> None:
    for warm, program in ((True, "_fork_server"), (False, "_worker_main.py")):
        with Helper.create_group().launch(own_workers.cluster("1x2"), name="program", warm=warm) as group:
            for pid in group.pid().wait():
                assert program in Path(f"/proc/{pid}/cmdline").read_text()


# --- scripts


SCRIPT = """
    import os, sys
    import roost
    from helping import Number

    LIMIT = 5

    class Script(roost.Worker):
        def __init__(self, number):
            super().__init__()
            self.number = number

        def more(self):
            return Result(helper(self.number.value + self._rank))

    class Result:
        def __init__(self, value):
            self.value = value

    def helper(number):
        return number + LIMIT

    group = Script.create_group(Number(10)).launch(roost.Cluster(cluster="1x2"))
    results = group.more().wait()
    assert all(type(result) is Result for result in results), results
    print([result.value for result in results], flush=True)
    import atexit
    atexit.register(print, "first to register", flush=True)
"""


@pytest.mark.parametrize("warm", ["True", "False"])
def test_classes_of_the_main_script_and_of_modules_beside_it(own_workers: WorkerHome, warm: str) -> None:
    (own_workers.home / "helping.py").write_text("class Number:\n    def __init__(self, value):\n        self.value = value\n")
    done = own_workers.script(SCRIPT.replace('"1x2"))', f'"1x2"), warm={warm})'))
    assert (done.returncode, done.stdout, done.stderr) == (0, "[15, 16]\nfirst to register\n", "")
    own_workers.engine.wait_empty()


@pytest.mark.parametrize(("ending", "status"), [("sys.exit(3)", 3), ("raise ValueError('no')", 1), ("pass", 0), ("os._exit(4)", 4)])
def test_the_exit_status_of_a_driver_is_its_own(own_workers: WorkerHome, ending: str, status: int) -> None:
    (own_workers.home / "helping.py").write_text("class Number:\n    value = 1\n    def __init__(self, value): ...\n")
    done = own_workers.script(SCRIPT + f"    {ending}\n")
    assert done.returncode == status and ("first to register" in done.stdout) == (status != 4)
    own_workers.engine.wait_empty()


def test_a_failing_rank_ends_a_script_that_does_not_catch_it_with_1(own_workers: WorkerHome) -> None:
    done = own_workers.script(
        """
        import roost

        class Bad(roost.Worker):
            def run(self):
                return 1 / self._rank

        group = Bad.create_group().launch(roost.Cluster(cluster="1x2"), name="bad")
        try:
            group.run().wait()
        except roost.WorkerError as error:
            print(error.rank, type(error.__cause__).__name__, [outcome.value for outcome in error.outcomes])
        group.run().wait()
        """
    )
    assert (done.returncode, done.stdout) == (1, "0 ZeroDivisionError [None, 1.0]\n")
    assert "WorkerError: rank 0 of group 'bad' (node 0, accelerators 0) failed in 'run': ZeroDivisionError: division by zero" in done.stderr
    own_workers.engine.wait_empty()


def test_nothing_is_left_of_a_driver_that_is_killed(own_workers: WorkerHome) -> None:
    done = own_workers.script(
        """
        import os, signal, roost
        from worker_classes import Helper
        group = Helper.create_group().launch(roost.Cluster(cluster="1x4"))
        print(*group.pid().wait(), flush=True)
        os.kill(os.getpid(), signal.SIGKILL)
        """,
        PYTHONPATH=str(Path(__file__).parent),
    )
    assert done.returncode == -signal.SIGKILL
    wait_gone([int(pid) for pid in done.stdout.split()])
    own_workers.engine.wait_empty()


def test_a_fork_of_the_driver_has_no_groups(own_workers: WorkerHome) -> None:
    done = own_workers.script(
        """
        import os, sys, roost
        from worker_classes import Helper
        group = Helper.create_group().launch(roost.Cluster(cluster="1x2"), name="mine")
        pid = os.fork()
        if pid == 0:
            try:
                roost.WorkerGroup.from_group_name(Helper, "mine")
            except roost.EngineError:
                sys.exit(5)
        assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 5
        print(group.add(1).wait())
        """,
        PYTHONPATH=str(Path(__file__).parent),
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "[2, 3]\n", "")


FORKS = """
import os, sys, threading, roost
from worker_classes import Helper
group = Helper.create_group().launch(roost.Cluster(cluster="1x2"), name="mine")
os.mkfifo("pipe")
"""


@pytest.mark.local
def test_a_fork_of_the_driver_takes_no_answers(own_workers: WorkerHome) -> None:
    done = own_workers.script(
        FORKS
        + """
handle = group.hang_on(0, "pipe")
if (pid := os.fork()) == 0:
    for ask in (lambda: handle.wait(30), handle.wait, handle.done, lambda: handle.outcomes, lambda: group.add(1)):
        try:
            ask()
        except RuntimeError as error:
            print(error, flush=True)
    del handle
    os._exit(5)
assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 5
with open("pipe", "wb") as pipe:
    pipe.write(b"x")
print(handle.wait(60))
""",
        PYTHONPATH=str(Path(__file__).parent),
    )
    ours, theirs = ("a call belongs to the process that made it, and this is a fork of it\n", "a group belongs to the process that launched it, and this is a fork of it\n")
    assert (done.returncode, done.stdout, done.stderr) == (0, ours * 4 + theirs + "[0, 1]\n", "")


@pytest.mark.local
def test_a_driver_that_may_not_have_a_channel_to_each_worker_is_told_before_any_starts(own_workers: WorkerHome) -> None:
    done = own_workers.script(
        """
import os, resource, roost
from worker_classes import Helper
cluster = roost.Cluster(cluster="1x2")
open_now, hard = len(os.listdir("/proc/self/fd")) - 1, resource.getrlimit(resource.RLIMIT_NOFILE)[1]
for limit in (open_now + 30, open_now + 60):
    resource.setrlimit(resource.RLIMIT_NOFILE, (limit, hard))
    try:
        print(len(Helper.create_group().launch(cluster, roost.NodePlacementStrategy([0] * 20), name=f"of{limit}").add(1).wait()))
    except roost.EngineError as error:
        print(error)
""",
        PYTHONPATH=str(Path(__file__).parent),
    )
    assert done.returncode == 0, done.stderr
    refused, *answers = done.stdout.splitlines()
    assert re.fullmatch(r"a group of 20 processes needs \d+ open files here \(one for each, and \d+ are open\), but this process may have \d+ \(raise the limit before it starts: ulimit -Sn \d+\)", refused), refused
    assert answers == ["20"]


@pytest.mark.local
def test_managers_that_may_not_have_every_worker_are_told_of_before_any_starts(own_workers: WorkerHome) -> None:
    done = own_workers.script(
        """
import os, resource, roost
from worker_classes import Helper
resource.setrlimit(resource.RLIMIT_NOFILE, (128, 128))  # enough for the run and the driver of a group of 60
cluster = roost.Cluster(cluster="1x2")
for count in (60, 4):
    try:
        print(len(Helper.create_group().launch(cluster, roost.NodePlacementStrategy([0] * count), name="of", timeout=20).add(1).wait()))
    except roost.Error as error:
        print(error)
""",
        PYTHONPATH=str(Path(__file__).parent),
    )
    assert done.returncode == 0, done.stderr
    refused, *answers = done.stdout.splitlines()
    assert re.fullmatch(r"a group of 60 processes needs 136 open files in its managers \(two for each\), but they may have 128 \(raise the hard limit before this process starts: ulimit -Hn 136\)", refused), refused
    assert answers == ["4"]


@pytest.mark.local
def test_a_fork_while_threads_call_can_forget_calls(own_workers: WorkerHome) -> None:
    done = own_workers.script(
        FORKS
        + """
is_over = threading.Event()
def call():
    while not is_over.is_set():
        group.add(1).wait()
threads = [threading.Thread(target=call) for _ in range(2)]
[thread.start() for thread in threads]
for _ in range(50):
    handle = group.add(1)
    if (pid := os.fork()) == 0:
        del handle
        os._exit(0)
    os.waitpid(pid, 0)
is_over.set()
[thread.join() for thread in threads]
print(handle.wait(60))
""",
        PYTHONPATH=str(Path(__file__).parent),
        PYTHONWARNINGS="ignore",
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "[2, 3]\n", "")


def is_forked(pid: int) -> bool:
    return "_fork_server" in Path(f"/proc/{pid}/cmdline").read_text()


@pytest.mark.local  # Ray starts its workers in its own way
def test_a_large_environment_starts_warm_too(own_workers: WorkerHome, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    for i in range(10):
        monkeypatch.setenv(f"LARGE_{i}", str(i) * 100_000)
    with Helper.create_group().launch(own_workers.cluster("1x2"), name="large") as group:
        assert [sum(len(value) for name, value in seen.items() if name.startswith("LARGE_")) for seen in group.environment().wait()] == [1_000_000] * 2
        assert [is_forked(pid) for pid in group.pid().wait()] == [True, True]
    assert caplog.text == ""


@pytest.mark.local
@pytest.mark.parametrize("warm", [True, False])
@pytest.mark.parametrize("variable", ["OMP_NUM_THREADS", "MUJOCO_GL"])  # one for a library's start, one that is read when it is imported
def test_a_cold_start_that_was_to_be_warm_says_why(own_workers: WorkerHome, caplog: pytest.LogCaptureFixture, variable: str, warm: bool) -> None:
    other = [{"node_ranks": 1, "env_vars": [{variable: "3"}]}]
    config = {"num_nodes": 2, "component_placement": {"a": 0}, "node_groups": [{"label": "g", "node_ranks": "0-1", "env_configs": other}]}
    strategy = roost.PackedPlacementStrategy(0, 1, node_group="g")
    with Helper.create_group().launch(own_workers.cluster("2x1", cluster_cfg=config), strategy, "early", warm=warm) as group:
        assert [seen.get(variable) for seen in group.environment().wait()] == [None, "3"]
        assert [is_forked(pid) for pid in group.pid().wait()] == [warm, False]
    words = f"early starts cold: rank 1 has another {variable} than rank 0"
    assert [record.message for record in caplog.records if record.name == "roost"] == [words] * warm


@pytest.mark.local
def test_nodes_that_set_what_the_driver_has_start_warm(own_workers: WorkerHome, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MUJOCO_GL", "egl")
    same = [{"node_ranks": 1, "env_vars": [{"MUJOCO_GL": "egl"}]}]
    config = {"num_nodes": 2, "component_placement": {"a": 0}, "node_groups": [{"label": "g", "node_ranks": "0-1", "env_configs": same}]}
    strategy = roost.PackedPlacementStrategy(0, 1, node_group="g")
    with Helper.create_group().launch(own_workers.cluster("2x1", cluster_cfg=config), strategy, "same") as group:
        assert [is_forked(pid) for pid in group.pid().wait()] == [True, True]


@pytest.mark.local
@pytest.mark.parametrize("vendor", ["NVIDIA", "AMD", "ASCEND", "INTEL", "MUSA", "KUNLUN"])
def test_what_differs_between_ranks_is_not_there_while_libraries_are_imported(
    own_workers: WorkerHome, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, vendor: str
) -> None:  # fmt: skip
    seen = own_workers.home / "seen.json"
    (own_workers.home / "looking.py").write_text(f"import json, os\njson.dump(dict(os.environ), open({str(seen)!r}, 'w'))\n")
    monkeypatch.syspath_prepend(str(own_workers.home))
    monkeypatch.setattr(_local, "library_modules", lambda cls: ["looking"])
    monkeypatch.setenv("MUJOCO_GL", "egl")  # then each rank has a device to draw with
    strategy = roost.PackedPlacementStrategy(0, 2)  # two on one node, one on the other
    with Helper.create_group().launch(own_workers.cluster(f"2x2 {vendor}"), strategy, "vendor") as group:
        assert [is_forked(pid) for pid in group.pid().wait()] == [True] * 3
        first, *others = group.environment().wait()
    differing = {name for other in others for name in first.keys() | other.keys() if first.get(name) != other.get(name)}
    imported = json.loads(seen.read_text())
    assert {"RANK", "WORKER_NAME", "NODE_LOCAL_WORLD_SIZE"} < differing
    assert not differing & imported.keys()
    assert {name: imported.get(name) for name in ("WORLD_SIZE", "GROUP_NAME", "MUJOCO_GL")} == {"WORLD_SIZE": "3", "GROUP_NAME": "vendor", "MUJOCO_GL": "egl"}
    assert caplog.text == ""


def test_two_clusters_are_each_as_their_arguments_say(own_workers: WorkerHome) -> None:
    small, large = own_workers.cluster("1x1"), own_workers.cluster("2x2")
    with Helper.create_group().launch(small, name="small") as one, Helper.create_group().launch(large, name="large") as other:
        assert (one.add(0).wait(), other.add(0).wait()) == ([1], [1, 2, 3, 4])


# --- the process of a worker


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGSEGV, signal.SIGUSR1, signal.SIGABRT])
def test_a_signal_shows_the_stack_and_kills_where_failures_are_caught(own_workers: WorkerHome, number: signal.Signals) -> None:
    pipe = own_workers.home / "pipe"
    os.mkfifo(pipe)
    with Helper.create_group().launch(own_workers.cluster("1x1"), name="caught", catch_system_failure=True) as group:
        [pid] = group.pid().wait()
        assert group.environment().wait()[0]["CATCH_SYSTEM_FAILURE"] == "1"
        handle = group.hang_on(0, str(pipe))
        with open(pipe, "wb"):  # the worker is in its method now
            os.kill(pid, number)
            with pytest.raises(roost.WorkerError, match="killed by signal 9"):
                handle.wait(60)
    assert "in hang_on" in own_workers.log("caught", stream="stderr")
    assert not is_alive(pid)


def test_a_group_that_is_closed_shows_no_stacks_where_failures_are_caught(own_workers: WorkerHome) -> None:
    with Helper.create_group().launch(own_workers.cluster("1x2"), name="calm", catch_system_failure=True) as group:
        group.pid().wait()
    assert own_workers.log("calm", stream="stderr") == ""
    [*_, run] = own_workers.engine.runs()
    assert (run / "records.jsonl").read_text().count('"signal":15,"core":false,"reason":"killed-by-roost"') == 2


def test_an_extension_is_loaded_and_interfaces_are_copied(own_workers: WorkerHome, monkeypatch: pytest.MonkeyPatch) -> None:
    (own_workers.home / "extending.py").write_text("import os\ndef register():\n    os.environ['EXTENDED'] = 'yes'\n")
    monkeypatch.syspath_prepend(str(own_workers.home))
    monkeypatch.setenv("RLINF_EXT_MODULE", "extending")
    monkeypatch.setenv("RLINF_COMM_NET_DEVICES", "eth7")
    monkeypatch.setenv("GLOO_SOCKET_IFNAME", "lo")
    with pytest.warns(roost.PlanWarning, match="GLOO_SOCKET_IFNAME of component 'extended' is 'lo' and stays so: RLINF_COMM_NET_DEVICES is 'eth7'"):
        launched = Helper.create_group().launch(own_workers.cluster("1x1"), name="extended")
    with launched as group:
        [environ] = group.environment().wait()
        assert (environ["EXTENDED"], environ["NCCL_SOCKET_IFNAME"], environ["GLOO_SOCKET_IFNAME"]) == ("yes", "eth7", "lo")
    monkeypatch.delenv("GLOO_SOCKET_IFNAME")
    monkeypatch.setenv("RLINF_EXT_MODULE", "not.there")
    with Helper.create_group().launch(own_workers.cluster("1x1"), name="extended") as group:
        assert group.add(0).wait() == [1]
    assert "RLINF_EXT_MODULE 'not.there' could not be loaded: ModuleNotFoundError" in own_workers.log("extended", stream="stderr")


def test_a_node_group_may_have_its_own_interpreter(own_workers: WorkerHome) -> None:
    python = own_workers.home / "own-python"
    python.write_text(f'#!/bin/sh\nOWN_PYTHON=yes exec {sys.executable} "$@"\n')
    python.chmod(0o755)
    config = {
        "num_nodes": 2,
        "node_groups": [{"label": "all", "node_ranks": "0-1", "env_configs": [{"node_ranks": 1, "python_interpreter_path": str(python)}]}],
        "component_placement": {"helper": {"node_group": "all", "placement": "0-1"}},
    }
    cluster = own_workers.cluster("2x1", cluster_cfg=config)
    for ranks, own in (([0, 1], [False, True]), ([1], [True])):
        with Helper.create_group().launch(cluster, roost.NodePlacementStrategy(ranks, "all"), "interpreters") as group:
            assert ["OWN_PYTHON" in environ for environ in group.environment().wait()] == own
