"""Logs and the lines of roost about them: paths that others have chosen, disks that are full, logs that are too long to wait for."""

import fcntl
import json
import os
import re
import signal
import subprocess
import time
from pathlib import Path

import pytest

from engine import PATIENCE, ROOST, Engine
from run_under_test import until

# --- paths

# Renames the terminal's window, clears it, and puts words into roost's mouth.
EVIL = "runs\x1b]0;PWNED\a\x1b[2J\nroost: run is done"
SHOWN = r"runs\x1b]0;PWNED\x07\x1b[2J\x0aroost: run is done"


def say(engine: Engine, *words: str | Path) -> tuple[int, str]:
    """The status, and what a terminal would be given. Only text and the ends of lines."""
    done = subprocess.run([ROOST, *words], env=engine.env, cwd=engine.home, capture_output=True, timeout=PATIENCE)
    text = (done.stdout + done.stderr).decode()
    assert [line for line in text.split("\n") if line and not line.isprintable()] == []
    assert "roost: run is done" not in text.split("\n")
    return done.returncode, text


def chosen_path(engine: Engine, where: str) -> Path:
    """A config for a run whose logs are below EVIL, which stands in one of the places that decide where logs are."""
    settings: dict[str, dict] = {"actor": {"do": ["exit=3"]}}
    (engine.home / EVIL).mkdir(mode=0o700)
    if where == "folder of the config":
        return engine.config(settings, f"{EVIL}/train.yaml", logs={"dir": "logs"})
    if where == "logs.dir":
        return engine.config(settings, logs={"dir": EVIL})
    del engine.env["XDG_STATE_HOME"]
    engine.env[where] = str(engine.home / EVIL)
    return engine.config(settings)


@pytest.mark.parametrize("where", ["logs.dir", "folder of the config", "HOME", "XDG_STATE_HOME"])
def test_a_path_says_nothing_to_the_terminal(plain_engine: Engine, where: str) -> None:
    config = chosen_path(plain_engine, where)
    status, text = say(plain_engine, "run", "-v", config)
    assert status == 3
    assert f": logs in {plain_engine.home}/{SHOWN}/" in text and f"\nroost: logs: {plain_engine.home}/{SHOWN}/" in text
    for words in (["ps", "-a"], ["stop"], ["logs"], ["logs", "x"], ["check", config], ["plan", config]):
        say(plain_engine, *words)


@pytest.mark.parametrize("where", ["logs.dir", "folder of the config", "HOME", "XDG_STATE_HOME", "XDG_RUNTIME_DIR"])
def test_a_path_in_an_error_says_nothing_to_the_terminal(plain_engine: Engine, where: str) -> None:
    """Others may write where the logs would be."""
    config = chosen_path(plain_engine, where)
    os.chmod(plain_engine.home / EVIL, 0o777)
    status, text = say(plain_engine, "run", config)
    assert status == 5 and str(plain_engine.home)[:40] in text  # a long path is cut
    for words in (["ps"], ["stop"], ["logs"]):
        say(plain_engine, *words)


# --- full disks

IS_ROOT = os.geteuid() == 0


@pytest.mark.skipif(not IS_ROOT, reason="needs a mount namespace")
@pytest.mark.parametrize("count, named", [(4, 4), (9, 8), (11, 8)])
def test_every_process_that_a_full_disk_cuts_is_named(plain_engine: Engine, count: int, named: int) -> None:
    """Each has more to write than the disk holds, and ends well. Eight are named, others are counted."""
    small = plain_engine.home / "small"
    small.mkdir(mode=0o700)
    config = plain_engine.config(
        {"actor": {"ranks": f"0-{count - 1}", "command": ["sh", "-c", "head -c 2000000 /dev/zero >&2; exit 0"]}},
        logs={"dir": str(small)},
    )
    script = f"mount -t tmpfs -o size=512k,mode=700 roost {small} && exec {ROOST} run {config} >/dev/null"
    done = subprocess.run(
        ["unshare", "-m", "sh", "-c", script], env=plain_engine.env, capture_output=True, text=True, timeout=60
    )
    assert done.returncode == 0 and f"{count} done" in done.stderr, done.stderr
    lines = done.stderr.splitlines()
    # One that finds the disk full already has not a byte in either of its logs.
    words = r"(actor/(\d+): it ended while the disk of the logs was full: 'actor/\2/(?:stderr|\*)\.log' may be cut)"
    at_once = [found[1] for line in lines if (found := re.fullmatch(f"roost: {words}", line))]
    at_the_end = [
        found[1] for line in lines if (found := re.fullmatch(f"roost: some logs are incomplete: {words}", line))
    ]
    assert at_once == at_the_end and len(set(at_once)) == len(at_once) == named
    assert sum("may be cut" in line for line in lines) == 2 * named + (count > named)
    more = {0: None, 1: "1 more process", 3: "3 more processes"}[count - named]
    assert not more or f"roost: some logs are incomplete: those of {more} may be cut too" in lines
    assert plain_engine.left() == []


