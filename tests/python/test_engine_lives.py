"""What a process starts with, how it lives again, and what it is waited for."""

import contextlib
import errno
import json
import os
import resource
import shutil
import signal
import stat
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from engine import PATIENCE, ROOST, WORKER, Engine

IS_ROOT = os.geteuid() == 0


# --- restart


def test_on_failure_has_so_many_lives_more(plain_engine: Engine) -> None:
    done = plain_engine.run(
        plain_engine.config({"actor": {"do": ["out=life", "err=trouble", "exit=4"], "restart": {"on-failure": 2}}})
    )
    assert done.returncode == 4
    run = plain_engine.runs()[0]
    assert [record["life"] for record in plain_engine.records(run)] == [1, 2, 3]
    assert plain_engine.log(run, "actor") == "life\n" * 3
    assert plain_engine.log(run, "actor", 0, "stderr") == "trouble\n" * 3
    assert (
        "actor/0 exited with 4 and starts again in 0.1 s (life 2)" in done.stderr
        and "starts again in 0.2 s (life 3)" in done.stderr
    )


@pytest.mark.parametrize(("do", "words"), [("raise=11", "was ended by SIGSEGV"), ("exit=0", "exited with 0")])
def test_a_restart_is_told_with_how_the_last_life_ended(plain_engine: Engine, do: str, words: str) -> None:
    done = plain_engine.run(plain_engine.config({"actor": {"do": [do], "restart": "always"}}))
    assert done.stderr.count(f"roost: actor/0 {words} and starts again in ") == 4


def test_a_life_that_ends_well_ends_the_restarts(plain_engine: Engine) -> None:
    done = plain_engine.run(
        plain_engine.config({"actor": {"do": [f"until=3:9:{plain_engine.home}/lives"], "restart": {"on-failure": 5}}})
    )
    assert done.returncode == 0
    assert [record["code"] for record in plain_engine.records(plain_engine.runs()[0])] == [9, 9, 0]
    assert "1 done, 2 restarts" in done.stderr


@pytest.mark.parametrize("code", [0, 3])
def test_always_ends_at_the_burst_limit(plain_engine: Engine, code: int) -> None:
    done = plain_engine.run(plain_engine.config({"actor": {"do": [f"exit={code}"], "restart": "always"}}))
    assert done.returncode == (code or 1)
    assert len(plain_engine.records(plain_engine.runs()[0])) == 5


def test_a_restart_that_fails_ends_the_run_within_the_grace(plain_engine: Engine) -> None:
    """Also when the others ignore being asked."""
    engine = plain_engine
    program = engine.home / "program"
    shutil.copy(WORKER, program)
    pipe, go = engine.pipe("up"), engine.pipe("go")
    config = engine.config(
        {
            "actor": {
                "command": [str(program), f"read={go.path}", f"unlink={program}", "exit=1"],
                "restart": {"on-failure": 3},
            },
            "env": {"do": ["ignore=15", f"say={pipe.path}", "pause"]},
        }
    )
    driver = engine.start(config, "--grace", "0.1")
    pipe.lines(1)
    go.write()
    done = engine.finish(driver)
    assert done.returncode == 5
    assert f"actor/0: cannot run the program '{program}': No such file or directory" in done.stderr
    assert [record["signal"] for record in engine.records(engine.runs()[0]) if record["component"] == "env"] == [9]


# --- after and ready


@pytest.mark.parametrize("kind", ["port", "file", "line", "handed"])
def test_a_component_starts_when_what_it_comes_after_is_ready(plain_engine: Engine, kind: str) -> None:
    engine = plain_engine
    go, up = engine.pipe("go"), engine.pipe("up")
    first = {
        "port": {
            "do": [f"read={go.path}", "serve=%{ROOST_PORT_HTTP}", "pause"],
            "ports": {"http": 1},
            "ready": {"port": "http", "timeout": 30},
        },
        "handed": {
            "do": [f"read={go.path}", "listen=3", "pause"],
            "ports": {"http": {"count": 1, "hand_over": True}},
            "ready": {"port": "http", "timeout": 30},
        },
        "file": {
            "do": [f"read={go.path}", f"touch={engine.home}/ready-%{{RANK}}", "pause"],
            "ready": {"file": f"{engine.home}/ready-%{{RANK}}", "timeout": 30},
        },
        "line": {
            "do": [f"read={go.path}", "out=now serving", "pause"],
            "ready": {"line": "now serving", "timeout": 30},
        },
    }[kind]
    driver = engine.start(
        engine.config(
            {"serve": {"ranks": "0-1"} | first, "actor": {"do": [f"say={up.path}", "exit=6"], "after": ["serve"]}}
        ),
        "-v",
    )
    go.write()
    assert up.lines(1, 0.3) == []  # one of two is ready
    go.write()
    assert len(up.lines(1)) == 1
    done = engine.finish(driver)
    assert done.returncode == 6
    assert "serve is ready" in done.stderr


