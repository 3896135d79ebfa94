"""A driver that launches and closes groups all day long is as it was: no descriptor, no thread, no child of them is left.

40 groups; ROOST_SOAK makes them 1,000."""

import os
import time
from collections import Counter
from pathlib import Path

from worker_home import WorkerHome
from worker_small import Small

PATIENCE = 30.0  # seconds; never a wait
GROUPS = 1000 if os.environ.get("ROOST_SOAK") == "1" else 40


def descriptors() -> Counter[str]:
    """What is open, by kind: numbers of sockets and pipes differ each time."""
    kinds: Counter[str] = Counter()
    for fd in os.listdir("/proc/self/fd"):
        try:
            kinds[os.readlink(f"/proc/self/fd/{fd}").split(":[")[0]] += 1
        except FileNotFoundError:  # the one that listed them
            pass
    return kinds


def threads() -> list[str]:
    return sorted(os.listdir("/proc/self/task"))


def text_of(path: str) -> str:
    try:
        return Path(path).read_text()
    except (FileNotFoundError, ProcessLookupError):  # a thread or a child that has just ended
        return ""


def children() -> list[str]:
    """With zombies; of any thread."""
    pids = [pid for thread in threads() for pid in text_of(f"/proc/self/task/{thread}/children").split()]
    stats = [stat for pid in pids if (stat := text_of(f"/proc/{pid}/stat"))]
    return [
        stat[stat.index("(") : stat.rindex(")") + 1] + " zombie" * (stat[stat.rindex(")") + 2] in "ZX")
        for stat in stats
    ]


def state() -> Counter[str]:
    return Counter(f"thread {thread}" for thread in threads()) + descriptors() + Counter(children())


def more_than(before: Counter[str]) -> Counter[str]:
    """What has come and stays. What ends takes a moment: a thread that shows output, one that was joined and is still
    known to the kernel; and what an earlier test left here may go at any time."""
    deadline = time.monotonic() + PATIENCE
    while (more := state() - before) and time.monotonic() < deadline:
        time.sleep(0.01)
    return more


def test_many_groups_leave_no_descriptor_no_thread_and_no_child(own_workers: WorkerHome) -> None:
    cluster = own_workers.cluster("1x2")

    def open_and_close(number: int) -> None:
        # Every tenth is started cold, every seventh loses a worker.
        with Small.create_group().launch(cluster, name="again", warm=number % 10 != 9) as group:
            assert group.add(number).wait() == [number, number + 1]
            if number % 7 == 6:
                group.execute_on(0).die()

    open_and_close(0)
    before = state()
    for number in range(1, GROUPS):
        open_and_close(number)
        if number % 20 == 19:
            assert not more_than(before), f"after {number + 1} groups"
    assert not more_than(before)
    own_workers.engine.wait_empty()
