"""The warm interpreter: imports what the workers of a group need, once, and forks them on request.

``python -m roost._local.fork_server JSON`` with ``{"path": [...], "modules": [...], "main": "module"}``, started by
the supervisor of a run with one end of their connection as descriptor 3; src/supervise/forks.h says what goes
over it. It has one thread: a fork copies no other, and a lock that one of them held would stay locked.

A worker must be the supervisor's child, and fork() gives it to the one who forks. So the server forks one in
between, which forks the workers that were asked for, tells of them and exits; the kernel then hands them to the
supervisor. Each of them waits for that before it does anything.
"""

import gc
import importlib
import json
import os
import random
import select
import socket
import struct
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass

from roost import _roost

SOCKET_FD = 3
HEADER = struct.Struct("=IHHI")  # magic, version, type, length
NUMBERS = struct.Struct("=iii")
MAGIC, VERSION = 0x54534F52, 1
FORK_ONE, FORK_STARTED, FORK_COLD = 1, 2, 3
MESSAGE_MAX = HEADER.size + 32 * 1024  # the environment, which may be larger, comes as a file
FDS = 4  # stdout, stderr, the connection to the driver, the environment


@dataclass(frozen=True)
class Wanted:
    """A worker that is asked for."""

    rank: int
    life: int
    supervisor: int
    cwd: bytes
    fds: list[int]


# --- the connection


def send(connection: socket.socket, kind: int, body: bytes) -> None:
    connection.sendall(HEADER.pack(MAGIC, VERSION, kind, len(body)) + body)


def receive(connection: socket.socket, flags: int = 0) -> Wanted | None:
    """The next worker that is asked for; None at the end, or, with MSG_DONTWAIT, when none is waiting."""
    try:
        # Not recv_fds, which forgets its flags.
        message, control, cut, _ = connection.recvmsg(
            MESSAGE_MAX, socket.CMSG_LEN(FDS * 4), flags | socket.MSG_CMSG_CLOEXEC
        )
    except BlockingIOError:
        return None
    if not message:
        return None
    fds = [fd for _, kind, data in control if kind == socket.SCM_RIGHTS for (fd,) in struct.iter_unpack("=i", data)]
    head, body = message[: HEADER.size], message[HEADER.size :]
    is_whole = (
        not cut & (socket.MSG_TRUNC | socket.MSG_CTRUNC)
        and body.endswith(b"\0")
        and len(body) > NUMBERS.size
        and len(fds) == FDS
    )
    if not is_whole or HEADER.unpack(head) != (MAGIC, VERSION, FORK_ONE, len(body)):
        raise SystemExit("what came from the supervisor is not a request")
    rank, life, supervisor = NUMBERS.unpack_from(body)
    return Wanted(rank, life, supervisor, body[NUMBERS.size : -1], fds)


# --- warming up


def warm_up(path: Sequence[str], modules: Sequence[str]) -> None:
    sys.path[:] = path
    for name in modules:
        importlib.import_module(name)
    # Libraries with threads of their own (OpenBLAS) end them before a fork and begin them again when they
    # are needed: what is counted is what is left after one.
    if (pid := os.fork()) == 0:
        os._exit(0)
    os.waitpid(pid, 0)
    if (threads := len(os.listdir("/proc/self/task"))) > 1:
        raise RuntimeError(f"what it imports has started {threads - 1} threads, which a fork would not have")


# --- forking


def serve(connection: socket.socket) -> Wanted | None:
    """Forks workers until the supervisor has gone. In a worker: what it was asked for."""
    while (wanted := receive(connection)) is not None:
        batch = [wanted]
        while (another := receive(connection, socket.MSG_DONTWAIT)) is not None:
            batch.append(another)
        sys.stdout.flush()
        sys.stderr.flush()
        try:
            between = os.fork()
        except OSError as error:
            refuse(connection, error)
            return None
        if between == 0:
            return fork_batch(connection, batch)
        _, status = os.waitpid(between, 0)
        if status != 0:  # killed: the supervisor may not know of all workers
            send(connection, FORK_COLD, b"who forks was killed")
            return None
        for one in batch:
            close_all(one.fds)
    return None


def refuse(connection: socket.socket, error: OSError) -> None:
    send(connection, FORK_COLD, f"cannot fork: {error.strerror}".encode())


def fork_batch(connection: socket.socket, batch: list[Wanted]) -> Wanted:
    """In the process between: returns in the workers only."""
    own = os.pidfd_open(os.getpid())
    for one in batch:
        try:
            pid = os.fork()
        except OSError as error:
            refuse(connection, error)
            break
        if pid == 0:
            connection.close()
            for other in batch:
                if other is not one:
                    close_all(other.fds)
            select.select([own], [], [])  # until the process between has gone
            os.close(own)
            return one
        send(connection, FORK_STARTED, NUMBERS.pack(one.rank, one.life, pid))
    os._exit(0)


def close_all(fds: Sequence[int]) -> None:
    for fd in fds:
        os.close(fd)


# --- in a worker


def become(wanted: Wanted) -> None:
    """What a program that is executed finds: its session, its descriptors, its environment."""
    if not _roost.follow_parent(wanted.supervisor):
        os._exit(127)  # the supervisor has gone in between
    os.setsid()
    out, err, connection, environment = wanted.fds
    with open(environment, "rb", closefd=False) as file:
        entries = file.read().split(b"\0")[:-1]
    null = os.open("/dev/null", os.O_RDWR)
    # Sources first go above all targets: one may stand where another one goes.
    sources = [_roost.duplicate_above(fd, SOCKET_FD + 1) for fd in (null, out, err, connection)]
    close_all([null, *(fd for fd in wanted.fds if fd > SOCKET_FD)])
    for target, source in enumerate(sources):
        os.dup2(source, target, inheritable=target < SOCKET_FD)
        os.close(source)
    os.environ.clear()
    for entry in entries:
        name, _, value = entry.partition(b"=")
        os.environb[name] = value
    time.tzset()
    if wanted.cwd:
        os.chdir(wanted.cwd)
    seed()


def seed() -> None:
    """Workers that were forked from one interpreter must not draw the same numbers."""
    random.seed()
    if (numpy := sys.modules.get("numpy")) is not None and "numpy.random" in sys.modules:
        numpy.random.seed()


def main() -> int:
    order = json.loads(sys.argv[1])
    connection = socket.socket(fileno=SOCKET_FD)
    connection.set_inheritable(False)
    connection.setblocking(True)
    try:
        warm_up(order["path"], [*order["modules"], order["main"]])
    except BaseException as error:
        send(connection, FORK_COLD, f"{type(error).__name__}: {error}".encode()[:256])
        return 0
    gc.collect()
    gc.freeze()  # collecting would touch, and so copy, every page of the workers
    wanted = serve(connection)
    if wanted is None:
        return 0
    become(wanted)
    sys.argv = [sys.argv[0]]
    return importlib.import_module(order["main"]).main()  # type: ignore[no-any-return]


if __name__ == "__main__":
    sys.exit(main())
