"""Calls to groups: who is called with what, what comes back, and how it is waited for."""

import asyncio
import collections
import datetime
import enum
import gc
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest

import roost
from worker_classes import Asynchronous, Closing, Given, GivenLater, Helper, Many
from worker_home import WorkerHome


@pytest.fixture(scope="module")
def group(workers: WorkerHome) -> Iterator[roost.WorkerGroup]:
    """Four workers, one an accelerator."""
    with Helper.create_group(10, word="hello").launch(workers.cluster(), name="calls") as made:
        yield made


def test_a_call_goes_to_every_rank_with_the_same_arguments(group: roost.WorkerGroup) -> None:
    assert group.add(1).wait() == [11, 12, 13, 14]
    assert group.add(number=2).wait() == [12, 13, 14, 15]
    assert group.word().wait() == ["hello"] * 4
    assert group.add.__doc__ == "Adds the start and the rank."
    assert repr(group) == "<roost.WorkerGroup 'calls': 4 x Helper>"


def test_calls_are_sent_without_waiting_and_answered_in_their_order(group: roost.WorkerGroup) -> None:
    handles = [group.echo(number) for number in range(100)]
    assert [handle.wait() for handle in reversed(handles)] == [[number] * 4 for number in reversed(range(100))]
    assert all(handle.done() for handle in handles)
    assert handles[0].wait() == [0] * 4
    assert [outcome.kind for outcome in handles[0].outcomes] == ["value"] * 4


def test_chosen_ranks_are_called_in_the_order_given_and_once(group: roost.WorkerGroup) -> None:
    assert group.execute_on(2, 0).add(1).wait() == [13, 11]
    assert group.add(1).wait() == [11, 12, 13, 14]
    assert group.execute_on(np.int64(3)).add(1).wait() == [14]


@pytest.mark.parametrize("ranks", [(4,), (-1,), (0, 99), (), (1, 1)])
def test_a_rank_that_is_not_there_is_an_error_that_sticks_to_nothing(
    group: roost.WorkerGroup, ranks: tuple[int, ...]
) -> None:
    with pytest.raises(roost.RankError) as caught:
        group.execute_on(*ranks)
    assert isinstance(caught.value, AssertionError) and isinstance(caught.value, IndexError)
    assert group.add(1).wait() == [11, 12, 13, 14]