def test_an_address_that_never_answers_does_not_hide_the_other(plain_engine: Engine) -> None:
    """Who connects to ::1 waits for ever there; the server comes later, and on 127.0.0.1."""
    engine = plain_engine
    go, up = engine.pipe("go"), engine.pipe("up")
    serve = {
        "do": ["clog=%{ROOST_PORT_HTTP}", f"say={up.path}", f"read={go.path}", "serve=%{ROOST_PORT_HTTP}", "pause"],
        "ports": {"http": 1},
        "ready": {"port": "http", "timeout": 30},
    }
    driver = engine.start(
        engine.config({"serve": serve, "actor": {"do": [f"say={up.path}", "exit=6"], "after": ["serve"]}})
    )
    assert len(up.lines(1)) == 1
    assert len(up.lines(2, 0.3)) == 1
    go.write()
    assert len(up.lines(2)) == 2
    assert engine.finish(driver).returncode == 6


def test_not_ready_in_time_is_said_with_what_is_missing(plain_engine: Engine) -> None:
    done = plain_engine.run(
        plain_engine.config({"serve": {"do": ["ignore=15", "pause"], "ready": {"line": "up", "timeout": 1}}}),
        "--grace",
        "0.1",
    )
    assert done.returncode == 5
    assert "serve/0: not ready after 1 seconds: its line 'up' has not been printed" in done.stderr


def test_a_port_that_does_not_open_is_named(plain_engine: Engine) -> None:
    serve = {"do": ["out=%{ROOST_PORT_HTTP}", "pause"], "ports": {"http": 1}, "ready": {"port": "http", "timeout": 1}}
    done = plain_engine.run(plain_engine.config({"serve": serve}), "--grace", "0.1")
    port = plain_engine.log(plain_engine.runs()[0], "serve").strip()
    assert f"serve/0: not ready after 1 seconds: its port {port} is not open" in done.stderr


def test_ending_before_ready_is_a_failure(plain_engine: Engine) -> None:
    done = plain_engine.run(
        plain_engine.config({"serve": {"do": ["exit=0"], "ready": {"file": "/no/such/file", "timeout": 30}}})
    )
    assert done.returncode == 1
    assert "serve/0: it ended before it was ready: its file '/no/such/file' is not there" in done.stderr


def test_a_released_port_is_free_when_its_process_starts(plain_engine: Engine) -> None:
    """Held by nobody, not even by a process started before it that is still on its way into its program."""
    config = plain_engine.config({"serve": {"ranks": "0-63", "do": ["serve=%{ROOST_PORT_HTTP}"], "ports": {"http": 1}}})
    done = plain_engine.run(config)
    assert done.returncode == 0, done.stderr


# --- start


def test_a_process_has_its_own_descriptors_and_no_others(plain_engine: Engine) -> None:
    extra = os.open("/dev/null", os.O_RDONLY)
    config = plain_engine.config(
        {
            "actor": {"ranks": "0-1", "do": ["descriptors"]},
            "serve": {
                "do": ["descriptors", "environment"],
                "ports": {"http": {"count": 2, "hand_over": True}, "plain": 1},
            },
        }
    )
    driver = plain_engine.start(
        config, pass_fds=[extra], env=plain_engine.env | {"LISTEN_FDS": "7", "LISTEN_PID": "1", "LISTEN_FDNAMES": "x"}
    )
    os.close(extra)
    assert plain_engine.finish(driver).returncode == 0
    run = plain_engine.runs()[0]
    for rank in range(2):
        lines = [line.split() for line in plain_engine.log(run, "actor", rank).splitlines()]
        assert sorted(lines) == [
            ["0", "/dev/null"],
            ["1", f"{run}/actor/{rank}/stdout.log"],
            ["2", f"{run}/actor/{rank}/stderr.log"],
        ]
    text = plain_engine.log(run, "serve")
    numbers = [line.split()[0] for line in text.splitlines() if line[:1].isdigit()]
    assert sorted(numbers) == ["0", "1", "2", "3", "4"]
    variables = dict(
        entry.split("=", 1) for entry in text[text.index("\n5") if "\n5" in text else 0 :].split("\0") if "=" in entry
    )
    [record] = [record for record in plain_engine.records(run) if record["component"] == "serve"]
    assert (variables["LISTEN_FDS"], variables["LISTEN_PID"]) == ("2", str(record["pid"]))
    assert "LISTEN_FDNAMES" not in variables


