"""Workers that fork, and workers that cannot take what they are sent: the call fails or is answered once, and the worker
goes on."""

import numpy as np
import pytest

import roost
from worker_classes import Forking, ForkingLater, Helper, Starving
from worker_home import WorkerHome

pytestmark = pytest.mark.local


@pytest.mark.parametrize(
    ("cls", "words"),
    [(Forking, {}), (Forking, {"max_concurrency": 2}), (ForkingLater, {})],
    ids=["one by one", "in threads", "on a loop"],
)
def test_a_child_that_comes_back_from_a_method_answers_nothing_and_ends(
    own_workers: WorkerHome, cls: type[Forking], words: dict[str, int]
) -> None:
    with cls.create_group().launch(own_workers.cluster("1x1"), name="split", **words) as group:
        assert [group.split(how).wait() for how in ("exit", "raise", "return")] == [
            ["parent 5"],
            ["parent 1"],
            ["parent 1"],
        ]
        pid = group.pid().wait()
        assert [handle.wait() for handle in [group.pid() for _ in range(100)]] == [pid] * 100
    said = own_workers.log("split", 0, "stderr")
    assert said.count("ValueError: in the child") == 1
    assert (
        said.splitlines()[-1]
        == "roost: a process that 'split' forked has come back from it, and is ended: end it with os._exit() before"
    )


@pytest.mark.parametrize("how", ["exit", "raise", "return"])
def test_a_child_of_a_constructor_is_no_second_worker(own_workers: WorkerHome, how: str) -> None:
    with Forking.create_group(how).launch(own_workers.cluster("1x2"), name="twice") as group:
        pids = group.pid().wait()
        assert [group.pid().wait() for _ in range(50)] == [pids] * 50
    words = (
        "the constructor of Forking forked has come back"
        if how == "return"
        else "in the child"
        if how == "raise"
        else ""
    )
    assert words in own_workers.log("twice", 1, "stderr")


def test_what_a_child_lets_go_of_its_parent_still_has(own_workers: WorkerHome) -> None:
    with Forking.create_group().launch(own_workers.cluster("1x1"), name="array") as group:
        group.keep(np.full(1 << 20, 3.0)).wait()
        assert group.let_go().wait() == [0]
        group.size(np.full(1 << 20, 7.0)).wait()  # would be written over it
        assert group.kept().wait() == [3.0 * (1 << 20)]
        group.keep(None).wait()
        assert group.add(1).wait() == [2]


@pytest.mark.parametrize(
    ("what", "error"), [("open files", "Too many open files"), ("memory", "Cannot allocate memory")]
)
def test_arguments_that_a_worker_cannot_map_fail_their_call_alone(
    own_workers: WorkerHome, what: str, error: str
) -> None:
    with Starving.create_group().launch(own_workers.cluster("1x1"), name="starved") as group:
        group.use_up(what).wait()
        with pytest.raises(
            roost.WorkerError,
            match=rf"the worker cannot map \d+ bytes of arguments: {error} \(raise its limit of {what}: ulimit",
        ):
            group.size(b"x" * (64 << 20)).wait()
        assert group.add(1).wait() == [2]


def test_an_answer_that_is_too_large_is_told_with_its_cure(own_workers: WorkerHome) -> None:
    with Helper.create_group().launch(own_workers.cluster("1x1"), name="huge") as group:
        with pytest.raises(
            roost.WorkerError,
            match=r"what 'zeros' returned cannot be sent: Error: an answer of 4\d+ bytes is too large: at most 4294967295 \(answer in several calls",
        ):
            group.zeros((1 << 32) + 10).wait()
        assert group.add(1).wait() == [2]
