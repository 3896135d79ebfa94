"""What a worker finds when it begins, and how it begins and ends; its driver's life is in test_worker_life_driver.py."""

import json
import os
import re
import signal
import sys
from pathlib import Path

import pytest

import roost
from engine import wait_gone
from worker_classes import Helper
from worker_home import WorkerHome


def test_workers_log_in_the_references_form_and_the_driver_shows_it(
    own_workers: WorkerHome, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    with Helper.create_group().launch(own_workers.cluster("1x2"), name="talk") as group:
        group.say("this").wait()
    lines = own_workers.log("talk", 0).splitlines()
    assert all(
        re.fullmatch(r"\[[A-Z]+ \d\d:\d\d:\d\d talk-Rank-0\]\[worker_classes\.py:\d+\] \w+ this", line)
        for line in lines
    )
    assert [line.split()[0][1:] + " " + line.split()[-2] for line in lines] == [
        "INFO info",
        "WARNING warning",
        "ERROR error",
        "INFO first",
    ]
    assert own_workers.log("talk", 1).splitlines()[-1].endswith("last this")
    shown = capsys.readouterr().out.splitlines()
    if own_workers.name == "local":  # on Ray: test_ray_logs.py
        assert sorted(line for line in shown if line.startswith("[talk/0] ")) == sorted(
            f"[talk/0] {line}" for line in lines
        )
    monkeypatch.setenv("RLINF_LOG_LEVEL", "CRITICAL")
    with Helper.create_group().launch(own_workers.cluster("1x1"), name="quiet") as group:
        group.say("this").wait()
    assert own_workers.log("quiet") == ""
    monkeypatch.setenv("RLINF_LOG_LEVEL", "debug")
    with Helper.create_group().launch(own_workers.cluster("1x1"), name="loud", disable_distributed_log=True) as group:
        group.say("this").wait()
    assert own_workers.log("loud").splitlines()[0].endswith("debug this")
    assert "loud" not in capsys.readouterr().out


# --- warm and cold


@pytest.mark.local  # processes of Ray are begun by Ray
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


@pytest.mark.local
def test_warm_workers_are_forks_of_one_interpreter(own_workers: WorkerHome) -> None:
    for warm, program in ((True, "fork_server"), (False, "worker_main.py")):
        with Helper.create_group().launch(own_workers.cluster("1x2"), name="program", warm=warm) as group:
            for pid in group.pid().wait():
                assert program in Path(f"/proc/{pid}/cmdline").read_text()


def is_forked(pid: int) -> bool:
    return "fork_server" in Path(f"/proc/{pid}/cmdline").read_text()


@pytest.mark.local  # Ray starts its workers in its own way
def test_a_large_environment_starts_warm_too(
    own_workers: WorkerHome, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    for i in range(10):
        monkeypatch.setenv(f"LARGE_{i}", str(i) * 100_000)
    with Helper.create_group().launch(own_workers.cluster("1x2"), name="large") as group:
        assert [
            sum(len(value) for name, value in seen.items() if name.startswith("LARGE_"))
            for seen in group.environment().wait()
        ] == [1_000_000] * 2
        assert [is_forked(pid) for pid in group.pid().wait()] == [True, True]
    assert caplog.text == ""


@pytest.mark.local
@pytest.mark.parametrize("warm", [True, False])
@pytest.mark.parametrize(
    "variable", ["OMP_NUM_THREADS", "MUJOCO_GL"]
)  # one for a library's start, one that is read when it is imported
def test_a_cold_start_that_was_to_be_warm_says_why(
    own_workers: WorkerHome, caplog: pytest.LogCaptureFixture, variable: str, warm: bool
) -> None:
    other = [{"node_ranks": 1, "env_vars": [{variable: "3"}]}]
    config = {
        "num_nodes": 2,
        "component_placement": {"a": 0},
        "node_groups": [{"label": "g", "node_ranks": "0-1", "env_configs": other}],
    }
    strategy = roost.PackedPlacementStrategy(0, 1, node_group="g")
    with Helper.create_group().launch(
        own_workers.cluster("2x1", cluster_cfg=config), strategy, "early", warm=warm
    ) as group:
        assert [seen.get(variable) for seen in group.environment().wait()] == [None, "3"]
        assert [is_forked(pid) for pid in group.pid().wait()] == [warm, False]
    words = f"early starts cold: rank 1 has another {variable} than rank 0"
    assert [record.message for record in caplog.records if record.name == "roost"] == [words] * warm


@pytest.mark.local
def test_nodes_that_set_what_the_driver_has_start_warm(
    own_workers: WorkerHome, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MUJOCO_GL", "egl")
    same = [{"node_ranks": 1, "env_vars": [{"MUJOCO_GL": "egl"}]}]
    config = {
        "num_nodes": 2,
        "component_placement": {"a": 0},
        "node_groups": [{"label": "g", "node_ranks": "0-1", "env_configs": same}],
    }
    strategy = roost.PackedPlacementStrategy(0, 1, node_group="g")
    with Helper.create_group().launch(own_workers.cluster("2x1", cluster_cfg=config), strategy, "same") as group:
        assert [is_forked(pid) for pid in group.pid().wait()] == [True, True]


@pytest.mark.local
@pytest.mark.parametrize("vendor", ["NVIDIA", "AMD", "ASCEND", "INTEL", "MUSA", "KUNLUN"])
def test_what_differs_between_ranks_is_not_there_while_libraries_are_imported(
    own_workers: WorkerHome, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, vendor: str
) -> None:
    seen = own_workers.home / "seen.json"
    (own_workers.home / "looking.py").write_text(
        f"import json, os\njson.dump(dict(os.environ), open({str(seen)!r}, 'w'))\n"
    )
    monkeypatch.syspath_prepend(str(own_workers.home))
    monkeypatch.setattr("roost._local.engine.library_modules", lambda cls: ["looking"])
    monkeypatch.setenv("MUJOCO_GL", "egl")  # then each rank has a device to draw with
    strategy = roost.PackedPlacementStrategy(0, 2)  # two on one node, one on the other
    with Helper.create_group().launch(own_workers.cluster(f"2x2 {vendor}"), strategy, "vendor") as group:
        assert [is_forked(pid) for pid in group.pid().wait()] == [True] * 3
        first, *others = group.environment().wait()
    differing = {name for other in others for name in first.keys() | other.keys() if first.get(name) != other.get(name)}
    imported = json.loads(seen.read_text())
    assert {"RANK", "WORKER_NAME", "NODE_LOCAL_WORLD_SIZE"} < differing
    assert not differing & imported.keys()
    assert {name: imported.get(name) for name in ("WORLD_SIZE", "GROUP_NAME", "MUJOCO_GL")} == {
        "WORLD_SIZE": "3",
        "GROUP_NAME": "vendor",
        "MUJOCO_GL": "egl",
    }
    assert caplog.text == ""


@pytest.mark.local  # on Ray a process has one run
def test_two_clusters_are_each_as_their_arguments_say(own_workers: WorkerHome) -> None:
    small, large = own_workers.cluster("1x1"), own_workers.cluster("2x2")
    with (
        Helper.create_group().launch(small, name="small") as one,
        Helper.create_group().launch(large, name="large") as other,
    ):
        assert (one.add(0).wait(), other.add(0).wait()) == ([1], [1, 2, 3, 4])


# --- the process of a worker


def test_a_signal_shows_the_stack_and_kills_where_failures_are_caught(own_workers: WorkerHome) -> None:
    numbers = [signal.SIGTERM, signal.SIGSEGV, signal.SIGUSR1, signal.SIGABRT]
    pipes = [own_workers.home / number.name for number in numbers]
    for pipe in pipes:
        os.mkfifo(pipe)
    with Helper.create_group().launch(own_workers.cluster("1x4"), name="caught", catch_system_failure=True) as group:
        pids = group.pid().wait()
        assert [environ["CATCH_SYSTEM_FAILURE"] for environ in group.environment().wait()] == ["1"] * 4
        for rank, number in enumerate(numbers):
            handle = group.execute_on(rank).hang_on(rank, str(pipes[rank]))
            with open(pipes[rank], "wb"):  # the worker is in its method now
                os.kill(pids[rank], number)
                # Ray does not say by what a process ended.
                with pytest.raises(
                    roost.WorkerError,
                    match="killed by signal 9" if own_workers.name == "local" else "its worker process has died",
                ):
                    handle.wait(60)
            assert "in hang_on" in own_workers.log("caught", rank, "stderr"), number
    wait_gone(pids)


def test_a_group_that_is_closed_shows_no_stacks_where_failures_are_caught(own_workers: WorkerHome) -> None:
    with Helper.create_group().launch(own_workers.cluster("1x2"), name="calm", catch_system_failure=True) as group:
        group.pid().wait()
    assert own_workers.log("calm", stream="stderr") == ""
    if own_workers.name == "local":
        [*_, run] = own_workers.engine.runs()
        assert (run / "records.jsonl").read_text().count('"signal":15,"core":false,"reason":"killed-by-roost"') == 2


def test_an_extension_is_loaded_and_interfaces_are_copied(
    own_workers: WorkerHome, monkeypatch: pytest.MonkeyPatch
) -> None:
    (own_workers.modules / "extending.py").write_text(
        "import os\ndef register():\n    os.environ['EXTENDED'] = 'yes'\n"
    )
    monkeypatch.syspath_prepend(str(own_workers.modules))
    monkeypatch.setenv("RLINF_EXT_MODULE", "extending")
    monkeypatch.setenv("RLINF_COMM_NET_DEVICES", "eth7")
    with Helper.create_group().launch(own_workers.cluster("1x1"), name="extended") as group:
        [environ] = group.environment().wait()
        assert (environ["EXTENDED"], environ["NCCL_SOCKET_IFNAME"], environ["GLOO_SOCKET_IFNAME"]) == (
            "yes",
            "eth7",
            "eth7",
        )
    monkeypatch.setenv("RLINF_EXT_MODULE", "not.there")
    with Helper.create_group().launch(own_workers.cluster("1x1"), name="extended") as group:
        assert group.add(0).wait() == [1]
    assert "RLINF_EXT_MODULE 'not.there' could not be loaded: ModuleNotFoundError" in own_workers.log(
        "extended", stream="stderr"
    )


@pytest.mark.local  # on Ray the driver's own variables stay with it
def test_an_interface_that_is_set_already_stays_and_is_warned_about(
    own_workers: WorkerHome, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("RLINF_COMM_NET_DEVICES", "eth7")
    monkeypatch.setenv("GLOO_SOCKET_IFNAME", "lo")
    with pytest.warns(
        roost.PlanWarning,
        match="GLOO_SOCKET_IFNAME of component 'set' is 'lo' and stays so: RLINF_COMM_NET_DEVICES is 'eth7'",
    ):
        launched = Helper.create_group().launch(own_workers.cluster("1x1"), name="set")
    with launched as group:
        [environ] = group.environment().wait()
        assert (environ["NCCL_SOCKET_IFNAME"], environ["GLOO_SOCKET_IFNAME"]) == ("eth7", "lo")


@pytest.mark.local  # on Ray: test_ray_join.py
def test_a_node_group_may_have_its_own_interpreter(own_workers: WorkerHome) -> None:
    python = own_workers.home / "own-python"
    python.write_text(f'#!/bin/sh\nOWN_PYTHON=yes exec {sys.executable} "$@"\n')
    python.chmod(0o755)
    config = {
        "num_nodes": 2,
        "node_groups": [
            {
                "label": "all",
                "node_ranks": "0-1",
                "env_configs": [{"node_ranks": 1, "python_interpreter_path": str(python)}],
            }
        ],
        "component_placement": {"helper": {"node_group": "all", "placement": "0-1"}},
    }
    cluster = own_workers.cluster("2x1", cluster_cfg=config)
    for ranks, own in (([0, 1], [False, True]), ([1], [True])):
        with Helper.create_group().launch(cluster, roost.NodePlacementStrategy(ranks, "all"), "interpreters") as group:
            assert ["OWN_PYTHON" in environ for environ in group.environment().wait()] == own


@pytest.mark.local  # a run on Ray is not one that `roost logs` lists
def test_roost_logs_shows_the_lines_of_a_group_with_their_times(own_workers: WorkerHome) -> None:
    with Helper.create_group().launch(own_workers.cluster("1x2"), name="timed") as group:
        group.say("this").wait()
    shown = own_workers.engine.ask(
        "logs", "--component", "timed", "--timestamps", "--since", "1h", "--grep", "info this$"
    )
    assert (shown.returncode, shown.stderr) == (0, "")
    assert re.fullmatch(
        r"(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}[+-]\d\d:\d\d \[timed/[01]\] .* info this\n){2}", shown.stdout
    ), shown.stdout
