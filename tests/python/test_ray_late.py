"""What the Ray engine says of those who do not come, or do not answer, in time; Ray is a few facts here."""

import asyncio
import logging
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest

import roost
from ray_double import actor, errors, fake_ray, raising
from roost._ray import bridge as ray_bridge
from roost._ray import launch as ray_launch
from roost._ray import run as ray_run
from roost._ray.engine import RayEngine
from roost._ray.group import Rank
from roost._ray.join import plain_errors
from roost._ray.launch import readiness, reports
from roost._ray.nodes import probe_nodes
from roost._ray.ports import RayPorts
from roost._work.engine import ClusterRequest
from test_ray_words import reservation

LATE = errors.GetTimeoutError("late")


def engine(**facts: Any) -> RayEngine:
    made = object.__new__(RayEngine)
    made.__dict__.update(
        {"namespace": "roost", "run_id": "abcdefgh", "_nodes": [{"address": "10.0.0.1"}], "ids": ["n"], "_managers": {}}
        | facts
    )
    return made


def said(kind: type[Exception], call: Callable[[], Any]) -> str:
    with pytest.raises(kind) as caught:
        call()
    assert type(caught.value) is kind and caught.value.hint and str(caught.value).endswith(f"({caught.value.hint})")  # type: ignore[attr-defined]
    return str(caught.value)


def test_a_node_that_does_not_answer_the_probe_is_named_and_asked_no_longer() -> None:
    cancelled: list[Any] = []
    task = SimpleNamespace(options=lambda **options: SimpleNamespace(remote=lambda: object()))
    given = fake_ray(
        remote=lambda **options: lambda function: task,
        wait=lambda refs, num_returns, timeout: (refs[:1], refs[1:]),
        cancel=lambda ref, force: cancelled.append(ref),
    )
    nodes = [{"NodeID": f"{number}" * 56, "NodeManagerAddress": f"10.0.0.{number}"} for number in (1, 2, 3)]
    words = said(roost.Timeout, lambda: probe_nodes(given, nodes, 7))
    assert (
        words
        == "no answer from the probe on 10.0.0.2, 10.0.0.3 after 7 seconds (look at the raylet's log there, or leave the node out)"
    )
    assert len(cancelled) == 2


def test_a_port_holder_that_does_not_answer_is_told_with_its_node() -> None:
    holder = SimpleNamespace(
        options=lambda **options: SimpleNamespace(remote=lambda run_id: actor(lease=raising(LATE)))
    )
    ports = RayPorts(
        fake_ray(remote=lambda cls: holder),
        "run",
        lambda rank: None,
        lambda rank: "node 1 (10.0.0.2)",
        lambda rank: None,
        lambda rank: None,
    )
    assert said(roost.Timeout, lambda: ports.lease(1, (1,), "test")) == (
        "no port was leased on node 1 (10.0.0.2) after 120 seconds: the actor that leases them there does not answer "
        "(look at the raylet's log there; `ray status` lists the nodes)"
    )


def test_managers_that_do_not_start_are_told_with_their_node() -> None:
    cure = "(look at the raylet's log there; `ray status` lists the nodes)"
    late, unstarted = (
        actor(epoch=raising(LATE)),
        actor(epoch=raising(errors.ActorUnschedulableError("nowhere\nat all"))),
    )
    given = engine(_ray=fake_ray(get=lambda refs, timeout: [ref() for ref in refs]))
    assert (
        said(roost.Timeout, lambda: given._await_managers([late]))
        == f"the managers of the run do not start on node 0 (10.0.0.1), after 120 seconds {cure}"
    )
    words = said(roost.EngineError, lambda: given._await_managers([unstarted]))
    assert (
        words.startswith("the managers of the run do not start on node 0 (10.0.0.1): ")
        and "nowhere" in words
        and words.endswith(cure)
    )


