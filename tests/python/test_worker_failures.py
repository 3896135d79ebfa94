"""What fails raises in the caller, says which rank and why, and takes nothing else with it."""

import gc
import os
import re
import signal
import threading
from collections.abc import Iterator

import pytest

import roost
from engine import wait_gone
from worker_classes import Clashing, Helper, Homebody, Refusing
from worker_home import WorkerHome


@pytest.fixture(scope="module")
def group(workers: WorkerHome) -> Iterator[roost.WorkerGroup]:
    strategy = roost.PackedPlacementStrategy(0, 7, num_hardware_per_process=2)
    with Helper.create_group().launch(workers.cluster("2x4"), strategy, "failing") as made:
        yield made


def test_a_failing_rank_raises_with_its_place_and_traceback(group: roost.WorkerGroup) -> None:
    handle = group.fail_on(3)
    with pytest.raises(roost.WorkerError) as caught:
        handle.wait()
    error = caught.value
    assert str(error).startswith(
        "rank 3 of group 'failing' (node 1, accelerators 2,3) failed in 'fail_on': KeyError: 'rank 3 was told to'\n\nTraceback"
    )
    assert (error.rank, error.node_rank, error.accelerators, error.code) == (3, 1, ["2", "3"], "worker")
    assert (
        'raise KeyError(f"rank {self._rank} was told to")' in error.traceback
        and "roost/_work/host" not in error.traceback
    )
    assert (
        isinstance(error, RuntimeError)
        and isinstance(error.__cause__, KeyError)
        and error.__cause__.args == ("rank 3 was told to",)
    )
    assert [(outcome.rank, outcome.kind, outcome.value) for outcome in error.outcomes] == [
        (0, "value", 0),
        (1, "value", 1),
        (2, "value", 2),
        (3, "error", None),
    ]
    assert handle.outcomes[3].exception is not None and handle.outcomes[0].seconds is not None
    with pytest.raises(roost.WorkerError):
        handle.wait()
    assert group.add(1).wait() == [2, 3, 4, 5]


def test_the_first_in_the_order_called_is_told_and_the_others_are_named(group: roost.WorkerGroup) -> None:
    with pytest.raises(roost.WorkerError, match="rank 2 of group .*; so did ranks 0, 1"):
        group.execute_on(3, 2, 0, 1).fail_on(0, 1, 2).wait()


def test_another_rank_that_failed_is_one(group: roost.WorkerGroup) -> None:
    with pytest.raises(roost.WorkerError, match="; so did rank 1"):
        group.execute_on(0, 1).fail_on(0, 1).wait()


def test_an_exception_that_cannot_be_carried_is_told_in_words(group: roost.WorkerGroup) -> None:
    with pytest.raises(roost.WorkerError, match="Stubborn: in\n") as caught:
        group.fail_stubbornly().wait()
    assert caught.value.__cause__ is None and "two lines" in caught.value.traceback


def test_sys_exit_is_a_failure_and_no_end(group: roost.WorkerGroup) -> None:
    pids = group.pid().wait()
    with pytest.raises(roost.WorkerError, match=r"RuntimeError: 'leave' called sys.exit\(3\)"):
        group.leave().wait()
    assert group.pid().wait() == pids


def test_a_long_message_is_cut_in_the_error_and_whole_in_the_traceback(group: roost.WorkerGroup) -> None:
    with pytest.raises(roost.WorkerError, match=r"ValueError: x+ \.\.\. \(\d+ characters\) \.\.\. x+") as caught:
        group.fail_at_length(5_000_000).wait()
    assert len(str(caught.value).splitlines()[0]) < 2_000 and len(str(caught.value)) < 50_000
    assert caught.value.traceback.count("x") > 5_000_000 and "in fail_at_length" in str(caught.value)
    assert len(str(caught.value.__cause__)) == 5_000_000