def test_the_callers_socket_variables_reach_no_process(plain_engine: Engine) -> None:
    driver = plain_engine.start(
        plain_engine.config({"actor": {"do": ["environment"]}}),
        env=plain_engine.env | {"LISTEN_FDS": "7", "LISTEN_PID": "1"},
    )
    assert plain_engine.finish(driver).returncode == 0
    assert "LISTEN_" not in plain_engine.log(plain_engine.runs()[0], "actor")


def test_a_process_is_born_fresh(plain_engine: Engine) -> None:
    def spoil() -> None:
        signal.signal(signal.SIGUSR1, signal.SIG_IGN)
        signal.signal(signal.SIGPIPE, signal.SIG_IGN)
        signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGALRM, signal.SIGUSR2])
        resource.setrlimit(resource.RLIMIT_NOFILE, (200, 4000))
        os.umask(0o027)

    place = plain_engine.home / "place"
    place.mkdir()
    done = plain_engine.run(
        plain_engine.config({"actor": {"do": ["start"], "cwd": str(place)}, "env": {"do": ["start"]}}), preexec_fn=spoil
    )
    assert done.returncode == 0, done.stderr
    run = plain_engine.runs()[0]
    for component, cwd in (("actor", place), ("env", plain_engine.home)):
        lines = plain_engine.log(run, component).splitlines()
        assert lines[:4] == [f"cwd {cwd}", "umask 0027", "files 200 4000", "leads 1 1"]
        assert [int(line.split()[1], 16) for line in lines[4:]] == [0, 0]


def test_a_directory_of_its_own_is_told_by_pwd(plain_engine: Engine) -> None:
    """Also one that is relative, behind a link, or written in a roundabout way; PWD is not added to who has none."""
    place = plain_engine.home / "place"
    place.mkdir()
    (plain_engine.home / "link").symlink_to(place)
    ways = {"actor": str(place), "env": "./link/../link", "reward": "place", "rollout": None}
    config = plain_engine.config(
        {name: {"do": ["environment"], **({"cwd": way} if way else {})} for name, way in ways.items()}
    )
    for inherited in ({"PWD": str(plain_engine.home)}, {}):
        env = {name: value for name, value in plain_engine.env.items() if name != "PWD"} | inherited
        assert plain_engine.run(config, env=env).returncode == 0
        run = plain_engine.runs()[-1]
        for name, way in ways.items():
            variables = dict(entry.split("=", 1) for entry in plain_engine.log(run, name).split("\0") if entry)
            assert variables.get("PWD") == (None if not inherited else str(place) if way else inherited["PWD"]), name


def test_the_environment_is_that_of_the_plan(plain_engine: Engine) -> None:
    config = plain_engine.config(
        {"actor": {"ranks": "0-3:0-1", "do": ["environment"], "env": {"MINE": "rank %{RANK}"}, "ports": {"http": 2}}}
    )
    assert plain_engine.run(config).returncode == 0
    shown = subprocess.run(
        [ROOST, "plan", "--commands", "--json", config],
        env=plain_engine.env,
        capture_output=True,
        text=True,
        check=True,
        cwd=plain_engine.home,
    )
    run = plain_engine.runs()[0]
    [component] = [component for component in json.loads(shown.stdout)["components"] if component["name"] == "actor"]
    for process in component["processes"]:
        rank = process["rank"]
        got = dict(entry.split("=", 1) for entry in plain_engine.log(run, "actor", rank).split("\0") if entry)
        for name, value in process["env"].items():
            if "<" in value:  # known only when it runs: the run's id, its leases
                assert "<" not in got[name]
            else:
                assert got[name] == value, name
        assert got["ROOST_RUN_ID"] == run.name
        assert got["MINE"] == f"rank {rank}"
        # What roost adds stands beside what was inherited, and nothing else does.
        assert {name for name in got if name not in plain_engine.env} <= set(process["env"])


