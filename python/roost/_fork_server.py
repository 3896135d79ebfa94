"""The warm program of a group: an interpreter that has imported what the workers need, and forks them.

    python _fork_server.py '{"executable": …, "prefix": …, "path": […], "modules": […]}'

The supervisor of the run starts it with a channel as descriptor 3 and asks for one worker at a time
(src/launch/local/forks.h is the protocol). It has one thread, imports libraries only, and none of the
variables that tell ranks apart while it does: nothing of one rank can be left in another. A worker is the
child of a process in between that exits at once, so that the supervisor becomes its parent; it waits for
that before it does anything."""

import gc
import importlib
import json
import os
import select
import socket
import struct
import sys
import threading
from dataclasses import dataclass

CHANNEL = 3  # of this program to the supervisor, and of a worker to its driver
FORK_ONE, FORK_BORN, FORK_COLD = 1, 2, 3
HEADER = struct.Struct("=IHHI")  # magic, version, type, length
MAGIC, VERSION = 0x54534F52, 1
NUMBERS = struct.Struct("=iii")
LARGEST = 1 << 16
DESCRIPTORS = 3  # stdout, stderr, channel


@dataclass
class Order:
    """A worker to fork."""

    rank: int
    life: int
    supervisor: int
    folder: bytes
    environ: dict[bytes, bytes]
    descriptors: list[int]


def receive(channel: socket.socket) -> Order | None:
    """The next one; None when the supervisor wants no more."""
    while True:
        select.select([channel], [], [])
        try:
            data, descriptors, _, _ = socket.recv_fds(channel, LARGEST, DESCRIPTORS)
        except BlockingIOError:
            continue
        if not data:
            return None
        return read_order(data, descriptors)


def read_order(data: bytes, descriptors: list[int]) -> Order:
    magic, version, kind, length = HEADER.unpack_from(data)
    body = data[HEADER.size :]
    if (magic, version, kind, length) != (MAGIC, VERSION, FORK_ONE, len(body)) or len(descriptors) != DESCRIPTORS:
        raise ValueError("what came is not an order for a worker")
    rank, life, supervisor = NUMBERS.unpack_from(body)
    folder, *variables = body[NUMBERS.size :].split(b"\0")[:-1]
    environ = dict(variable.split(b"=", 1) for variable in variables if b"=" in variable)
    return Order(rank, life, supervisor, folder, environ, descriptors)


def tell(channel: socket.socket, kind: int, body: bytes) -> None:
    message = HEADER.pack(MAGIC, VERSION, kind, len(body)) + body
    while True:
        try:
            channel.send(message)
            return
        except BlockingIOError:
            select.select([], [channel], [])


def import_modules(names: list[str]) -> None:
    """What cannot be imported is left to the workers: they can tell."""
    for name in names:
        try:
            importlib.import_module(name)
        except Exception:
            continue


def forget_ranks(environ: dict[bytes, bytes]) -> None:
    """The environment of this program alone: it was started with its first worker's."""
    keep = (b"PATH", b"HOME", b"USER", b"LANG", b"TMPDIR", b"VIRTUAL_ENV")
    early = (b"LD_", b"LC_", b"PYTHON", b"GLIBC_", b"MALLOC_", b"OPENBLAS_", b"OMP_", b"MKL_", b"KMP_", b"XDG_")
    for name in list(environ):
        if name not in keep and not name.startswith(early):
            del environ[name]


def fork_worker(channel: socket.socket, order: Order) -> bool:
    """True in the worker, when it may begin. Here: when the process in between has gone."""
    sys.stdout.flush()
    sys.stderr.flush()
    between = os.fork()
    if between:
        for descriptor in order.descriptors:
            os.close(descriptor)
        os.waitpid(between, 0)
        return False
    parent = os.pidfd_open(os.getpid())
    worker = os.fork()
    if worker:
        tell(channel, FORK_BORN, NUMBERS.pack(order.rank, order.life, worker))
        os._exit(0)
    select.select([parent], [], [])
    os.close(parent)
    return True


def become_worker(channel: socket.socket, order: Order) -> None:
    """What a process that is executed has from its start."""
    from roost import _roost

    if not _roost.follow_parent(order.supervisor):
        os._exit(1)  # the run has ended meanwhile
    os.setsid()
    stdout, stderr, own = order.descriptors
    os.dup2(stdout, 1)
    os.dup2(stderr, 2)
    channel.detach()
    os.dup2(own, CHANNEL, inheritable=False)
    os.closerange(CHANNEL + 1, max(order.descriptors) + 1)
    for name in list(os.environb):
        del os.environb[name]
    os.environb.update(order.environ)
    if order.folder:
        os.chdir(order.folder)
    refresh_random()


def refresh_random() -> None:
    """Numbers as in a new interpreter: of random and numpy from the system, of torch from its own first seed."""
    if "random" in sys.modules:
        sys.modules["random"].seed()
    if "numpy.random" in sys.modules:
        sys.modules["numpy.random"].seed()
    if "torch" in sys.modules:
        torch = sys.modules["torch"]
        torch.manual_seed(torch.initial_seed())


def warm_up(words: str) -> str:
    """Imports; why this program cannot serve, or nothing."""
    forget_ranks(os.environb)  # type: ignore[arg-type]
    folder = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    sys.path.insert(0, folder)
    try:
        import cloudpickle

        import roost._serve
    finally:
        sys.path.remove(folder)
    facts = json.loads(words)
    roost._serve.use_search_path(facts["executable"], facts["prefix"], facts["path"])
    import_modules(facts["modules"])
    if threading.active_count() > 1:
        return f"importing {', '.join(facts['modules'])} has started threads"
    gc.collect()
    gc.freeze()  # what is shared stays shared
    return "" if cloudpickle else ""


def main() -> int:
    channel = socket.socket(fileno=CHANNEL)
    channel.setblocking(False)
    try:
        problem = warm_up(sys.argv[1])
    except Exception as error:
        problem = f"{type(error).__name__}: {error}"
    if problem:
        tell(channel, FORK_COLD, problem.encode())
        return 0
    while True:
        order = receive(channel)
        if order is None:
            return 0
        try:
            is_worker = fork_worker(channel, order)
        except OSError as error:
            tell(channel, FORK_COLD, f"cannot fork: {error.strerror}".encode())
            return 0
        if is_worker:
            break
    become_worker(channel, order)
    from roost import _roost
    from roost._serve import serve

    sys.argv = [""]
    return serve(_roost.WorkerChannel.open(dict(os.environ)), os.environ)


if __name__ == "__main__":
    sys.exit(main())
