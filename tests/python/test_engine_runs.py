"""Runs as other processes of the user see them: ps, stop, logs, crashed runs, the control socket."""

import json
import os
import signal
import socket
import subprocess
import tempfile
import time
from pathlib import Path

import pytest

from engine import PATIENCE, ROOST, Engine, Pipe, wait_gone, wait_state
from worker_home import make_home
from worker_small import Small


def roost(engine: Engine, *words: str, **env: str) -> subprocess.CompletedProcess:
    return subprocess.run(
        [ROOST, *words], env=engine.env | env, cwd=engine.home, capture_output=True, text=True, timeout=PATIENCE
    )


def living(engine: Engine, ranks: str = "0-3", *words: str, **roost_keys: object) -> tuple[subprocess.Popen, Pipe]:
    pipe = engine.pipe("up")
    driver = engine.start(
        engine.config({"actor": {"ranks": ranks, "do": ["out=hello", f"say={pipe.path}", "pause"]}}, **roost_keys),
        *words,
    )
    pipe.lines(4)
    return driver, pipe


def test_ps_tells_of_a_living_run_and_stop_ends_it(plain_engine: Engine) -> None:
    driver, _ = living(plain_engine)
    [run] = plain_engine.runs()
    assert f"{run.name}   running" in roost(plain_engine, "ps").stdout
    [row] = json.loads(roost(plain_engine, "ps", "--json").stdout)["runs"]
    assert row["state"] == "running" and row["world_size"] == 4
    pids = [process["pid"] for process in row["status"]["processes"]]
    assert [Path(f"/proc/{pid}/environ").read_bytes().count(f"ROOST_RUN_ID={run.name}".encode()) for pid in pids] == [
        1
    ] * 4
    stopped = roost(plain_engine, "stop", run.name[:3])
    assert stopped.returncode == 0 and f"run {run.name} has ended" in stopped.stderr
    assert plain_engine.finish(driver).returncode == 128 + signal.SIGTERM
    assert "nothing is running" in roost(plain_engine, "ps").stderr
    assert "stopped" in roost(plain_engine, "ps", "--all").stdout


def test_ps_tells_the_components_of_a_run_and_how_it_ended(plain_engine: Engine) -> None:
    pipe, go = plain_engine.pipe("up"), plain_engine.pipe("go")
    config = plain_engine.config(
        {
            "actor": {"ranks": "0-1", "do": [f"say={pipe.path}", "@1:exit=0", f"read={go.path}", "exit=7"]},
            "rollout": {"ranks": "2-3", "do": [f"say={pipe.path}", "pause"]},
            "critic": {"ranks": "0-1", "do": ["exit=0"], "after": ["late"]},
            "late": {"ranks": "0", "do": ["pause"], "ready": {"file": "never", "timeout": 600}},
        }
    )
    driver = plain_engine.start(config)
    pipe.lines(4)
    [run] = plain_engine.runs()

    def row() -> dict:
        [found] = json.loads(roost(plain_engine, "ps", "--json", run.name).stdout)["runs"]
        return found  # type: ignore[no-any-return]

    def table(*words: str) -> tuple[list[str], set[str]]:
        """The row of the run without its age and the folder of its config, and its components."""
        head, first, *rest = roost(plain_engine, "ps", *words).stdout.splitlines()
        assert head == "RUN      STATE      AGE  EXIT  NODES  PROCS  CONFIG"
        words_of_row = first.split()
        return [*words_of_row[:2], *words_of_row[3:-1], Path(words_of_row[-1]).name], {
            " ".join(line.split()) for line in rest
        }

    living_row = [run.name, "running", "-", "1", "7", config.name]
    parts = {
        "actor 1 running, 1 ended (ready)",
        "rollout 2 running (ready)",
        "critic 2 waiting (blocked)",
        "late 1 running (not ready yet)",
    }
    deadline = time.monotonic() + PATIENCE
    while table() != (living_row, parts) and time.monotonic() < deadline:
        pass  # the supervisor may take the end of a process after the question
    assert table() == (living_row, parts)
    assert roost(plain_engine, "ps", "-q").stdout == f"{run.name}\n"
    assert (row()["ended"], row()["exit_status"], row()["nodes"]) == (None, None, 1)
    go.write()
    assert plain_engine.finish(driver).returncode == 7
    assert roost(plain_engine, "ps", "-q").stdout == ""
    assert table(run.name[:4]) == (
        [run.name, "failed", "7", "1", "7", config.name],
        {"actor 1 done, 1 failed", "rollout 2 stopped", "critic 2 never started", "late 1 stopped"},
    )
    assert len(roost(plain_engine, "ps", "--all").stdout.splitlines()) == 2
    ended = row()
    assert ended["exit_status"] == 7 and ended["started"] <= ended["ended"] and "status" not in ended
    counts = {part["name"]: part for part in ended["components"]}
    assert counts["actor"] == {
        "name": "actor",
        "world_size": 2,
        "nodes": 1,
        "state": "failed",
        "waiting": 0,
        "done": 1,
        "failed": 1,
        "killed": 0,
        "lost": 0,
    }


