"""The environment of a node, as a process of Ray there sees it. Runs on the node."""

import os
from pathlib import Path

# Variables that Ray gives to its own processes.
RAYS_OWN = ("OMP_NUM_THREADS", "PYTHONBREAKPOINT", "RAY_JOB_ID", "RAY_RAYLET_PID", "SPT_NOENV")


def node_environment() -> dict[str, str]:
    """What the node has had since Ray was started there. A process of Ray's has more, of Ray's own (OMP_NUM_THREADS=1, a
    debugger for breakpoint(), ...), which is not for others, and less: its raylet was started with an allocator of Ray's."""
    own = dict(os.environ)
    try:
        text = Path(f"/proc/{own['RAY_RAYLET_PID']}/environ").read_bytes()
    except (KeyError, OSError):  # of another Ray than was seen
        return {name: value for name, value in own.items() if name not in RAYS_OWN}
    entries = [entry.partition("=") for entry in os.fsdecode(text).split("\0") if "=" in entry]
    return {name: value for name, _, value in entries if name in own}


def own_place() -> tuple[int, str]:
    """Whose processes share ports with this one's: the user, and the network namespace."""
    try:
        return os.getuid(), os.readlink("/proc/self/ns/net")
    except OSError:
        return os.getuid(), ""
