"""Faults of RLinf's worker groups that roost must not have, a test each.

The same behaviour is tested in more depth elsewhere: test_worker_calls.py, test_worker_failures.py, test_worker_life.py."""

import asyncio
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

import roost
from engine import wait_gone
from worker_classes import Clashing, Helper, Refusing
from worker_home import WorkerHome
from worker_small import Marking

HERE = str(Path(__file__).parent)


@pytest.fixture(scope="module")
def group(workers: WorkerHome) -> Iterator[roost.WorkerGroup]:
    with Helper.create_group(10).launch(workers.cluster("1x4"), name="faults") as launched:
        yield launched


@pytest.mark.local  # a described cluster
def test_a_driver_keeps_its_exit_status_and_its_exit_handlers(own_workers: WorkerHome) -> None:
    done = own_workers.script(
        """
        import atexit, sys
        atexit.register(print, "registered first")
        import roost
        from worker_classes import Helper
        group = Helper.create_group().launch(roost.Cluster(cluster="1x2"), name="status")
        print(group.add(1).wait())
        sys.exit(3)
        """,
        PYTHONPATH=HERE,
    )
    assert (done.returncode, done.stdout) == (3, "[2, 3]\nregistered first\n"), done.stderr
    own_workers.engine.wait_empty()


def test_a_failed_call_is_an_exception_of_wait(group: roost.WorkerGroup) -> None:
    handle = group.fail_on(2)
    with pytest.raises(roost.WorkerError) as caught:
        handle.wait()
    assert caught.value.rank == 2 and isinstance(caught.value.__cause__, KeyError)
    assert [outcome.kind for outcome in handle.outcomes] == ["value", "value", "error", "value"]
    assert group.add(0).wait() == [10, 11, 12, 13]  # nobody was killed


@pytest.mark.local  # on Ray: R14 of test_ray_faults.py
def test_every_one_of_more_than_a_hundred_workers_is_ended(own_workers: WorkerHome) -> None:
    done = own_workers.script(
        """
        import os, roost
        from worker_small import Small
        group = Small.create_group().launch(roost.Cluster(cluster="1x120"), name="many")
        assert group.add(0).wait() == list(range(120))
        """,
        timeout=300,
        PYTHONPATH=HERE,
    )
    assert done.returncode == 0, done.stderr
    own_workers.engine.wait_empty()


@pytest.mark.local  # Ray's nodes are what they are
def test_a_second_cluster_is_as_its_arguments_say_and_an_error_can_be_retried(own_workers: WorkerHome) -> None:
    small = own_workers.cluster("1x1")
    with pytest.raises(roost.Error):
        own_workers.cluster("no cluster at all")
    large = own_workers.cluster("2x2")
    assert (small.num_nodes, large.num_nodes) == (1, 2)
    with (
        Helper.create_group().launch(small, name="small") as one,
        Helper.create_group().launch(large, name="large") as other,
    ):
        assert (one.add(0).wait(), other.add(0).wait()) == ([1], [1, 2, 3, 4])


def test_launch_returns_when_all_are_ready_and_raises_what_a_constructor_raises(
    workers: WorkerHome, tmp_path: Path
) -> None:
    with pytest.raises(roost.WorkerError, match="failed to start: LookupError"):
        Refusing.create_group(1).launch(workers.cluster("1x2"), name="refused")
    with Marking.create_group(str(tmp_path)).launch(workers.cluster("1x4"), name="refused"):
        assert sorted(path.name for path in tmp_path.iterdir()) == [
            "0",
            "1",
            "2",
            "3",
        ]  # each constructor has come to its end


def test_a_group_that_is_found_by_its_name_is_called_like_any_other(group: roost.WorkerGroup) -> None:
    found = roost.WorkerGroup.from_group_name(Helper, "faults")
    assert found.add(1).wait() == [11, 12, 13, 14]
    assert found.execute_on(3).add(1).wait() == [14]


def test_ranks_are_chosen_for_one_call_and_a_bad_choice_sticks_to_nothing(group: roost.WorkerGroup) -> None:
    with pytest.raises(roost.RankError):
        group.execute_on(9)
    assert group.add(0).wait() == [10, 11, 12, 13]
    chosen = group.execute_on(2, 0)
    assert group.add(0).wait() == [10, 11, 12, 13]  # somebody else's call
    assert chosen.add(0).wait() == [12, 10]
    assert group.add(0).wait() == [10, 11, 12, 13]


def test_a_group_that_is_launched_again_has_a_master_port_of_its_own(own_workers: WorkerHome) -> None:
    cluster = own_workers.cluster("1x3")

    def look(group: roost.WorkerGroup) -> int:
        """The port, which every rank and the managers agree on; rank 0 can listen on it."""
        [port] = {int(environ["MASTER_PORT"]) for environ in group.environment().wait()}
        info = roost.WorkerManager.get_proxy().get_worker_info("again:0")
        assert info is not None and info.node_port == port
        assert {fields["port"] for fields in group.fields().wait()} == {port}
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", port))
        return port

    with Helper.create_group().launch(cluster, name="again") as group:
        old, pids = look(group), group.pid().wait()
    wait_gone(pids)
    with socket.socket() as taken:  # so that the same one by chance does not pass for the newest
        taken.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        taken.bind(("127.0.0.1", old))
        taken.listen()
        with Helper.create_group().launch(cluster, name="again") as group:
            assert look(group) != old
            assert group.pid().wait() != pids
        with Helper.create_group().launch(cluster, name="again", warm=False) as group:
            assert look(group) != old


def test_a_name_with_a_colon_is_refused(workers: WorkerHome) -> None:
    before = len(workers.engine.runs())
    with pytest.raises(ValueError, match="'a:0' cannot be the name of a group"):
        Helper.create_group().launch(workers.cluster("1x1"), name="a:0")
    assert len(workers.engine.runs()) == before


def test_a_clash_of_names_is_said_before_anything_starts(workers: WorkerHome) -> None:
    before = len(workers.engine.runs())
    with pytest.raises(ValueError, match="Clashing has a method 'execute_on', which is a method of the group itself"):
        Clashing.create_group().launch(workers.cluster("1x1"), name="clashing")
    assert len(workers.engine.runs()) == before


def test_durations_are_those_of_the_call_and_of_the_ranks_called(group: roost.WorkerGroup) -> None:
    first = group.execute_on(0).timed()
    whole = first.consume_durations()["whole"]
    second = group.execute_on(0).timed()
    reduced, per_rank = second.consume_durations("max", return_per_rank=True)
    assert len(per_rank) == 1 and reduced["whole"] == per_rank[0]["whole"]
    assert first.consume_durations()["whole"] == whole  # the second call added nothing to the first
    group.pop_execution_times().wait()


def test_waits_have_a_timeout_and_awaiting_ends_with_a_failure(group: roost.WorkerGroup, workers: WorkerHome) -> None:
    pipe = workers.engine.pipe("waits")
    handle = group.hang_on(1, str(pipe.path))
    with pytest.raises(roost.Timeout):
        handle.wait(0.01)
    with pytest.raises(roost.Timeout):
        asyncio.run(handle.async_wait(0.01))
    pipe.write()
    assert handle.wait(60) == [0, 1, 2, 3]
    with pytest.raises(roost.WorkerError):
        asyncio.run(group.fail_on(0).async_wait())
