"""The managers of a run on Ray: named actors on node rank 0, over the C registry.

There is one of each for as long as the driver lives. Ray restarts a manager that was killed, from the same arguments. The
new life has the next epoch and reads the journal: registrations, locks and devices outlive the process."""

import asyncio
import contextlib
import json
import logging
import os
import secrets
from collections.abc import Iterator
from typing import Any

from roost import _roost
from roost._plan.errors import EngineError, error_fields
from roost._ray.join import ended
from roost._ray.journal import Change, Journal, OverError
from roost._ray.reservations import Kinds, Plain, Reservations, plain, sets
from roost._ray.reserve import balance

log = logging.getLogger("roost")

# NodeManager comes last: other processes find the run by it.
NAMES = ("WorkerManager", "CollectiveManager", "NodeManager")
LOOK_SECONDS = 1.0  # between looks for processes that have ended
ANSWERS_MAX = 200  # that are kept for requests which come again


class Manager:
    """One manager; its methods run on one event loop, and nothing waits in between but answers that come later."""

    def __init__(self, view: str | None, described: dict[str, Any], run_id: str, who: str) -> None:
        import ray

        context = ray.get_runtime_context()
        self._registry = _roost.Registry(view)
        self._described, self._run_id, self._who = described, run_id, who
        self._reservations = Reservations()
        self._balancing = asyncio.Lock()
        self._is_balanced = True  # Ray's placement groups are as the reservations say
        self._waiting: dict[tuple[int, int], tuple[asyncio.Future[bytes], str]] = {}  # with what is asked
        self._owners: dict[int, str] = {}  # the actor or job of each owner
        self._answered: dict[tuple[int, int], str] = {}  # recent answers, for requests which come again
        self._watch: asyncio.Task[None] | None = None
        self._own_job = f"job:{context.get_job_id()}"  # ends with us
        self._namespace: str = context.namespace
        self._journal = Journal(context.get_job_id(), context.namespace, context.get_actor_name() or "")
        for change in self._open_journal(context):
            self._apply(change)
        self._registry.later()  # no caller of an earlier life waits
        if self._owners or self._reservations.holders():  # they may have ended since
            self._is_balanced = False
            own = context.current_actor  # before 2.49 a method does not keep its actor
            own.epoch.remote()

    async def describe(self) -> dict[str, Any]:
        """What the run is, for processes that attach to it."""
        return self._described

    async def epoch(self) -> tuple[str, int, int]:
        self._begin_watch()
        return self._run_id, self._journal.epoch, os.getpid()

    async def end(self) -> None:
        """The driver is about to end the run, and to forget what its managers kept."""
        await self._journal.close()

    # --- memory

    def _open_journal(self, context: Any) -> list[Change]:
        """Ray never again makes an actor whose constructor raises: one that cannot begin its life now ends, and the next may."""
        try:
            return self._journal.open()
        except EngineError as error:
            if is_made_again(context):
                log.warning("%s", error)
                end_process()
            raise

    def _apply(self, change: Change) -> None:
        match change:
            case ["ask", owner, who, request]:
                self._own(owner, who)
                self._registry.answer(owner, request.encode())
            case ["answered", owner, number, answer]:
                self._note_answer(owner, number, answer)
            case ["gone", owner]:
                self._owners.pop(owner, None)
                self._registry.owner_gone(owner)
            case _:
                self._reservations.apply(change)

    def _remember(self) -> list[Change]:
        """All of it, as changes that make it."""
        changes: list[Change] = [
            ["ask", owner, self._owners.get(owner, ""), request.decode()]
            for owner, request in self._registry.requests()
        ]
        changes += [["answered", owner, number, answer] for (owner, number), answer in self._answered.items()]
        return changes + self._reservations.changes()

    async def _keep(self, *changes: Change) -> None:
        try:
            await self._journal.add(*changes)
            await self._journal.tidy(self._remember)
        except OverError as error:
            log.warning("%s", error)
            asyncio.get_running_loop().call_later(LOOK_SECONDS, end_process)  # once its callers have their answers
            raise

    async def _keep_answer(self, number: int, answer: bytes, *changes: Change) -> bytes:
        """The answer, once its changes are kept; an error when they are not."""
        try:
            await self._keep(*changes)
        except EngineError as error:
            return json.dumps({"id": number, "error": error_fields(error)}).encode()
        return answer

    def _own(self, owner: int, who: str) -> None:
        if who and who != self._own_job:
            self._owners.setdefault(owner, who)

    def _note_answer(self, owner: int, number: int, answer: str) -> None:
        self._answered[owner, number] = answer
        if len(self._answered) > ANSWERS_MAX:
            del self._answered[next(iter(self._answered))]

    # --- the registry

    async def ask(self, epoch: int, owner: int, who: str, number: int, request: bytes) -> tuple[int, bytes | None]:
        """The epoch of this life, and the answer. `epoch` is the last one that the caller has seen, 0 = none. The answer is None
        for a caller that has seen another epoch, and from a life that is over: the caller then asks again."""
        if epoch not in (0, self._journal.epoch):
            return self._journal.epoch, None
        answer = await self.answer(owner, who, number, request)
        return self._journal.epoch, None if self._journal.is_over else answer

    async def answer(self, owner: int, who: str, number: int, request: bytes) -> bytes:
        """The registry's answer to request `number` of a process, which is an actor or the driver of a job. The same
        number again is the same request: its answer was lost."""
        if (known := self._answered.get((owner, number))) is not None:
            return await self._keep_answer(number, known.encode())  # it may not be kept yet
        if (owner, number) in self._waiting:
            return await asyncio.shield(self._waiting[owner, number][0])
        self._own(owner, who)
        self._begin_watch()
        before = self._registry.changes
        answer = self._registry.answer(owner, request)
        if answer is None:
            future: asyncio.Future[bytes] = asyncio.get_running_loop().create_future()
            self._waiting[owner, number] = future, request.decode()
            return await future
        if self._registry.changes != before:
            self._note_answer(owner, number, answer.decode())
            answer = await self._keep_answer(
                number, answer, ["ask", owner, who, request.decode()], ["answered", owner, number, answer.decode()]
            )
            await self._hand_out()
        return answer

    async def cancel(self, owner: int, number: int) -> bool:
        """Whether a request that waited is taken back; if not, its answer is there, or on its way."""
        request = json.dumps({"id": 0, "call": "Registry.cancel", "args": [number]}).encode()
        answer = self._registry.answer(owner, request)
        is_back = bool(answer and json.loads(answer).get("value"))
        if is_back:
            self._give_up(owner, number)
        return is_back

    async def give_up(self, owner: int, number: int) -> None:
        """The caller has given up: undoes what the request has changed."""
        if not await self.cancel(owner, number):
            undo = json.dumps({"id": 0, "call": "Registry.undo", "args": [number]}).encode()
            await self.answer(owner, self._owners.get(owner, ""), -number, undo)

    def _give_up(self, owner: int, number: int) -> None:
        """Drops a request that waits."""
        future, _ = self._waiting.pop((owner, number), (None, ""))
        if future is not None and not future.done():
            future.set_result(b"")

    async def _hand_out(self) -> None:
        """Sends the answers that callers wait for."""
        for owner, answer in self._registry.later():
            number = json.loads(answer)["id"]
            future, request = self._waiting.get((owner, number), (None, ""))
            if future is None:
                continue
            answer = await self._keep_answer(number, answer, ["ask", owner, self._owners.get(owner, ""), request])
            self._waiting.pop((owner, number), None)  # not before: the same request may come again until then
            if not future.done():
                future.set_result(answer)

    # --- processes that have ended

    def _begin_watch(self) -> None:
        if self._watch is None and (self._owners or self._reservations.holders()):
            self._watch = asyncio.create_task(self._watch_owners())

    async def _watch_owners(self) -> None:
        """Releases everything that ended processes held."""
        while True:
            await asyncio.sleep(LOOK_SECONDS)
            watched = {*self._owners.values(), *self._reservations.holders().values()}
            gone = await asyncio.to_thread(ended, watched - {self._own_job, ""})
            for reservation_id in [
                reservation_id for reservation_id, who in self._reservations.holders().items() if who in gone
            ]:
                with warned():
                    await self.let_go(reservation_id)
            if (
                not self._is_balanced or self._reservations.own()
            ):  # another program may have removed a placement group of the run
                with warned():
                    await self._balance()
            for owner in [owner for owner, who in self._owners.items() if who in gone]:
                self._apply(["gone", owner])
                for number in [number for waiting, number in self._waiting if waiting == owner]:
                    self._give_up(owner, number)
                with warned():
                    await self._keep(["gone", owner])
                await self._hand_out()

    # --- devices of the run

    async def hold(
        self, reservation_id: str, wanted: Plain, who: str, kinds: Kinds | None = None
    ) -> tuple[Plain, Plain, Plain] | None:
        """Makes a reservation, until `who` ends. Returns the devices that no other reservation of the run held, the
        devices that the caller has to reserve in Ray, and all that the run holds; the caller reports with settle() when it is
        done. None: not now, another process is reserving some of them."""
        known = self._reservations.get(reservation_id)
        if known is None:
            change = self._reservations.wish(reservation_id, sets(wanted), who, kinds or {})
            if change is None:
                return None
            self._apply(change)
            self._begin_watch()
            await self._keep(change)
            known = self._reservations.get(reservation_id)
        else:
            await self._keep()  # it may have been asked for before, and not be kept yet
        return (plain(known.new), plain(known.reserves), plain(self._reservations.held())) if known else None

    async def settle(self, reservation_id: str) -> None:
        self._apply(["settle", reservation_id])
        await self._keep(["settle", reservation_id])

    async def let_go(self, reservation_id: str) -> None:
        """Ends a reservation. One that is not made yet is then never made."""
        if reservation_id in self._reservations.ended:
            return
        known = self._reservations.get(reservation_id)
        self._is_balanced = self._is_balanced and known is None
        self._apply(["let_go", reservation_id])
        await self._keep(["let_go", reservation_id])
        if known is not None:
            await self._balance()

    async def _balance(self) -> None:
        """Makes the run itself reserve what others hold and an ended reservation had reserved."""
        async with self._balancing:
            changes = self._reservations.cover(f"run{secrets.token_hex(6)}")
            for change in changes:
                self._apply(change)
            if changes:
                await self._keep(*changes)
            own = dict(self._reservations.own())
            try:
                await asyncio.to_thread(balance, self._namespace, own, list(self._reservations.ended))
                self._is_balanced = True
            except Exception as error:  # the next look tries again
                self._is_balanced = False
                log.warning("accelerators of this run are not reserved: %s", str(error).partition("\n")[0])

    async def holds(self) -> tuple[Plain, str]:
        return plain(self._reservations.held()), self._who


@contextlib.contextmanager
def warned() -> Iterator[None]:
    """Logs a failure to write the journal as a warning: no caller is waiting for the result."""
    try:
        yield
    except EngineError as error:
        log.warning("%s", error)


def is_made_again(context: Any) -> bool:
    try:
        return bool(context.was_current_actor_reconstructed)
    except Exception:  # the control store does not say; a driver that begins would hear of that first
        return True


def end_process() -> None:
    """At once: Ray makes the actor again, unless it has already."""
    os._exit(1)
