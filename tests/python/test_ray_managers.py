"""The managers of a run on Ray: what they answer, who is still waited for. The control store is a dictionary here, and Ray a
few facts; what kills do is in test_ray_engine.py."""

import asyncio
import json
import logging
import threading
from types import SimpleNamespace
from typing import Any

import pytest

from ray_store import Store, hasty, refuse, settle, store  # noqa: F401 (fixtures)
from roost import EngineError
from roost._ray import journal as ray_journal
from roost._ray import managers as ray_managers
from roost._ray.managers import Manager
from roost._ray.reservations import plain
from roost._work.managers import read_answer


@pytest.fixture
def dead(store: Store, monkeypatch: pytest.MonkeyPatch) -> set[str]:
    """Who has ended, as Ray tells; and a process that can be a manager."""
    import ray

    context = SimpleNamespace(get_job_id=lambda: "01", namespace="roost", get_actor_name=lambda: "WorkerManager")
    context.current_actor = SimpleNamespace(epoch=SimpleNamespace(remote=lambda: None))
    monkeypatch.setattr(ray, "get_runtime_context", lambda: context)
    gone: set[str] = set()
    monkeypatch.setattr(ray_managers, "ended", lambda watched: watched & gone)
    monkeypatch.setattr(ray_managers, "LOOK_SECONDS", 0.01)
    monkeypatch.setattr(ray_managers, "balance", lambda namespace, own, gone: None)
    return gone


def manager() -> Manager:
    return Manager(None, {}, "run", "who")


def request(call: str, *args: Any, number: int) -> bytes:
    return json.dumps({"id": number, "call": call, "args": list(args)}).encode()


def acquire(number: int) -> bytes:
    return request("DeviceLockManager.acquire_devices", "a:0", [[0, 1]], number=number)


def test_a_request_that_is_taken_back_is_waited_for_no_more(dead: set[str]) -> None:
    async def live() -> None:
        it = manager()
        assert b'"value"' in await it.answer(1, "actor:1", 1, acquire(1))
        waiting = asyncio.create_task(
            it.answer(2, "actor:2", 1, request("DeviceLockManager.acquire_devices", "b:0", [[0, 1]], number=1))
        )
        again = asyncio.create_task(
            it.answer(2, "actor:2", 1, request("DeviceLockManager.acquire_devices", "b:0", [[0, 1]], number=1))
        )
        await settle(waiting)
        assert await it.cancel(2, 1) is True
        assert await waiting == await again == b"" and not it._waiting
        assert await it.cancel(1, 1) is False  # it was answered

    asyncio.run(live())


def test_a_request_that_is_given_up_holds_nothing_whether_it_waited_or_not(dead: set[str]) -> None:
    async def live() -> None:
        it = manager()
        await it.answer(1, "actor:1", 1, acquire(1))
        theirs = request("DeviceLockManager.acquire_devices", "b:0", [[0, 1]], number=4)
        waiting = asyncio.create_task(it.answer(2, "actor:2", 4, theirs))
        await settle(waiting)
        await it.give_up(2, 4)
        assert await waiting == b""
        waiting = asyncio.create_task(
            it.answer(2, "actor:2", 5, request("DeviceLockManager.acquire_devices", "b:0", [[0, 1]], number=5))
        )
        await settle(waiting)
        await it.give_up(1, 1)
        assert b'"value"' in await waiting

    asyncio.run(live())
    asyncio.run(known_again())


async def known_again() -> None:
    """What was given up stays so in the next life."""
    it = manager()
    assert b'"value"' in await it.answer(
        2, "actor:2", 6, request("DeviceLockManager.release_devices", "b:0", [[0, 1]], number=6)
    )
    assert b'"value"' in await it.answer(
        3, "actor:3", 1, request("DeviceLockManager.acquire_devices", "c:0", [[0, 1]], number=1)
    )


