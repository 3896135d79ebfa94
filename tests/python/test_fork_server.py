"""What a fork server says and does, with the test in the supervisor's place (src/supervise/forks.h).

A real connection, real forks: the test asks over one end of a socketpair, adopts what is forked, and hears each worker over the
connection it was handed, as a driver would."""

import ctypes
import gc
import json
import os
import select
import signal
import socket
import struct
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

PATIENCE = 30.0  # seconds until a test that hears nothing gives up; never a wait
HEADER = struct.Struct("=IHHI")
NUMBERS = struct.Struct("=iii")
MAGIC, VERSION = 0x54534F52, 1
FORK_ONE, FORK_STARTED, FORK_COLD = 1, 2, 3
PR_SET_CHILD_SUBREAPER = 36

# What a worker is: it tells what it finds over its connection, and ends with the code it is told.
WORKER = """
import json, os, random, signal, socket, sys

SERVER = os.getpid()  # imported by the server

def status(name):
    return next(line.split()[1] for line in open("/proc/self/status") if line.startswith(name + ":"))

def main():
    import ctypes
    death = ctypes.c_int()
    ctypes.CDLL(None).prctl(2, ctypes.byref(death))  # PR_GET_PDEATHSIG
    numpy = sys.modules.get("numpy")
    facts = {
        "pid": os.getpid(), "parent": os.getppid(), "session": os.getsid(0), "server": SERVER, "cwd": os.getcwd(), "argv": sys.argv[1:],
        "fds": {fd: os.readlink(f"/proc/self/fd/{fd}") for fd in os.listdir("/proc/self/fd") if os.path.exists(f"/proc/self/fd/{fd}")},
        "environ": dict(os.environ), "threads": len(os.listdir("/proc/self/task")), "death": death.value,
        "signals": {name: status(name) for name in ("SigBlk", "SigIgn", "SigCgt")},
        "random": random.random(), "numpy": float(numpy.random.random()) if numpy else None,
    }
    print("said to stdout", flush=True)
    print("said to stderr", file=sys.stderr, flush=True)
    connection = socket.socket(fileno=os.dup(3))
    connection.sendall(json.dumps(facts).encode() + b"\\n")
    code = connection.recv(16)
    return int(code) if code else 0
"""