def test_a_result_that_cannot_be_sent_is_that_calls_failure(group: roost.WorkerGroup) -> None:
    with pytest.raises(roost.WorkerError, match="what 'lock' returned cannot be sent: TypeError: cannot pickle"):
        group.lock().wait()
    assert group.add(0).wait() == [1, 2, 3, 4]


def test_wrong_arguments_are_the_methods_failure(group: roost.WorkerGroup) -> None:
    with pytest.raises(roost.WorkerError, match="TypeError: .*add.* unexpected keyword argument 'wrong'"):
        group.add(1, wrong=2).wait()


def test_a_failure_is_told_although_others_wait_for_it_for_ever(group: roost.WorkerGroup, workers: WorkerHome) -> None:
    pipe = workers.engine.pipe("collective")
    handle = group.fail_or_hang(str(pipe.path))
    with pytest.raises(roost.WorkerError, match="the collective is broken") as caught:
        handle.wait()
    assert [outcome.kind for outcome in caught.value.outcomes] == ["error", "pending", "pending", "pending"]
    assert not handle.done()
    pipe.write(b"xxx")


# --- workers that die


@pytest.mark.local  # Ray does not tell by what a process ended
def test_a_worker_that_dies_leaves_its_call_unknown_and_the_others_alone(own_workers: WorkerHome) -> None:
    with Helper.create_group().launch(own_workers.cluster("1x4"), name="dying") as group:
        with pytest.raises(
            roost.WorkerError, match="rank 2 of group 'dying' .* failed in 'die_on': .*killed by signal 9"
        ) as caught:
            group.die_on(2).wait()
        outcomes = caught.value.outcomes
        assert [(outcome.kind, outcome.value) for outcome in outcomes] == [
            ("value", 0),
            ("value", 1),
            ("unknown", None),
            ("value", 3),
        ]
        end = outcomes[2].end
        assert end is not None and end["signal"] == signal.SIGKILL and end["rank"] == 2
        with pytest.raises(
            roost.WorkerError, match="failed in 'add': it had ended before: its process was killed by signal 9"
        ) as caught:
            group.add(1).wait()
        assert [outcome.kind for outcome in caught.value.outcomes] == ["value", "value", "not_run", "value"]
        assert group.execute_on(0, 1, 3).add(1).wait() == [2, 3, 5]


def test_a_worker_that_is_killed_in_a_call_ends_that_call(own_workers: WorkerHome) -> None:
    pipe = own_workers.engine.pipe("never")
    with Helper.create_group().launch(own_workers.cluster("1x2"), name="killed") as group:
        pids = group.pid().wait()
        handle = group.hang_on(1, str(pipe.path))
        os.kill(pids[1], signal.SIGKILL)
        with pytest.raises(roost.WorkerError) as caught:
            handle.wait(60)
        assert [outcome.kind for outcome in caught.value.outcomes] == ["value", "unknown"]
        assert group.execute_on(0).add(0).wait() == [1]


def test_closing_ends_calls_and_processes(own_workers: WorkerHome) -> None:
    pipe = own_workers.engine.pipe("never")
    group = Helper.create_group().launch(own_workers.cluster("1x2"), name="closed")
    pids = group.pid().wait()
    handle = group.hang_on(0, str(pipe.path))
    group.close()
    group.close()
    wait_gone(pids)
    assert handle.done() and handle.outcomes[0].kind == "unknown"
    with pytest.raises(roost.EngineError, match="group 'closed' is closed"):
        group.add(1)
    with pytest.raises(roost.EngineError):
        roost.WorkerGroup.from_group_name(Helper, "closed")
    with Helper.create_group().launch(own_workers.cluster("1x2"), name="closed") as again:
        assert again.add(1).wait() == [2, 3]


