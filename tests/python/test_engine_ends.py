"""How runs end: exit codes, records, stopping, signals."""

import errno
import os
import pty
import resource
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from engine import ROOST, Engine, is_alive, wait_gone, wait_state

FOREVER = ["say={pipe}", "pause"]


def steps(pipe: object, *words: str) -> list[str]:
    return [word.replace("{pipe}", str(pipe.path)) for word in words]


# --- codes and records


@pytest.mark.parametrize(
    ("do", "code"),
    [
        (["exit=0"], 0),
        (["exit=1"], 1),
        (["exit=7"], 7),
        (["exit=127"], 127),
        (["exit=128"], 1),
        (["exit=255"], 1),
        (["abort"], 128 + signal.SIGABRT),
        (["raise=11"], 128 + signal.SIGSEGV),
        (["raise=9"], 128 + signal.SIGKILL),
    ],
)
def test_the_exit_code_is_that_of_the_process(plain_engine: Engine, do: list[str], code: int) -> None:
    done = plain_engine.run(plain_engine.config({"actor": {"do": do}}))
    assert done.returncode == code, done.stderr
    [record] = plain_engine.records(plain_engine.runs()[0])
    assert (record["component"], record["rank"], record["life"]) == ("actor", 0, 1)
    expected = "crashed" if do[0].startswith(("raise", "abort")) else "exited"
    assert record["reason"] == expected
    assert record["ended"] >= record["started"]
    if code:
        assert "first failure: actor/0" in done.stderr


@pytest.mark.parametrize("first", [0, 3, 7])
def test_a_failing_rank_ends_the_others_at_once(plain_engine: Engine, first: int) -> None:
    pipe = plain_engine.pipe("up")
    go = plain_engine.pipe("go")
    do = [
        *steps(pipe, "say={pipe}"),
        f"@{first}:read={go.path}",
        f"@{first}:out=last words",
        f"@{first}:exit=5",
        "pause",
    ]
    driver = plain_engine.start(plain_engine.config({"actor": {"ranks": "0-7", "do": do}}))
    pipe.lines(8)
    go.write()
    done = plain_engine.finish(driver)
    assert done.returncode == 5
    assert f"[actor/{first}] last words" in done.stdout
    records = plain_engine.records(plain_engine.runs()[0])
    assert sorted(record["rank"] for record in records) == list(range(8))
    assert [record["reason"] for record in records if record["rank"] != first] == ["killed-by-roost"] * 7


def test_with_keep_going_the_others_go_on(plain_engine: Engine) -> None:
    pipe, go = plain_engine.pipe("up"), plain_engine.pipe("go")
    do = ["@1:exit=9", *steps(pipe, "say={pipe}"), f"@0:read={go.path}", "out=finished"]
    driver = plain_engine.start(plain_engine.config({"actor": {"ranks": "0-2", "do": do}}), "--keep-going")
    pipe.lines(2)
    go.write()
    done = plain_engine.finish(driver)
    assert done.returncode == 9
    assert "[actor/0] finished" in done.stdout and "[actor/2] finished" in done.stdout
    assert {record["rank"]: record["code"] for record in plain_engine.records(plain_engine.runs()[0])} == {
        0: 0,
        1: 9,
        2: 0,
    }


@pytest.mark.parametrize(
    "number",
    sorted(
        set(range(1, 32))
        - {
            signal.SIGSTOP,
            signal.SIGTSTP,
            signal.SIGTTIN,
            signal.SIGTTOU,
            signal.SIGCHLD,
            signal.SIGURG,
            signal.SIGWINCH,
            signal.SIGCONT,
        }
    ),
)
def test_every_deadly_signal_is_recorded(plain_engine: Engine, number: int) -> None:
    done = plain_engine.run(plain_engine.config({"actor": {"do": ["out=before", f"raise={number}"]}}))
    assert done.returncode == 128 + number
    assert "[actor/0] before" in done.stdout
    [record] = plain_engine.records(plain_engine.runs()[0])
    assert (record["signal"], record["code"], record["reason"]) == (number, None, "crashed")