class Supervisor:
    """The test's end: starts a server, asks, hears, reaps."""

    def __init__(self, folder: Path, modules: list[str], **env: str) -> None:
        self.folder = folder
        (folder / "played.py").write_text(WORKER)
        self.connection, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.connection.settimeout(PATIENCE)
        order = json.dumps({"path": [str(folder), *sys.path], "modules": modules, "main": "played"})
        self.log = open(folder / "server.log", "wb")

        def arrange() -> None:
            os.dup2(theirs.fileno(), 3, inheritable=True)
            os.closerange(4, 4096)

        self.server = subprocess.Popen(
            [sys.executable, "-m", "roost._local.fork_server", order],
            stdin=subprocess.DEVNULL,
            stdout=self.log,
            stderr=self.log,
            close_fds=False,
            env=os.environ | env,
            preexec_fn=arrange,
        )
        theirs.close()
        self.forked: list[int] = []

    def send(self, message: bytes, fds: list[int]) -> None:
        socket.send_fds(self.connection, [message], fds)

    def request(self, rank: int, life: int = 1, *, cwd: str = "", supervisor: int | None = None) -> bytes:
        body = NUMBERS.pack(rank, life, os.getpid() if supervisor is None else supervisor) + cwd.encode() + b"\0"
        return HEADER.pack(MAGIC, VERSION, FORK_ONE, len(body)) + body

    def files(self, rank: int, **env: str) -> tuple[list[int], socket.socket]:
        """What goes along, and the driver's end of the connection."""
        environment = os.memfd_create("environment", os.MFD_CLOEXEC)
        os.write(environment, b"".join(f"{name}={value}".encode() + b"\0" for name, value in env.items()))
        os.lseek(environment, 0, os.SEEK_SET)
        mine, theirs = socket.socketpair()
        mine.settimeout(PATIENCE)
        logs = [
            os.open(self.folder / f"{rank}.{name}", os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
            for name in ("out", "err")
        ]
        return [*logs, theirs.detach(), environment], mine

    def ask(
        self, rank: int, life: int = 1, *, cwd: str = "", supervisor: int | None = None, **env: str
    ) -> socket.socket:
        fds, driver = self.files(rank, **env)
        self.send(self.request(rank, life, cwd=cwd, supervisor=supervisor), fds)
        for fd in fds:
            os.close(fd)
        return driver

    def hear(self) -> tuple[int, bytes] | None:
        """The next message of the server, None at its end."""
        try:
            message = self.connection.recv(65536)
        except ConnectionResetError:  # it ended with something unread
            return None
        if not message:
            return None
        magic, version, kind, length = HEADER.unpack_from(message)
        body = message[HEADER.size :]
        assert (magic, version, length) == (MAGIC, VERSION, len(body))
        if kind == FORK_STARTED:
            self.forked.append(NUMBERS.unpack(body)[2])
        return kind, body

    def bear(self, rank: int, life: int = 1) -> int:
        heard = self.hear()
        assert heard is not None and heard[0] == FORK_STARTED, (heard, self.said())
        assert NUMBERS.unpack(heard[1])[:2] == (rank, life)
        return self.forked[-1]

    def cold(self) -> str:
        heard = self.hear()
        assert heard is not None and heard[0] == FORK_COLD, (heard, self.said())
        return heard[1].decode()

    def end(self) -> int:
        """Of the server; the connection has ended then."""
        assert self.hear() is None
        return self.server.wait(PATIENCE)

    def said(self) -> str:
        return (self.folder / "server.log").read_text()

    def reap(self, pid: int) -> int:
        """A worker's status: it can be waited for, so it is our own child."""
        fd = os.pidfd_open(pid)
        try:
            assert select.select([fd], [], [], PATIENCE)[0], f"{pid} does not end"
        finally:
            os.close(fd)
        self.forked.remove(pid)
        return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])

    def close(self) -> None:
        self.connection.close()
        try:
            self.server.wait(PATIENCE)
        finally:
            self.server.kill()
            self.log.close()
        for pid in list(self.forked):
            os.kill(pid, signal.SIGKILL)
            self.reap(pid)


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[Path]:
    prctl = ctypes.CDLL(None).prctl
    assert prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) == 0
    gc.collect()  # what other tests of this process have left must not go meanwhile
    OTHERS.clear()
    OTHERS.update(children())
    before = sorted(os.listdir("/proc/self/fd"))
    yield tmp_path
    prctl(PR_SET_CHILD_SUBREAPER, 0, 0, 0, 0)
    assert children() == [], "the server left a process"
    assert sorted(os.listdir("/proc/self/fd")) == before


OTHERS: set[int] = set()  # processes of other tests: managers of clusters that are still there


def children() -> list[int]:
    """Those of this test."""
    found = [int(word) for word in Path(f"/proc/self/task/{os.getpid()}/children").read_text().split()]
    return [pid for pid in found if pid not in OTHERS]


Start = Callable[..., Supervisor]


@pytest.fixture
def start(folder: Path) -> Iterator[Start]:
    started: list[Supervisor] = []

    def begin(modules: list[str], **env: str) -> Supervisor:
        started.append(Supervisor(folder, modules, **env))
        return started[0]

    yield begin
    for supervisor in started:
        supervisor.close()


@pytest.fixture
def played(start: Start) -> Supervisor:
    return start(["numpy.random"], STAYS="yes")


def facts_of(driver: socket.socket) -> dict[str, Any]:
    with driver.makefile("rb") as lines:
        return dict(json.loads(lines.readline()))


# --- as promised


def test_a_worker_is_born_as_if_it_had_been_executed(played: Supervisor) -> None:
    (played.folder / "here").mkdir()
    with played.ask(5, 2, cwd=str(played.folder / "here"), RANK="5", TZ="UTC", ODD="a=b\nc") as driver:
        pid = played.bear(5, 2)
        facts = facts_of(driver)
        assert facts["pid"] == pid and facts["parent"] == os.getpid() and facts["session"] == pid
        assert facts["server"] == played.server.pid and facts["threads"] == 1
        assert facts["cwd"] == str(played.folder / "here") and facts["argv"] == []
        assert facts["environ"] == {"RANK": "5", "TZ": "UTC", "ODD": "a=b\nc"}
        assert facts["death"] == signal.SIGKILL
        driver.sendall(b"7")
        assert played.reap(pid) == 7
    assert (played.folder / "5.out").read_text() == "said to stdout\n"
    assert (played.folder / "5.err").read_text() == "said to stderr\n"


