"""What a worker finds when it begins, and how it begins and ends."""

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

ROBOTS = {
    "cluster": {
        "num_nodes": 2,
        "node_groups": [
            {"label": "a800", "node_ranks": "0-1"},
            {"label": "robot", "node_ranks": 1, "hardware": {"type": "Franka", "configs": [{"node_rank": 1, "robot_ip": f"10.0.0.{i}"} for i in (1, 2)]}},
        ],
        "component_placement": {"env": {"node_group": "robot", "placement": "0-1"}},
    }
}


def test_every_field_is_set(workers: WorkerHome) -> None:
    strategy = roost.PackedPlacementStrategy(2, 5, num_hardware_per_process=2)
    with Helper.create_group().launch(workers.cluster("2x4 A800"), strategy, "fields") as group:
        first, second = group.fields().wait()
        port = first.pop("port")
        assert second.pop("port") == port and 1024 <= port < 65536
        assert first == {
            "_rank": 0,
            "_world_size": 2,
            "_worker_name": "fields:0",
            "_group_name": "fields",
            "_cluster_node_rank": 0,
            "_node_local_rank": 0,
            "_node_local_world_size": 1,
            "_local_rank": 0,
            "_local_world_size": 1,
            "_local_accelerator_rank": 2,
            "_local_hardware_ranks": [2, 3],
            "_node_group": "cluster",
            "_accelerator_type": roost.AcceleratorType.NV_GPU,
            "_accelerator_model": "NV_GPU:A800",
            "_master_address": "127.0.0.1",
            "_isolate_gpu": True,
            "global_accelerator_ids": [2, 3],
            "accelerator_type": roost.AcceleratorType.NV_GPU,
            "torch_device_type": "cuda",
            "hardware_type": "Accelerator",
            "hardware_infos": [roost.HardwareInfo("Accelerator", "NV_GPU:A800")] * 2,
            "has_accelerator": True,
            "text": "fields(rank=0)",
        }
        assert (second["_cluster_node_rank"], second["_local_hardware_ranks"], second["global_accelerator_ids"]) == (1, [0, 1], [4, 5])
        one, two = group.environment().wait()
        assert (one["CUDA_VISIBLE_DEVICES"], two["CUDA_VISIBLE_DEVICES"]) == ("2,3", "0,1")
        assert (one["RANK"], two["RANK"], one["WORLD_SIZE"], one["GROUP_NAME"], two["WORKER_NAME"]) == ("0", "1", "2", "fields", "fields:1")


BAD_NAMES = {"": "''", "/tmp/abs_evil": "'/tmp/abs_evil'", "../evil": "'../evil'", "a b": "'a b'", "a:0": "'a:0'", "x" * 64: "'x", "a\x1b[31mb": r"'a\\x1b\[31mb'"}


@pytest.mark.parametrize("name", BAD_NAMES)
def test_a_name_that_cannot_be_a_folder_is_refused_before_anything_starts(workers: WorkerHome, name: str) -> None:
    before = workers.engine.runs() if workers.name == "local" else []
    with pytest.raises(roost.Error, match=rf"{BAD_NAMES[name]}.* cannot be the name of a group") as caught:
        Helper.create_group().launch(workers.cluster("1x1"), name=name)
    assert caught.value.code == "name"
    assert before == (workers.engine.runs() if workers.name == "local" else [])


def test_a_class_whose_name_is_too_long_for_a_default_is_told_to_name_its_group(workers: WorkerHome) -> None:
    long = type("L" * 51, (Helper,), {})
    with pytest.raises(roost.Error, match=f"a group of {'L' * 51} needs a name: 'worker_group_{'L' * 51}' cannot be one .pass one to launch") as caught:
        long.create_group().launch(workers.cluster("1x1"))
    assert caught.value.code == "name"


def test_without_isolation_all_devices_are_shown(workers: WorkerHome) -> None:
    for words in ({"isolate_gpu": False}, {"isolate_accelerator": False}):
        with Helper.create_group().launch(workers.cluster("1x4"), name="shared", **words) as group:
            assert group.visible().wait() == [4, 4, 4, 4]
            fields = group.fields().wait()
            assert [(one["_local_rank"], one["_isolate_gpu"], one["global_accelerator_ids"]) for one in fields] == [(r, False, [0, 1, 2, 3]) for r in range(4)]