@pytest.mark.parametrize(
    ("command", "words"),
    [
        (["/no/such/program"], "cannot run the program '/no/such/program': No such file or directory"),
        (["no-such-program-anywhere"], "cannot run the program 'no-such-program-anywhere': No such file or directory"),
        (["/etc/passwd"], "cannot run the program '/etc/passwd': Permission denied"),
        (["/bin/true", *["x" * 60000] * 3], "cannot run the program '/bin/true': Argument list too long"),
    ],
)
def test_a_failed_exec_names_rank_step_and_reason(plain_engine: Engine, command: list[str], words: str) -> None:
    up = plain_engine.pipe("up")
    config = plain_engine.config(
        {"env": {"ranks": "0-1", "do": steps(up, "say={pipe}", "pause")}, "actor": {"ranks": "2-3", "command": command}}
    )
    # A quarter of the stack is what an argument list may have, and 128 KiB at least.
    done = plain_engine.run(
        config, preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_STACK, (512 << 10, resource.RLIM_INFINITY))
    )
    assert done.returncode == 5, done.stderr
    assert f"actor/0: {words}" in done.stderr
    assert all(record["component"] == "env" for record in plain_engine.records(plain_engine.runs()[0]))


def test_a_working_directory_that_is_not_there_is_named(plain_engine: Engine) -> None:
    done = plain_engine.run(plain_engine.config({"actor": {"do": [], "cwd": "/no/such/place"}}))
    assert done.returncode == 5
    assert "actor/0: cannot enter the directory '/no/such/place': No such file or directory" in done.stderr


# --- stopping


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT])
def test_a_signal_to_the_driver_ends_the_run_by_that_signal(engine: Engine, number: int) -> None:
    pipe = engine.pipe("up")
    do = [f"last={number}", *steps(pipe, "say={pipe}", "pause")]
    driver = engine.start(engine.config({"actor": {"ranks": "0-3", "do": do}}))
    pipe.lines(4)
    driver.send_signal(number)
    done = engine.finish(driver)
    assert done.returncode == 128 + number
    assert done.stdout.count(f"got {number}") == 4
    assert len(engine.records(engine.runs()[0])) == 4


def test_what_does_not_end_within_the_grace_is_killed(engine: Engine) -> None:
    pipe = engine.pipe("up")
    do = ["ignore=15", "ignore=2", "@1:daemon", "@2:child", "@3:spin", *steps(pipe, "say={pipe}", "pause")]
    driver = engine.start(engine.config({"actor": {"ranks": "0-2", "do": do}}), "--grace", "0.2")
    pipe.lines(3)
    driver.send_signal(signal.SIGINT)
    done = engine.finish(driver)
    assert done.returncode == 130
    assert "the time to end by themselves is over" in done.stderr
    assert [record["signal"] for record in engine.records(engine.runs()[0])] == [9, 9, 9]


def test_a_process_that_spins_is_killed(plain_engine: Engine) -> None:
    pipe = plain_engine.pipe("up")
    driver = plain_engine.start(
        plain_engine.config({"actor": {"do": ["ignore=15", *steps(pipe, "say={pipe}", "spin")]}}), "--grace", "0"
    )
    pipe.lines(1)
    driver.send_signal(signal.SIGTERM)
    assert plain_engine.finish(driver).returncode == 143


def test_the_second_signal_kills_at_once(engine: Engine) -> None:
    pipe = engine.pipe("up")
    driver = engine.start(
        engine.config({"actor": {"ranks": "0-3", "do": ["trap=2", *steps(pipe, "say={pipe}"), "pause"]}}),
        "--grace",
        "3600",
    )
    pipe.lines(4)
    driver.send_signal(signal.SIGINT)
    for line in driver.stderr:
        if b"once more to kill" in line:
            break
    driver.send_signal(signal.SIGINT)
    assert engine.finish(driver).returncode == 130
    assert [record["signal"] for record in engine.records(engine.runs()[0])] == [9] * 4


def test_many_signals_at_once_skip_no_cleaning(engine: Engine) -> None:
    pipe = engine.pipe("up")
    driver = engine.start(
        engine.config(
            {"actor": {"ranks": "0-3", "do": ["ignore=2", "ignore=15", "daemon", *steps(pipe, "say={pipe}"), "pause"]}}
        ),
        "--grace",
        "3600",
    )
    pipe.lines(4)
    for i in range(10):
        driver.send_signal([signal.SIGINT, signal.SIGTERM, signal.SIGHUP][i % 3])
    done = engine.finish(driver)
    assert done.returncode in (129, 130, 143)
    assert len(engine.records(engine.runs()[0])) == 4


