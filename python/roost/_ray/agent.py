"""The actor on a node of `roost run --engine ray`. It starts the node's agent (roost/engine/agent.h) and carries messages to and from
it without reading them."""

import asyncio
import tempfile
from collections import deque

from roost import _roost
from roost._plan.config import environment
from roost._plan.errors import EngineError, fault
from roost._work.program import find_program

Message = tuple[int, bytes, bytes | None]  # type, body, a file's bytes

AT_ONCE = 1 << 20  # bytes of one answer


class Agent:
    """On one node. Its methods run on one event loop. Ray may hand over a later call before an earlier one, or lose one or
    its answer, so what is said is numbered, either way, and the same number again changes nothing."""

    def __init__(self, run_id: str, node_rank: int, node_id: str) -> None:
        check_node(node_rank, node_id)
        self._link = _roost.AgentLink.start_agent(
            find_program(), run_id, node_rank, tempfile.gettempdir(), environment()
        )
        self._unsent: deque[Message] = deque()
        self._heard = 0  # messages up to this number were passed on in order
        self._early: dict[int, list[Message]] = {}
        self._is_over = False
        self._hearing = asyncio.Lock()
        self._told = -1
        self._last: tuple[list[Message], bool] = ([], False)  # the answer that had that number

    async def say(self, number: int, messages: list[Message]) -> None:
        if number >= self._heard:
            self._early[number] = messages
        while self._heard in self._early:
            self._unsent.extend(self._early.pop(self._heard))
            self._heard += 1
        self._send()

    def _send(self) -> None:
        """What there is room for; the rest when there is more."""
        loop, fd = asyncio.get_running_loop(), self._link.fileno()
        try:
            while self._unsent and self._link.send(*self._unsent[0]):
                self._unsent.popleft()
        except EOFError:
            self._unsent.clear()
        if fd < 0:
            return
        if self._unsent:
            loop.add_writer(fd, self._send)
        else:
            loop.remove_writer(fd)

    async def hear(self, number: int) -> tuple[list[Message], bool]:
        """Waits for messages of the agent and returns them, and whether they were the last."""
        async with self._hearing:
            if number > self._told:  # a late copy of an old question takes nothing
                self._last = await self._collect()
                self._told = number
            return self._last

    async def _collect(self) -> tuple[list[Message], bool]:
        messages: list[Message] = []
        size = 0
        while size < AT_ONCE and not self._is_over:
            fd = self._link.fileno()
            try:
                message = self._link.receive()
            except EOFError:
                self._is_over = True
                if fd >= 0:
                    asyncio.get_running_loop().remove_writer(fd)
                break
            if message is not None:
                messages.append(message)
                size += len(message[1])
            elif messages:
                break
            else:
                await readable(fd)
        return messages, self._is_over


def check_node(node_rank: int, planned: str) -> None:
    """Before anything is started: Ray was asked for one node only, and is not taken at its word."""
    import ray

    found = ray.get_runtime_context().get_node_id()
    if found != planned:
        raise fault(
            EngineError,
            f"the agent of node {node_rank} is not as planned: it is on node {found} and not on {planned}",
            hint="nothing was started there: a plugin of Ray may have moved its actor",
        )


async def readable(fd: int) -> None:
    loop = asyncio.get_running_loop()
    ready = asyncio.Event()
    loop.add_reader(fd, ready.set)
    try:
        await ready.wait()
    finally:
        loop.remove_reader(fd)