def test_ps_tells_which_processes_are_stopped(plain_engine: Engine) -> None:
    pipe = plain_engine.pipe("up")
    do = [f"say={pipe.path}", "@1:stop", "pause"]
    driver = plain_engine.start(plain_engine.config({"actor": {"ranks": "0-1", "do": do}}))
    pid_of_rank = {name: int(pid) for name, pid, _ in pipe.lines(2)}
    wait_state(pid_of_rank["actor/1"], "T")
    [row] = json.loads(roost(plain_engine, "ps", "--json").stdout)["runs"]
    assert [process["state"] for process in row["status"]["processes"]] == ["running", "stopped"]
    [component] = row["status"]["components"]
    assert (component["running"], component["stopped"]) == (1, 1)
    os.kill(pid_of_rank["actor/1"], signal.SIGCONT)
    wait_state(pid_of_rank["actor/1"], "SR")
    [row] = json.loads(roost(plain_engine, "ps", "--json").stdout)["runs"]
    assert [process["state"] for process in row["status"]["processes"]] == ["running", "running"]
    driver.send_signal(signal.SIGTERM)
    assert plain_engine.finish(driver).returncode == 143


def test_the_newest_run_is_the_last_one_of_those_that_began_in_the_same_second(plain_engine: Engine) -> None:
    for number in range(6):
        done = plain_engine.run(plain_engine.config({"actor": {"ranks": "0", "do": [f"out=run {number}", "exit=0"]}}))
        assert done.returncode == 0, done.stderr
        assert f"run {number}" in roost(plain_engine, "logs").stdout
    listed = [row["run"] for row in json.loads(roost(plain_engine, "ps", "--all", "--json").stdout)["runs"]]
    assert [plain_engine.log(plain_engine.state / name, "actor", 0).strip() for name in listed] == [
        f"run {number}" for number in reversed(range(6))
    ]


def test_stop_now_kills_what_ignores_everything(plain_engine: Engine) -> None:
    pipe = plain_engine.pipe("up")
    do = ["ignore=15", f"say={pipe.path}", "pause"]
    driver = plain_engine.start(plain_engine.config({"actor": {"ranks": "0-3", "do": do}}), "--grace", "3600")
    pipe.lines(4)
    assert roost(plain_engine, "stop", "--now").returncode == 0
    assert plain_engine.finish(driver).returncode == 128 + signal.SIGKILL


def test_logs_follow_a_run_to_its_end(plain_engine: Engine) -> None:
    pipe, go = plain_engine.pipe("up"), plain_engine.pipe("go")
    do = ["out=first", f"say={pipe.path}", f"read={go.path}", "out=second"]
    driver = plain_engine.start(plain_engine.config({"actor": {"do": do}}), "-q")
    pipe.lines(1)
    follower = subprocess.Popen(
        [ROOST, "logs", "-f"], env=plain_engine.env, cwd=plain_engine.home, stdout=subprocess.PIPE, text=True
    )
    assert follower.stdout is not None and follower.stdout.readline() == "[actor/0] first\n"
    go.write()
    assert follower.communicate(timeout=PATIENCE)[0] == "[actor/0] second\n" and follower.returncode == 0
    assert plain_engine.finish(driver).returncode == 0
    assert roost(plain_engine, "logs").stdout == "[actor/0] first\n[actor/0] second\n"


