"""Answers that nobody waits for are read all the same: workers go on, whoever waits for what."""

import asyncio
import os
import select
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

import roost
from roost._work.call import Handle
from worker_classes import Asynchronous, Helper
from worker_home import WorkerHome

pytestmark = pytest.mark.local

PATIENCE = 60.0  # seconds; never a wait
LARGE = 8 << 20  # bytes: more than any connection holds


class Bell:
    """A pipe with a name, on which a worker rings."""

    def __init__(self, path: Path) -> None:
        os.mkfifo(path)
        self.path = str(path)
        self._fd = os.open(path, os.O_RDWR | os.O_NONBLOCK)

    def rings(self) -> bool:
        ready, _, _ = select.select([self._fd], [], [], PATIENCE)
        return bool(ready) and os.read(self._fd, 1) == b"!"

    def close(self) -> None:
        os.close(self._fd)


@pytest.fixture
def bell(tmp_path: Path) -> Iterator[Bell]:
    made = Bell(tmp_path / "bell")
    yield made
    made.close()


def reading_threads() -> list[threading.Thread]:
    return [thread for thread in threading.enumerate() if thread.name == "roost-reader"]


def test_a_group_goes_on_while_another_one_is_waited_for(own_workers: WorkerHome, tmp_path: Path) -> None:
    cluster, path = own_workers.cluster("1x2"), tmp_path / "pipe"
    os.mkfifo(path)
    with (
        Helper.create_group().launch(cluster, name="rollout") as rollout,
        Helper.create_group().launch(cluster, name="actor") as actor,
    ):
        made = rollout.execute_on(0).zeros(LARGE)
        rollout.execute_on(0).ring(str(path))
        assert actor.execute_on(0).hear(str(path)).wait(PATIENCE) == [b"!"]
        assert len(made.wait(PATIENCE)[0]) == LARGE


def test_calls_that_nobody_waits_for_all_run(own_workers: WorkerHome, bell: Bell) -> None:
    with Helper.create_group().launch(own_workers.cluster("1x1"), name="busy") as group:
        handles = [group.add(number) for number in range(20_000)]
        group.ring(bell.path)
        assert bell.rings()
        assert [handle.wait() for handle in handles] == [[number + 1] for number in range(20_000)]


def test_an_event_loop_of_a_worker_goes_on_with_a_large_result_unread(own_workers: WorkerHome, bell: Bell) -> None:
    with Asynchronous.create_group().launch(own_workers.cluster("1x1"), name="loop") as group:
        large = group.zeros(LARGE)
        meetings = [group.meet(2)]
        group.ring(bell.path)
        assert bell.rings()
        meetings.append(group.meet(2))
        assert [meeting.wait() for meeting in meetings] == [[True], [True]]
        assert len(large.wait()[0]) == LARGE


def test_answers_to_handles_that_were_dropped_are_read_and_forgotten(own_workers: WorkerHome, bell: Bell) -> None:
    with Helper.create_group().launch(own_workers.cluster("1x1"), name="careless") as group:
        for _ in range(1000):
            group.echo(b"x" * 4096)
        for _ in range(4):
            group.zeros(LARGE)
        group.ring(bell.path)
        assert bell.rings()
        assert group.add(1).wait() == [2]


def test_groups_can_be_closed_with_answers_unread(own_workers: WorkerHome) -> None:
    cluster = own_workers.cluster("1x2")
    for number in range(5):
        with Helper.create_group().launch(cluster, name="hasty") as group:
            handles = [group.zeros(LARGE) for _ in range(number)]
        for handle in handles:  # each has its outcome, whichever
            assert {outcome.kind for outcome in handle.outcomes} <= {"value", "unknown"}


def test_one_thread_reads_for_all_groups_and_ends_with_the_last(own_workers: WorkerHome) -> None:
    cluster = own_workers.cluster("1x1")
    for _ in range(2):
        with Helper.create_group().launch(cluster, name="first") as first:
            with Helper.create_group().launch(cluster, name="second"):
                [thread] = reading_threads()
            assert first.add(1).wait() == [2]
            assert reading_threads() == [thread]
        thread.join(PATIENCE)
        assert not thread.is_alive()


def test_coroutines_have_their_results_whichever_thread_reads_them(own_workers: WorkerHome, tmp_path: Path) -> None:
    path = tmp_path / "pipe"
    os.mkfifo(path)

    async def call_often(group: roost.WorkerGroup) -> list[list[int]]:
        return [await group.execute_on(1).add(number).async_wait(PATIENCE) for number in range(300)]

    with Helper.create_group().launch(own_workers.cluster("1x2"), name="shared") as group:
        waiting = group.execute_on(0).hear(str(path))
        leader = threading.Thread(target=waiting.wait, args=(PATIENCE,))  # reads for all
        leader.start()
        assert asyncio.run(call_often(group)) == [[number + 2] for number in range(300)]
        group.execute_on(1).ring(str(path)).wait()
        leader.join(PATIENCE)
        assert waiting.wait(0) == [b"!"]


def test_a_loop_that_ends_in_the_middle_of_a_wait_leaves_nothing_behind(
    own_workers: WorkerHome, tmp_path: Path
) -> None:
    path = tmp_path / "pipe"
    os.mkfifo(path)

    async def give_up(handle: Handle) -> None:
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(handle.async_wait(), 0.01)

    with Helper.create_group().launch(own_workers.cluster("1x2"), name="left") as group:
        handle = group.execute_on(0).hear(str(path))
        before = len(os.listdir("/proc/self/fd"))
        for _ in range(5):
            asyncio.run(give_up(handle))
        assert len(os.listdir("/proc/self/fd")) <= before + 2  # those of the last loop
        group.execute_on(1).ring(str(path)).wait()
        assert handle.wait(PATIENCE) == [b"!"]


FORKS = """
import os, sys, threading, roost
from worker_classes import Helper

def named():
    return [thread for thread in threading.enumerate() if thread.name == "roost-reader"]

if __name__ == "__main__":
    os.mkfifo("pipe")
    bell = os.open("pipe", os.O_RDWR)
    group = Helper.create_group().launch(roost.Cluster(cluster="1x1"), name="mine")
    handles = [group.zeros(8 << 20)]
    if (pid := os.fork()) == 0:
        assert not named()
        handles.clear()
        with Helper.create_group().launch(roost.Cluster(cluster="1x1"), name="own") as own:
            assert len(named()) == 1
            large = own.zeros(8 << 20)
            own.ring("pipe")
            assert os.read(bell, 1) == b"!"
            assert len(large.wait()[0]) == 8 << 20
        os._exit(5)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 5
    handles.append(group.zeros(8 << 20))
    group.ring("pipe")
    assert os.read(bell, 1) == b"!"
    print([len(handle.wait()[0]) for handle in handles])
"""


def test_a_driver_that_forks_reads_on_and_its_child_reads_for_its_own_groups(own_workers: WorkerHome) -> None:
    done = own_workers.script(FORKS, PYTHONPATH=str(Path(__file__).parent))
    assert (done.returncode, done.stdout, done.stderr) == (0, f"[{LARGE}, {LARGE}]\n", "")