def test_the_defaults_are_those_of_the_reference(workers: WorkerHome) -> None:
    with Helper.create_group().launch(workers.cluster("2x2")) as group:
        fields = group.fields().wait()
        assert [(one["_group_name"], one["_local_hardware_ranks"]) for one in fields] == [("worker_group_Helper", [number % 2]) for number in range(4)]
        assert group.visible().wait() == [1, 1, 1, 1]
    with Helper.create_group().launch(workers.cluster("2x0")) as group:
        [only] = group.fields().wait()
        assert (only["_cluster_node_rank"], only["_world_size"], only["has_accelerator"], only["torch_device_type"]) == (0, 1, False, "cpu")
        assert (only["hardware_type"], only["hardware_infos"], only["global_accelerator_ids"]) == (None, [], [])


def test_robots_are_told_to_their_workers(workers: WorkerHome) -> None:
    cluster = workers.cluster("2x2", cluster_cfg=ROBOTS)
    strategy = roost.ComponentPlacement(ROBOTS, cluster).get_strategy("env")
    with Helper.create_group().launch(cluster, strategy, "env") as group:
        fields = group.fields().wait()
        assert [(one["_node_group"], one["hardware_type"], one["_cluster_node_rank"]) for one in fields] == [("robot", "Franka", 1)] * 2
        assert [[info.config["robot_ip"] for info in one["hardware_infos"]] for one in fields] == [["10.0.0.1"], ["10.0.0.2"]]


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


# --- managers


def test_workers_are_known_to_the_managers(own_workers: WorkerHome) -> None:
    with Helper.create_group().launch(own_workers.cluster("2x2 A800"), name="known") as group:
        info = roost.WorkerManager.get_proxy().get_worker_info(roost.WorkerAddress("known", 3))
        assert info is not None
        assert (info.rank, info.group_world_size, info.cluster_node_rank, info.accelerator_rank) == (3, 4, 1, 1)
        assert (info.accelerator_type, info.accelerator_model, info.available_accelerators) == ("NV_GPU", "NV_GPU:A800", [3])
        assert info.hardware_infos == [roost.HardwareInfo("Accelerator", "NV_GPU:A800")]
        assert group.execute_on(0).find("known:3").wait() == [info]
        first = roost.WorkerManager.get_proxy().get_worker_info("known:0")
        assert first is not None and first.node_port == group.fields().wait()[0]["port"]
        assert group.children().wait() == [[f"known:{rank}:0", f"known:{rank}:1", f"known:{rank}(rank=1)"] for rank in range(4)]
        assert group.execute_on(1).find("known:2:1").wait()[0].rank == 1


def test_one_worker_at_a_time_has_the_devices(own_workers: WorkerHome) -> None:
    """Both hold the same device; what they write down never interleaves."""
    notes = own_workers.home / "notes"
    notes.touch()
    strategy = roost.FlexiblePlacementStrategy([[0], [0], [0]])
    with Helper.create_group().launch(own_workers.cluster("1x1"), strategy, "locked") as group:
        group.use_devices(str(notes), 20).wait(60)
    lines = notes.read_text().split()
    assert len(lines) == 120 and all(begin == end for begin, end in zip(lines[::2], lines[1::2]))


def test_ports_are_given_to_one_worker_each(own_workers: WorkerHome) -> None:
    with Helper.create_group().launch(own_workers.cluster("1x4"), name="ports") as group:
        ports = [port for one in group.ports(5, 30000).wait() for port in one]
        assert len(set(ports)) == 20 and all(1024 <= port <= 30000 for port in ports)
        with pytest.raises(roost.WorkerError, match="max_port_num is 80, but ports for workers start at 1024"):
            group.ports(1, 80).wait()


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
def test_a_cold_start_that_was_to_be_warm_says_why(own_workers: WorkerHome, caplog: pytest.LogCaptureFixture, warm: bool) -> None:
    early = [{"node_ranks": 1, "env_vars": [{"OMP_NUM_THREADS": "3"}]}]
    config = {"num_nodes": 2, "component_placement": {"a": 0}, "node_groups": [{"label": "g", "node_ranks": "0-1", "env_configs": early}]}
    strategy = roost.PackedPlacementStrategy(0, 1, node_group="g")
    with Helper.create_group().launch(own_workers.cluster("2x1", cluster_cfg=config), strategy, "early", warm=warm) as group:
        assert [seen.get("OMP_NUM_THREADS") for seen in group.environment().wait()] == [None, "3"]
        assert [is_forked(pid) for pid in group.pid().wait()] == [warm, False]
    words = "early starts cold: rank 1 has another command than rank 0, or other variables that a program reads before it runs"
    assert [record.message for record in caplog.records if record.name == "roost"] == [words] * warm


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