def test_a_namespace_of_another_run_is_refused_with_the_cure(monkeypatch: pytest.MonkeyPatch) -> None:
    context = SimpleNamespace(gcs_address="10.0.0.1:6379", namespace="mine")
    value = SimpleNamespace(warnings=[], num_nodes=1, node=lambda rank: {"id": "n", "address": "10.0.0.1"})
    for name, answer in {
        "warn_open": None,
        "sweep": None,
        "wait_for_nodes": [],
        "probe_nodes": [],
        "snapshot": "",
        "build_cluster": value,
        "check_interpreters": None,
    }.items():
        monkeypatch.setattr(ray_run, name, lambda *words, answer=answer: answer)
    tried: list[str] = []
    monkeypatch.setattr(
        RayEngine,
        "start_managers",
        lambda self, section: tried.append(self.namespace) or raising(errors.ActorAlreadyExistsError("taken"))(),
    )
    monkeypatch.setattr(ray_run, "choose_namespace", lambda ray: "mine")
    given = fake_ray(get_runtime_context=lambda: context)
    words = said(
        roost.EngineError,
        lambda: ray_run.start_run(given, ClusterRequest("mine", 1.0, num_nodes=1), lambda warnings: None),
    )
    assert (
        words == "namespace 'mine' is another run's on this Ray cluster (choose another one, or leave namespace out)"
        and tried == ["mine"]
    )
    words = said(
        roost.EngineError,
        lambda: ray_run.start_run(given, ClusterRequest(None, 1.0, num_nodes=1), lambda warnings: None),
    )
    assert words == "namespace 'mine' is another run's on this Ray cluster (begin again)" and tried == ["mine"] * 101


def test_of_a_plan_only_its_own_nodes_are_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []
    monkeypatch.setattr(ray_run, "warn_open", lambda ray: None)
    monkeypatch.setattr(ray_run, "sweep", lambda: None)
    monkeypatch.setattr(ray_run, "wait_for_nodes", lambda *words: [{"NodeID": "n"}, {"NodeID": "without-roost"}])
    monkeypatch.setattr(
        ray_run,
        "probe_nodes",
        lambda ray, nodes, *words: asked.extend(node["NodeID"] for node in nodes) or [{} for _ in nodes],
    )
    monkeypatch.setattr(ray_run, "planned_cluster", raising(LookupError))
    given = fake_ray(get_runtime_context=lambda: SimpleNamespace(gcs_address="10.0.0.1:6379"))
    with pytest.raises(LookupError):
        ray_run.start_run(
            given,
            ClusterRequest(None, 1.0, num_nodes=1),
            lambda warnings: None,
            ray_run.Planned("abcdefgh", None, {"nodes": [{"node_rank": 0, "id": "n"}]}),
        )
    assert asked == ["n"]


def test_a_group_that_ends_while_it_is_looked_for_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ray_launch, "named_actors", lambda ray, namespace: {"actor:0"})
    given = engine(_ray=fake_ray(get_actor=raising(ValueError("Failed to look up actor 'actor:0'\nin two lines"))))
    assert (
        said(roost.EngineError, lambda: given.find_group("actor"))
        == "group 'actor' has just ended: Failed to look up actor 'actor:0' (launch it again)"
    )


def test_a_node_of_the_plan_that_is_not_there_is_named() -> None:
    parts = [{"node": 0, "id": "n"}, {"node": 3, "id": "gone"}]
    assert said(roost.EngineError, lambda: ray_bridge.check_nodes(engine(), parts)) == (
        "node 3 of the plan (gone) is not in the Ray cluster (plan against the nodes that are there now: `roost probe --engine ray`)"
    )


def test_an_agent_whose_actor_does_not_start_is_told_as_lost(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ray_bridge, "READY_SECONDS", 0.01)
    told: list[Any] = []

    async def follow() -> None:
        bridge = object.__new__(ray_bridge.Bridge)
        bridge.__dict__.update(
            {
                "_engine": SimpleNamespace(_ray=fake_ray()),
                "_lost": set(),
                "_said": [0],
                "send": lambda *words: asyncio.sleep(0, told.append(words)),
            }
        )
        bridge._agents = [SimpleNamespace(say=SimpleNamespace(remote=lambda *words: asyncio.sleep(1000)))]
        await bridge._follow(0)

    asyncio.run(follow())
    assert told == [(0, ray_bridge._roost.AGENT_GONE, b"its actor has not started after 0.01 seconds")]


def test_a_manager_that_does_not_say_that_accelerators_are_free_is_warned_about(
    caplog: pytest.LogCaptureFixture,
) -> None:
    with caplog.at_level(logging.WARNING, "roost"):
        reservation(actor(let_go=raising(errors.GetTimeoutError("no answer\nat all")))).drop("token")
    assert [record.getMessage() for record in caplog.records] == [
        "accelerators may stay held: the NodeManager of the run has not answered after 30 seconds (they are free when it has heard of this, or when the run ends)"
    ]


