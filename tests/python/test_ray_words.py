"""What the Ray engine says when its managers, ports and accelerators are not as they should be; Ray is a few facts here."""

import importlib
import itertools
import logging
import os
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

import roost
from ray_double import actor, errors, fake_ray, raising
from roost._ray import bridge as ray_bridge
from roost._ray import engine as ray_engine
from roost._ray import join as ray_join
from roost._ray import launch as ray_launch
from roost._ray import nodes as ray_nodes
from roost._ray import ports as ray_ports
from roost._ray import reserve as ray_reserve
from roost._ray import session as ray_session
from roost._ray.engine import RayEngine
from roost._ray.journal import OverError
from roost._ray.nodes import build_cluster, snapshot
from roost._ray.ports import RayPorts
from roost._ray.reservations import Reservation
from roost._ray.reserve import Reserver
from roost._ray.transport import RayTransport

NODE = {"id": "n", "node_rank": 0, "address": "10.0.0.1", "accelerator_type": "NV_GPU", "resources": {"GPU": 2}}


def reservation(manager: Any, given: Any = None, *, gpus: int = 2, is_reserving: bool = True) -> Reserver:
    return Reserver(given or fake_ray(), "roost", [NODE | {"resources": {"GPU": gpus}}], manager, is_reserving)


def holding(new: Any = None, missing: Any = None, held: Any = None) -> Any:
    return actor(
        hold=lambda *args: (new or {}, missing or {}, held or {}),
        settle=lambda reservation_id: None,
        let_go=lambda reservation_id: None,
    )


def test_a_manager_that_does_not_answer_in_time_is_named() -> None:
    manager = actor(hold=raising(errors.GetTimeoutError("late")), let_go=raising(errors.GetTimeoutError("late")))
    with pytest.raises(
        roost.Timeout,
        match=r"^the NodeManager of the run has not answered after 30 seconds \(look at the raylet's log of node 0\)$",
    ):
        reservation(manager).add({"n": {1}})


def test_what_a_manager_could_not_keep_is_told_as_it_says() -> None:
    manager = actor(
        hold=raising(errors.RayTaskError("hold", "a traceback", roost.EngineError("it is not kept"))),
        let_go=lambda reservation_id: None,
    )
    with pytest.raises(roost.EngineError, match=r"^it is not kept$"):
        reservation(manager).add({"n": {1}})


def test_who_waits_for_another_launch_of_the_run_waits_within_a_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ray_reserve, "TURN_SECONDS", 0.01)
    with pytest.raises(
        roost.Timeout,
        match=r"^other launches of this run were still reserving the same accelerators after 0.05 seconds \(",
    ):
        reservation(actor(hold=lambda *args: None, let_go=lambda reservation_id: None)).add({"n": {1}}, 0.05)


def test_accelerators_that_ray_does_not_count_are_warned_about_once_and_too_many_are_refused(
    caplog: pytest.LogCaptureFixture,
) -> None:
    uncounted = reservation(holding(new={"n": [1]}), gpus=0)
    with caplog.at_level(logging.WARNING, "roost"):
        assert [uncounted.add({"n": {1}}) is not None for _ in range(2)] == [True, True]
    assert [record.getMessage() for record in caplog.records] == [
        "node 0 (10.0.0.1) has accelerators that Ray was not told of: they are not reserved"
    ]
    with pytest.raises(
        roost.EngineError,
        match=r"^node 0 \(10.0.0.1\) has 2 accelerators by Ray's count, but 3 are wanted \(start Ray there with the right --num-gpus",
    ):
        reservation(holding(missing={"n": [0, 1, 2]}, held={"n": [0, 1, 2]})).add({"n": {0, 1, 2}})


def test_a_run_that_does_not_say_what_it_has_is_warned_about(caplog: pytest.LogCaptureFixture) -> None:
    other = actor(describe=None, holds=raising(errors.GetTimeoutError("no answer\nat all")))
    there = SimpleNamespace(list_named_actors=lambda all_namespaces: [{"name": "NodeManager", "namespace": "roost_1"}])
    with caplog.at_level(logging.WARNING, "roost"):
        assert reservation(holding(new={"n": [1]}), fake_ray(util=there, get_actor=lambda name, namespace: other)).add(
            {"n": {1}}
        )
    assert [record.getMessage() for record in caplog.records] == [
        "the run in namespace 'roost_1' does not say which accelerators it uses, they may be the same: no answer"
    ]


