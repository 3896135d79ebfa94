"""What a manager of a run on Ray has written down: what comes back, in which life, and what nobody promises."""

import asyncio
import itertools
import logging
import threading
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest

from ray_store import Store, hasty, refuse, settle, store  # noqa: F401 (fixtures)
from roost import EngineError
from roost._ray import journal as ray_journal
from roost._ray.journal import Journal, OverError


def opened() -> tuple[Journal, list[Any]]:
    journal = Journal("01", "roost", "WorkerManager")
    return journal, journal.open()


def test_what_was_added_comes_back_in_its_order_with_the_next_epoch(store: Store) -> None:
    async def fill(journal: Journal) -> None:
        for number in range(12):
            await journal.add(["gone", number])

    journal, nothing = opened()
    assert nothing == [] and journal.epoch == 1
    asyncio.run(fill(journal))
    for epoch in (2, 3):
        journal, found = opened()
        assert found == [["gone", number] for number in range(12)] and journal.epoch == epoch
    assert Journal("01", "roost", "NodeManager").open() == [] == Journal("02", "roost", "WorkerManager").open()


def test_what_comes_while_one_is_written_goes_into_one_batch(store: Store) -> None:
    written: list[str] = []
    may_go = threading.Event()

    def before(key: str) -> None:
        written.append(key)
        assert may_go.wait(30)

    async def fill(journal: Journal) -> None:
        adding = [asyncio.create_task(journal.add(["gone", number])) for number in range(50)]
        while not written:
            await asyncio.sleep(0)
        may_go.set()
        await asyncio.gather(*adding)

    journal, _ = opened()
    store.before = before
    asyncio.run(fill(journal))
    assert len(written) <= 2
    may_go.set()
    assert sorted(opened()[1]) == [["gone", number] for number in range(50)]


def test_many_changes_become_a_whole_and_none_is_lost_meanwhile(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ray_journal, "TAIL_MAX", 5)

    async def fill(journal: Journal) -> None:
        known: list[Any] = []

        async def add(number: int) -> None:
            known.append(["gone", number])
            await journal.add(["gone", number])
            await journal.tidy(lambda: list(known))

        await asyncio.gather(*map(add, range(3)))
        for number in range(3, 40, 2):
            await asyncio.gather(add(number), add(number + 1))

    journal, _ = opened()
    asyncio.run(fill(journal))
    assert len([key for key in store.values if b"/life." not in key]) <= 6
    assert opened()[1] == [["gone", number] for number in range(41)]


def test_a_whole_is_written_once_for_all_who_wait(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ray_journal, "TAIL_BYTES", 1000)
    wholes: list[str] = []
    store.before = lambda key: wholes.append(key) if key.endswith("whole") else None

    async def fill(journal: Journal) -> None:
        async def add(number: int) -> None:
            await journal.add(["gone", number, "x" * 200])
            await journal.tidy(lambda: [])

        await asyncio.gather(*map(add, range(100)))

    journal, _ = opened()
    asyncio.run(fill(journal))
    assert len(wholes) <= 4


def test_a_write_that_fails_is_tried_again(store: Store, hasty: None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ray_journal, "KEEP_SECONDS", 30)
    failures = ["first", "second"]

    def fail(key: str) -> None:
        if failures:
            raise RuntimeError(failures.pop())

    store.before = fail
    journal, _ = opened()
    failures += ["third", "fourth"]
    asyncio.run(journal.add(["gone", 1]))
    assert opened()[1] == [["gone", 1]] and not failures


def test_what_a_store_does_not_take_is_an_error_for_who_asked_and_goes_with_what_comes_next(
    store: Store, hasty: None
) -> None:
    """Those that waited meanwhile do not wait as long once more."""

    async def fill(journal: Journal) -> list[Any]:
        store.before = refuse
        found = await asyncio.gather(*(journal.add(["gone", number]) for number in range(20)), return_exceptions=True)
        store.before = lambda key: None
        await journal.add(["gone", 20])
        return found

    journal, _ = opened()
    errors = [str(error) for error in asyncio.run(fill(journal)) if isinstance(error, EngineError)]
    assert len(errors) == 20 and errors[0].startswith(
        "what the managers of this run know is not kept: the control store is gone (Ray's control store"
    )
    assert sorted(opened()[1]) == [["gone", number] for number in range(21)]


@pytest.mark.parametrize("is_written", [True, False])
def test_nothing_is_lost_when_nobody_knows_whether_a_whole_was_written(
    store: Store, hasty: None, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, is_written: bool
) -> None:
    monkeypatch.setattr(ray_journal, "TAIL_MAX", 3)
    known: list[Any] = []

    def lose(key: str, value: bytes, overwrite: bool, *, namespace: str) -> bool:
        was_there = (is_written or not key.endswith("whole")) and Store._internal_kv_put(
            store, key, value, overwrite, namespace=namespace
        )
        if key.endswith("whole"):
            raise RuntimeError("deadline exceeded")
        return was_there

    async def fill(journal: Journal) -> None:
        for number in range(len(known), len(known) + 8):
            known.append(["gone", number])
            await journal.add(["gone", number])
            await journal.tidy(lambda: list(known))

    journal, _ = opened()
    with monkeypatch.context() as losing, caplog.at_level(logging.WARNING, "roost"):
        losing.setattr(store, "_internal_kv_put", lose)
        asyncio.run(fill(journal))
    assert {record.getMessage().partition(":")[0] for record in caplog.records} == {
        "what the managers of this run know is not kept"
    }
    for _ in range(2):
        journal, found = opened()
        assert found == known
        asyncio.run(fill(journal))
    assert len([key for key in store.values if b"/life." not in key]) <= 4