@pytest.mark.parametrize(
    ("error", "words"),
    [
        (
            RuntimeError("it is on fire\nin two lines"),
            "cannot join the Ray cluster at 10.0.0.1:6379: it is on fire (is this the address that `ray start --head` printed, and not that of its dashboard? `ray status` there tells how it is)",
        ),
        (
            OSError(),
            "cannot join the Ray cluster at 10.0.0.1:6379: OSError (is this the address that `ray start --head` printed, and not that of its dashboard? `ray status` there tells how it is)",
        ),
        (
            ConnectionError("no"),
            "the Ray cluster at 10.0.0.1:6379 does not accept this process: its token is missing or wrong, or it is no Ray cluster "
            "(there is none here: set RAY_AUTH_TOKEN_PATH to the cluster's token file, or RAY_AUTH_MODE=disabled where it has none)",
        ),
    ],
)
def test_a_cluster_that_cannot_be_joined_is_told_in_one_line(
    monkeypatch: pytest.MonkeyPatch, error: Exception, words: str
) -> None:
    for name in ("RAY_AUTH_TOKEN", "RAY_AUTH_MODE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("RAY_AUTH_TOKEN_PATH", "/not/there")

    def join() -> None:
        with plain_errors("at 10.0.0.1:6379"):
            raise error

    assert said(roost.EngineError, join) == words


# --- ranks that are not ready


def late_ranks(count: int) -> list[Rank]:
    made = [actor(report=lambda rank=rank: rank) for rank in range(count)]
    for rank, one in enumerate(made):
        one._actor_id = SimpleNamespace(hex=lambda rank=rank: f"{rank}")
    return [Rank(rank, one, f"node {rank // 2} (10.0.0.{rank // 2 + 1})") for rank, one in enumerate(made)]


STATES = {
    "0": {"State": "PENDING_CREATION", "Pid": 0},
    "1": {"State": "PENDING_CREATION", "Pid": 17},
    "2": {"State": "ALIVE", "Pid": 18},
    "3": {"State": "DEPENDENCIES_UNREADY", "Pid": 0},
    "4": {"State": "DEAD", "Pid": 0},
}


@pytest.fixture
def states(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ray_launch, "state", lambda: SimpleNamespace(actors=lambda number: STATES[number]))


@pytest.mark.usefixtures("states")
def test_ranks_that_are_not_ready_are_named_with_node_and_reason_a_few_of_them() -> None:
    ranks = late_ranks(6)
    none, own = "Ray has started no process for it yet", "its constructor has not returned"
    assert readiness("a", 6, ranks) == (
        f"0 of 6 processes of 'a' are ready; a/0 on node 0 (10.0.0.1) ({none}), a/1 on node 0 (10.0.0.1) ({own}), a/2 on node 1 (10.0.0.2) and 3 more are not"
    )
    assert (
        readiness("a", 6, ranks[1:2]) == f"5 of 6 processes of 'a' are ready; a/1 on node 0 (10.0.0.1) ({own}) is not"
    )
    assert readiness("a", 6, ranks[3:]) == (
        "3 of 6 processes of 'a' are ready; a/3 on node 1 (10.0.0.2) (Ray has not sent its class and arguments yet), a/4 on node 2 (10.0.0.3) (it has ended), "
        "a/5 on node 2 (10.0.0.3) are not"
    )


@pytest.mark.usefixtures("states")
def test_a_launch_that_takes_long_says_who_is_not_ready_and_then_that_it_is_too_late(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    clock = [100.0]
    monkeypatch.setattr(ray_launch, "time", SimpleNamespace(monotonic=lambda: clock[0]))

    def wait(refs: list[Any], num_returns: int, timeout: float) -> tuple[list[Any], list[Any]]:
        """Rank 1 is ready at once, rank 0 never."""
        if len(refs) == 2:
            return refs[1:], refs[:1]
        clock[0] += timeout
        return [], refs

    come: list[int] = []

    def launch() -> None:
        for rank, ref in reports(fake_ray(wait=wait), "a", late_ranks(2), 12, 112.0):
            assert ref() == rank.rank
            come.append(rank.rank)

    who = "1 of 2 processes of 'a' are ready; a/0 on node 0 (10.0.0.1) (Ray has started no process for it yet) is not"
    with caplog.at_level(logging.WARNING, "roost"):
        assert (
            said(roost.Timeout, launch)
            == f"group 'a' was not ready after 12 s: {who} (look at the nodes' logs, or pass a larger timeout)"
        )
    assert come == [1] and [record.getMessage() for record in caplog.records] == [f"waiting for group 'a': {who}"] * 2