class Terminal:
    """The driver as the foreground job of a terminal."""

    def __init__(self, engine: Engine, config: Path, *words: str) -> None:
        self.pid, self.fd = pty.fork()
        if self.pid == 0:
            os.chdir(engine.home)
            os.execve(ROOST, [str(ROOST), "run", str(config), *words], engine.env)

    def type(self, text: bytes) -> None:
        os.write(self.fd, text)

    def read_until(self, text: bytes) -> bytes:
        seen = b""
        while text not in seen:
            seen += os.read(self.fd, 4096)
        return seen

    def read_all(self) -> bytes:
        seen = b""
        try:
            while part := os.read(self.fd, 4096):
                seen += part
        except OSError:
            pass
        return seen

    def wait(self) -> int:
        return os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])


def test_ctrl_c_twice_in_a_terminal(engine: Engine) -> None:
    pipe = engine.pipe("up")
    terminal = Terminal(
        engine,
        engine.config({"actor": {"ranks": "0-1", "do": ["ignore=2", *steps(pipe, "say={pipe}"), "pause"]}}),
        "--grace",
        "3600",
    )
    pipe.lines(2)
    terminal.type(b"\x03")
    terminal.read_until(b"once more to kill")
    terminal.type(b"\x03")
    terminal.read_all()
    assert terminal.wait() == 130
    os.close(terminal.fd)
    assert engine.left() == []


def test_a_closed_terminal_ends_the_run(engine: Engine) -> None:
    pipe = engine.pipe("up")
    terminal = Terminal(engine, engine.config({"actor": {"ranks": "0-1", "do": [*steps(pipe, "say={pipe}"), "pause"]}}))
    pipe.lines(2)
    os.close(terminal.fd)
    assert terminal.wait() == 129
    assert engine.left() == []
    assert {record["signal"] for record in engine.records(engine.runs()[0])} == {signal.SIGHUP}


def test_with_nohup_a_closed_terminal_is_nothing(plain_engine: Engine) -> None:
    pipe, go = plain_engine.pipe("up"), plain_engine.pipe("go")
    config = plain_engine.config({"actor": {"do": [*steps(pipe, "say={pipe}"), f"read={go.path}"]}})
    driver = plain_engine.start(config, preexec_fn=lambda: signal.signal(signal.SIGHUP, signal.SIG_IGN))
    pipe.lines(1)
    driver.send_signal(signal.SIGHUP)
    go.write()
    assert plain_engine.finish(driver).returncode == 0


@pytest.mark.parametrize("number", [signal.SIGUSR1, signal.SIGUSR2])
def test_user_signals_are_forwarded(plain_engine: Engine, number: int) -> None:
    pipe = plain_engine.pipe("up")
    driver = plain_engine.start(
        plain_engine.config({"actor": {"ranks": "0-2", "do": [f"last={number}", *steps(pipe, "say={pipe}"), "pause"]}})
    )
    pipe.lines(3)
    driver.send_signal(number)
    done = plain_engine.finish(driver)
    assert done.returncode == 0
    assert done.stdout.count(f"got {number}") == 3


def test_a_suspended_driver_suspends_its_processes(plain_engine: Engine) -> None:
    pipe, go = plain_engine.pipe("up"), plain_engine.pipe("go")
    config = plain_engine.config({"actor": {"do": [*steps(pipe, "say={pipe}"), f"read={go.path}"]}})
    driver = plain_engine.start(config, process_group=0)  # a job of ours, as under a shell: the kernel stops no other
    [[_, pid, _]] = pipe.lines(1)
    driver.send_signal(signal.SIGTSTP)
    assert os.WIFSTOPPED(os.waitpid(driver.pid, os.WUNTRACED)[1])
    wait_state(int(pid), "T")
    driver.send_signal(signal.SIGCONT)
    wait_state(int(pid), "SR")
    go.write()
    assert plain_engine.finish(driver).returncode == 0