def test_two_runs_have_two_namespaces_and_no_port_in_common(plain_engine: Engine) -> None:
    first, _ = living(plain_engine)
    pipe = plain_engine.pipe("again")
    second = plain_engine.start(
        plain_engine.config({"actor": {"ranks": "0-3", "do": [f"say={pipe.path}", "pause"]}}, "other.yaml")
    )
    pipe.lines(4)
    assert sorted(plain_engine.page(run)["namespace"] for run in plain_engine.runs()) == ["roost", "roost_1"]
    ports = []
    for row in json.loads(roost(plain_engine, "ps", "--json").stdout)["runs"]:
        environment = Path(f"/proc/{row['status']['processes'][0]['pid']}/environ").read_bytes().split(b"\0")
        ports += [word for word in environment if word.startswith(b"MASTER_PORT=")]
    assert len(set(ports)) == 2
    for driver in (first, second):
        driver.send_signal(signal.SIGTERM)
    assert [plain_engine.finish_one(driver) for driver in (first, second)] == [143, 143]


def test_a_run_that_crashed_is_recognised_and_tidied(plain_engine: Engine) -> None:
    driver, _ = living(plain_engine)
    [run] = plain_engine.runs()
    page = plain_engine.page(run)
    # All three at once: nobody is left to end what the workers had started.
    for pid in (driver.pid, page["guardian_pid"], page["supervisor_pid"]):
        os.kill(pid, signal.SIGSTOP)
    for pid in (driver.pid, page["guardian_pid"], page["supervisor_pid"]):
        os.kill(pid, signal.SIGKILL)
    driver.wait(PATIENCE)
    wait_gone([page["guardian_pid"], page["supervisor_pid"]])
    said = roost(plain_engine, "ps", "--all")
    assert f"{run.name}   crashed" in said.stdout
    plain_engine.wait_empty()
    assert "crashed" in roost(plain_engine, "ps", "--all").stdout
    assert plain_engine.cgroups() == []
    assert not list(plain_engine.runtime.glob("roost/*.sock"))
    assert "had ended already" in roost(plain_engine, "stop", run.name).stderr


def test_a_run_whose_driver_was_killed_has_failed(plain_engine: Engine) -> None:
    driver, _ = living(plain_engine)
    [run] = plain_engine.runs()
    driver.kill()
    driver.communicate()
    plain_engine.running.remove(driver)
    wait_gone([plain_engine.page(run)[part] for part in ("supervisor_pid", "guardian_pid")])
    assert f"{run.name}   failed" in roost(plain_engine, "ps", "--all").stdout


def test_ps_tells_the_groups_of_a_program_by_their_names(tmp_path: Path) -> None:
    for workers in make_home("local", tmp_path):
        cluster = workers.cluster("1x2")
        with Small.create_group().launch(cluster, name="actors"), Small.create_group().launch(cluster, name="critics"):
            lines = roost(workers.engine, "ps").stdout.splitlines()
            rows = [line.split() for line in lines if not line.startswith("  ")]
            assert sorted(line for line in lines if line.startswith("  ")) == [
                "  actors  2 running (ready)",
                "  critics  2 running (ready)",
            ]
        assert rows[0][-1] == "CONFIG" and sorted(row[-1] for row in rows[1:]) == ["actors", "critics"]


def test_a_run_of_an_earlier_boot_is_never_signalled(plain_engine: Engine) -> None:
    """Its pids and its name may be anybody's now: a process that carries the token lives on."""
    run = plain_engine.state / "abc234"
    run.mkdir(parents=True, mode=0o700)
    for folder in (plain_engine.home / "state", plain_engine.home / "state/roost", plain_engine.state):
        folder.chmod(0o700)
    (run / "run.json").write_text('{"run":"abc234","boot_id":"another","cgroup":"","started":1,"components":[]}')
    bystander = subprocess.Popen(["sleep", "1000"], env={"ROOST_RUN_ID": "abc234", "PATH": os.environ["PATH"]})
    assert "crashed" in roost(plain_engine, "ps", "--all").stdout
    assert bystander.poll() is None
    bystander.kill()
    bystander.wait()