def test_nothing_of_closed_groups_stays_in_the_driver(own_workers: WorkerHome) -> None:
    cluster = own_workers.cluster("1x2")

    def open_and_close(warm: bool) -> tuple[int, int]:
        with Helper.create_group().launch(cluster, name="again", warm=warm) as group:
            assert group.add(1).wait() == [2, 3] and len(group.echo(bytes(100_000)).wait()) == 2
        del group
        return len(os.listdir("/proc/self/fd")), threading.active_count()

    gc.collect()
    gc.disable()  # what it takes away was not given back
    try:
        first, *later = [open_and_close(warm) for warm in (True, False, True, False)]
        if own_workers.name == "local":
            assert later == [first] * 3
        else:  # Ray opens connections of its own when it likes; what each group leaves adds up
            assert later[-1][0] < first[0] + 3 and later[-1][1] < first[1] + 3, (first, later)
    finally:
        gc.enable()


# --- launches that fail


@pytest.mark.parametrize("warm", [True, False])
def test_a_constructor_that_raises_raises_from_launch(own_workers: WorkerHome, warm: bool) -> None:
    with pytest.raises(
        roost.WorkerError, match="rank 1 of group 'refusing' .* failed to start: LookupError: there is no such thing"
    ) as caught:
        Refusing.create_group(1).launch(own_workers.cluster("1x4"), name="refusing", warm=warm)
    assert (
        caught.value.rank == 1
        and isinstance(caught.value.__cause__, LookupError)
        and "__init__" in caught.value.traceback
    )
    own_workers.engine.wait_empty()


@pytest.mark.local  # the same
def test_a_constructor_that_exits_or_dies_raises_from_launch(own_workers: WorkerHome) -> None:
    with pytest.raises(roost.WorkerError, match=r"RuntimeError: the constructor of Refusing called sys.exit\(7\)"):
        Refusing.create_group(0, "exit").launch(own_workers.cluster("1x2"), name="refusing")
    with pytest.raises(roost.WorkerError, match="rank 0 of group 'refusing' .* failed to start: .*code 9") as caught:
        Refusing.create_group(0, "die").launch(own_workers.cluster("1x2"), name="refusing")
    assert caught.value.outcomes[0].end["exit_code"] == 9
    with Refusing.create_group(99).launch(own_workers.cluster("1x2"), name="refusing") as group:
        assert group.add(0).wait() == [1, 2]


def test_wrong_constructor_arguments_raise_from_launch(own_workers: WorkerHome) -> None:
    with pytest.raises(roost.WorkerError, match="TypeError: .*__init__.* unexpected keyword argument 'wrong'"):
        Helper.create_group(wrong=1).launch(own_workers.cluster("1x1"))


@pytest.mark.parametrize("size", [1, 1 << 20])
def test_what_cannot_be_read_fails_its_call_alone(group: roost.WorkerGroup, size: int) -> None:
    """Where it is read, which is the worker for arguments and the driver for answers."""
    for call, words in (
        (lambda: group.echo(Homebody(size)), "the arguments of 'echo' cannot be read: ValueError: only at home"),
        (lambda: group.homebody(size), "what it returned cannot be read here: ValueError: only at home"),
    ):
        handle = call()
        with pytest.raises(
            roost.WorkerError,
            match=rf"^rank 0 of group 'failing' \(.+\) failed in '\w+': {re.escape(words)}; so did ranks 1, 2, 3\n",
        ):
            handle.wait()
        assert [(outcome.kind, outcome.error) for outcome in handle.outcomes] == [("error", words)] * 4
        assert "in make_homebody" in handle.outcomes[0].traceback
    assert group.echo(size).wait() == [size] * 4


