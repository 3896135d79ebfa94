"""`roost run --engine ray`: the bridge between a run's supervisor, which started this process, and its agents on the
nodes of a Ray cluster (roost/engine/agent.h). The supervisor makes the decisions. The bridge joins Ray, reserves the devices, starts
one actor on each node, and carries messages."""

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
from roost._plan.config import environment
from roost._plan.errors import EngineError, error_fields, fault
from roost._ray.agent import Agent, Message, readable
from roost._ray.engine import RayEngine
from roost._ray.group import kill_actors, rays_cause
from roost._ray.join import SAY_EVERY
from roost._ray.nodes import LOCAL_NODE, name_local_node, not_there
from roost._ray.reservations import Devices
from roost._ray.reserve import WAIT_SECONDS
from roost._ray.run import Planned, open_run
from roost._work.engine import ClusterRequest
from roost._work.managers import get_transport

log = logging.getLogger("roost")

HEAD = struct.Struct("=ii")  # struct roost_agent_head
BRIDGE = -1
LINK_FD = 3  # the descriptor
READY_SECONDS = 120.0
AGAIN_SECONDS = 60.0  # by then Ray knows whether a silent node is gone
PAUSE = 0.1
LOOK_SECONDS = 1.0  # between looks whether what was reserved still is
WORDS_MAX = 400


def error_json(error: _roost.Error) -> bytes:
    return json.dumps({"error": error_fields(error)}).encode()


def as_ours(error: Exception) -> _roost.Error:
    """An unexpected error of Ray's, as one of ours: the chosen Python is not the cause."""
    if isinstance(error, _roost.Error):
        return error
    return fault(
        EngineError,
        f"cannot join the Ray cluster: {type(error).__name__}: {death_line(error)}"[:WORDS_MAX],
        hint="`ray status` there tells how it is",
    )


def join(asked: dict[str, Any]) -> RayEngine:
    """A run of its own on the cluster, with the accelerators of the plan reserved."""
    address, agents = asked["address"], asked["agents"]
    if not address and not os.environ.get("RAY_ADDRESS") and any(agent["id"] == LOCAL_NODE for agent in agents):
        address = "local"  # as it was planned, whatever has been started since
    engine = open_run(
        ClusterRequest(num_nodes=asked["num_nodes"], timeout=asked["wait_ms"] / 1000),
        lambda warnings: None,
        Planned(asked["run"], address, asked["view"]),
    )
    try:
        if (address or os.environ.get("RAY_ADDRESS")) == "local":
            name_local_node(agents, engine.ids[0])
        check_nodes(engine, agents)
        reserve(engine, asked)
    except BaseException:
        engine.close()
        raise
    return engine


def check_nodes(engine: RayEngine, agents: list[dict[str, Any]]) -> None:
    for agent in agents:
        if agent["id"] not in engine.ids:
            raise not_there(agent["node"], agent["id"])


def reserve(engine: RayEngine, asked: dict[str, Any]) -> None:
    wanted: Devices = {agent["id"]: set(agent["devices"]) for agent in asked["agents"] if agent["devices"]}
    engine.is_reserving = asked["reserve"]
    engine.reserver().keep(engine.reserver().add(wanted, WAIT_SECONDS))