def test_the_control_socket_answers_lines_and_survives_nonsense(plain_engine: Engine) -> None:
    driver, _ = living(plain_engine)
    [run] = plain_engine.runs()
    path = plain_engine.runtime / "roost" / f"{run.name}.sock"
    assert path.stat().st_mode & 0o777 == 0o600

    def ask(text: bytes) -> bytes:
        with socket.socket(socket.AF_UNIX) as client:
            client.settimeout(PATIENCE)
            client.connect(os.fspath(path))
            client.sendall(text)
            answer = b""
            while not answer.endswith(b"\n") and (more := client.recv(65536)):
                answer += more
            return answer

    assert json.loads(ask(b'{"ask":"status"}\n'))["run"] == run.name
    for nonsense in (
        b"\n",
        b"{}\n",
        b'{"ask":1}\n',
        b'{"ask":"' + b"x" * 100 + b'"}\n',
        b"[[[[\n",
        b'{"ask":"statu"}\n',
    ):
        assert json.loads(ask(nonsense))["ok"] is False
    with pytest.raises(ConnectionResetError):  # too long for a question: turned away
        ask(b"x" * 4096)
    silent = [socket.socket(socket.AF_UNIX) for _ in range(40)]
    for client in silent:
        client.connect(os.fspath(path))
    for client in silent:
        client.close()
    assert json.loads(ask(b'{"ask":"status"}\n'))["state"] == "running"
    driver.send_signal(signal.SIGTERM)
    assert plain_engine.finish(driver).returncode == 143


def ask_as_nobody(path: Path) -> bytes:
    """What another user hears who asks to stop the run; in a child that gives up root's powers."""
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            if os.geteuid() == 0:
                os.setgroups([])
                os.setgid(65534)
                os.setuid(65534)
            with socket.socket(socket.AF_UNIX) as client:
                client.connect(os.fspath(path))
                client.sendall(b'{"ask":"status"}\n')
                os.write(writer, client.recv(100))
        except OSError:
            pass
        finally:
            os._exit(0)
    os.close(writer)
    os.waitpid(child, 0)
    with os.fdopen(reader, "rb") as answer:
        return answer.read()


def test_another_user_is_turned_away() -> None:
    """Also where the directory would let them in: the kernel tells who asks."""
    with tempfile.TemporaryDirectory(prefix="roost-test-") as folder:
        engine = Engine(Path(folder))
        driver, _ = living(engine)
        [run] = engine.runs()
        path = engine.runtime / "roost" / f"{run.name}.sock"
        is_other = os.geteuid() == 0
        assert bool(ask_as_nobody(path)) != is_other
        for place in (engine.home, engine.runtime, engine.runtime / "roost"):
            place.chmod(0o755)
        path.chmod(0o666)
        assert bool(ask_as_nobody(path)) != is_other
        driver.send_signal(signal.SIGTERM)
        assert engine.finish(driver).returncode == 143
        engine.close()


def test_logs_may_be_kept_beside_the_config(plain_engine: Engine) -> None:
    driver, _ = living(plain_engine, "0-3", logs={"dir": "runs"})
    [link] = plain_engine.runs()
    assert link.is_symlink() and link.resolve() == plain_engine.home / "runs" / link.name
    assert roost(plain_engine, "logs", "--ranks", "0").stdout == "[actor/0] hello\n"
    stopped = roost(plain_engine, "stop")
    config = plain_engine.home / "train.yaml"
    assert stopped.stderr == f"roost: stopping run {link.name} ({config})\nroost: run {link.name} has ended\n"
    assert stopped.returncode == 0
    assert plain_engine.finish(driver).returncode == 143