def test_what_a_process_keeps_it_does_not_ask_for_again_and_what_failed_it_does(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A launch that has not succeeded is nothing that another one can rely on."""
    asked: list[str] = []
    manager = actor(
        hold=lambda reservation_id, *rest: asked.append(reservation_id) or ({}, {}, {}),
        let_go=lambda reservation_id: None,
    )
    it = reservation(manager)
    first, second = it.add({"n": {1}}), it.add({"n": {1}})
    assert first and second and asked == [first, second]
    it.drop(first)
    it.keep(second)
    assert it.add({"n": {1}}) is None and it.add({"n": {0, 1}}) is not None and len(asked) == 3


def test_a_placement_group_that_could_not_be_had_is_given_back(monkeypatch: pytest.MonkeyPatch) -> None:
    removed: list[Any] = []
    group = SimpleNamespace(wait=lambda timeout_seconds: False, id=SimpleNamespace(hex=lambda: "ab"))
    monkeypatch.setattr(ray_reserve, "create_group", lambda namespace, reservation_id, wanted, kinds: group)
    monkeypatch.setattr(ray_reserve, "remove_group", removed.append)
    monkeypatch.setattr(ray_reserve, "group_state", lambda group: "PENDING")
    monkeypatch.setattr(
        ray_reserve, "state", lambda: SimpleNamespace(available_resources_per_node=lambda: {"n": {"GPU": 1.0}})
    )
    with pytest.raises(
        roost.Timeout,
        match=r"were not free after 0 seconds: node 0 .* has 1 of 2 free, 2 are wanted \(end what uses them .*, or set roost.ray.reserve: false to share them\)$",
    ):
        reservation(holding(missing={"n": [0, 1]}, held={"n": [0, 1]})).add({"n": {0, 1}}, 0)
    assert removed == [group]


def test_books_are_balanced_by_what_is_missing_and_what_is_too_much(monkeypatch: pytest.MonkeyPatch) -> None:
    groups = importlib.import_module("ray.util.placement_group")
    number = "ab" * 18
    table = {
        number: {"name": "roost-old", "state": "CREATED"},
        "1": {"name": "roost-x-old", "state": "CREATED"},
        "2": {"name": "roost-mine", "state": "CREATED"},
        "3": {"name": "roost-gone", "state": "REMOVED"},
    }
    made, removed = [], []
    monkeypatch.setattr(groups, "placement_group_table", lambda: table)
    monkeypatch.setattr(
        ray_reserve,
        "create_group",
        lambda namespace, reservation_id, wanted, kinds: made.append((reservation_id, wanted)),
    )
    monkeypatch.setattr(ray_reserve, "remove_group", lambda group: removed.append(group.id.hex()))
    own = Reservation({}, "", {"n": ["GPU", "10.0.0.1"]}, {}, {"n": {1}}, True)
    ray_reserve.balance("roost", {"mine": own, "new": own}, ["old", "gone"])
    assert made == [("new", {"n": {1}})] and removed == [number]


def test_a_bundle_is_on_its_node_with_an_old_ray_too(monkeypatch: pytest.MonkeyPatch) -> None:
    """Seen with 2.47.1 and 2.49.2: the older one takes the label and does not heed it."""
    asked: list[Any] = []
    monkeypatch.setattr(
        importlib.import_module("ray.util.placement_group"),
        "placement_group",
        lambda bundles, **words: asked.append((bundles, words.get("bundle_label_selector"))),
    )
    for version in ("2.47.1", "2.48.0", "2.49.0", "2.60.0"):
        monkeypatch.setattr("ray.__version__", version)
        ray_reserve.create_group("roost", "id", {"n": {1, 2}}, {"n": ["GPU", "10.0.0.1"]})
    old, new = ([{"GPU": 2.0, "node:10.0.0.1": 0.001}], None), ([{"GPU": 2.0}], [{"ray.io/node-id": "n"}])
    assert asked == [old, old, new, new]


def test_a_name_that_is_taken_is_known_with_an_old_ray_too() -> None:
    old = SimpleNamespace(exceptions=SimpleNamespace())
    new = SimpleNamespace(exceptions=errors)
    taken = ValueError("Actor with name 'WorkerManager' already exists in the namespace roost")
    assert (
        ray_join.is_taken(old, taken)
        and not ray_join.is_taken(old, ValueError("no"))
        and not ray_join.is_taken(old, RuntimeError("already exists"))
    )
    assert ray_join.is_taken(new, errors.ActorAlreadyExistsError("taken")) and not ray_join.is_taken(new, taken)


def test_a_port_that_cannot_be_leased_is_told_with_its_node() -> None:
    holder = SimpleNamespace(
        options=lambda **options: SimpleNamespace(remote=lambda run_id: actor(lease=raising(errors.ActorDiedError())))
    )
    ports = RayPorts(
        fake_ray(remote=lambda cls: holder),
        "run",
        lambda rank: None,
        lambda rank: f"node {rank} (10.0.0.1)",
        lambda rank: None,
        lambda rank: None,
    )
    with pytest.raises(
        roost.EngineError,
        match=r"^no port can be leased on node 0 \(10.0.0.1\): the worker on node 0 \(10.0.0.1\) has ended: .*`ray status` lists the nodes\)$",
    ):
        ports.lease(0, (1,), "test")


def test_a_manager_that_has_ended_is_told_with_a_cure(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("roost._ray.transport.AGAIN_SECONDS", 0.05)
    monkeypatch.setattr("roost._ray.transport.PAUSE", 0.01)
    gone = actor(ask=raising(errors.ActorUnschedulableError("its node is gone")))
    for given in (
        fake_ray(get_actor=raising(ValueError("Failed to look up actor"))),
        fake_ray(get_actor=lambda name, namespace: gone),
    ):
        with pytest.raises(
            roost.EngineError,
            match=r"^the NodeManager of the run has ended: .+ \(managers end with node rank 0 and with their driver",
        ):
            RayTransport(given, "roost").call("NodeManager.get_nodes", [])


def test_a_port_holder_that_always_dies_is_not_made_for_ever() -> None:
    made: list[Any] = []

    def make(run_id: str) -> Any:
        made.append(actor(lease=raising(errors.ActorDiedError()) if made else lambda counts, owner: [20000]))
        return made[-1]

    ports = RayPorts(
        fake_ray(remote=lambda cls: SimpleNamespace(options=lambda **options: SimpleNamespace(remote=make))),
        "run",
        lambda rank: None,
        lambda rank: "node 0",
        lambda rank: None,
        lambda rank: None,
    )
    assert ports.lease(0, (1,), "first") == [20000]
    del ports._holders[0]
    with pytest.raises(roost.EngineError, match="^no port can be leased on node 0: the worker on node 0 has ended: "):
        ports.lease(0, (1,), "second")
    assert len(made) == 11


@pytest.mark.parametrize(
    ("error", "kind", "said"),
    [
        (
            errors.GetTimeoutError("late"),
            roost.Timeout,
            "^no port was leased on node 1 after 120 seconds: the actor that leases them there does not answer ",
        ),
        (
            errors.ActorUnschedulableError("its node is gone"),
            roost.EngineError,
            "^no port can be leased on node 1: the worker on node 1 has ended: ",
        ),
    ],
)
def test_what_a_port_holder_did_not_lease_in_time_is_free_when_it_has_done_so(
    error: Exception, kind: type[Exception], said: str
) -> None:
    freed: list[str] = []
    holder = actor(lease=raising(error), free=None)
    holder.free.remote = freed.append
    ports = RayPorts(
        fake_ray(
            remote=lambda cls: SimpleNamespace(options=lambda **options: SimpleNamespace(remote=lambda run_id: holder))
        ),
        "run",
        lambda rank: None,
        lambda rank: "node 1",
        lambda rank: None,
        lambda rank: None,
    )
    with pytest.raises(kind, match=said):
        ports.lease(1, (1,), "owner")
    ports.free("owner")
    assert freed == (["owner"] if kind is roost.Timeout else [])  # one that is gone keeps nothing
    assert ports._leased == {1: {}}


def test_new_port_holders_that_give_away_the_same_port_are_asked_a_few_times_only() -> None:
    same = actor(lease=lambda counts, owner: [20000])
    ports = RayPorts(
        fake_ray(
            remote=lambda cls: SimpleNamespace(options=lambda **options: SimpleNamespace(remote=lambda run_id: same))
        ),
        "run",
        lambda rank: None,
        lambda rank: "node 0",
        lambda rank: None,
        lambda rank: None,
    )
    assert ports.lease(0, (1,), "first") == [20000]
    with pytest.raises(roost.EngineError, match="^no port can be leased on node 0 that this run has not given away "):
        ports.lease(0, (1,), "second")


def test_ports_of_the_node_of_this_process_are_leased_by_itself_until_they_are_freed(tmp_path: Path) -> None:
    tmp_path.chmod(0o700)
    env = [f"XDG_RUNTIME_DIR={tmp_path}"]
    ports = RayPorts(
        fake_ray(remote=raising(AssertionError("no actor"))),
        "run",
        lambda rank: None,
        lambda rank: "node 0",
        lambda rank: None,
        lambda rank: env,
    )
    leased = lambda: len(list(tmp_path.rglob("*.ports")))  # noqa: E731
    (first,), (second,) = ports.lease(0, (2,), "a"), ports.lease(0, (1,), "b")
    assert {first, first + 1}.isdisjoint({second})
    assert leased() == 2
    ports.free("a")
    ports.free("b")
    assert leased() == 0
    ports.lease(0, (1,), "c")
    assert leased() == 1
    ports.close()
    assert leased() == 0


def test_launches_at_once_share_a_port_holder() -> None:
    made: list[Any] = []
    numbers = itertools.count(20000)

    def make(run_id: str) -> Any:
        time.sleep(0.05)  # others look meanwhile
        made.append(actor(lease=lambda counts, owner: [next(numbers)]))
        return made[-1]

    ports = RayPorts(
        fake_ray(remote=lambda cls: SimpleNamespace(options=lambda **options: SimpleNamespace(remote=make))),
        "run",
        lambda rank: None,
        lambda rank: "node 1",
        lambda rank: None,
        lambda rank: None,
    )
    with ThreadPoolExecutor(4) as pool:
        leased = list(pool.map(lambda number: ports.lease(1, (1,), f"group {number}")[0], range(4)))
    assert len(made) == 1 and sorted(leased) == [20000, 20001, 20002, 20003]


def test_a_signal_handler_may_end_a_group_while_another_is_launched() -> None:
    ports: RayPorts

    def lease(counts: tuple[int, ...], owner: str) -> list[int]:
        ports.free("ended")  # as a handler would, in the thread that leases
        return [20000]

    holder = SimpleNamespace(options=lambda **options: SimpleNamespace(remote=lambda run_id: actor(lease=lease)))
    ports = RayPorts(
        fake_ray(remote=lambda cls: holder),
        "run",
        lambda rank: None,
        lambda rank: "node 1",
        lambda rank: None,
        lambda rank: None,
    )
    assert ports.lease(1, (1,), "begun") == [20000]


def test_ports_of_single_actors_are_free_again_after_their_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    freed: list[str] = []
    monkeypatch.setattr(ray_ports, "ended", lambda watched: {who for who in watched if who != "actor:a7"})
    single = ray_ports.SinglePorts(SimpleNamespace(free=freed.append))  # type: ignore[arg-type]
    owners = []
    for number in range(100):
        owners.append(single.owner())
        single.note(SimpleNamespace(_actor_id=SimpleNamespace(hex=lambda number=number: f"a{number}")), owners[-1])
    assert len(set(owners)) == 100 and set(freed) == set(owners[:94]) - {owners[7]}  # looked for at 32, 63 and 94
    assert [single._actor_id.hex() for single in single.actors()] == [f"a{number}" for number in (7, *range(94, 100))]


def test_a_manager_that_is_away_is_waited_for_no_longer_than_was_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("roost._ray.transport.PAUSE", 0.01)
    given_up: list[int] = []
    manager = giving_up(given_up, raising(errors.ActorUnavailableError("away", None)))
    with pytest.raises(roost.Timeout, match=r"^DeviceLockManager.acquire_devices was not answered after 0.05 seconds$"):
        RayTransport(manager, "roost").call("DeviceLockManager.acquire_devices", ["a:0", [0]], 0.05)
    assert given_up == [1]  # only the answer may have been lost


def giving_up(given_up: list[int], ask: Any, cancel: Any = None) -> Any:
    """With a manager that answers so."""
    manager = actor(ask=ask, cancel=cancel, give_up=lambda owner, number: None)
    manager.give_up.remote = lambda owner, number: given_up.append(number)
    return fake_ray(get_actor=lambda name, namespace: manager)


def test_a_call_that_is_interrupted_is_given_up() -> None:
    given_up: list[int] = []
    with pytest.raises(KeyboardInterrupt):
        RayTransport(giving_up(given_up, raising(KeyboardInterrupt())), "roost").call(
            "DeviceLockManager.acquire_devices", ["a:0", [0]]
        )
    assert given_up == [1]


@pytest.mark.parametrize("answer", [b"", b'{"value": true}'])
def test_a_request_is_late_unless_it_was_answered_before_it_was_taken_back(answer: bytes) -> None:
    """It was taken back by a question whose answer Ray lost: asked once more, the manager knows of no such request."""
    given_up: list[int] = []
    answers: list[Any] = [raising(errors.GetTimeoutError("late")), lambda *args: (1, answer)]
    transport = RayTransport(giving_up(given_up, lambda *args: answers.pop(0)(), lambda owner, number: False), "roost")
    if answer:
        assert transport.call("DeviceLockManager.acquire_devices", ["a:0", [0]], 0.05) is True and given_up == []
        return
    with pytest.raises(roost.Timeout, match=r"^DeviceLockManager.acquire_devices was not answered after 0.05 seconds$"):
        transport.call("DeviceLockManager.acquire_devices", ["a:0", [0]], 0.05)


@pytest.mark.parametrize(
    "cancel",
    [
        raising(errors.GetTimeoutError("late")),
        lambda owner, number: False,
        raising(errors.ActorUnavailableError("away", None)),
    ],
)
def test_what_is_late_is_never_granted_to_who_has_gone_on(cancel: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever its manager says, or does not say, when it is taken back."""
    monkeypatch.setattr("roost._ray.transport.PAUSE", 0.01)
    given_up: list[int] = []
    transport = RayTransport(giving_up(given_up, raising(errors.GetTimeoutError("late")), cancel), "roost")
    with pytest.raises(roost.Timeout, match=r"^DeviceLockManager.acquire_devices was not answered after 0.05 seconds$"):
        transport.call("DeviceLockManager.acquire_devices", ["a:0", [0]], 0.05)
    assert given_up == [1]


def test_what_was_asked_of_a_manager_that_stays_away_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("roost._ray.transport.AGAIN_SECONDS", 0.05)
    monkeypatch.setattr("roost._ray.transport.PAUSE", 0.01)
    given_up: list[int] = []
    with pytest.raises(
        roost.EngineError, match=r"^the WorkerManager of the run has ended: The actor None is unavailable: away"
    ):
        RayTransport(giving_up(given_up, raising(errors.ActorUnavailableError("away", None))), "roost").call(
            "DeviceLockManager.acquire_devices", ["a:0", [0]]
        )
    assert given_up == [1]


def test_who_reserves_asks_the_next_manager_when_one_is_over() -> None:
    answers: list[Any] = [raising(OverError("this manager is of epoch 1")), lambda *args: ({}, {}, {"n": [0]})]
    manager = actor(
        hold=lambda *args: answers.pop(0)(*args) if len(answers) > 1 else answers[0](*args),
        settle=lambda reservation_id: None,
    )
    held = reservation(manager)
    assert held.add({"n": {0}}, 5) is not None and len(answers) == 1


def lives_of_a_manager(epochs: list[int], asked: list[Any]) -> Any:
    """Answers as a life of each of these epochs in turn, and the last one from then on."""

    def ask(epoch: int, owner: int, who: str, number: int, request: bytes) -> tuple[int, bytes | None]:
        own = epochs.pop(0) if len(epochs) > 1 else epochs[0]
        asked.append((epoch, own, owner, number))
        return own, b'{"value": "of life %d"}' % own if epoch in (0, own) else None

    return fake_ray(get_actor=lambda name, namespace: actor(ask=ask))


def test_a_manager_that_was_made_again_is_asked_again_with_its_epoch() -> None:
    asked: list[Any] = []
    transport = RayTransport(lives_of_a_manager([1, 2, 2, 1, 2], asked), "roost")
    assert [transport.call("NodeManager.get_nodes", []) for _ in range(3)] == ["of life 1", "of life 2", "of life 2"]
    assert [(epoch, own) for epoch, own, _, _ in asked] == [(0, 1), (1, 2), (2, 2), (2, 1), (2, 2)]
    assert [number for _, _, _, number in asked] == [1, 2, 2, 3, 3] and len({owner for _, _, owner, _ in asked}) == 1


def test_a_manager_that_is_over_is_believed_by_nobody_who_knows_the_next_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("roost._ray.transport.AGAIN_SECONDS", 0.05)
    monkeypatch.setattr("roost._ray.transport.PAUSE", 0.01)
    transport = RayTransport(lives_of_a_manager([2, 1], []), "roost")
    assert transport.call("NodeManager.get_nodes", []) == "of life 2"
    with pytest.raises(
        roost.EngineError,
        match=r"^the NodeManager of the run has ended: a NodeManager of epoch 1 answers, and not that of epoch 2 \(managers end with",
    ):
        transport.call("NodeManager.get_nodes", [])


def ranked(*texts: str) -> list[str]:
    """The addresses, by rank, of nodes that were given these: 10.0.0.1 the first, and so on."""
    nodes: list[dict[str, Any]] = [
        {"NodeID": str(i), "NodeManagerAddress": f"10.0.0.{i}", "Resources": {}} for i in range(1, len(texts) + 1)
    ]
    probed = {"num_accelerators": 0, "accelerator_type": "NO_ACCEL", "accelerator_model": None}
    cluster = build_cluster(
        snapshot(nodes, [{"node": probed, "env": {"ROOST_NODE_RANK": text}} for text in texts]), None, 0
    )
    return [cluster.node(rank)["address"] for rank in range(len(texts))]


@pytest.mark.parametrize("text", ["1_0", "٣", "-1", "1.0", "2147483648", "1\udcff", "\udcb1"])
def test_a_node_rank_that_is_no_number_is_refused(text: str) -> None:
    for others in ([], ["1", "0"]):
        with pytest.raises(
            roost.Error,
            match=r"^ROOST_NODE_RANK of node 10.0.0.1 is '.+', which is no node rank \(set it to 0, 1, ... before `ray start` there\)$",
        ):
            ranked(text, *others)


@pytest.mark.parametrize("text", ["1", "+1", " 1", "1 ", "001"])
def test_a_node_rank_is_read_as_every_number_is(text: str) -> None:
    assert ranked(text, "0") == ["10.0.0.2", "10.0.0.1"]


def test_a_group_that_is_not_there_is_told_with_those_that_are(monkeypatch: pytest.MonkeyPatch) -> None:
    engine = object.__new__(RayEngine)
    engine._ray, engine.namespace = None, "roost"
    monkeypatch.setattr(ray_launch, "named_actors", lambda ray, namespace: {"NodeManager", "actor:0", "actor:1"})
    with pytest.raises(
        roost.EngineError, match=r"^there is no group 'other' in namespace 'roost' \(running are: actor\)$"
    ):
        engine.find_group("other")
    monkeypatch.setattr(ray_launch, "named_actors", lambda ray, namespace: {"NodeManager", "agent/0", "agent/1"})
    with pytest.raises(
        roost.EngineError,
        match=r"\(running are: none; components of `roost run` are commands, which cannot be called\)$",
    ):
        engine.find_group("rollout")


def test_a_manager_of_another_program_is_no_run() -> None:
    """RLinf's has the same name."""
    managers = {"RLinf": SimpleNamespace(get_nodes=None), "roost": SimpleNamespace(describe=None)}

    def get_actor(name: str, namespace: str) -> Any:
        if namespace not in managers:
            raise ValueError("it has just ended")
        return managers[namespace]

    listed = [
        {"name": name, "namespace": namespace}
        for name, namespace in (
            ("NodeManager", "RLinf"),
            ("NodeManager", "roost"),
            ("NodeManager", "gone"),
            ("other", "more"),
        )
    ]
    given = fake_ray(util=SimpleNamespace(list_named_actors=lambda all_namespaces: listed), get_actor=get_actor)
    assert ray_join.running_namespaces(given) == {"roost"}


def test_a_wish_that_contradicts_itself_is_refused_before_ray_is_joined(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("roost._ray.run.load_ray", lambda: pytest.fail("Ray is loaded"))
    with pytest.raises(roost.Error, match="num_nodes is asked to be 1, but the config says 3") as caught:
        roost.Cluster(
            num_nodes=1, cluster_cfg={"cluster": {"num_nodes": 3, "component_placement": {"a": 0}}}, engine="ray"
        )
    assert caught.value.code == "usage"


def test_accelerators_are_reserved_as_what_ray_counts_them() -> None:
    assert [
        ray_nodes.resource_of(counted)
        for counted in ({"GPU": 8.0}, {"NPU": 8.0}, {"GPU": 8.0, "NPU": 2.0}, {"GPU": 0.5, "NPU": 8.0}, {})
    ] == ["GPU", "NPU", "GPU", "NPU", "GPU"]


def test_nodes_that_are_there_have_time_to_answer_however_long_others_are_waited_for() -> None:
    assert [ray_nodes.answer_seconds(wait) for wait in (0, 3.0, 30.0, 600.0)] == [10, 10, 30, 120]


def test_ray_is_left_whatever_fails_before(monkeypatch: pytest.MonkeyPatch) -> None:
    left: list[str] = []
    engine = object.__new__(RayEngine)
    engine._ray = fake_ray(shutdown=lambda: left.append("ray"))
    (
        engine._is_closed,
        engine._is_owner,
        engine._groups,
        engine._agents,
        engine._reserver,
        engine._managers,
        engine._pid,
    ) = False, True, [], [], None, {}, os.getpid()
    engine._ports = SimpleNamespace(close=lambda: None)  # type: ignore[assignment]
    engine._single = SimpleNamespace(actors=raising(RuntimeError("out of order")))  # type: ignore[assignment]
    engine.trace = ("127.0.0.1:1", "ab" * 28, "01000000")
    monkeypatch.setattr(ray_engine, "is_answering", lambda address, timeout: address == "127.0.0.1:1")
    with pytest.raises(RuntimeError, match="out of order"):
        engine.close()
    assert left == ["ray"]


def test_a_cluster_that_is_gone_is_left_without_a_word_to_it() -> None:
    left: list[str] = []
    engine = object.__new__(RayEngine)
    engine._ray = fake_ray(shutdown=lambda: left.append("ray"))
    engine._is_closed, engine._is_owner, engine._groups, engine._pid = False, True, [], os.getpid()
    engine._ports = SimpleNamespace(close=lambda: left.append("ports"))  # type: ignore[assignment]
    engine.trace = ("127.0.0.1:1", "ab" * 28, "01000000")
    engine.close()
    assert left == ["ports", "ray"]


def test_what_nobody_foresaw_is_not_blamed_on_the_python_that_was_chosen() -> None:
    said = ray_bridge.as_ours(errors.ActorUnschedulableError("its node is gone\nfor good"))
    assert (
        isinstance(said, roost.EngineError)
        and str(said).startswith("cannot join the Ray cluster: ActorUnschedulableError: ")
        and said.hint
    )
    own = roost.Timeout("late")
    assert ray_bridge.as_ours(own) is own


def test_a_fork_of_a_process_that_joined_is_told_so_and_ends_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ray_session, "joined", os.getpid() + 1)
    said = r"^this process is a fork of one that has joined Ray, and Ray does not work in a fork \(start processes with subprocess, or with multiprocessing's spawn\)$"
    for wish in (
        lambda: roost.Cluster(engine="ray"),
        lambda: roost.Cluster(num_nodes=1, engine="ray"),
        lambda: RayTransport(fake_ray(), "roost").call("NodeManager.get_nodes", []),
    ):
        with pytest.raises(roost.EngineError, match=said):
            wish()
    engine = object.__new__(RayEngine)
    engine._is_closed, engine._pid = False, os.getpid() + 1
    engine.close()
    assert not engine._is_closed