def test_stopped_processes_can_be_stopped(engine: Engine) -> None:
    pipe = engine.pipe("up")
    driver = engine.start(
        engine.config({"actor": {"ranks": "0-3", "do": ["last=15", *steps(pipe, "say={pipe}"), "stop", "pause"]}}),
        "--grace",
        "3600",
    )
    for _, pid, _ in pipe.lines(4):
        wait_state(int(pid), "T")
    driver.send_signal(signal.SIGTERM)
    done = engine.finish(driver)
    assert done.returncode == 143
    assert [record["code"] for record in engine.records(engine.runs()[0])] == [0] * 4


# --- every signal, to every part


def parts_of(engine: Engine, driver: subprocess.Popen) -> dict[str, int]:
    page = engine.page(engine.runs()[-1])
    return {
        "driver": driver.pid,
        "guardian": page["guardian_pid"],
        "supervisor": page["supervisor_pid"],
        "registry": page["registry_pid"],
    }


@pytest.mark.parametrize("part", ["driver", "guardian", "supervisor", "registry", "worker"])
@pytest.mark.parametrize("number", range(1, 32))
def test_no_signal_to_any_part_leaves_anything(plain_engine: Engine, part: str, number: int) -> None:
    engine = plain_engine
    pipe, held = engine.pipe("up"), engine.pipe("held")
    config = engine.config(
        {
            "actor": {
                "ranks": "0-1",
                "do": [f"hold={held.path}", "ignore=15", "@0:daemon", *steps(pipe, "say={pipe}"), "pause"],
            }
        }
    )
    driver = engine.start(config, "--grace", "0.05")
    said = pipe.lines(2)
    parts = parts_of(engine, driver) | {"worker": int(said[0][1])}
    os.kill(parts[part], number)
    # What is not ended by it is ended now, as a user would: by a signal to the driver, or the last one.
    if driver.poll() is None:
        os.kill(driver.pid, signal.SIGCONT)
        driver.send_signal(signal.SIGTERM)
    driver.communicate()
    engine.running.remove(driver)
    assert held.wait_end()
    engine.wait_empty()
    assert engine.cgroups() == []


def test_a_signal_to_the_supervisor_is_a_failure(engine: Engine) -> None:
    pipe = engine.pipe("up")
    driver = engine.start(engine.config({"actor": {"do": steps(pipe, "say={pipe}", "pause")}}))
    pipe.lines(1)
    os.kill(parts_of(engine, driver)["guardian"], signal.SIGTERM)  # it hands it on
    done = engine.finish(driver)
    assert done.returncode == 5
    assert "the supervisor of the run was sent signal 15" in done.stderr


@pytest.mark.parametrize("part", ["guardian", "supervisor", "registry"])
def test_signals_that_mean_nothing_to_a_part_do_not_end_the_run(plain_engine: Engine, part: str) -> None:
    pipe, go = plain_engine.pipe("up"), plain_engine.pipe("go")
    driver = plain_engine.start(plain_engine.config({"actor": {"do": [*steps(pipe, "say={pipe}"), f"read={go.path}"]}}))
    pipe.lines(1)
    heard = {signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGQUIT, signal.SIGKILL, signal.SIGSTOP}
    for number in signal.valid_signals() - heard:
        os.kill(parts_of(plain_engine, driver)[part], number)
    go.write()
    done = plain_engine.finish(driver)
    assert done.returncode == 0, done.stderr


def take_number(pid: int) -> subprocess.Popen | None:
    """A process of ours with this very number, as if numbers had gone round; None while it is not free."""
    code = (
        "import ctypes, os, sys\n"
        f"number = ctypes.c_int({pid})\n"
        "fields = [0] * 4 + [17, 0, 0, 0, ctypes.addressof(number), 1, 0]\n"  # struct clone_args: exit_signal, set_tid, set_tid_size
        "child = ctypes.CDLL(None, use_errno=True).syscall(435, (ctypes.c_uint64 * 11)(*fields), 88)\n"
        "if child < 0: sys.exit(ctypes.get_errno())\n"
        "if child == 0: os.execv('/bin/sleep', ['sleep', '1000'])\n"
        "print('taken', flush=True)\n"
        "os.waitpid(child, 0)\n"
    )
    holder = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True)
    assert holder.stdout is not None
    if holder.stdout.readline() == "taken\n":
        return holder
    assert holder.wait() == errno.EEXIST, os.strerror(holder.returncode)
    return None