def test_what_killed_drivers_left_is_swept_and_what_others_have_is_not(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    for job in ("01", "02", "03"):
        Journal(job, "roost", "NodeManager").open()
    jobs = [{"JobID": "01", "IsDead": True}, {"JobID": "02", "IsDead": False}]
    monkeypatch.setattr(ray_journal, "state", lambda: SimpleNamespace(jobs=lambda: jobs))
    ray_journal.sweep()
    assert {key.decode().partition("/")[0] for key in store.values} == {"02"}


def test_what_a_run_keeps_that_begins_meanwhile_is_not_swept(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    def jobs() -> list[Any]:
        Journal("03", "roost", "NodeManager").open()
        return [{"JobID": "02", "IsDead": False}]

    Journal("01", "roost", "NodeManager").open()
    monkeypatch.setattr(ray_journal, "state", lambda: SimpleNamespace(jobs=jobs))
    ray_journal.sweep()
    assert {key.decode().partition("/")[0] for key in store.values} == {"03"}


def test_nothing_is_written_behind_a_journal_that_was_closed(store: Store) -> None:
    slow = threading.Event()

    async def live(journal: Journal) -> None:
        store.before = lambda key: slow.wait(30) and None
        adding = asyncio.create_task(journal.add(["gone", 1]))
        await asyncio.sleep(0)
        closing = asyncio.create_task(journal.close())
        late = [asyncio.create_task(journal.add(["gone", number])) for number in (2, 3)]
        await settle(closing)
        slow.set()
        await asyncio.gather(adding, closing, *late)
        store.values.clear()
        await journal.add(["gone", 4])
        await journal.tidy(lambda: [])

    journal, _ = opened()
    asyncio.run(live(journal))
    assert store.values == {}


# --- lives


def test_a_life_that_is_over_keeps_nothing_and_spoils_nothing(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    """Ray may take a manager for dead that only did not answer for a while."""
    monkeypatch.setattr(ray_journal, "TAIL_MAX", 2)

    async def add(journal: Journal, number: int) -> None:
        await journal.add(["gone", number])

    async def tidy(journal: Journal) -> None:
        journal._batches = 2
        await journal.tidy(lambda: [["gone", -1]])

    old, _ = opened()
    asyncio.run(add(old, 1))
    new, found = opened()
    assert found == [["gone", 1]] and (old.epoch, new.epoch) == (1, 2)
    asyncio.run(add(new, 2))
    for late in (add(old, 3), tidy(old), add(old, 4)):
        with pytest.raises(
            OverError,
            match=r"^this manager is of epoch 1, and the next one has begun \(ask again: the next one knows what was kept\)$",
        ):
            asyncio.run(late)
    assert old.is_over and not new.is_over
    asyncio.run(add(new, 5))
    assert opened()[1] == [["gone", 1], ["gone", 2], ["gone", 5]]


class Interleaved(Store):
    """Does something else, once, before so many operations have been done."""

    def __init__(self, after: int, other: Callable[[], None]) -> None:
        super().__init__()
        self.after, self.other, self.is_counting = after, other, False

    def __getattribute__(self, name: str) -> Any:
        if name.startswith("_internal_kv_") and self.is_counting:
            self.after -= 1
            if self.after < 0:
                self.is_counting = False
                self.other()
        return super().__getattribute__(name)


@pytest.mark.parametrize("is_old_first", [True, False])
def test_what_is_said_to_be_kept_is_known_to_the_next_life_whatever_was_done_first(
    monkeypatch: pytest.MonkeyPatch, is_old_first: bool
) -> None:
    """Before each thing that the old life does to keep a change the next one begins wholly; and the other way round."""
    seen = set()

    def add() -> None:
        async def one() -> None:
            await old.add(["gone", 1])

        try:
            asyncio.run(one())
            kept.append(True)
        except OverError:
            kept.append(False)

    def begin() -> None:
        found.append(opened()[1])

    first, second = (add, begin) if is_old_first else (begin, add)
    for after in itertools.count():
        kept: list[bool] = []
        found: list[list[Any]] = []
        made = Interleaved(after, second)
        monkeypatch.setattr(ray_journal, "store", lambda made=made: made)
        old, _ = opened()
        made.is_counting = True
        first()
        if made.is_counting:  # it has done less than that
            break
        assert not kept[0] or found[0] == [["gone", 1]], after
        seen.add((kept[0], bool(found[0])))
    # A change of which nobody can know whether it was read in time is refused, though it was.
    assert seen == {(False, False), (False, True)} | (set() if is_old_first else {(True, True)})


def test_one_of_two_that_begin_the_same_life_has_it(store: Store) -> None:
    first, second = Journal("01", "roost", "WorkerManager"), Journal("01", "roost", "WorkerManager")

    def meanwhile(key: str) -> None:
        store.before = lambda key: None
        second.open()

    store.before = meanwhile
    first.open()
    assert (second.epoch, first.epoch) == (1, 2)


def test_a_claim_whose_answer_was_lost_is_claimed_once(
    store: Store, hasty: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    lost = ["once"]

    def lose(key: str, value: bytes, overwrite: bool, *, namespace: str) -> bool:
        was_there = Store._internal_kv_put(store, key, value, overwrite, namespace=namespace)
        if lost:
            raise RuntimeError(lost.pop())
        return was_there

    monkeypatch.setattr(store, "_internal_kv_put", lose)
    journal, _ = opened()
    assert journal.epoch == 1 and not lost