# --- limits


def test_more_processes_than_the_soft_limit_of_files(plain_engine: Engine) -> None:
    done = plain_engine.run(
        plain_engine.config({"actor": {"ranks": "0-149", "do": ["exit=0"]}}),
        "--quiet",
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (40, 1000)),
    )
    assert done.returncode == 0, done.stderr


def test_too_few_files_are_said_before_anything_starts(plain_engine: Engine) -> None:
    config = plain_engine.config({"actor": {"ranks": "0-149", "do": ["exit=0"]}})
    done = plain_engine.run(config, preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (64, 64)))
    assert done.returncode == 5
    assert (
        "this run needs 215 open files (one for each process and each port), but this user may have 64" in done.stderr
    )
    assert plain_engine.runs() == []


def test_a_guardian_without_descriptors_is_told_without_its_program(plain_engine: Engine) -> None:
    said = set()
    for files in range(14, 24):
        done = plain_engine.run(
            plain_engine.config({"actor": {"do": ["exit=0"]}}),
            preexec_fn=lambda files=files: resource.setrlimit(resource.RLIMIT_NOFILE, (files, files)),
        )
        said |= {line for line in done.stderr.splitlines() if "guardian" in line}
    assert said == {
        "roost: error: cannot start the guardian of the run: cannot set up its descriptors: Too many open files"
    }


@pytest.mark.parametrize("files", range(3, 24))
def test_no_limit_of_files_leaves_anything(plain_engine: Engine, files: int) -> None:
    config = plain_engine.config({"actor": {"do": ["exit=0"]}})
    done = plain_engine.run(config, preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (files, files)))
    assert done.returncode in (5, 127), done.stderr
    assert plain_engine.runs() == []
    assert list(plain_engine.runtime.rglob("*.sock")) == []


@pytest.mark.parametrize("how", ["once", "on"])
@pytest.mark.parametrize("part", ["driver", "guardian", "registry"])
def test_no_descriptor_that_cannot_be_had_leaves_anything(plain_engine: Engine, part: str, how: str) -> None:
    """Each one in turn, of the driver, of guardian and supervisor, and of the registry server; once, and from then on. The run ends well without it, or
    is refused with the reason."""
    engine = plain_engine
    program = engine.home / "roost"
    plan = engine.home / "roost.plan"
    shutil.copy(ROOST.parent / "tests" / "scarce_roost", program)
    config = engine.config({"actor": {"ranks": "0-1", "do": ["out=hello"], "ports": {"http": 1}}})
    number, refused = 0, 0
    while not plan.exists():
        number += 1
        plan.write_text(f"{part} {number} {how}")
        done = subprocess.run(
            [program, "run", config], env=engine.env, cwd=engine.home, capture_output=True, text=True, timeout=PATIENCE
        )
        assert done.returncode in (0, 5), f"{number}: {done}"
        assert engine.left() == [], number
        refused += done.returncode == 5
        assert done.returncode == 0 or "Too many open files" in done.stderr, f"{number}: {done}"
    assert (part == "registry" or (number > 20 and refused > 10)) and refused > 2 and done.returncode == 0
    assert list(engine.runtime.rglob("*.sock")) == list(engine.runtime.rglob("*.registry")) == []