@pytest.mark.skipif(os.geteuid() != 0, reason="needs to choose a process's number")
def test_a_stranger_with_the_number_of_a_dead_process_is_left_alone(engine: Engine) -> None:
    pipe, go = engine.pipe("up"), engine.pipe("go")
    config = engine.config(
        {"actor": {"ranks": "0-1", "do": [*steps(pipe, "say={pipe}"), f"@0:read={go.path}", "@1:pause"]}}
    )
    driver = engine.start(config)
    pids = {name: int(pid) for name, pid, _ in pipe.lines(2)}
    go.write()
    wait_gone([pids["actor/0"]])
    stranger = take_number(pids["actor/0"])
    while stranger is None:  # gone, but not reaped yet
        stranger = take_number(pids["actor/0"])
    try:
        driver.send_signal(signal.SIGUSR1)  # to every process
        driver.send_signal(signal.SIGTERM)
        driver.send_signal(signal.SIGTERM)
        engine.finish_one(driver)
        wait_gone([pids["actor/1"]])
        assert stranger.poll() is None and is_alive(pids["actor/0"])
    finally:
        os.kill(pids["actor/0"], signal.SIGKILL)
        stranger.communicate()
    assert engine.left() == []


def test_a_stopped_supervisor_is_woken_to_stop(plain_engine: Engine) -> None:
    pipe = plain_engine.pipe("up")
    driver = plain_engine.start(plain_engine.config({"actor": {"do": steps(pipe, "say={pipe}", "pause")}}))
    pipe.lines(1)
    supervisor = parts_of(plain_engine, driver)["supervisor"]
    os.kill(supervisor, signal.SIGSTOP)
    wait_state(supervisor, "T")
    driver.send_signal(signal.SIGTERM)
    assert plain_engine.finish(driver).returncode == 143


def test_nothing_is_lost_by_a_pause_of_the_supervisor(plain_engine: Engine) -> None:
    pipe, go = plain_engine.pipe("up"), plain_engine.pipe("go")
    config = plain_engine.config(
        {"actor": {"ranks": "0-7", "do": [*steps(pipe, "say={pipe}"), f"read={go.path}", "out=through"]}}
    )
    driver = plain_engine.start(config)
    said = pipe.lines(8)
    supervisor = parts_of(plain_engine, driver)["supervisor"]
    os.kill(supervisor, signal.SIGSTOP)
    wait_state(supervisor, "T")
    go.write(b"x" * 8)
    for _, pid, _ in said:  # dead, but not reaped
        wait_state(int(pid), "Z")
    os.kill(supervisor, signal.SIGCONT)
    done = plain_engine.finish(driver)
    assert done.returncode == 0
    assert done.stdout.count("through") == 8
    assert len(plain_engine.records(plain_engine.runs()[0])) == 8


# --- what cannot be killed


@pytest.mark.parametrize("end", ["signal", "failure"])
def test_what_cannot_be_killed_does_not_hold_the_run_up(plain_engine: Engine, end: str) -> None:
    """A process whose death its parent does not hear of, as one in the depths of the kernel: here a
    tracer stands between."""
    engine = plain_engine
    pipe, victim, go = engine.pipe("up"), engine.pipe("victim"), engine.pipe("go")
    tracer = subprocess.Popen(
        [str(ROOST.parent / "tests/engine_worker"), f"seize={victim.path}", *steps(pipe, "say={pipe}"), "pause"]
    )
    try:
        do = [*steps(pipe, "say={pipe}"), f"@1:read={go.path}", "@1:exit=3", "pause"]
        driver = engine.start(engine.config({"actor": {"ranks": "0-1", "do": do}}), "--grace", "0")
        said = sorted(pipe.lines(2))
        victim.write(said[0][1].encode())
        pipe.lines(3)  # it has been seized
        if end == "signal":
            driver.send_signal(signal.SIGTERM)
        else:
            go.write()
        out, err = driver.communicate(timeout=60)
        engine.running.remove(driver)
        assert f"process {said[0][1]} cannot be killed" in err.decode()
        assert driver.returncode == 5
        records = engine.records(engine.runs()[0])
        assert {record["rank"]: record["reason"] for record in records} == {
            0: "lost",
            1: "killed-by-roost" if end == "signal" else "exited",
        }
    finally:
        tracer.kill()
        tracer.wait()
    wait_gone([int(said[0][1])])
    assert not is_alive(int(said[0][1]))
