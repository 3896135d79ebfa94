"""`roost run --engine ray`: the bridge between a run's supervisor, which started this process, and its parts on the
nodes of a Ray cluster (roost/part.h). What is run where, when and with what is decided there; here Ray is joined,
devices are reserved, one actor a node is made, and messages are carried."""

import asyncio
import contextlib
import itertools
import json
import logging
import os
import select
import struct
import sys
import time
from typing import Any

from roost import _roost
from roost._arguments import fault
from roost._errors import EngineError
from roost._ray import RayEngine
from roost._ray_cluster import SAY_EVERY, alive_nodes
from roost._ray_group import kill_actors, rays_cause
from roost._ray_holdings import Devices
from roost._ray_nodes import LOCAL_NODE, environ_texts, name_local_node, not_there
from roost._ray_open import open_cluster
from roost._ray_part import Message, Part, readable
from roost._ray_reserve import WAIT_SECONDS, Reservation

log = logging.getLogger("roost")

HEAD = struct.Struct("=ii")  # struct roost_part_head
BRIDGE = -1
CARRIER = 3  # the descriptor
READY_SECONDS = 120.0
AGAIN_SECONDS = 60.0  # by then Ray knows whether a silent node is gone
PAUSE = 0.1
LOOK_SECONDS = 1.0  # between looks whether what was reserved still is
WORDS_MAX = 400


def error_json(error: _roost.Error) -> bytes:
    message, hint = str(error), error.hint or ""
    message = message.removesuffix(f" ({hint})") if hint else message
    return json.dumps({"error": {"code": error.code, "message": message, "hint": hint}}).encode()


def as_ours(error: Exception) -> _roost.Error:
    """What Ray raises where nobody foresaw it is no fault of the Python that was chosen."""
    if isinstance(error, _roost.Error):
        return error
    return fault(EngineError, f"cannot join the Ray cluster: {type(error).__name__}: {death_line(error)}"[:WORDS_MAX], hint="`ray status` there tells how it is")


def join(asked: dict[str, Any]) -> RayEngine:
    """A run of its own on the cluster, with the accelerators of the plan reserved."""
    address, parts = asked["address"], asked["parts"]
    if not address and not os.environ.get("RAY_ADDRESS") and any(part["id"] == LOCAL_NODE for part in parts):
        address = "local"  # as it was planned, whatever has been started since
    engine = open_cluster(None, None, asked["num_nodes"], None, asked["wait_ms"] / 1000, lambda warnings: None, asked["run"], address, asked["view"])
    try:
        if (address or os.environ.get("RAY_ADDRESS")) == "local":
            name_local_node(parts, engine.ids[0])
        check_nodes(engine, parts)
        reserve(engine, asked)
    except BaseException:
        engine.close()
        raise
    return engine


def check_nodes(engine: RayEngine, parts: list[dict[str, Any]]) -> None:
    for part in parts:
        if part["id"] not in engine.ids:
            raise not_there(part["node"], part["id"])


def reserve(engine: RayEngine, asked: dict[str, Any]) -> None:
    wanted: Devices = {part["id"]: set(part["devices"]) for part in asked["parts"] if part["devices"]}
    resources = {node["NodeID"]: node["Resources"] for node in alive_nodes(engine._ray)}
    nodes = [node | {"resources": resources.get(node["id"], {})} for node in engine._nodes]
    engine._reservation = Reservation(engine._ray, engine.namespace, nodes, engine._managers["NodeManager"], asked["reserve"])
    engine._reservation.keep(engine._reservation.add(wanted, WAIT_SECONDS))