# --- logs that are too long to wait for

# Sparse. To read it takes minutes.
HUGE = 4 << 40


def has_ended(engine: Engine) -> bool:
    """Whether the run has its last record, which is of no process: its driver shows the rest then."""
    texts = [path.read_text() for path in engine.state.glob("*/records.jsonl")]
    return any(text.endswith("\n") and "component" not in json.loads(text.splitlines()[-1]) for text in texts)


def interrupt(engine: Engine, driver: subprocess.Popen, number: signal.Signals) -> str:
    """What the driver says on standard error. The first signal may come just before it knows that the run has ended."""
    until(lambda: has_ended(engine), "a run whose processes have ended")

    def is_over() -> bool:
        driver.send_signal(number)
        return driver.poll() is not None

    until(is_over, "the end of roost run")
    return engine.finish(driver).stderr


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
@pytest.mark.parametrize("output", ["file", "/dev/null"])
def test_a_signal_ends_the_showing_of_a_log_where_output_never_blocks(
    plain_engine: Engine, number: signal.Signals, output: str
) -> None:
    with open(plain_engine.home / output, "wb") as file:
        driver = plain_engine.start(
            plain_engine.config({"actor": {"command": ["truncate", "-s", str(HUGE), "/proc/self/fd/1"]}}), stdout=file
        )
        err = interrupt(plain_engine, driver, number)
    assert driver.returncode == 0  # how the run itself has ended
    [rest] = re.findall(rf"^roost: {number.name}: (\d+) bytes of actor/0/stdout.log were not shown$", err, re.M)
    assert 0 < int(rest) <= HUGE
    assert f"roost: logs: {plain_engine.runs()[0]}\n" in err


def test_a_signal_ends_the_showing_of_two_logs(plain_engine: Engine) -> None:
    command = ["sh", "-c", f"truncate -s $(({HUGE} << RANK)) /proc/self/fd/1; exit 3"]
    driver = plain_engine.start(
        plain_engine.config({"actor": {"ranks": "0-1", "command": command}}), "--keep-going", stdout=subprocess.DEVNULL
    )
    err = interrupt(plain_engine, driver, signal.SIGINT)
    assert driver.returncode == 3
    assert re.search(
        r"^roost: SIGINT: \d+ bytes of actor/1/stdout.log, and of other logs, were not shown$", err, re.M
    ), err


def test_a_signal_ends_the_showing_of_a_log_that_nobody_reads(plain_engine: Engine) -> None:
    """All of it is on its way: the pipe has a part of it, the driver the rest."""
    reading, writing = os.pipe()
    fcntl.fcntl(writing, fcntl.F_SETPIPE_SZ, 4096)
    driver = plain_engine.start(
        plain_engine.config({"actor": {"command": ["sh", "-c", "yes | head -c 2000; exit 3"]}}), stdout=writing
    )
    os.close(writing)
    err = interrupt(plain_engine, driver, signal.SIGINT)
    os.close(reading)
    assert driver.returncode == 3
    assert (
        "\nroost: SIGINT: the end of the output was not shown\n" in err
        and f"roost: logs: {plain_engine.runs()[0]}\n" in err
    )


@pytest.mark.parametrize("words", [[], ["-f"]])
def test_a_signal_ends_roost_logs(plain_engine: Engine, words: list[str]) -> None:
    assert plain_engine.run(plain_engine.config({"actor": {"do": ["out=hello"]}})).returncode == 0
    os.truncate(plain_engine.runs()[0] / "actor" / "0" / "stdout.log", HUGE)
    reader = subprocess.Popen(
        [ROOST, "logs", *words], env=plain_engine.env, cwd=plain_engine.home, stdout=subprocess.PIPE
    )
    assert reader.stdout is not None and reader.stdout.readline() == b"[actor/0] hello\n"
    reader.send_signal(signal.SIGINT)
    reader.communicate(timeout=PATIENCE)
    assert reader.returncode == -signal.SIGINT


