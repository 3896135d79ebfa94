"""Free ports for workers."""

import random
import socket

from roost import _roost
from roost._plan.arguments import as_int
from roost._work.managers import PortLockManager

FIRST, LAST = 1024, 65535
ATTEMPTS = 256
CHOICE = random.SystemRandom()  # the program's own random numbers stay as they are


def is_free(port: int) -> bool:
    """Whether no process listens on the port, on any address."""
    with socket.socket() as trial:
        try:
            trial.bind(("", port))
        except OSError:
            return False
    return True


def may_have(node_rank: int, worker_name: str, port: int) -> bool:
    """Whether PortLockManager gives this worker the port."""
    return PortLockManager.get_proxy().acquire(node_rank, worker_name, port)


def acquire_free_port(node_rank: int, worker_name: str, max_port_num: int | None) -> int:
    last = LAST if max_port_num is None else min(as_int("max_port_num", max_port_num), LAST)
    if last < FIRST:
        raise _roost.Error(f"max_port_num is {max_port_num}, but ports for workers start at {FIRST}")
    for _ in range(ATTEMPTS):
        port = CHOICE.randint(FIRST, last)
        if is_free(port) and may_have(node_rank, worker_name, port):
            return port
    raise _roost.Error(f"no free port from {FIRST} to {last} was found in {ATTEMPTS} attempts")