def test_descriptors_are_the_ones_that_were_handed_and_no_others(played: Supervisor) -> None:
    drivers = [played.ask(rank) for rank in range(4)]
    pids = [played.bear(rank) for rank in range(4)]
    for rank, driver in enumerate(drivers):
        fds = {int(fd): target for fd, target in facts_of(driver)["fds"].items()}
        assert (
            fds[0] == "/dev/null"
            and fds[1].endswith(f"/{rank}.out")
            and fds[2].endswith(f"/{rank}.err")
            and fds[3].startswith("socket:")
        )
        assert sorted(fds) == [0, 1, 2, 3], fds
    # Nobody else has a worker's connection: each driver hears the end of its own worker.
    for rank, driver in enumerate(drivers):
        os.kill(pids[rank], signal.SIGKILL)
        assert played.reap(pids[rank]) == -signal.SIGKILL
        assert driver.recv(1) == b""
        driver.close()


def test_the_server_keeps_nothing_of_what_it_was_asked(played: Supervisor) -> None:
    def held() -> list[str]:
        return sorted(os.listdir(f"/proc/{played.server.pid}/fd"))

    def serve(rank: int) -> None:
        with played.ask(rank, rank + 1) as driver:
            pid = played.bear(rank, rank + 1)
            facts_of(driver)
            driver.sendall(b"0")
            assert played.reap(pid) == 0

    for rank in range(30):
        serve(rank)
    for _ in range(1_000_000):  # what came with the last one is closed after the worker was forked
        if held() == ["0", "1", "2", "3"]:
            break
        os.sched_yield()
    assert held() == ["0", "1", "2", "3"]
    assert Path(f"/proc/{played.server.pid}/task/{played.server.pid}/children").read_text() == ""


def test_signals_are_those_of_an_interpreter_that_was_just_started(played: Supervisor) -> None:
    words = "print(*[line.split()[1] for line in open('/proc/self/status') if line.startswith(('SigBlk', 'SigIgn', 'SigCgt'))])"
    fresh = subprocess.run([sys.executable, "-c", words], capture_output=True, text=True, check=True).stdout.split()
    ordinary = (1 << 31) - 1  # above them is what the C library uses for threads
    with played.ask(0) as driver:
        pid = played.bear(0)
        facts = facts_of(driver)
        assert [int(mask, 16) & ordinary for mask in facts["signals"].values()] == [
            int(mask, 16) & ordinary for mask in fresh
        ]
        os.kill(pid, signal.SIGTERM)  # nobody holds it back
        assert played.reap(pid) == -signal.SIGTERM


def test_workers_draw_numbers_of_their_own(played: Supervisor) -> None:
    drivers = [played.ask(rank) for rank in range(8)]
    for rank in range(8):
        played.bear(rank)
    facts = [facts_of(driver) for driver in drivers]
    assert len({fact["random"] for fact in facts}) == 8
    assert len({fact["numpy"] for fact in facts}) == 8 and None not in {fact["numpy"] for fact in facts}
    for driver in drivers:
        driver.close()
    for pid in list(played.forked):
        assert played.reap(pid) == 0


def test_a_worker_whose_supervisor_has_gone_does_nothing(played: Supervisor) -> None:
    with played.ask(0, supervisor=1) as driver:
        pid = played.bear(0)
        assert played.reap(pid) == 127
        assert driver.recv(1) == b""


def test_the_server_ends_with_its_connection_and_its_workers_live_on(played: Supervisor) -> None:
    with played.ask(0) as driver:
        pid = played.bear(0)
        played.connection.shutdown(socket.SHUT_WR)
        assert played.end() == 0
        facts_of(driver)
        driver.sendall(b"3")
        assert played.reap(pid) == 3


# --- what goes wrong