def test_who_has_ended_waits_for_nothing_and_holds_nothing(dead: set[str]) -> None:
    """Actors, and drivers that attached; not the driver of the run itself, which ends with its managers."""

    async def live() -> None:
        it = manager()
        await it.answer(1, "job:07", 1, acquire(1))
        await it.hold("token", {"node": [3]}, "job:07")
        await it.hold("own", {"node": [1]}, "job:01")
        ours = asyncio.create_task(
            it.answer(2, "actor:2", 1, request("DeviceLockManager.acquire_devices", "b:0", [[0, 1]], number=1))
        )
        theirs = asyncio.create_task(
            it.answer(3, "actor:3", 1, request("DeviceLockManager.acquire_devices", "c:0", [[0, 1]], number=1))
        )
        await settle(ours)
        dead.update({"actor:3", "job:01"})
        assert await theirs == b""
        await settle(ours)
        dead.add("job:07")
        assert b'"value"' in await ours
        assert await it.holds() == ({"node": [1]}, "who") and not it._waiting

    asyncio.run(live())


def test_a_manager_that_is_made_again_knows_all_and_answers_a_repeated_request_as_before(
    dead: set[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ray_journal, "TAIL_MAX", 3)

    async def first() -> bytes:
        it = manager()
        await it.answer(1, "actor:1", 1, acquire(1))
        for number in range(2, 12):
            await it.answer(
                1,
                "actor:1",
                number,
                request("CollectiveManager.set_master_port_info", f"k{number}", number, number=number),
            )
        await it.hold("token", {"node": [3, 2]}, "actor:1")
        return await it.answer(
            1, "actor:1", 20, request("DeviceLockManager.release_devices", "a:0", [[0, 1]], number=20)
        )

    async def second() -> None:
        it = manager()
        assert (await it.epoch())[1] == 2
        assert (
            await it.answer(1, "actor:1", 20, request("DeviceLockManager.release_devices", "a:0", [[0, 1]], number=20))
            == released
        )
        for number in range(2, 12):
            assert (
                json.loads(
                    await it.answer(
                        9,
                        "actor:9",
                        number,
                        request("CollectiveManager.get_master_port_info", f"k{number}", number=number),
                    )
                )["value"]
                == number
            )
        assert await it.holds() == ({"node": [2, 3]}, "who")
        assert b'"value"' in await it.answer(
            2, "actor:2", 1, request("DeviceLockManager.acquire_devices", "b:0", [[0, 1]], number=1)
        )

    released = asyncio.run(first())
    assert b'"value"' in released
    asyncio.run(second())


def test_what_is_not_kept_is_answered_with_an_error_also_to_who_waits(
    dead: set[str], store: Store, hasty: None
) -> None:
    async def live() -> None:
        it = manager()
        await it.answer(1, "actor:1", 1, acquire(1))
        waiting = asyncio.create_task(
            it.answer(2, "actor:2", 1, request("DeviceLockManager.acquire_devices", "b:0", [[0, 1]], number=1))
        )
        await settle(waiting)
        store.before = refuse
        for answer in (
            await it.answer(1, "actor:1", 2, request("DeviceLockManager.release_devices", "a:0", [[0, 1]], number=2)),
            await waiting,
        ):
            with pytest.raises(EngineError, match="is not kept: the control store is gone"):
                read_answer(answer)
        with pytest.raises(EngineError, match="is not kept"):
            await it.hold("token", {"node": [1]}, "job:07")
        dead.update({"job:07", "actor:2"})
        while (await it.holds())[0] or it._owners.keys() - {1}:
            await asyncio.sleep(0.01)
        store.before = lambda key: None
        assert b'"value"' in await it.answer(1, "actor:1", 3, acquire(3))

    asyncio.run(live())


class Slow:
    """A store that takes its time with one write."""

    def __init__(self, store: Store) -> None:
        self.began, self.may_go = threading.Event(), threading.Event()
        store.before = self.wait

    def wait(self, key: str) -> None:
        self.began.set()
        assert self.may_go.wait(30)

    async def begun(self) -> None:
        while not self.began.is_set():
            await asyncio.sleep(0.01)


def test_a_repeated_request_is_answered_when_its_change_is_kept_and_not_before(dead: set[str], store: Store) -> None:
    async def live() -> None:
        it = manager()
        slow = Slow(store)
        asked = [asyncio.create_task(it.answer(1, "actor:1", 1, acquire(1)))]
        held = [asyncio.create_task(it.hold("token", {"node": [1]}, "actor:1"))]
        await slow.begun()
        asked += [asyncio.create_task(it.answer(1, "actor:1", 1, acquire(1))) for _ in range(2)]
        held += [asyncio.create_task(it.hold("token", {"node": [1]}, "actor:1")) for _ in range(2)]
        for one in asked + held:
            await settle(one)
        slow.may_go.set()
        assert await asyncio.gather(*asked) == [b'{"id":1,"value":true}'] * 3
        assert await asyncio.gather(*held) == [({"node": [1]}, {}, {"node": [1]})] * 3

    asyncio.run(live())


def test_a_lock_that_was_waited_for_is_answered_once_it_is_kept_whoever_asks_again(
    dead: set[str], store: Store
) -> None:
    async def live() -> None:
        it = manager()
        await it.answer(1, "actor:1", 1, acquire(1))
        theirs = request("DeviceLockManager.acquire_devices", "b:0", [[0, 1]], number=1)
        waiting = [asyncio.create_task(it.answer(2, "actor:2", 1, theirs))]
        await settle(waiting[0])
        await it.answer(1, "actor:1", 2, request("CollectiveManager.set_master_port_info", "k", 1, number=2))
        slow = Slow(store)
        released = asyncio.create_task(
            it.answer(1, "actor:1", 3, request("DeviceLockManager.release_devices", "a:0", [[0, 1]], number=3))
        )
        await slow.begun()
        store.before = lambda key: None
        again = Slow(store)
        slow.may_go.set()
        await again.begun()
        waiting.append(asyncio.create_task(it.answer(2, "actor:2", 1, theirs)))
        for one in waiting:
            await settle(one)
        again.may_go.set()
        assert (
            await asyncio.gather(*waiting) == [b'{"id":1,"value":true}'] * 2
            and b'"value"' in await released
            and not it._waiting
        )

    asyncio.run(live())


def test_a_manager_that_cannot_begin_its_life_ends_so_that_it_is_made_again(
    dead: set[str], store: Store, hasty: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    import ray

    ended: list[str] = []
    monkeypatch.setattr(ray_managers, "end_process", lambda: ended.append("process"))
    store.before = refuse
    for is_again in (False, True):
        ray.get_runtime_context().was_current_actor_reconstructed = is_again
        with pytest.raises(EngineError, match="is not kept: the control store is gone"):
            manager()
        assert ended == ["process"] * is_again


def test_a_manager_answers_who_knows_its_epoch_and_ends_when_the_next_one_has_begun(
    dead: set[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    ended: list[str] = []
    monkeypatch.setattr(ray_managers, "end_process", lambda: ended.append("process"))

    async def live() -> None:
        old = manager()
        assert await old.ask(0, 1, "actor:1", 1, acquire(1)) == (1, b'{"id":1,"value":true}')
        assert await old.ask(2, 1, "actor:1", 2, acquire(2)) == (1, None)
        new = manager()
        assert await new.ask(1, 1, "actor:1", 1, acquire(1)) == (2, None)
        assert await new.ask(2, 1, "actor:1", 1, acquire(1)) == (2, b'{"id":1,"value":true}')
        late = request("DeviceLockManager.release_devices", "a:0", [[0, 1]], number=3)
        assert await old.ask(1, 1, "actor:1", 3, late) == (1, None)
        while not ended:
            await asyncio.sleep(0.01)
        held = request("DeviceLockManager.acquire_devices", "b:0", [[0, 1]], number=1)
        waiting = asyncio.create_task(new.ask(2, 2, "actor:2", 1, held))
        await settle(waiting)
        await new.ask(2, 1, "actor:1", 3, late)
        assert (await waiting)[1] == b'{"id":1,"value":true}'

    asyncio.run(live())


# --- devices

KINDS = {"node": ["GPU", "127.0.0.2"]}


@pytest.fixture
def books(dead: set[str], monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """What the manager itself has in Ray's books, each time they are balanced."""
    found: list[Any] = []
    monkeypatch.setattr(
        ray_managers,
        "balance",
        lambda namespace, own, gone: found.append([plain(hold.reserves) for hold in own.values()]),
    )
    return found


async def launch(it: Manager, token: str, numbers: list[int], who: str) -> Any:
    held = await it.hold(token, {"node": numbers}, who, KINDS)
    await it.settle(token)
    return held


def test_a_device_is_free_when_its_last_holder_has_let_go_and_reserved_until_then(
    dead: set[str], books: list[Any]
) -> None:
    """Whoever came first, and however it ends: what it had reserved and others use is reserved by the run."""

    async def live() -> None:
        it = manager()
        assert await launch(it, "theirs", [1, 2], "job:07") == ({"node": [1, 2]}, {"node": [1, 2]}, {"node": [1, 2]})
        assert await launch(it, "mine", [1], "job:01") == ({}, {}, {"node": [1, 2]})
        assert await launch(it, "also", [1, 3], "job:01") == ({"node": [3]}, {"node": [3]}, {"node": [1, 2, 3]})
        dead.add("job:07")
        while not books:
            await asyncio.sleep(0.01)
        assert await it.holds() == ({"node": [1, 3]}, "who") and books.pop() == [{"node": [1]}]
        assert await launch(it, "later", [1], "job:08") == ({}, {}, {"node": [1, 3]})
        await it.let_go("mine")
        await it.let_go("also")
        assert await it.holds() == ({"node": [1]}, "who") and books.pop() == [{"node": [1]}]
        await it.let_go("later")
        assert await it.holds() == ({}, "who") and books.pop() == []

    asyncio.run(live())


def test_who_wants_what_another_is_about_to_have_waits_until_that_is_settled(books: list[Any]) -> None:
    """A launch that fails, as another run has the device or it never comes free, lets no other one through."""

    async def live() -> None:
        it = manager()
        assert await it.hold("first", {"node": [1]}, "job:01", KINDS) == ({"node": [1]}, {"node": [1]}, {"node": [1]})
        assert await it.hold("second", {"node": [1, 2]}, "job:01", KINDS) is None
        assert await it.hold("other", {"node": [3]}, "job:01", {}) == ({"node": [3]}, {}, {"node": [1, 3]})
        await it.let_go("first")
        assert await it.hold("second", {"node": [1, 2]}, "job:01", KINDS) == (
            {"node": [1, 2]},
            {"node": [1, 2]},
            {"node": [1, 2, 3]},
        )
        assert await it.hold("second", {"node": [1, 2]}, "job:01", KINDS) == (
            {"node": [1, 2]},
            {"node": [1, 2]},
            {"node": [1, 2, 3]},
        )
        await it.settle("second")
        assert await it.hold("third", {"node": [2]}, "job:01", KINDS) == ({}, {}, {"node": [1, 2, 3]})
        await it.let_go("other")
        assert books == [[], []]  # nothing was left behind

    asyncio.run(live())


def test_a_manager_that_is_made_again_balances_the_books(
    dead: set[str], books: list[Any], caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*args: Any) -> None:
        raise RuntimeError("no answer\nfrom Ray")

    async def first() -> None:
        it = manager()
        await launch(it, "theirs", [1], "job:07")
        await launch(it, "mine", [1], "job:01")
        with caplog.at_level(logging.WARNING, "roost"):
            await it.let_go("theirs")

    async def second() -> None:
        it = manager()
        await it.epoch()
        while not books:
            await asyncio.sleep(0.01)
        assert books == [[{"node": [1]}]] and await it.holds() == ({"node": [1]}, "who")

    with monkeypatch.context() as failing:
        failing.setattr(ray_managers, "balance", fail)
        asyncio.run(first())
    assert [record.getMessage() for record in caplog.records] == [
        "accelerators of this run are not reserved: no answer"
    ]
    asyncio.run(second())


def test_a_token_that_was_let_go_is_held_by_nobody_who_comes_late(books: list[Any]) -> None:
    async def first() -> None:
        it = manager()
        await it.let_go("late")
        assert await it.hold("late", {"node": [1]}, "job:01", KINDS) is None

    async def second() -> None:
        it = manager()
        assert await it.hold("late", {"node": [1]}, "job:01", KINDS) is None and await it.holds() == ({}, "who")

    asyncio.run(first())
    asyncio.run(second())