@pytest.mark.skipif(not IS_ROOT, reason="needs another user")
@pytest.mark.plain  # the leak checker wants a thread of its own
@pytest.mark.parametrize("processes", [1, 2, 3, 4, 7])
def test_a_refused_fork_ends_what_was_started(
    plain_engine: Engine, processes: int, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """As an ordinary user with RLIMIT_NPROC: root is exempt."""
    user = 62000 + os.getpid() % 3000
    engine = plain_engine
    config = engine.config({"actor": {"ranks": "0-7", "do": ["pause"]}})
    home = Path("/tmp") / f"roost-test-{user}"
    home.mkdir(mode=0o700)
    try:
        config = shutil.copy(config, home)
        os.chown(home, user, user)
        os.chown(config, user, user)
        env = engine.env | {"XDG_STATE_HOME": str(home / "state"), "XDG_RUNTIME_DIR": str(home / "run")}
        shutil.copy(ROOST, home / "roost")
        shutil.copy(WORKER, home / "worker")
        Path(config).write_text(Path(config).read_text().replace(str(WORKER), str(home / "worker")))

        def become() -> None:
            os.setgid(user)
            os.setuid(user)
            resource.setrlimit(resource.RLIMIT_NPROC, (processes, processes))

        done = subprocess.run(
            [home / "roost", "run", config],
            env=env,
            cwd=home,
            preexec_fn=become,
            capture_output=True,
            text=True,
            timeout=60,
        )
        assert done.returncode == 5, done.stderr
        assert "Resource temporarily unavailable" in done.stderr, done.stderr
        if processes > 3:  # driver, guardian, supervisor, registry server
            assert f"actor/{processes - 4}: cannot create a process" in done.stderr
    finally:
        shutil.rmtree(home)


@pytest.mark.skipif(not IS_ROOT, reason="needs a mount namespace")
def test_a_full_disk_of_logs_is_said(plain_engine: Engine) -> None:
    small = plain_engine.home / "small"
    small.mkdir(mode=0o700)
    config = plain_engine.config(
        {"actor": {"ranks": "0-1", "do": ["@1:pause", "fill=10000000"]}}, logs={"dir": str(small)}
    )
    script = f"mount -t tmpfs -o size=256k,mode=700 roost {small} && {ROOST} run {config} >/dev/null; code=$?; cat {small}/*/records.jsonl; exit $code"
    done = subprocess.run(
        ["unshare", "-m", "sh", "-c", script], env=plain_engine.env, capture_output=True, text=True, timeout=60
    )
    assert done.returncode == 28, done.stderr  # ENOSPC, as the worker saw it
    assert (
        done.stderr.count("actor/0: it ended while the disk of the logs was full: 'actor/0/stdout.log' may be cut") == 2
    )  # at once, and in the summary
    records = [json.loads(line) for line in done.stdout.splitlines()]
    assert {record["rank"]: record["code"] for record in records if "rank" in record} == {0: 28, 1: None}


@pytest.mark.skipif(not IS_ROOT, reason="needs a mount namespace")
def test_a_full_disk_is_said_also_when_nobody_minds(plain_engine: Engine) -> None:
    """The worker does not look at what its writes say, and ends well."""
    small = plain_engine.home / "small"
    small.mkdir(mode=0o700)
    config = plain_engine.config(
        {"actor": {"command": ["sh", "-c", "head -c 2000000 /dev/zero >&2; exit 0"]}}, logs={"dir": str(small)}
    )
    script = f"mount -t tmpfs -o size=256k,mode=700 roost {small} && exec {ROOST} run {config} >/dev/null"
    done = subprocess.run(
        ["unshare", "-m", "sh", "-c", script], env=plain_engine.env, capture_output=True, text=True, timeout=60
    )
    assert done.returncode == 0, done.stderr
    words = "actor/0: it ended while the disk of the logs was full: 'actor/0/stderr.log' may be cut"
    assert f"roost: {words}\n" in done.stderr and f"roost: some logs are incomplete: {words}\n" in done.stderr
    assert "1 done" in done.stderr


@pytest.mark.parametrize("error", [errno.EIO, errno.EROFS, errno.ENOSPC, errno.EDQUOT])
def test_records_that_cannot_be_written_end_no_run_and_are_said(plain_engine: Engine, error: int) -> None:
    engine = plain_engine
    shutil.copy(ROOST.parent / "tests" / "scarce_roost", engine.home / "roost")
    (engine.home / "roost.plan").write_text(f"records {error} on")
    config = engine.config({"actor": {"ranks": "0-1", "do": ["out=hello"]}})
    done = subprocess.run(
        [engine.home / "roost", "run", config],
        env=engine.env,
        cwd=engine.home,
        capture_output=True,
        text=True,
        timeout=PATIENCE,
    )
    assert done.returncode == 0, done.stderr
    assert f"roost: cannot write the exit record of a process: {os.strerror(error)}\n" in done.stderr
    assert sorted(done.stdout.splitlines()) == ["[actor/0] hello", "[actor/1] hello"]
    assert engine.left() == []


@pytest.mark.skipif(not IS_ROOT, reason="needs a mount namespace")
def test_logs_on_a_disk_that_is_only_for_reading_are_refused_at_once(plain_engine: Engine) -> None:
    place = plain_engine.home / "place"
    place.mkdir(mode=0o700)
    config = plain_engine.config({"actor": {"do": ["pause"]}}, logs={"dir": str(place)})
    script = f"mount -t tmpfs -o ro,mode=700 roost {place} && exec {ROOST} run {config}"
    done = subprocess.run(
        ["unshare", "-m", "sh", "-c", script], env=plain_engine.env, capture_output=True, text=True, timeout=60
    )
    assert done.returncode == 5, done.stderr
    assert f"cannot make '{place}/" in done.stderr and "Read-only file system" in done.stderr
    assert plain_engine.left() == []


def test_a_program_that_is_being_written_is_said(plain_engine: Engine) -> None:
    program = plain_engine.home / "program"
    shutil.copy(WORKER, program)
    with open(program, "ab"):
        done = plain_engine.run(
            plain_engine.config({"env": {"do": ["pause"]}, "actor": {"command": [str(program), "exit=0"]}})
        )
    assert done.returncode == 5
    assert f"actor/0: cannot run the program '{program}': Text file busy" in done.stderr


LIMITS = {"memory": ("memory.max", "memory.limit_in_bytes"), "pids": ("pids.max", "pids.max")}


@contextlib.contextmanager
def limited_group(controller: str, size: int) -> Iterator[Path]:
    """A control group with this limit, of either version. Where this user cannot have one the test cannot be done, and that
    is not to pass for done: docs/explanation/nothing-left.md says what it needs."""
    name = f"roost-test-{os.getpid()}"
    for line in Path("/proc/mounts").read_text().splitlines():
        _, mount, kind, options = line.split()[:4]
        if kind == "cgroup2" or (kind == "cgroup" and controller in options.split(",")):
            group = Path(mount) / name
            try:
                group.mkdir()
                (group / LIMITS[controller][kind == "cgroup"]).write_text(str(size))
            except OSError:
                if group.exists():
                    group.rmdir()
                continue
            try:
                yield group
            finally:
                group.rmdir()
            return
    raise AssertionError(
        f"this test needs a control group that limits {controller}: root, and that controller (docs/explanation/nothing-left.md)"
    )


def join(group: Path) -> None:
    (group / "cgroup.procs").write_text(str(os.getpid()))


@pytest.mark.skipif(not IS_ROOT, reason="needs a control group")
def test_no_more_processes_is_said(plain_engine: Engine) -> None:
    config = plain_engine.config({"actor": {"ranks": "0-299", "do": ["pause"]}})
    with limited_group("pids", 100) as group:
        done = plain_engine.run(config, "--quiet", preexec_fn=lambda: join(group))
    assert done.returncode == 5, done.stderr
    assert "cannot create a process: Resource temporarily unavailable" in done.stderr


@pytest.mark.skipif(not IS_ROOT, reason="needs a control group")
def test_a_fork_bomb_is_bounded_and_ends_with_its_run(engine: Engine) -> None:
    """By the limit of the group it is in; the run is stopped all the same, and nothing of the bomb is left."""
    pipe, held = engine.pipe("up"), engine.pipe("held")
    with limited_group("pids", 200) as group:
        config = engine.config({"actor": {"do": ["ignore=15", f"hold={held.path}", f"bomb={pipe.path}"]}})
        driver = engine.start(config, "--grace", "0.1", preexec_fn=lambda: join(group))
        assert len(pipe.lines(1)) == 1  # somebody may not fork any more
        driver.send_signal(signal.SIGTERM)
        done = engine.finish(driver)
        assert held.wait_end()
    assert done.returncode == 143, done.stderr
    assert engine.cgroups() == []


@pytest.mark.skipif(not IS_ROOT, reason="needs a control group")
def test_a_process_that_the_kernel_killed_for_want_of_memory_is_said(plain_engine: Engine) -> None:
    with limited_group("memory", 96 << 20) as group:
        done = plain_engine.run(
            plain_engine.config({"actor": {"do": [f"eat={1 << 30}"]}}), "--grace", "0.1", preexec_fn=lambda: join(group)
        )
    assert done.returncode == 137, done.stderr
    assert "first failure: actor/0 was ended by SIGKILL, by the kernel: out of memory?" in done.stderr
    [record] = plain_engine.records(plain_engine.runs()[0])
    assert (record["signal"], record["reason"]) == (9, "oom")


def score_of(pid: int) -> int:
    return int(Path(f"/proc/{pid}/oom_score_adj").read_text())


def test_for_want_of_memory_the_supervisor_is_killed_last(plain_engine: Engine) -> None:
    """As far as this user may choose: back to nothing from what the driver was raised to."""
    pipe = plain_engine.pipe("up")
    config = plain_engine.config({"actor": {"ranks": "0-1", "do": [f"say={pipe.path}", "pause"]}})
    driver = plain_engine.start(config, preexec_fn=lambda: Path("/proc/self/oom_score_adj").write_text("500"))
    workers = [int(pid) for _, pid, _ in pipe.lines(2)]
    page = plain_engine.page(plain_engine.runs()[0])
    assert {score_of(pid) for pid in (driver.pid, *workers)} == {500}
    assert all(score_of(page[part]) in (0, -900) for part in ("guardian_pid", "supervisor_pid"))
    driver.send_signal(signal.SIGTERM)
    assert plain_engine.finish(driver).returncode == 143


def test_a_kill_by_somebody_else_is_no_want_of_memory(plain_engine: Engine) -> None:
    plain_engine.run(plain_engine.config({"actor": {"do": ["raise=9"]}}))
    [record] = plain_engine.records(plain_engine.runs()[0])
    assert (record["signal"], record["reason"]) == (9, "crashed")


def test_many_starts_at_once(plain_engine: Engine) -> None:
    config = plain_engine.config({"actor": {"ranks": "0-1", "do": ["exit=0"], "ports": {"http": 1}}})
    drivers = [plain_engine.start(config, "--quiet") for _ in range(64)]
    for driver in drivers:
        _, err = driver.communicate(timeout=120)
        assert driver.returncode == 0, err
        plain_engine.running.remove(driver)
    assert len(plain_engine.runs()) == 64
    assert plain_engine.left() == []


# --- files


def test_nothing_of_a_run_is_for_others(plain_engine: Engine) -> None:
    pipe = plain_engine.pipe("up")
    driver = plain_engine.start(
        plain_engine.config({"actor": {"ranks": "0-1", "do": [f"say={pipe.path}", "pause"]}}),
        preexec_fn=lambda: os.umask(0),
    )
    pipe.lines(2)
    paths = [*plain_engine.state.rglob("*"), *plain_engine.runtime.rglob("*")]
    assert len(paths) > 8
    for path in paths:
        mode = path.lstat().st_mode
        assert stat.S_IMODE(mode) == (0o700 if path.is_dir() else 0o600), path
    page = plain_engine.page(plain_engine.runs()[0])
    listeners = (
        Path(f"/proc/{page['supervisor_pid']}/net/tcp").read_text().splitlines()[1:]
        + Path(f"/proc/{page['supervisor_pid']}/net/tcp6").read_text().splitlines()[1:]
    )
    inodes = {line.split()[9] for line in listeners if line.split()[3] == "0A"}
    for part in (driver.pid, page["guardian_pid"], page["supervisor_pid"]):
        sockets = {os.readlink(f"/proc/{part}/fd/{fd}") for fd in os.listdir(f"/proc/{part}/fd")}
        assert not {f"socket:[{inode}]" for inode in inodes} & sockets
    driver.send_signal(signal.SIGTERM)
    assert plain_engine.finish(driver).returncode == 143


@pytest.mark.parametrize("trick", ["link", "fifo"])
def test_a_log_that_became_something_else_is_refused(plain_engine: Engine, trick: str) -> None:
    engine = plain_engine
    target = engine.home / "target"
    target.write_text("precious\n")
    log = f"{engine.state}/%{{ROOST_RUN_ID}}/actor/0/stdout.log"
    do = [f"unlink={log}", f"link={target}" if trick == "link" else f"fifo={log}", "exit=1"]
    done = engine.run(engine.config({"actor": {"do": do, "restart": {"on-failure": 3}, "env": {"LINK": log}}}))
    assert done.returncode == 5, done.stderr
    assert "actor/0: cannot open its log files in 'actor/0'" in done.stderr
    assert target.read_text() == "precious\n"


def test_a_reader_that_goes_away_does_not_hurt(plain_engine: Engine) -> None:
    """`roost run | head`: the run goes on, and ends cleanly."""
    read, write = os.pipe()
    driver = plain_engine.start(
        plain_engine.config({"actor": {"do": ["out=one", "fill=1000000", "out=two"]}}), stdout=write
    )
    os.close(write)
    os.close(read)
    done = plain_engine.finish(driver)
    assert done.returncode == 0, done.stderr
    assert plain_engine.log(plain_engine.runs()[0], "actor").endswith("two\n")