def garbage(supervisor: Supervisor) -> dict[str, tuple[bytes, int]]:
    good = supervisor.request(0)
    body = good[HEADER.size :]
    return {
        "noise": (os.urandom(200), 4),
        "one byte": (b"R", 4),
        "a header cut short": (good[: HEADER.size - 1], 4),
        "a header alone": (good[: HEADER.size], 4),
        "an empty body": (HEADER.pack(MAGIC, VERSION, FORK_ONE, 0), 4),
        "numbers cut short": (HEADER.pack(MAGIC, VERSION, FORK_ONE, 8) + body[:8], 4),
        "strings cut short": (good[:-1], 4),
        "strings cut short with their length": (HEADER.pack(MAGIC, VERSION, FORK_ONE, len(body) - 1) + body[:-1], 4),
        "more than it says": (good + b"x\0", 4),
        "another magic": (HEADER.pack(MAGIC + 1, VERSION, FORK_ONE, len(body)) + body, 4),
        "another version": (HEADER.pack(MAGIC, VERSION + 1, FORK_ONE, len(body)) + body, 4),
        "another kind": (HEADER.pack(MAGIC, VERSION, FORK_STARTED, len(body)) + body, 4),
        "no descriptors": (good, 0),
        "a descriptor too few": (good, 3),
        "a descriptor too many": (good, 5),
    }


@pytest.mark.parametrize("what", garbage(Supervisor.__new__(Supervisor)))
def test_what_is_no_request_ends_the_server_and_forks_nothing(start: Start, what: str) -> None:
    supervisor = start([])
    message, count = garbage(supervisor)[what]
    fds, driver = supervisor.files(0)
    supervisor.send(message, [*fds, fds[0]][:count])
    for fd in fds:
        os.close(fd)
    assert supervisor.end() == 1
    assert supervisor.said().splitlines()[-1] == "what came from the supervisor is not a request"
    assert driver.recv(1) == b""  # nobody has what came along
    driver.close()
    assert children() == []


def test_a_module_that_cannot_be_imported_is_said(start: Start) -> None:
    supervisor = start(["not_there_at_all"])
    assert supervisor.cold() == "ModuleNotFoundError: No module named 'not_there_at_all'"
    assert supervisor.end() == 0


def test_a_module_that_starts_threads_is_said(folder: Path, start: Start) -> None:
    (folder / "threading_one.py").write_text(
        "import threading, time\nthreading.Thread(target=time.sleep, args=(3600,), daemon=True).start()\n"
    )
    supervisor = start(["threading_one"])
    assert supervisor.cold() == "RuntimeError: what it imports has started 1 threads, which a fork would not have"
    assert supervisor.end() == 0


# Forks by number: the one that warms up, the one in between, then the workers.
FAILING = """
import errno, os
real, count, fails_at = os.fork, 0, {fails_at}
def fork():
    global count
    count += 1
    if count == fails_at:
        {act}
    return real()
os.fork = fork
"""
FAILS = 'raise OSError(errno.EAGAIN, "Resource temporarily unavailable")'


@pytest.mark.parametrize("fails_at", [2, 3, 4])
def test_a_fork_that_fails_is_said_and_those_before_it_live(folder: Path, start: Start, fails_at: int) -> None:
    (folder / "failing.py").write_text(FAILING.format(fails_at=fails_at, act=FAILS))
    supervisor = start(["failing"])
    os.kill(supervisor.server.pid, signal.SIGSTOP)  # so that all are one batch
    drivers = [supervisor.ask(rank) for rank in range(3)]
    os.kill(supervisor.server.pid, signal.SIGCONT)
    for rank in range(fails_at - 3):
        supervisor.bear(rank)
    assert supervisor.cold() == "cannot fork: Resource temporarily unavailable"
    for rank, driver in enumerate(drivers):
        if rank < fails_at - 3:
            assert facts_of(driver)["pid"] == supervisor.forked[0]
            driver.sendall(b"0")
            assert supervisor.reap(supervisor.forked[0]) == 0
        else:
            supervisor.connection.close()  # as the supervisor does then
            assert driver.recv(1) == b""
        driver.close()


def test_one_who_forks_and_is_killed_is_said(folder: Path, start: Start) -> None:
    (folder / "failing.py").write_text(FAILING.format(fails_at=3, act="os.kill(os.getpid(), 9)"))
    supervisor = start(["failing"])
    with supervisor.ask(0) as driver:
        assert supervisor.cold() == "who forks was killed"
        assert supervisor.end() == 0
        assert driver.recv(1) == b""


def test_a_server_that_is_killed_over_a_request_leaves_nothing_of_it(played: Supervisor) -> None:
    with played.ask(0) as first:
        pid = played.bear(0)
        facts_of(first)
        os.kill(played.server.pid, signal.SIGSTOP)
        with played.ask(1) as second:
            played.server.kill()
            assert played.end() == -signal.SIGKILL
            assert second.recv(1) == b""  # what came along went with it
        first.sendall(b"4")  # who was forked before does not feel it
        assert played.reap(pid) == 4
