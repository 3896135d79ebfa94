"""A driver that launches and closes groups all day long is as it was: no descriptor, no thread, no child of them is left.

40 groups; ROOST_SOAK makes them 1,000."""

import os
import threading
import time
from collections import Counter
from pathlib import Path

from worker_home import WorkerHome
from worker_small import Small

PATIENCE = 30.0  # seconds; never a wait
NATIVE = len(os.listdir("/proc/self/task")) - threading.active_count()  # of libraries
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


def is_quiet() -> bool:
    """No thread of ours is left, also not for the kernel, which takes a moment longer than Python."""
    return len(threads()) <= NATIVE + threading.active_count() and not any(thread.name.startswith("roost-") for thread in threading.enumerate())


def until_quiet() -> bool:
    deadline = time.monotonic() + PATIENCE
    while not is_quiet() and time.monotonic() < deadline:
        time.sleep(0.01)
    return is_quiet()


def children() -> list[str]:
    """With zombies; of any thread."""
    found = []
    for thread in threads():
        for pid in Path(f"/proc/self/task/{thread}/children").read_text().split():
            stat = Path(f"/proc/{pid}/stat").read_text()
            found.append(stat[stat.index("(") : stat.rindex(")") + 1] + " zombie" * (stat[stat.rindex(")") + 2] in "ZX"))
    return sorted(found)


def state() -> tuple[list[str], Counter[str], list[str]]:
    return threads(), descriptors(), children()


def as_before(before: tuple[list[str], Counter[str], list[str]]) -> bool:
    """What ends takes a moment: a thread that shows output, one that was joined and is still known to the kernel."""
    deadline = time.monotonic() + PATIENCE
    while state() != before and time.monotonic() < deadline:
        time.sleep(0.01)
    return state() == before


def test_many_groups_leave_no_descriptor_no_thread_and_no_child(own_workers: WorkerHome) -> None:
    cluster = own_workers.cluster("1x2")

    def open_and_close(number: int) -> None:
        # Every tenth is started cold, every seventh loses a worker.
        with Small.create_group().launch(cluster, name="again", warm=number % 10 != 9) as group:
            assert group.add(number).wait() == [number, number + 1]
            if number % 7 == 6:
                group.execute_on(0).die()

    open_and_close(0)
    assert until_quiet(), "threads of the first group do not end"
    before = state()
    for number in range(1, GROUPS):
        open_and_close(number)
        if number % 20 == 19:
            assert as_before(before), f"after {number + 1} groups: {state()}, not {before}"
    assert as_before(before), f"{state()}, not {before}"
    own_workers.engine.wait_empty()
