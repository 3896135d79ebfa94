"""Cluster.allocate() on the local engine: a process of any class, by hand."""

import os
import signal
from typing import Any

import pytest

from roost import Cluster, EngineError, Error, RankError, WorkerError, WorkerGroup
from worker_home import WorkerHome

pytestmark = pytest.mark.local


class Counter:
    def __init__(self, start: int = 0, fails: bool = False) -> None:
        if fails:
            raise LookupError("no such thing")
        self.count = start

    def add(self, number: int) -> int:
        self.count += number
        return self.count

    def look(self) -> dict[str, str]:
        return {
            name: os.environ.get(name, "")
            for name in ("CUDA_VISIBLE_DEVICES", "CLUSTER_NODE_RANK", "GROUP_NAME", "MODE", "RANK")
        }

    def die(self) -> None:
        os.kill(os.getpid(), signal.SIGKILL)


def test_it_is_on_its_node_with_its_accelerator_and_variables(own_workers: WorkerHome) -> None:
    cluster = own_workers.cluster("2x4")
    counter = cluster.allocate(Counter, "counter", 1, 2, {"MODE": "fast", "RANK": 7}, [40], {"fails": False})
    assert counter.add.remote(2).wait() == 42
    assert counter.add(1).wait(30) == 43
    assert counter.look.remote().wait() == {
        "CUDA_VISIBLE_DEVICES": "2",
        "CLUSTER_NODE_RANK": "1",
        "GROUP_NAME": "counter",
        "MODE": "fast",
        "RANK": "7",
    }
    on_cpu = Cluster.allocate(Counter, "cpu", node_rank=0)
    assert on_cpu.look().wait()["CLUSTER_NODE_RANK"] == "0"
    counter._close()
    on_cpu._close()
    assert cluster.allocate(Counter, "counter", 0, 0, {}).add(1).wait() == 1, "the name is free again"


@pytest.mark.parametrize(
    ("arguments", "kind", "words"),
    [
        ((Counter, "c", 2, 0, {}), RankError, "node_id 2 is out of range: there are 2 nodes"),
        ((Counter, "c", -1, 0, {}), RankError, "node_id -1 is out of range"),
        ((Counter, "c", 1, 4, {}), RankError, "gpu_id 4 is out of range: node 1 has 4 accelerators"),
        ((Counter, "a:b", 1, 0, {}), Error, "'a:b' is not the address of a worker"),
        ((Counter, "../../../pwned", 1, 0, {}), Error, "'../../../pwned' cannot be the name of a group"),
        ((Counter, "a\x1b[31mb", 1, 0, {}), Error, r"'a\\x1b\[31mb' cannot be the name of a group"),
        ((Counter, "", 1, 0, {}), Error, "'' cannot be the name of a group"),
        ((Counter, "c", 1, 0, {"A=B": "1"}), Error, "'A=B' cannot be the name of an environment variable"),
        ((Counter, "c", 1, 0, {"": "1"}), Error, "'' cannot be the name of an environment variable"),
        (
            (Counter, "c", 1, 0, {"ROOST_RUN_ID": "zzz"}),
            Error,
            "'ROOST_RUN_ID' is roost's own and cannot be set by hand",
        ),
        ((Counter, "c", 1, 0, {"LISTEN_FDS": 3}), Error, "'LISTEN_FDS' is roost's own"),
        ((Counter, "c", 1, 0, {"A": None}), TypeError, "env_vars: A must be a text or a number, not None"),
        ((Counter, "c", 1, 0, {1: "1"}), TypeError, "a name in env_vars must be a str"),
        ((Counter, "c"), TypeError, "pass node_id"),
        ((Counter(), "c", 0, 0, {}), TypeError, "cls must be a class"),
    ],
)
def test_what_the_cluster_does_not_have_is_refused(
    own_workers: WorkerHome, arguments: Any, kind: type, words: str
) -> None:
    with pytest.raises(kind, match=words):
        own_workers.cluster("2x4").allocate(*arguments)


def test_one_of_a_thing_is_one(own_workers: WorkerHome) -> None:
    cluster = own_workers.cluster("1x1")
    with pytest.raises(RankError, match="node_id 1 is out of range: there is 1 node$"):
        cluster.allocate(Counter, "c", 1, 0, {})
    with pytest.raises(RankError, match="gpu_id 1 is out of range: node 0 has 1 accelerator$"):
        cluster.allocate(Counter, "c", 0, 1, {})


def test_a_name_may_be_an_address(own_workers: WorkerHome) -> None:
    cluster = own_workers.cluster("1x4")
    other = cluster.allocate(Counter, "other:1", 0, 0, {})
    assert other.add(1).wait(60) == 1
    assert repr(other) == "<roost process 'other:1'>"
    assert [path.name for path in own_workers.engine.runs()[-1].iterdir() if path.is_dir()] == ["other.1"]
    with pytest.raises(EngineError, match="'other:1' is running already"):
        cluster.allocate(Counter, "other:1", 0, 1, {})


def test_a_taken_name_is_said(own_workers: WorkerHome) -> None:
    cluster = own_workers.cluster("1x4")
    cluster.allocate(Counter, "counter", 0, 0, {})
    with pytest.raises(EngineError, match="'counter' is running already"):
        cluster.allocate(Counter, "counter", 0, 1, {})


def test_the_newest_cluster_that_is_there_is_meant(own_workers: WorkerHome) -> None:
    kept = own_workers.cluster("1x4")
    own_workers.cluster("1x2")  # and gone
    assert Cluster.allocate(Counter, "counter", 0, 3, {}).add(1).wait(60) == 1
    assert kept.num_accelerators == 4


def test_a_process_by_hand_is_no_group(own_workers: WorkerHome) -> None:
    own_workers.cluster("1x4").allocate(Counter, "counter", 0, 0, {})
    with pytest.raises(
        EngineError, match=r"'counter' is a process that Cluster.allocate\(\) started, and no group: keep its handle"
    ):
        WorkerGroup.from_group_name(Counter, "counter")


SPEAKING = """
import roost
class Speaker:
    def speak(self, word):
        print(word, flush=True)
if __name__ == "__main__":
    cluster = roost.Cluster(cluster="1x4")
    for name, is_quiet in (("quiet", True), ("loud", False)):
        cluster.allocate(Speaker, name, 0, 0, {}, disable_distributed_log=is_quiet).speak(name).wait(60)
"""


def test_what_a_process_writes_is_shown_unless_it_is_not_wanted(own_workers: WorkerHome) -> None:
    done = own_workers.script(SPEAKING)
    assert (done.returncode, done.stdout) == (0, "[loud/0] loud\n"), done.stderr


def test_a_failing_constructor_is_told_by_the_first_call(own_workers: WorkerHome) -> None:
    broken = own_workers.cluster("1x4").allocate(Counter, "broken", 0, 0, {}, cls_kwargs={"fails": True})
    with pytest.raises(WorkerError, match="LookupError: no such thing"):
        broken.add.remote(1).wait(60)


def test_one_that_dies_fails_its_calls_alone(own_workers: WorkerHome) -> None:
    cluster = own_workers.cluster("1x4")
    first, second = cluster.allocate(Counter, "first", 0, 0, {}), cluster.allocate(Counter, "second", 0, 1, {})
    with pytest.raises(WorkerError, match="killed by signal 9"):
        first.die().wait(60)
    assert second.add(5).wait(60) == 5