class Bridge:
    """Carries messages until the supervisor closes the run or has gone."""

    def __init__(self, link: _roost.AgentLink, engine: RayEngine, asked: dict[str, Any]) -> None:
        self._link, self._engine = link, engine
        self._sending = asyncio.Lock()
        self._agents: list[Any] = []
        actor = engine._ray.remote(Agent)
        # Their names are none that a group's ranks could have.
        for agent in asked["agents"]:
            options = {
                "name": f"agent/{agent['node']}",
                "namespace": engine.namespace,
                "num_cpus": 0,
                "num_gpus": 0,
                "max_restarts": 0,
                "max_task_retries": 0,
                "scheduling_strategy": engine._affinity(engine.ids.index(agent["id"])),
            }
            self._agents.append(actor.options(**options).remote(asked["run"], agent["node"], agent["id"]))
        engine._agents.extend(self._agents)
        self._words = [engine.node_words(engine.ids.index(agent["id"])) for agent in asked["agents"]]
        self._said = [0] * len(self._agents)
        self._lost: set[int] = set()  # agents that the supervisor knows to be lost
        self._tasks: set[asyncio.Task[None]] = set()
        self._followers: list[asyncio.Task[None]] = []
        self._news: asyncio.Queue[bytes] = asyncio.Queue()  # requests for the managers

    async def send(self, agent: int, kind: int, body: bytes, file: bytes | None = None) -> None:
        async with self._sending:
            while not self._link.send(_roost.AGENT_MESSAGE, HEAD.pack(agent, kind) + body, file):
                await writable(self._link.fileno())

    async def carry(self) -> None:
        self._followers = [asyncio.create_task(self._follow(index)) for index in range(len(self._agents))]
        watch = [asyncio.create_task(self._watch_reservation()), asyncio.create_task(self._tell_news())]
        try:
            while await self._hand_on():
                pass
        except EOFError:  # the supervisor is gone
            pass
        for task in [*watch, *self._followers, *self._tasks]:
            task.cancel()

    async def _watch_reservation(self) -> None:
        """Ends the run when another program has removed its placement group: Ray may give the accelerators to others."""
        lost = None
        while lost is None:
            await asyncio.sleep(LOOK_SECONDS)
            with contextlib.suppress(Exception):  # the control store does not answer; other calls report that
                lost = await asyncio.to_thread(self._engine.reserver().find_lost)
        with contextlib.suppress(EOFError):  # the supervisor has gone
            await self.send(BRIDGE, _roost.AGENT_GONE, lost[1].encode())

    async def _hand_on(self) -> bool:
        """Passes the supervisor's messages on, with one call for each agent. False when the supervisor has closed the run."""
        said: dict[int, list[Message]] = {}
        await readable(self._link.fileno())
        is_going_on = True
        while (message := self._link.receive()) is not None:
            agent, kind = HEAD.unpack_from(message[1])
            if agent == BRIDGE and kind == _roost.AGENT_TELL and message[2] is not None:
                await asyncio.to_thread(tell_managers, message[2])  # before the first process starts
            elif agent == BRIDGE and kind == _roost.AGENT_TELL:
                self._news.put_nowait(message[1][HEAD.size :])
            elif agent == BRIDGE:
                is_going_on = is_going_on and kind != _roost.AGENT_CLOSE
            else:
                said.setdefault(agent, []).append((kind, message[1][HEAD.size :], message[2]))
        for agent, messages in said.items():
            task = asyncio.create_task(self._say_or_lose(agent, self._number(agent), messages))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)
        return is_going_on

    async def _tell_news(self) -> None:
        """Passes on what the managers are to know, in its order."""
        while True:
            await asyncio.to_thread(tell_managers, await self._news.get())

    def _number(self, agent: int) -> int:
        self._said[agent] += 1
        return self._said[agent] - 1

    async def _insist(self, method: Any, *args: Any) -> Any:
        """The answer of an agent. A question or an answer that was lost is asked for again, by its number, until Ray knows
        that the agent has ended."""
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
        """Sends messages to an agent. An agent that cannot be reached counts as lost."""
        try:
            await self._insist(self._agents[index].say, number, messages)
        except Exception as error:
            self._followers[index].cancel()
            await self._lose(index, death_line(error))

    async def _follow(self, index: int) -> None:
        """Passes the messages of an agent on, until it ends."""
        agent = self._agents[index]
        try:
            await self._await_ready(index)
            for number in itertools.count():
                messages, is_over = await self._insist(agent.hear, number)
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
        """Waits until the agent's actor answers, and logs every five seconds while it does not."""
        async with asyncio.timeout(READY_SECONDS):
            ready = asyncio.ensure_future(self._insist(self._agents[index].say, self._number(index), []))
            try:
                for turn in itertools.count(1):
                    if (await asyncio.wait({ready}, timeout=SAY_EVERY))[0]:
                        break
                    log.warning(
                        "waiting for %s: its actor has not started after %g seconds (look at the raylet's log there)",
                        self._words[index],
                        turn * SAY_EVERY,
                    )
                await ready
            finally:
                ready.cancel()

    async def _lose(self, index: int, why: str) -> None:
        if index in self._lost:
            return
        self._lost.add(index)
        # An agent that is only out of reach has processes that the supervisor no longer counts: they end with its actor.
        kill_actors(self._engine._ray, [self._agents[index]])
        with contextlib.suppress(EOFError):  # the supervisor has gone
            await self.send(index, _roost.AGENT_GONE, why.encode(errors="replace")[:WORDS_MAX])


def tell_managers(lines: bytes) -> None:
    """Sends requests that no caller waits for: the run goes on without what its managers could not be told."""
    for line in lines.splitlines():
        request = json.loads(line)
        try:
            get_transport().call(request["call"], request["args"], None)
        except _roost.Error as error:
            log.warning("the managers do not know all processes of the run: %s", error)
            return


def death_line(error: BaseException) -> str:
    """Why an actor has ended, by Ray or by its own constructor, in one line."""
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


def first_message(link: _roost.AgentLink) -> dict[str, Any]:
    while (message := link.receive()) is None:
        select.select([link.fileno()], [], [])
    return json.loads(message[2] or b"{}")  # type: ignore[no-any-return]


async def serve(link: _roost.AgentLink, engine: RayEngine, asked: dict[str, Any]) -> None:
    bridge = Bridge(link, engine, asked)
    # A command that attaches to its run has to find the cluster, and not one of the same namespace on its machine.
    own = {"RAY_ADDRESS": engine._ray.get_runtime_context().gcs_address, "ROOST_ENGINE": "ray"}
    environments = [environment(engine._inherited(engine.ids.index(agent["id"])) | own) for agent in asked["agents"]]
    joined = {"namespace": engine.namespace, "env": environments}
    await bridge.send(BRIDGE, _roost.AGENT_JOINED, b"", json.dumps(joined).encode())
    await bridge.carry()


def main() -> int:
    link = _roost.AgentLink(LINK_FD)
    logging.basicConfig(format="roost: %(message)s", level=logging.WARNING, stream=sys.stderr)
    asked = first_message(link)
    try:
        engine = join(asked)
    except Exception as error:
        link.send(_roost.AGENT_MESSAGE, HEAD.pack(BRIDGE, _roost.AGENT_REFUSED) + error_json(as_ours(error)))
        return 1
    try:
        asyncio.run(serve(link, engine, asked))
    except EOFError:  # the supervisor is gone
        return 1
    finally:
        engine.close()
    return 0


if __name__ == "__main__":
    sys.exit(main())