def test_threads_choose_ranks_without_disturbing_each_other(group: roost.WorkerGroup) -> None:
    wrong = []

    def call(rank: int) -> None:
        for number in range(100):
            if group.execute_on(rank).add(number).wait() != [10 + number + rank]:
                wrong.append((rank, number))

    threads = [threading.Thread(target=call, args=(rank,)) for rank in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []


class Color(enum.IntEnum):
    RED = 1


class Point(NamedTuple):
    x: int
    y: Any


def nested(depth: int) -> Any:
    return (nested(depth - 1),) if depth else ()


VALUES: list[Any] = [
    None,
    True,
    0,
    -1,
    2**31,
    2**63,
    -(2**64),
    10**400,
    0.0,
    -0.0,
    1e308,
    float("inf"),
    "",
    "é🤖",
    "\ud800",
    "__main__",
    b"",
    bytes(range(256)),
    (),
    (1, "two", 3.0, b"4", None, (5, [6, {"seven": 8}])),
    [],
    {},
    {1: 2, "a": None, (1, 2): [3]},
    list(range(1000)),
    nested(3),
    nested(9),
    nested(300),
    b"x" * 16380,
    b"x" * 20000,
    (b"x" * 40000,),
    "y" * 100000,
    {"k": b"z" * 33000},
    bytearray(b"ab"),
    {1, 2},
    frozenset((1,)),
    1j,
    range(3),
    ...,
    Color.RED,
    (Color.RED, 1),
    Point(1, [2]),
    collections.OrderedDict(a=1),
    datetime.timedelta(1),
    np.float64(2.5),
    len,
    dict,
]


@pytest.mark.parametrize("value", VALUES, ids=lambda value: repr(value)[:30])
def test_a_value_comes_back_as_it_was_sent(group: roost.WorkerGroup, value: Any) -> None:
    (back,) = group.execute_on(1).echo(value).wait()
    assert back == value and repr(back) == repr(value) and type(back) is type(value)
    assert group.execute_on(2).echo(value=[value, value]).wait() == [[value, value]]


def test_what_is_one_object_stays_one(group: roost.WorkerGroup) -> None:
    one = [1]
    for value in ((one, one), [one, {"a": one}], (one, one, Point(1, one))):
        (back,) = group.execute_on(0).echo(value).wait()
        first, second = back[0], back[-1]
        second = second["a"] if isinstance(second, dict) else second.y if isinstance(second, Point) else second
        assert first == [1] and first is second
    one.append(one)  # type: ignore[arg-type]
    (back,) = group.execute_on(0).echo(one).wait()
    assert back[0] == 1 and back[1] is back


def test_a_wait_again_gives_another_list_of_the_same_values(group: roost.WorkerGroup) -> None:
    handle = group.echo([1])
    first = handle.wait()
    again = handle.wait(60)
    assert first == again == [[1]] * 4 and first is not again and first[0] is again[0] is handle.outcomes[0].value
    first.clear()
    assert handle.wait() == [[1]] * 4


def test_a_plain_method_may_give_a_coroutine(group: roost.WorkerGroup) -> None:
    handle = group.soon(3)
    assert handle.wait() == [3] * 4 and handle.consume_durations() == {"later": pytest.approx(0.0, abs=10)}
    with pytest.raises(roost.WorkerError, match="ValueError: too late"):
        group.soon(-1).wait()


def test_what_a_call_times_after_its_end_is_of_no_other_call(group: roost.WorkerGroup) -> None:
    assert group.time_afterwards().consume_durations() == {}
    assert group.let_it_time().consume_durations() == {}
    assert list(group.timed().consume_durations()) == ["timed", "part", "whole"]
    assert group.word().consume_durations() == {}


@pytest.mark.local
def test_calls_leave_nothing_behind(group: roost.WorkerGroup) -> None:
    """Every way through a call, on both sides: what forty of each leave is not a block a call."""

    def call_all() -> None:
        for value in (None, (1, "a"), Color.RED, b"x" * 20000, b"x" * 50000, np.zeros(9000)):
            group.echo(value).wait()
        group.execute_on(1, 0).echo(value=1).wait()
        group.execute_on(1).soon(1).wait()
        for failing in (
            lambda: group.fail_on(0).wait(),
            lambda: group.lock().wait(),
            lambda: group.echo(threading.Lock()),
            lambda: group.add("a").wait(),
        ):
            with pytest.raises((roost.WorkerError, TypeError)):
                failing()
        group.execute_on(2).echo(1)  # and nobody waits for it

    def blocks() -> list[int]:
        gc.collect()
        return [*group.blocks().wait(), sys.getallocatedblocks()]

    def growth() -> int:
        before = blocks()
        for _ in range(40):
            call_all()
        return max(after - at_first for after, at_first in zip(blocks(), before, strict=True))

    grown = [growth()]
    while (
        grown[-1] >= 30 and len(grown) < 60
    ):  # Python's own stores are filled some day; a block a call would be there each time
        grown.append(growth())
    assert grown[-1] < 30, grown


@pytest.mark.local
def test_a_method_of_a_group_knows_its_name_and_its_group_says_when_it_is_closed(workers: WorkerHome) -> None:
    with Helper.create_group().launch(workers.cluster("1x1"), name="named") as group:
        add = group.add
        assert add.__name__ == "add" and add.__doc__ == "Adds the start and the rank." and group.word.__doc__ is None
        assert add(1).wait() == [2]
    for call in (lambda: add(1), lambda: group.add(1), lambda: group.execute_on(0).add(1)):
        with pytest.raises(roost.EngineError, match="group 'named' is closed"):
            call()


def test_only_public_methods_are_there(group: roost.WorkerGroup) -> None:
    for call in (lambda: group._private, lambda: group.execute_on(0)._private):
        with pytest.raises(ValueError, match="'_private' is private to Helper"):
            call()
    assert not hasattr(group, "_private")
    with pytest.raises(AttributeError, match="Helper has no public method 'nothing'"):
        group.nothing()
    with pytest.raises(AttributeError, match="no public method 'nothing'"):
        group.execute_on(0).nothing()


def test_a_method_with_arguments_of_its_own_is_one(group: roost.WorkerGroup) -> None:
    assert group.add_two().wait() == [12, 13, 14, 15]
    assert group.execute_on(1).add_two().wait() == [13]


def test_wait_gives_up_in_time_and_the_call_goes_on(group: roost.WorkerGroup, workers: WorkerHome) -> None:
    pipe = workers.engine.pipe("hanging")
    handle = group.hang_on(1, str(pipe.path))
    with pytest.raises(
        roost.Timeout,
        match=r"'hang_on' of group 'calls' is not done after 0.05 s: 1 of 4 ranks have not answered \(rank 1\)",
    ) as caught:
        while True:  # until the others have answered
            kinds = [outcome.kind for outcome in handle.outcomes]
            assert set(kinds) <= {"value", "pending"}
            if kinds == ["value", "pending", "value", "value"]:
                handle.wait(0.05)
    assert isinstance(caught.value, TimeoutError) and caught.value.code == "timeout"
    assert not handle.done()
    pipe.write()
    assert handle.wait(60) == [0, 1, 2, 3]
    with pytest.raises(roost.Error, match="timeout must be a number of seconds"):
        handle.wait(-1)


def test_calls_can_be_awaited(group: roost.WorkerGroup) -> None:
    async def both() -> list[list[int]]:
        return await asyncio.gather(group.add(1).async_wait(), group.execute_on(3, 1).add(2).async_wait())

    assert asyncio.run(both()) == [[11, 12, 13, 14], [15, 13]]


def test_awaiting_leaves_the_loop_to_others(group: roost.WorkerGroup, workers: WorkerHome) -> None:
    pipe = workers.engine.pipe("awaited")

    async def main() -> list[int]:
        handle = group.hang_on(0, str(pipe.path))
        with pytest.raises(roost.Timeout):
            await handle.async_wait(0.01)
        waiting = asyncio.ensure_future(handle.async_wait())
        await asyncio.sleep(0)
        pipe.write()
        return await waiting

    assert asyncio.run(main()) == [0, 1, 2, 3]


def test_durations_are_those_of_the_ranks_called(group: roost.WorkerGroup) -> None:
    everywhere = group.timed()
    here = group.execute_on(0).timed()
    assert set(here.consume_durations()) == {"timed", "part", "whole"}
    reduced, per_rank = everywhere.consume_durations("mean", return_per_rank=True)
    assert len(per_rank) == 4 and reduced["whole"] == pytest.approx(sum(times["whole"] for times in per_rank) / 4)
    assert everywhere.consume_durations("max")["whole"] == max(times["whole"] for times in per_rank)
    assert everywhere.consume_duration("min") == min(times["timed"] for times in per_rank)
    assert 0.001 <= here.consume_duration() <= here.consume_durations()["whole"]
    assert group.execute_on(1).add(1).consume_duration() > 0.0
    assert group.add(1).consume_durations() == {}
    with pytest.raises(ValueError, match="reduction_type must be 'max', 'min' or 'mean', not 'sum'"):
        here.consume_duration("sum")


def test_timers_add_up_until_they_are_read(group: roost.WorkerGroup) -> None:
    group.pop_execution_times().wait()
    first = group.execute_on(0).timed().consume_durations()
    second = group.execute_on(0).timed().consume_durations()
    assert group.execute_on(0).pop_execution_time("part").wait() == [pytest.approx(first["part"] + second["part"])]
    with pytest.raises(roost.WorkerError, match="nothing was timed as 'part'; tags that were: timed, whole") as caught:
        group.execute_on(0).pop_execution_time("part").wait()
    assert isinstance(caught.value.__cause__, ValueError)
    assert set(group.pop_execution_times().wait()[0]) == {"timed", "whole"}
    assert group.pop_execution_times().wait() == [{}] * 4


# --- values


def test_arrays_arrive_as_read_only_views(group: roost.WorkerGroup) -> None:
    array = np.arange(100_000, dtype=np.float32)
    assert group.look_at(array).wait() == [(False, False, float(array.sum()), "float32")] * 4
    assert group.look_at(array.reshape(100, 1000).T).wait()[0][2] == float(array.sum())
    assert group.look_at(array[::3]).wait()[0][2] == float(array[::3].sum())
    [back] = group.execute_on(0).echo({"a": array}).wait()
    assert np.array_equal(back["a"], array) and not back["a"].flags.writeable
    array += 1  # the caller's own stays the caller's


def test_an_array_that_a_worker_keeps_stays_as_it_is(group: roost.WorkerGroup) -> None:
    kept = np.full(1_000_000, 3, np.uint8)
    group.keep(kept).wait()
    for number in range(20):
        group.echo(np.full(1_000_000, number, np.uint8)).wait()
    assert group.kept().wait() == [3_000_000.0] * 4
    group.keep(np.zeros(1)).wait()


def test_large_values_go_both_ways(group: roost.WorkerGroup) -> None:
    data = bytes(range(256)) * (1 << 17)
    assert group.echo(data).wait() == [data] * 4
    assert group.execute_on(0).echo((data, [data], {"k": bytearray(data)})).wait() == [
        (data, [data], {"k": bytearray(data)})
    ]
    arrays = group.zeros(48 << 20).wait()
    assert [array.shape for array in arrays] == [(48 << 20,)] * 4


@pytest.mark.parametrize(
    "value",
    [None, (), {"a": [1, 2.5, "ü"]}, b"", b"x" * 70_000, [b"x" * 70_000], {1, 2}, float("inf"), "\ud800", range(5)],
)
def test_values_come_back_as_they_went(group: roost.WorkerGroup, value: object) -> None:
    assert group.execute_on(1).echo(value).wait() == [value]


def test_many_arrays_in_one_value(group: roost.WorkerGroup) -> None:
    arrays = [np.full(number, number) for number in range(300)]
    [back] = group.execute_on(0).echo(arrays).wait()
    assert all(np.array_equal(one, other) for one, other in zip(arrays, back, strict=True))


def test_what_cannot_be_sent_is_said_before_anything_is(group: roost.WorkerGroup) -> None:
    with pytest.raises(TypeError, match="cannot pickle"):
        group.echo(threading.Lock())
    assert group.add(1).wait() == [11, 12, 13, 14]


def test_functions_travel(group: roost.WorkerGroup) -> None:
    factor = 3
    [back] = group.execute_on(0).echo(lambda number: factor * number).wait()
    assert back(4) == 12


# --- several at once


def test_threads_of_one_worker_run_calls_at_once(workers: WorkerHome) -> None:
    with Many.create_group().launch(workers.cluster("1x1"), name="threads", max_concurrency=3) as group:
        assert [len(handle.wait(60)) for handle in [group.meet() for _ in range(3)]] == [1, 1, 1]
        assert [handle.wait(60) for handle in [group.echo(number) for number in range(50)]] == [
            [number] for number in range(50)
        ]


@pytest.mark.local  # on Ray a call never waits for room
def test_a_call_that_waits_for_room_can_be_interrupted(own_workers: WorkerHome) -> None:
    """The handler raises when no call was made since it ran last: there is no room then."""
    done = own_workers.script(
        """
        import os, signal, roost
        from worker_classes import Helper
        group = Helper.create_group().launch(roost.Cluster(cluster="1x4"), name="full")
        pids, calls, seen = group.pid().wait(), [], [-1]
        for pid in pids:
            os.kill(pid, signal.SIGSTOP)
        def look(number, frame):
            if seen[0] == len(calls) > 0:
                raise KeyboardInterrupt
            seen[0] = len(calls)
        signal.signal(signal.SIGALRM, look)
        signal.setitimer(signal.ITIMER_REAL, 1, 1)
        try:
            while True:
                calls.append(group.echo(bytes(1 << 20)))
        except KeyboardInterrupt:
            signal.setitimer(signal.ITIMER_REAL, 0)
        for pid in pids:
            os.kill(pid, signal.SIGCONT)
        print(len(calls) > 0, {len(value) for value in calls[-1].wait()}, group.add(1).wait())
        """,
        PYTHONPATH=str(Path(__file__).parent),
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, f"True {{{1 << 20}}} [2, 3, 4, 5]\n", "")


@pytest.mark.local  # Ray has its event loop in a thread beside the main one
def test_coroutines_run_at_once_on_one_loop(workers: WorkerHome) -> None:
    with Asynchronous.create_group().launch(workers.cluster("1x2"), name="coroutines") as group:
        assert [handle.wait(60) for handle in [group.meet(20) for _ in range(20)]] == [[True, True]] * 20
        assert group.add(1).wait() == [2, 3]
        with pytest.raises(roost.WorkerError, match="ValueError: later"):
            group.fail().wait()


@pytest.mark.local  # what Ray keeps of it is Ray's business
@pytest.mark.parametrize("cls", [Given, GivenLater], ids=["one by one", "on a loop"])
def test_what_a_constructor_was_given_is_not_kept(workers: WorkerHome, cls: type[Given]) -> None:
    with cls.create_group(np.zeros(1 << 20)).launch(workers.cluster("1x1"), name="given") as group:
        assert group.has_given().wait() == [False]


@pytest.mark.local
def test_threads_of_a_worker_go_on_while_its_driver_does_not_read(own_workers: WorkerHome) -> None:
    done = own_workers.script(
        """
        import os, roost, numpy as np
        from worker_classes import Dropping
        group = Dropping.create_group().launch(roost.Cluster(cluster="1x1"), name="dropping")
        for i in range(100):
            group.keep_another(np.zeros(1 << 16)).wait()
        print(group.drop_all(os.getpid()).wait(), group.add(1).wait())
        """,
        PYTHONPATH=str(Path(__file__).parent),
        timeout=60,
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "[100] [2]\n", "")


def test_several_groups_at_once(workers: WorkerHome) -> None:
    cluster = workers.cluster("1x2")
    with (
        Helper.create_group(100).launch(cluster, name="one") as one,
        Helper.create_group(200).launch(
            cluster, name="two", placement_strategy=roost.NodePlacementStrategy([0, 0, 0])
        ) as two,
    ):
        first, second = one.add(0), two.add(0)
        assert second.wait() == [200, 201, 202] and first.wait() == [100, 101]
        found = roost.WorkerGroup.from_group_name(Helper, "two")
        assert found.add(1).wait() == [201, 202, 203] and found.execute_on(1).add(0).wait() == [201]
        assert roost.WorkerGroup.from_group_name(Closing, "one").close


def test_a_class_may_have_a_method_close(workers: WorkerHome) -> None:
    with Closing.create_group().launch(workers.cluster("1x2"), name="closing") as group:
        assert group.close().wait() == ["closed by 0", "closed by 1"]
        group._close()
        with pytest.raises(roost.EngineError, match="group 'closing' is closed"):
            group.close()


def test_shutdown_ends_a_group_whatever_methods_its_class_has(workers: WorkerHome) -> None:
    group = Closing.create_group()
    roost.WorkerGroup.shutdown(group)  # it was not launched
    group.launch(workers.cluster("1x2"), name="closing")
    assert group.close().wait() == ["closed by 0", "closed by 1"]
    roost.WorkerGroup.shutdown(group)
    roost.WorkerGroup.shutdown(group)
    with pytest.raises(roost.EngineError, match="group 'closing' is closed"):
        group.close()
    Closing.create_group().launch(workers.cluster("1x1"), name="closing")._close()  # the name is free
    with pytest.raises(TypeError, match="group must be a WorkerGroup, not str"):
        roost.WorkerGroup.shutdown("closing")  # type: ignore[arg-type]