# --- the order of time

FILE_CLOCK = 5  # CLOCK_REALTIME_COARSE: what file systems take the times of files from


def next_moment() -> None:
    """What is written after this has another time, in ms, than what was written before."""
    start = time.clock_gettime_ns(FILE_CLOCK) // 1_000_000
    while time.clock_gettime_ns(FILE_CLOCK) // 1_000_000 == start:
        pass


def await_mark(component: Path, count: int) -> None:
    """Waits until the recorder has noted so many lines: before, they might get the time of those that follow. The first mark of
    a file has 8 bytes, behind the 8 that each file starts with; the next ones have 3 or more."""
    until(lambda: (component / ".times").stat().st_size >= 8 + 8 + 3 * (count - 1), "a mark")


def logs(engine: Engine, *words: str) -> list[str]:
    done = subprocess.run(
        [ROOST, "logs", *words], env=engine.env, cwd=engine.home, capture_output=True, text=True, timeout=PATIENCE
    )
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout.splitlines()


def test_lines_of_a_run_come_in_the_order_of_time_while_it_lives_and_after(plain_engine: Engine) -> None:
    """Two processes write in turns; the recorder has an eye on them, whatever the driver shows."""
    up, to_actor, to_env = plain_engine.pipe("up"), plain_engine.pipe("to_actor"), plain_engine.pipe("to_env")
    config = plain_engine.config(
        {
            "actor": {
                "do": [f"read={to_actor.path}", "out=two", f"say={up.path}", f"read={to_actor.path}", "out=four"]
            },
            "env": {"do": ["out=one", f"say={up.path}", f"read={to_env.path}", "out=three", f"say={up.path}"]},
        }
    )
    driver = plain_engine.start(config, "-q")
    for count, (writer, pipe) in enumerate((("env", to_actor), ("actor", to_env), ("env", to_actor)), 1):
        up.lines(count)
        await_mark(plain_engine.runs()[0] / writer, (count + 1) // 2)
        next_moment()
        pipe.write()
    follower = subprocess.Popen(
        [ROOST, "logs", "-f", "--timestamps"],
        env=plain_engine.env,
        cwd=plain_engine.home,
        stdout=subprocess.PIPE,
        text=True,
    )
    followed = follower.communicate(timeout=PATIENCE)[0].splitlines()
    assert plain_engine.finish(driver).returncode == 0
    expected = ["[env/0] one", "[actor/0] two", "[env/0] three", "[actor/0] four"]
    assert logs(plain_engine) == expected
    assert logs(plain_engine, "--tail", "3") == expected[1:]
    assert logs(plain_engine, "--since", "1h", "--grep", "^t") == expected[1:3]
    stamped = logs(plain_engine, "--timestamps")
    times = [line.split(" ")[0] for line in stamped]
    assert times == sorted(times) and len(set(times)) == 4
    assert logs(plain_engine, "--since", times[2]) == expected[2:]
    assert sorted(line.split(" ", 1)[1] for line in followed) == sorted(expected) and follower.returncode == 0


def test_the_logs_stay_the_bytes_that_workers_wrote(plain_engine: Engine) -> None:
    do = ["out=one", "err=two", "exit=0"]
    assert plain_engine.run(plain_engine.config({"actor": {"ranks": "0-1", "do": do}})).returncode == 0
    [run] = plain_engine.runs()
    files = sorted(path.relative_to(run).as_posix() for path in run.rglob("*") if path.is_file())
    assert files == sorted(
        [f"actor/{rank}/{name}.log" for rank in (0, 1) for name in ("stdout", "stderr")]
        + ["actor/.times", "run.json", "records.jsonl"]
    )
    assert (run / "actor" / "0" / "stdout.log").read_bytes() == b"one\n"
    assert (run / "actor" / ".times").stat().st_mode & 0o777 == 0o600


def test_a_killed_supervisor_leaves_times_that_can_be_read(plain_engine: Engine) -> None:
    up = plain_engine.pipe("up")
    config = plain_engine.config({"actor": {"ranks": "0-1", "do": ["out=hello", f"say={up.path}", "pause"]}})
    driver = plain_engine.start(config, "-q")
    up.lines(2)
    os.kill(plain_engine.page(plain_engine.runs()[0])["supervisor_pid"], signal.SIGKILL)
    assert plain_engine.finish_one(driver) != 0
    assert sorted(logs(plain_engine, "--since", "1h")) == ["[actor/0] hello", "[actor/1] hello"]
