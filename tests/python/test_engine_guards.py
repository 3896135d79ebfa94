"""Guards that are stopped, frozen or killed together: what is left of a run is ended all the same.

Workers leave daemons that nobody finds by reading /proc: without an environment, not dumpable, or forking and exiting all the
time. They hold a pipe open, and its end tells that all of them are gone.
"""

import contextlib
import ctypes
import json
import os
import shutil
import signal
import subprocess
import threading
from pathlib import Path

import pytest

from chance import dice as roll
from conftest import WHO
from engine import PATIENCE, ROOST, Engine, children_of, is_alive, wait_gone, wait_state
from run_under_test import words_of

HIDING = ["daemon", "hidden", "locked", "chain"]


class Guarded:
    """A run whose one worker does `do` and then pauses."""

    def __init__(self, engine: Engine, do: list[str], *words: str) -> None:
        self.engine = engine
        self.up, self.held = engine.pipe("up"), engine.pipe("held")
        self.config = engine.config(
            {"actor": {"do": [f"hold={self.held.path}", "ignore=15", *do, f"say={self.up.path}", "pause"]}}
        )
        self.driver = engine.start(self.config, *words)
        self.up.lines(1)
        self.run = engine.runs()[0]
        page = engine.page(self.run)
        self.guardian, self.supervisor = page["guardian_pid"], page["supervisor_pid"]

    def stop(self, pid: int) -> None:
        os.kill(pid, signal.SIGSTOP)
        wait_state(pid, "T")

    def kill(self, *pids: int) -> None:
        for pid in pids:
            os.kill(pid, signal.SIGKILL)

    def end(self) -> subprocess.CompletedProcess:
        assert self.held.wait_end()
        return self.engine.finish(self.driver)

    def stopping(self) -> str:
        """What `roost stop` says first where it was not told which run."""
        return f"roost: stopping run {self.run.name} ({self.config})\n"

    def roost(self, *words: str) -> subprocess.CompletedProcess:
        return subprocess.run([ROOST, *words], env=self.engine.env, capture_output=True, text=True, timeout=PATIENCE)


def test_the_driver_continues_a_stopped_guardian(engine: Engine) -> None:
    run = Guarded(engine, HIDING)
    run.stop(run.guardian)
    run.kill(run.supervisor)
    done = run.end()
    assert done.returncode == 5
    assert "the supervisor of the run is gone" in done.stderr
    # The guardian did its work: it recorded the life, and removed its control group. The driver recorded the end.
    assert [record["reason"] for record in engine.records(run.run)] == ["lost"]
    end = json.loads((run.run / "records.jsonl").read_text().splitlines()[-1])
    assert (end["end"], end["failed"]) == (True, True) and "ended" in end
    assert "failed" in run.roost("ps", "--all").stdout
    assert engine.cgroups() == []


@pytest.mark.parametrize("words", [["ps"], ["stop"], ["stop", "--now"]], ids=" ".join)
def test_whoever_looks_at_a_run_continues_its_stopped_guardian(engine: Engine, words: list[str]) -> None:
    run = Guarded(engine, HIDING)
    run.stop(run.guardian)
    run.kill(run.supervisor, run.driver.pid)
    run.driver.communicate()
    engine.running.remove(run.driver)
    # A supervisor that is still dying can be connected to, and then the run is taken for alive. The driver may have continued
    # the guardian before it was killed itself: then the supervisor is reaped already.
    with contextlib.suppress(FileNotFoundError, ProcessLookupError):
        wait_state(run.supervisor, "Z")
    named = run.roost(*words, *([run.run.name] if words[0] == "stop" else []))
    assert named.returncode == 0, named.stderr
    assert run.held.wait_end()
    wait_gone([run.guardian])
    assert "crashed" in run.roost("ps", "--all").stdout
    assert engine.cgroups() == []
    assert sorted(path.name for path in run.run.iterdir()) == ["actor", "records.jsonl", "run.json"]


def test_a_guardian_that_lost_nobody_is_only_continued(plain_engine: Engine) -> None:
    """The runtime directory of whoever looks is another one, so the run cannot be reached; it goes on."""
    run = Guarded(plain_engine, [])
    run.stop(run.guardian)
    elsewhere = plain_engine.env | {"XDG_RUNTIME_DIR": str(plain_engine.home)}
    listed = subprocess.run([ROOST, "ps"], env=elsewhere, capture_output=True, text=True, timeout=PATIENCE)
    assert "running" in listed.stdout
    wait_state(run.guardian, "SRD")
    assert run.driver.poll() is None
    run.driver.send_signal(signal.SIGINT)
    run.driver.send_signal(signal.SIGINT)
    assert run.end().returncode == 130


