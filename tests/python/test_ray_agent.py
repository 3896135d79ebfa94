"""What goes between a run's bridge and its agent on a node, when Ray hands it over late, twice or not at all; without Ray."""

import asyncio
import os
import socket
import time
from collections import deque
from types import SimpleNamespace
from typing import Any

import pytest

from roost._ray import bridge as ray_bridge
from roost._ray.agent import Agent, Message
from roost._roost import AgentLink as Real


class AgentLink:
    """What an agent has said and heard."""

    def __init__(self) -> None:
        self.said: deque[Message] = deque()
        self.heard: list[Message] = []
        self.ends = os.pipe()

    def fileno(self) -> int:
        return self.ends[0]

    def send(self, *message: Any) -> bool:
        self.heard.append(message)
        return True

    def receive(self) -> Message | None:
        return self.said.popleft() if self.said else None

    def say(self, body: bytes) -> None:
        self.said.append((1, body, None))
        os.write(self.ends[1], b"x")


@pytest.fixture
def agent(monkeypatch: pytest.MonkeyPatch) -> Any:
    made = AgentLink()
    monkeypatch.setattr("roost._ray.agent.check_node", lambda *words: None)
    monkeypatch.setattr("roost._ray.agent.find_program", lambda: "")
    monkeypatch.setattr(
        "roost._ray.agent._roost", SimpleNamespace(AgentLink=SimpleNamespace(start_agent=lambda *words: made))
    )
    yield SimpleNamespace(agent=Agent("abcdef", 0, "aa"), link=made)
    for end in made.ends:
        os.close(end)


def test_what_is_said_late_or_twice_is_heard_once_and_in_its_order(agent: Any) -> None:
    async def say() -> None:
        for number in (1, 0, 0, 1, 3, 3, 2, 0):
            await agent.agent.say(number, [(number, b"", None)])

    asyncio.run(say())
    assert [kind for kind, *_ in agent.link.heard] == [0, 1, 2, 3]
    assert not agent.agent._early


def test_what_was_told_is_told_again_by_its_number_and_nothing_is_taken_by_late_copies(agent: Any) -> None:
    async def hear() -> None:
        agent.link.say(b"a")
        first = await agent.agent.hear(0)
        assert first == ([(1, b"a", None)], False) and await agent.agent.hear(0) == first
        both = [asyncio.create_task(agent.agent.hear(1)) for _ in range(2)]
        await asyncio.sleep(0)
        agent.link.say(b"b")
        assert [(await task)[0] for task in both] == [[(1, b"b", None)]] * 2
        agent.link.say(b"c")
        await agent.agent.hear(0)
        assert (await agent.agent.hear(2))[0] == [(1, b"c", None)]

    asyncio.run(hear())


@pytest.mark.parametrize("fault", ["gone", "unsendable"])
def test_who_waits_for_a_agent_hears_of_its_end_also_from_a_failure_to_tell_it(
    monkeypatch: pytest.MonkeyPatch, fault: str
) -> None:
    """A descriptor that is closed wakes nobody."""
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    ours.setblocking(False)
    link = Real(ours.detach())
    monkeypatch.setattr("roost._ray.agent.check_node", lambda *words: None)
    monkeypatch.setattr("roost._ray.agent.find_program", lambda: "")
    monkeypatch.setattr(
        "roost._ray.agent._roost", SimpleNamespace(AgentLink=SimpleNamespace(start_agent=lambda *words: link))
    )
    agent = Agent("abcdef", 0, "aa")

    async def tell() -> tuple[list[Message], bool]:
        hearing = asyncio.create_task(agent.hear(0))
        await asyncio.sleep(0)  # it waits
        if fault == "gone":
            theirs.close()
        await agent.say(0, [(1, b"x" * (100 if fault == "gone" else 100_000), None)])
        return await asyncio.wait_for(hearing, 10)

    assert asyncio.run(tell()) == ([], True)
    theirs.close()


class Lost(Exception):
    pass


def make_bridge() -> Any:
    bridge = object.__new__(ray_bridge.Bridge)
    bridge.killed = []  # type: ignore[attr-defined]
    kill = lambda actor, no_restart: bridge.killed.append(actor)  # type: ignore[attr-defined]  # noqa: E731
    bridge._engine = SimpleNamespace(
        _ray=SimpleNamespace(exceptions=SimpleNamespace(ActorUnavailableError=Lost), is_joined=True, kill=kill)
    )  # type: ignore[assignment]
    return bridge


class Method:
    """Of an actor that cannot be reached a few times."""

    def __init__(self, failures: int) -> None:
        self.failures, self.asked = failures, list[Any]()

    async def remote(self, *args: Any) -> str:
        self.asked.append(args)
        if len(self.asked) <= self.failures:
            raise Lost("it may be there, or not")
        return "answer"


def test_a_question_that_was_lost_is_asked_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ray_bridge, "PAUSE", 0.001)
    method = Method(3)
    assert asyncio.run(make_bridge()._insist(method, 7, "x")) == "answer"
    assert method.asked == [(7, "x")] * 4


def test_a_agent_that_is_never_reached_is_given_up_and_told_of_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ray_bridge, "PAUSE", 0.001)
    monkeypatch.setattr(ray_bridge, "AGAIN_SECONDS", 0.05)
    told: list[Any] = []
    bridge = make_bridge()

    async def lose() -> None:
        bridge._lost = set()
        bridge._agents = [SimpleNamespace(say=Method(10**9))]
        bridge._followers = [asyncio.create_task(asyncio.sleep(1000))]
        bridge.send = lambda *words: asyncio.sleep(0, told.append(words))
        await asyncio.gather(*(bridge._say_or_lose(0, number, []) for number in range(3)))

    begin = time.monotonic()
    asyncio.run(lose())
    assert told == [(0, ray_bridge._roost.AGENT_GONE, b"it may be there, or not")] and time.monotonic() - begin < 10
    assert bridge.killed == bridge._agents  # it may be reached again, and nobody counts its processes


def test_an_actor_that_does_not_start_is_said_and_given_up(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(ray_bridge, "SAY_EVERY", 0.02)
    monkeypatch.setattr(ray_bridge, "READY_SECONDS", 0.5)
    told: list[Any] = []
    bridge = make_bridge()

    async def follow() -> None:
        bridge._lost, bridge._said, bridge._words = set(), [0], ["node 2 (10.0.0.3)"]
        bridge._agents = [SimpleNamespace(say=SimpleNamespace(remote=lambda *args: asyncio.sleep(1000)))]
        bridge.send = lambda *words: asyncio.sleep(0, told.append(words))
        await bridge._follow(0)

    asyncio.run(follow())
    assert (
        caplog.messages[0]
        == "waiting for node 2 (10.0.0.3): its actor has not started after 0.02 seconds (look at the raylet's log there)"
        and len(caplog.messages) > 2
    )
    assert (
        told == [(0, ray_bridge._roost.AGENT_GONE, b"its actor has not started after 0.5 seconds")]
        and bridge.killed == bridge._agents
    )