def test_a_constructor_that_takes_too_long_is_told(own_workers: WorkerHome) -> None:
    pipe = own_workers.engine.pipe("never")
    late = "slow/0, slow/1, slow/2 and 1 more are not"
    if own_workers.name == "ray":
        late = (
            "".join(f", slow/{rank} on node 0 (127.0.0.2) (REASON)" for rank in range(3))[2:]
            + " and 1 more are not (look at the nodes' logs, or pass a larger timeout)"
        )
    said = re.escape(f"group 'slow' was not ready after 0.5 s: 0 of 4 processes of 'slow' are ready; {late}").replace(
        "REASON", "[^()]+"
    )
    with pytest.raises(roost.Timeout, match=f"^{said}$"):
        Slow.create_group(str(pipe.path)).launch(own_workers.cluster("1x4"), name="slow", timeout=0.5)
    own_workers.engine.wait_empty()


class Slow(roost.Worker):
    def __init__(self, path: str) -> None:
        super().__init__()
        with open(path, "rb") as pipe:
            pipe.read(1)


def test_what_is_wrong_with_a_launch_is_said_before_anything_starts(
    workers: WorkerHome, monkeypatch: pytest.MonkeyPatch
) -> None:
    cluster = workers.cluster("1x2")
    before = len(workers.engine.runs())

    def refused(kind: type[Exception], words: str, cls: type = Helper, *args: object, **arguments: object) -> None:
        with pytest.raises(kind, match=words):
            cls.create_group().launch(*(args or (cluster,)), **arguments)  # type: ignore[attr-defined]

    refused(ValueError, "Clashing has a method 'execute_on', which is a method of the group itself", Clashing)
    refused(ValueError, "'a:0' cannot be the name of a group", name="a:0")
    refused(ValueError, "'' cannot be the name of a group", name="")
    refused(TypeError, "name must be a str", name=1)
    if workers.name == "local":
        for variable, value, words in (
            ("ROOST_PORT_BASE", "abc", "a port from 1024 to 65535, not 'abc'"),
            ("ROOST_PORT_BASE", "80", "not '80'"),
            ("ROOST_CGROUP", "nope", "'auto' or 'never', not 'nope'"),
        ):
            with monkeypatch.context() as patch:
                patch.setenv(variable, value)
                refused(ValueError, f"{variable} is .*{words}$")
    refused(TypeError, "cluster must be a roost.Cluster, not dict", Helper, {})
    refused(TypeError, "placement_strategy must be a PlacementStrategy, not list", placement_strategy=[0])
    refused(roost.RankError, "2", placement_strategy=roost.PackedPlacementStrategy(0, 2))
    refused(TypeError, "isolate_gpu is the older name", isolate_gpu=False, isolate_accelerator=True)
    refused(ValueError, "max_concurrency must be at least 1", max_concurrency=0)
    refused(ValueError, "timeout must be a number of seconds", timeout=-1)
    monkeypatch.setenv("RLINF_LOG_LEVEL", "LOUD")
    refused(ValueError, "RLINF_LOG_LEVEL is 'LOUD', which is no level")
    assert len(workers.engine.runs()) == before


def test_a_taken_name_is_said_before_anything_starts(group: roost.WorkerGroup, workers: WorkerHome) -> None:
    before = len(workers.engine.runs())
    with pytest.raises(ValueError, match="group 'failing' is running already"):
        Helper.create_group().launch(workers.cluster("1x2"), name="failing")
    with pytest.raises(roost.EngineError, match="this group was launched already, as 'failing'"):
        group.launch(workers.cluster("1x2"), name="another")
    assert len(workers.engine.runs()) == before


def test_a_group_is_called_when_it_has_been_launched(workers: WorkerHome) -> None:
    group = Helper.create_group()
    with pytest.raises(AttributeError, match="'add' can be called when the group has been launched"):
        group.add(1)
    with pytest.raises(roost.EngineError, match="must be launched before it is called"):
        group.execute_on(0)
    with pytest.raises(roost.EngineError):
        roost.WorkerGroup.from_group_name(Helper, "nobody")


def test_a_worker_made_by_hand_is_an_error() -> None:
    with pytest.raises(
        RuntimeError, match=r"a worker is made by launching its class: Helper.create_group\(...\).launch\(cluster\)"
    ):
        Helper()