class Bridge:
    """Carries messages until it is told to close, or nobody is there who could tell."""

    def __init__(self, carrier: _roost.Carrier, engine: RayEngine, asked: dict[str, Any]) -> None:
        self._carrier, self._engine = carrier, engine
        self._sending = asyncio.Lock()
        self._parts: list[Any] = []
        actor = engine._ray.remote(Part)
        # Their names are none that a group's ranks could have.
        for part in asked["parts"]:
            options = {
                "name": f"part/{part['node']}", "namespace": engine.namespace, "num_cpus": 0, "num_gpus": 0, "max_restarts": 0, "max_task_retries": 0,
                "scheduling_strategy": engine._affinity(engine.ids.index(part["id"])),
            }  # fmt: skip
            self._parts.append(actor.options(**options).remote(asked["run"], part["node"], part["id"]))
        engine._parts.extend(self._parts)
        self._words = [engine.node_words(engine.ids.index(part["id"])) for part in asked["parts"]]
        self._said = [0] * len(self._parts)
        self._lost: set[int] = set()  # that the supervisor was told of
        self._tasks: set[asyncio.Task[None]] = set()
        self._followers: list[asyncio.Task[None]] = []

    async def send(self, part: int, kind: int, body: bytes, file: bytes | None = None) -> None:
        async with self._sending:
            while not self._carrier.send(_roost.PART_MESSAGE, HEAD.pack(part, kind) + body, file):
                await writable(self._carrier.fileno())

    async def carry(self) -> None:
        self._followers = [asyncio.create_task(self._follow(index)) for index in range(len(self._parts))]
        watch = asyncio.create_task(self._watch_reservation())
        try:
            while await self._hand_on():
                pass
        except EOFError:  # the supervisor is gone
            pass
        for task in [watch, *self._followers, *self._tasks]:
            task.cancel()

    async def _watch_reservation(self) -> None:
        """Ray gives accelerators to others whose placement group somebody removes: the run does not go on beside them."""
        lost = None
        while lost is None:
            await asyncio.sleep(LOOK_SECONDS)
            with contextlib.suppress(Exception):  # the control store does not answer: that is told otherwise
                lost = await asyncio.to_thread(self._engine._reserved().find_lost)
        with contextlib.suppress(EOFError):  # nobody is there who could be told
            await self.send(BRIDGE, _roost.PART_GONE, lost[1].encode())

    async def _hand_on(self) -> bool:
        """What the supervisor says to parts, as one call each; False when it says that all is over."""
        said: dict[int, list[Message]] = {}
        await readable(self._carrier.fileno())
        is_going_on = True
        while (message := self._carrier.receive()) is not None:
            part, kind = HEAD.unpack_from(message[1])
            if part == BRIDGE:
                is_going_on = is_going_on and kind != _roost.PART_CLOSE
            else:
                said.setdefault(part, []).append((kind, message[1][HEAD.size :], message[2]))
        for part, messages in said.items():
            task = asyncio.create_task(self._say_or_lose(part, self._number(part), messages))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)
        return is_going_on

    def _number(self, part: int) -> int:
        self._said[part] += 1
        return self._said[part] - 1

    async def _insist(self, method: Any, *args: Any) -> Any:
        """The answer of a part. A question or an answer that was lost is asked for again, by its number, until Ray knows
        that the part has ended."""
        give_up = time.monotonic() + AGAIN_SECONDS
        while True:
            asked = time.monotonic()
            try:
                return await method.remote(*args)
            except self._engine._ray.exceptions.ActorUnavailableError:
                now = time.monotonic()
                if now - asked > 1:  # it was there meanwhile
                    give_up = now + AGAIN_SECONDS
                if now > give_up:
                    raise
                await asyncio.sleep(PAUSE)

    async def _say_or_lose(self, index: int, number: int, messages: list[Message]) -> None:
        """A part that cannot be told is as good as gone."""
        try:
            await self._insist(self._parts[index].say, number, messages)
        except Exception as error:
            self._followers[index].cancel()
            await self._lose(index, death_line(error))

    async def _follow(self, index: int) -> None:
        """What a part says, to its end."""
        part = self._parts[index]
        try:
            await self._await_ready(index)
            for number in itertools.count():
                messages, is_over = await self._insist(part.hear, number)
                for kind, body, file in messages:
                    await self.send(index, kind, body, file)
                if is_over:
                    break
            why = ""
        except (asyncio.CancelledError, EOFError):
            return
        except TimeoutError:
            why = f"its actor has not started after {READY_SECONDS:g} seconds"
        except Exception as error:
            why = death_line(error)
        await self._lose(index, why)

    async def _await_ready(self, index: int) -> None:
        """Until its actor answers; says every five seconds that it does not."""
        async with asyncio.timeout(READY_SECONDS):
            ready = asyncio.ensure_future(self._insist(self._parts[index].say, self._number(index), []))
            try:
                for turn in itertools.count(1):
                    if (await asyncio.wait({ready}, timeout=SAY_EVERY))[0]:
                        break
                    log.warning("waiting for %s: its actor has not started after %g seconds (look at the raylet's log there)", self._words[index], turn * SAY_EVERY)
                await ready
            finally:
                ready.cancel()

    async def _lose(self, index: int, why: str) -> None:
        if index in self._lost:
            return
        self._lost.add(index)
        # One that is only out of reach has processes that nobody counts any more: they end with its actor.
        kill_actors(self._engine._ray, [self._parts[index]])
        with contextlib.suppress(EOFError):  # nobody is there who could be told
            await self.send(index, _roost.PART_GONE, why.encode(errors="replace")[:WORDS_MAX])


def death_line(error: BaseException) -> str:
    """What Ray, or the actor's own start, says of its end, in one line."""
    cause = getattr(error, "cause", None)
    lines = [line.strip() for line in str(cause or error).strip().splitlines() if line.strip()]
    if own := [line for line in lines if line.startswith("roost.")]:
        return own[-1]
    words = " ".join(lines)
    found = rays_cause(words)
    return found if found != words else (lines or [type(error).__name__])[0]


async def writable(fd: int) -> None:
    loop = asyncio.get_running_loop()
    ready = asyncio.Event()
    loop.add_writer(fd, ready.set)
    try:
        await ready.wait()
    finally:
        loop.remove_writer(fd)


def first_message(carrier: _roost.Carrier) -> dict[str, Any]:
    while (message := carrier.receive()) is None:
        select.select([carrier.fileno()], [], [])
    return json.loads(message[2] or b"{}")  # type: ignore[no-any-return]


async def serve(carrier: _roost.Carrier, engine: RayEngine, asked: dict[str, Any]) -> None:
    bridge = Bridge(carrier, engine, asked)
    # A command that attaches to its run has to find the cluster, and not one of the same namespace on its machine.
    own = {"RAY_ADDRESS": engine._ray.get_runtime_context().gcs_address, "ROOST_ENGINE": "ray"}
    environments = [environ_texts(engine._inherited(engine.ids.index(part["id"])) | own) for part in asked["parts"]]
    joined = {"namespace": engine.namespace, "env": environments}
    await bridge.send(BRIDGE, _roost.PART_JOINED, b"", json.dumps(joined).encode())
    await bridge.carry()


def main() -> int:
    carrier = _roost.Carrier(CARRIER)
    logging.basicConfig(format="roost: %(message)s", level=logging.WARNING, stream=sys.stderr)
    asked = first_message(carrier)
    try:
        engine = join(asked)
    except Exception as error:
        carrier.send(_roost.PART_MESSAGE, HEAD.pack(BRIDGE, _roost.PART_REFUSED) + error_json(as_ours(error)))
        return 1
    try:
        asyncio.run(serve(carrier, engine, asked))
    except EOFError:  # the supervisor is gone
        return 1
    finally:
        engine.close()
    return 0


if __name__ == "__main__":
    sys.exit(main())