@pytest.mark.parametrize("kind", HIDING)
def test_both_guards_killed_leave_nothing_while_the_driver_lives(engine: Engine, kind: str) -> None:
    run = Guarded(engine, [kind])
    run.stop(run.supervisor)  # so that it is one instant
    run.kill(run.guardian, run.supervisor)
    done = run.end()
    assert done.returncode == 5
    assert children_of(run.driver.pid) == []
    assert engine.cgroups() == []


ROUNDS = 1000 if os.environ.get("ROOST_SOAK") == "1" else 10


def test_both_guards_killed_at_any_moment_leave_nothing_while_the_driver_lives(any_engine: Engine) -> None:
    engine = any_engine
    dice = roll()
    home = engine.home
    do = [
        f"hold={home}/held",
        "ignore=15",
        "@0:hidden",
        "@1:locked",
        "@2:daemon",
        "@2:child",
        "@3:chain",
        "@3:hidden",
        f"say={home}/up",
        "pause",
    ]
    config = engine.config({"actor": {"ranks": "0-3", "do": do}})
    for _ in range(ROUNDS):
        up, held = engine.pipe("up"), engine.pipe("held")
        driver = engine.start(config, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        up.lines(dice.randrange(1, 5))
        [guardian] = [pid for pid in children_of(driver.pid) if "--guardian" in words_of(pid)]
        guards = [guardian, *children_of(guardian)]
        dice.shuffle(guards)
        for pid in guards:
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                pass  # it saw the other one go, and has ended the run meanwhile
        assert driver.wait(PATIENCE) == 5
        engine.running.remove(driver)
        assert engine.left() == []
        assert held.wait_end()
        for pipe in (up, held):
            engine.drop(pipe)


def open_elsewhere(pid: int, fd: int) -> int:
    """A descriptor of another process, as one of our own."""
    syscall = ctypes.CDLL(None, use_errno=True).syscall
    pidfd = os.pidfd_open(pid)
    try:
        copy = syscall(438, pidfd, fd, 0)  # pidfd_getfd
        assert copy >= 0, os.strerror(ctypes.get_errno())
        return int(copy)
    finally:
        os.close(pidfd)


def test_the_driver_misses_a_supervisor_whose_connection_somebody_holds_open(engine: Engine) -> None:
    """As a process does that the supervisor was just starting, and that was stopped then."""
    run = Guarded(engine, ["hidden"])
    connection = open_elsewhere(run.supervisor, 3)
    try:
        run.kill(run.supervisor)
        done = run.end()
    finally:
        os.close(connection)
    assert done.returncode == 5
    assert "the supervisor of the run is gone" in done.stderr


def start_without_supervisor(engine: Engine) -> tuple[subprocess.Popen, int, list[Path]]:
    """A driver that waits for its guardian, which is stopped before it has a supervisor; and the runs there were before."""
    config = engine.config({"actor": {"do": ["pause"]}})
    for _ in range(200):
        before = engine.runs()
        driver = engine.start(config)
        while not (guards := [pid for pid in children_of(driver.pid) if "--guardian" in words_of(pid)]):
            assert driver.poll() is None
        os.kill(guards[0], signal.SIGSTOP)
        wait_state(guards[0], "T")
        if not children_of(guards[0]):
            return driver, guards[0], before
        engine.kill_tree(driver)
    raise AssertionError("the guardian is always quicker")


def test_a_signal_ends_a_start_that_waits_for_a_stopped_guard(plain_engine: Engine) -> None:
    driver, _, before = start_without_supervisor(plain_engine)
    driver.send_signal(signal.SIGINT)
    done = plain_engine.finish(driver)
    assert (done.returncode, done.stderr) == (130, "roost: SIGINT: stopped before it began\n")
    assert plain_engine.runs() == before


def test_ps_ends_a_start_whose_guardian_was_stopped_and_whose_driver_was_killed(plain_engine: Engine) -> None:
    driver, guardian, before = start_without_supervisor(plain_engine)
    [run] = [run for run in plain_engine.runs() if run not in before]
    driver.kill()
    driver.communicate()
    plain_engine.running.remove(driver)
    assert plain_engine.ask("ps").returncode == 0
    wait_gone([guardian])
    assert plain_engine.ask("ps").returncode == 0
    # Of the starts whose guardian was quicker, those that had written their page are crashed runs: they stay.
    assert run not in plain_engine.runs()
    assert all((left / "run.json").stat().st_size for left in plain_engine.runs())


@pytest.mark.parametrize("any_engine", [who for who in WHO if who.startswith("user")], indirect=True)
def test_processes_that_may_not_be_killed_are_named(any_engine: Engine) -> None:
    """A program that is root's, and runs with its owner's rights."""
    engine = any_engine
    program = engine.home / "bin" / "root_worker"
    shutil.copy(engine.worker, program)
    program.chmod(0o4755)
    up, ruling = engine.pipe("up"), engine.pipe("ruling")
    config = engine.config({"actor": {"do": [f"root={program}:{ruling.path}", f"say={up.path}", "pause"]}})
    driver = engine.start(config, "--grace", "0.05")
    [[_, pid, _]] = ruling.lines(1)
    up.lines(1)
    try:
        driver.send_signal(signal.SIGTERM)
        out, err = driver.communicate(timeout=PATIENCE)
        engine.running.remove(driver)
        assert "roost: \n" not in err.decode()
        [run] = json.loads(engine.ask("ps", "--all", "--json").stdout)["runs"]
        if engine.has_cgroup:  # the kernel kills everything in it
            assert (driver.returncode, run["state"]) == (128 + signal.SIGTERM, "stopped")
            return
        named = f"process {pid}, started by a process of the run, cannot be killed (state S): it is left behind"
        assert err.decode().count(named) == 2  # when it was found, and in the summary
        assert (driver.returncode, run["state"]) == (5, "failed")
        assert is_alive(int(pid))
    finally:
        if is_alive(int(pid)):
            os.kill(int(pid), signal.SIGKILL)
        wait_gone([int(pid)])


def test_children_that_the_driver_had_before_are_not_taken_for_orphans(plain_engine: Engine) -> None:
    """`exec roost run` in a shell with a job in the background: that is not of the run."""
    engine = plain_engine
    engine.env["ROOST_CGROUP"] = "never"
    up, beside = engine.pipe("up"), engine.pipe("beside")
    config = engine.config({"actor": {"do": [f"say={up.path}", "pause"]}})
    driver = subprocess.Popen(
        ["sh", "-c", 'sleep 1000 & echo $! > "$1"; exec "$2" run "$3"', "sh", beside.path, ROOST, config],
        env=engine.env,
        stderr=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
    )
    engine.running.append(driver)
    [[background]] = beside.lines(1)
    try:
        up.lines(1)
        page = engine.page(engine.runs()[0])
        for guard in (page["supervisor_pid"], page["guardian_pid"]):
            os.kill(guard, signal.SIGKILL)
        assert driver.wait(PATIENCE) == 5
        engine.running.remove(driver)
        assert is_alive(int(background))
    finally:
        os.kill(int(background), signal.SIGKILL)
    wait_gone([int(background)])


def freeze(group: Path) -> None:
    (group / "cgroup.freeze").write_text("1")
    while "frozen 1" not in (group / "cgroup.events").read_text():
        os.sched_yield()


def test_a_second_signal_ends_a_frozen_run(plain_engine: Engine) -> None:
    run = Guarded(plain_engine, HIDING[:3])
    [group] = plain_engine.cgroups()
    freeze(group)
    run.driver.send_signal(signal.SIGTERM)
    run.driver.send_signal(signal.SIGINT)
    done = run.end()
    # It was thawed: the supervisor itself has ended the run, and recorded how.
    assert done.returncode in (128 + signal.SIGTERM, 128 + signal.SIGINT), done.stderr
    assert [record["reason"] for record in plain_engine.records(run.run)] == ["killed-by-roost"]
    assert plain_engine.cgroups() == []


def test_stop_now_ends_a_frozen_run(plain_engine: Engine) -> None:
    run = Guarded(plain_engine, HIDING[:3])
    [group] = plain_engine.cgroups()
    freeze(group)
    done = run.roost("stop", "--now")
    assert (done.returncode, done.stderr) == (0, run.stopping() + f"roost: run {run.run.name} has ended\n")
    assert run.end().returncode == 128 + signal.SIGKILL
    assert plain_engine.cgroups() == []


def test_a_run_that_is_frozen_again_and_again_is_killed(plain_engine: Engine) -> None:
    run = Guarded(plain_engine, HIDING[:3])
    [group] = plain_engine.cgroups()
    freeze(group)
    is_over = threading.Event()

    def freeze_on() -> None:
        while not is_over.is_set():
            try:
                (group / "cgroup.freeze").write_text("1")
            except OSError:
                return  # the group is gone

    freezer = threading.Thread(target=freeze_on)
    freezer.start()
    try:
        run.driver.send_signal(signal.SIGTERM)
        run.driver.send_signal(signal.SIGINT)
        # 5 when it was killed; a supervisor that was thawed may have been quicker than the thread.
        assert run.end().returncode in (5, 128 + signal.SIGTERM, 128 + signal.SIGINT)
    finally:
        is_over.set()
        freezer.join()
    assert plain_engine.cgroups() == []


@pytest.mark.parametrize("way", ["signals", "stop"])
def test_a_supervisor_that_is_silent_is_killed(plain_engine: Engine, way: str) -> None:
    """Frozen alone, in a group inside that of the run, which is not frozen as a whole."""
    run = Guarded(plain_engine, HIDING[:3])
    [group] = plain_engine.cgroups()
    (group / "inner").mkdir()
    (group / "inner" / "cgroup.procs").write_text(str(run.supervisor))
    freeze(group / "inner")
    if way == "signals":
        run.driver.send_signal(signal.SIGTERM)
        run.driver.send_signal(signal.SIGINT)
    else:
        done = run.roost("stop", "--now")
        assert (done.returncode, done.stderr) == (0, run.stopping() + f"roost: run {run.run.name} has ended\n")
    done = run.end()
    assert done.returncode == 5
    assert "the supervisor of the run is gone" in done.stderr
    assert plain_engine.cgroups() == []


def test_a_frozen_run_is_named_as_such(plain_engine: Engine) -> None:
    run = Guarded(plain_engine, [], "--grace", "0.05")
    [group] = plain_engine.cgroups()
    freeze(group)
    done = run.roost("stop")
    assert done.returncode == 5
    name = run.run.name
    assert done.stderr == run.stopping() + (
        f"roost: error: run {name} is running but cannot be reached: its control group is frozen\n"
        f"  = `roost stop --now {name}` ends it; 0 in {group}/cgroup.freeze lets it go on\n"
    )
    (group / "cgroup.freeze").write_text("0")  # and the supervisor does as it was asked
    assert run.end().returncode == 128 + signal.SIGTERM


def test_a_crashed_run_has_one_end_however_many_find_it(engine: Engine) -> None:
    run = Guarded(engine, [])
    engine.kill_tree(run.driver)
    lookers = [
        subprocess.Popen([ROOST, "ps", "--all"], env=engine.env, stdout=subprocess.PIPE, text=True) for _ in range(16)
    ]
    for looker in lookers:
        out, _ = looker.communicate(timeout=PATIENCE)
        assert "crashed" in out
    lines = (run.run / "records.jsonl").read_text().splitlines()
    assert [json.loads(line) for line in lines if "end" in json.loads(line)] == [
        {"end": True, "failed": True, "crashed": True}
    ]
    assert len(lines) == 2  # and one record of the one life
    engine.wait_empty()
    engine.remove_cgroups()


@pytest.mark.parametrize("is_elsewhere", [False, True], ids=["state", "elsewhere"])
def test_runs_that_are_killed_while_they_start_leave_nothing(plain_engine: Engine, is_elsewhere: bool) -> None:
    engine = plain_engine
    dice = roll()
    never = engine.pipe("never")
    more = {"logs": {"dir": "kept"}} if is_elsewhere else {}
    config = engine.config({"actor": {"ranks": "0-3", "do": ["pause"]}}, **more)
    for _ in range(40):
        driver = engine.start(config, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        never.lines(1, dice.uniform(0, 0.012))
        engine.kill_tree(driver)
    assert subprocess.run([ROOST, "ps"], env=engine.env, capture_output=True, timeout=PATIENCE).returncode == 0
    engine.wait_empty()
    assert list(engine.runtime.rglob("*.sock")) == []
    kept = engine.home / "kept" if is_elsewhere else engine.state
    for run in kept.iterdir() if kept.exists() else []:
        names = {path.name for path in run.iterdir()}
        # One that came to run, or one that is too young to be told from one that is about to start.
        assert (
            names == set() or names <= {"actor", "records.jsonl", "run.json"} and (run / "run.json").stat().st_size
        ), f"{run}: {names}"
        if not names:
            os.utime(run, (0, 0))
    ended = {run.name for run in kept.iterdir() if any(run.iterdir())} if kept.exists() else set()
    assert subprocess.run([ROOST, "ps"], env=engine.env, capture_output=True, timeout=PATIENCE).returncode == 0
    assert {run.name for run in engine.runs()} == ended
    engine.remove_cgroups()


@pytest.mark.parametrize("what", ["actor/0/stdout.log", "records.jsonl"])
def test_an_empty_page_beside_something_of_use_is_left_alone(plain_engine: Engine, what: str) -> None:
    """The machine went down, and the disk lost the page of a run."""
    run = plain_engine.state / "abcdef"
    (run / what).parent.mkdir(parents=True)
    for folder in (plain_engine.state, run):
        folder.chmod(0o700)
    (run / what).write_text("a line\n")
    (run / "run.json").touch()
    before = sorted(run.rglob("*"))
    assert subprocess.run([ROOST, "ps"], env=plain_engine.env, capture_output=True, timeout=PATIENCE).returncode == 0
    assert sorted(run.rglob("*")) == before