def test_a_run_that_cannot_be_reached_is_left_alone(plain_engine: Engine) -> None:
    """Another runtime directory, a socket that was removed, another machine: none of it is a crash."""
    driver, _ = living(plain_engine)
    [run] = plain_engine.runs()
    other = plain_engine.home / "other"
    other.mkdir(mode=0o700)
    assert f"{run.name}   running" in roost(plain_engine, "ps", XDG_RUNTIME_DIR=str(other)).stdout
    (plain_engine.runtime / "roost" / f"{run.name}.sock").unlink()
    assert f"{run.name}   running" in roost(plain_engine, "ps").stdout
    page = plain_engine.page(run) | {"boot_id": "another"}
    (run / "run.json").write_text(json.dumps(page))
    roost(plain_engine, "ps", "--all")
    assert driver.poll() is None and "end" not in (run / "records.jsonl").read_text()
    driver.send_signal(signal.SIGTERM)
    assert plain_engine.finish(driver).returncode == 143
    assert f"{run.name}   stopped" in roost(plain_engine, "ps", "--all").stdout


@pytest.mark.parametrize(
    ("place", "why"),
    [
        ("another", "its socket is not there"),
        ("missing", "cannot open '{home}/missing': No such file or directory"),
        ("open", "'{home}/open/roost' can be reached by others (mode 0755)"),
    ],
)
def test_stop_says_that_a_living_run_cannot_be_reached(plain_engine: Engine, place: str, why: str) -> None:
    driver, _ = living(plain_engine)
    [run] = plain_engine.runs()
    runtime = plain_engine.home / place
    if place != "missing":
        (runtime / "roost").mkdir(parents=True)
        runtime.chmod(0o700)
        (runtime / "roost").chmod(0o755 if place == "open" else 0o700)
    for words in (["stop"], ["stop", "--now", run.name]):
        said = roost(plain_engine, *words, XDG_RUNTIME_DIR=str(runtime))
        assert said.returncode == 5, said.stderr
        assert (
            f"error: run {run.name} is running but cannot be reached: {why.format(home=plain_engine.home)}\n"
            in said.stderr
        )
        assert "  = set XDG_RUNTIME_DIR as it was where the run was started" in said.stderr
    follower = subprocess.Popen(
        [ROOST, "logs", "-f"],
        env=plain_engine.env | {"XDG_RUNTIME_DIR": str(runtime)},
        cwd=plain_engine.home,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert follower.stdout is not None  # the lines come in the order of time
    assert sorted(follower.stdout.readline() for _ in range(4)) == [f"[actor/{rank}] hello\n" for rank in range(4)]
    assert driver.poll() is None and follower.poll() is None
    driver.send_signal(signal.SIGTERM)
    assert plain_engine.finish_one(driver) == 143
    assert follower.communicate(timeout=PATIENCE)[0] == "" and follower.returncode == 0
    assert (
        f"run {run.name} had ended already"
        in roost(plain_engine, "stop", run.name, XDG_RUNTIME_DIR=str(runtime)).stderr
    )


def test_a_hundred_readers_keep_nobody_from_asking(plain_engine: Engine) -> None:
    driver, _ = living(plain_engine)
    [run] = plain_engine.runs()
    words = [ROOST, "logs", "-f", run.name, "--ranks", "0"]
    readers = [
        subprocess.Popen(words, env=plain_engine.env, cwd=plain_engine.home, stdout=subprocess.PIPE, text=True)
        for _ in range(100)
    ]
    for reader in readers:
        assert reader.stdout is not None and reader.stdout.readline() == "[actor/0] hello\n"
    readers[0].send_signal(signal.SIGSTOP)  # one of them is dead to the world
    assert json.loads(roost(plain_engine, "ps", "--json").stdout)["runs"][0]["status"]["state"] == "running"
    assert f"run {run.name} has ended" in roost(plain_engine, "stop", run.name).stderr
    assert plain_engine.finish_one(driver) == 143
    readers[0].send_signal(signal.SIGCONT)
    assert [reader.wait(PATIENCE) for reader in readers] == [0] * 100
    for reader in readers:
        reader.communicate()


def test_those_who_only_wait_make_room_for_who_asks(plain_engine: Engine) -> None:
    """Fifty connections that say nothing, and twenty that have asked to stop and wait for the end."""
    pipe = plain_engine.pipe("up")
    driver = plain_engine.start(
        plain_engine.config({"actor": {"do": ["ignore=15", f"say={pipe.path}", "pause"]}}), "--grace", "3600"
    )
    pipe.lines(1)
    [run] = plain_engine.runs()
    silent = [socket.socket(socket.AF_UNIX) for _ in range(50)]
    for client in silent:
        client.connect(os.fspath(plain_engine.runtime / "roost" / f"{run.name}.sock"))
    stops = [
        subprocess.Popen([ROOST, "stop", run.name], env=plain_engine.env, stderr=subprocess.PIPE, text=True)
        for _ in range(20)
    ]
    for line in driver.stderr:
        if b"asked by roost stop" in line:
            break
    assert json.loads(roost(plain_engine, "ps", "--json").stdout)["runs"][0]["status"]["state"] == "stopping"
    assert [stop.poll() for stop in stops] == [None] * 20
    assert f"run {run.name} has ended" in roost(plain_engine, "stop", "--now", run.name).stderr
    for stop in stops:
        assert f"run {run.name} ha" in stop.communicate(timeout=PATIENCE)[1] and stop.returncode == 0
    for client in silent:
        client.close()
    assert plain_engine.finish(driver).returncode == 143


def test_stop_means_the_newest_run_that_lives(plain_engine: Engine) -> None:
    driver, _ = living(plain_engine)
    [run] = plain_engine.runs()
    quick = plain_engine.start(plain_engine.config({"actor": {"do": ["exit=0"]}}, "quick.yaml"))
    assert plain_engine.finish_one(quick) == 0
    assert f"run {run.name} has ended" in roost(plain_engine, "stop").stderr
    assert plain_engine.finish(driver).returncode == 143
    assert roost(plain_engine, "stop").returncode == 2


def test_a_stopped_supervisor_is_woken_to_be_stopped(plain_engine: Engine) -> None:
    driver, _ = living(plain_engine)
    os.kill(plain_engine.page(plain_engine.runs()[0])["supervisor_pid"], signal.SIGSTOP)
    assert roost(plain_engine, "stop", "--now").returncode == 0
    assert plain_engine.finish(driver).returncode == 137


def test_closed_and_full_outputs_end_no_run_and_are_told(plain_engine: Engine) -> None:
    config = plain_engine.config({"actor": {"do": ["out=hello"]}})
    for words in (">&-", "2>&-", "<&-", ">&- 2>&- <&-"):
        done = subprocess.run(
            ["sh", "-c", f'exec "$0" run "$1" {words}', ROOST, config],
            env=plain_engine.env,
            capture_output=True,
            text=True,
            timeout=PATIENCE,
        )
        assert done.returncode == 0, words
    with open("/dev/full", "w") as full:
        done = subprocess.run(
            [ROOST, "run", config],
            env=plain_engine.env,
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            timeout=PATIENCE,
        )
    assert done.returncode == 5 and "cannot write to standard output: No space left on device" in done.stderr


def test_a_ready_file_of_an_earlier_run_does_not_count(plain_engine: Engine) -> None:
    (plain_engine.home / "up").write_text("")
    go = plain_engine.pipe("go")
    first = {
        "do": [f"read={go.path}", "out=up", "touch=up", "pause"],
        "cwd": str(plain_engine.home),
        "ready": {"file": "up", "timeout": 30},
    }
    driver = plain_engine.start(
        plain_engine.config({"first": first, "second": {"do": ["out=after", "exit=3"], "after": ["first"]}})
    )
    go.write()
    done = plain_engine.finish(driver)
    assert done.returncode == 3
    assert done.stdout.index("[first/0] up") < done.stdout.index("[second/0] after")


@pytest.mark.parametrize("name", ["run.json", "records.jsonl"])
def test_no_component_takes_the_name_of_a_file_of_the_run(plain_engine: Engine, name: str) -> None:
    done = plain_engine.run(plain_engine.config({name: {"command": ["true"]}}))
    assert done.returncode == 3 and f"'{name}' cannot be a component name" in done.stderr
    assert plain_engine.runs() == []
