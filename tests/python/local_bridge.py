"""A bridge of a run on several nodes that are all this machine: what roost._ray.bridge is, without Ray.

It is started in the place of ROOST_PYTHON. FAULT in its environment makes it misbehave:
  refuse        it cannot join
  garbage       it joins with an answer that nobody can read
  gone:N        agent N is gone before it has leased its ports
  mute:N,M      agents N and M are told nothing, and say nothing
  lose:N:FILE   agent N is lost as soon as FILE is there
  deaf:N        agent N is not told that the run ends
  alter:N:A:B   agent N is sent files in which A has become B
  end:FILE      it says that the run cannot go on as soon as FILE is there
  end:early     the same before anything has begun
  end:starting  the same when the first agent is told what to start
"""

import json
import os
import select
import struct
import sys
from pathlib import Path
from typing import Any

from roost import _roost
from roost._work.program import find_program

HEAD = struct.Struct("=ii")
START = 2  # MSG_START
END = _roost.AGENT_MESSAGE + 2  # MSG_END


class Bridge:
    def __init__(self) -> None:
        self.link = _roost.AgentLink(3)
        self.agents: list[_roost.AgentLink | None] = []
        self.fault = os.environ.get("FAULT", "").split(":")

    def send(self, agent: int, kind: int, body: bytes, file: bytes | None = None) -> None:
        while not self.link.send(_roost.AGENT_MESSAGE, HEAD.pack(agent, kind) + body, file):
            select.select([], [self.link.fileno()], [])

    def join(self) -> None:
        select.select([self.link.fileno()], [], [])
        message = self.link.receive()
        assert message and message[2]
        asked: dict[str, Any] = json.loads(message[2])
        if self.fault[0] == "refuse":
            error = {"error": {"code": "engine", "message": "there is no way", "hint": "find one"}}
            self.send(-1, _roost.AGENT_REFUSED, json.dumps(error).encode())
            sys.exit(1)
        (Path.cwd() / "asked.json").write_text(json.dumps(asked))
        for agent in asked["agents"]:
            self.agents.append(
                _roost.AgentLink.start_agent(
                    find_program(),
                    asked["run"],
                    agent["node"],
                    os.getcwd(),
                    [f"{name}={os.environ[name]}" for name in ("XDG_RUNTIME_DIR",)],
                )
            )
        environments = [[f"PATH={os.environ['PATH']}", f"OF_THE_NODE={agent['node']}"] for agent in asked["agents"]]
        joined = {"namespace": 7} if self.fault[0] == "garbage" else {"namespace": "far", "env": environments}
        self.send(-1, _roost.AGENT_JOINED, b"", json.dumps(joined).encode())
        if self.fault[0] == "gone":
            self.lose(int(self.fault[1]), "it was too far away")
        if self.fault == ["end", "early"]:
            self.send(-1, _roost.AGENT_GONE, b"there is no ground")

    def lose(self, index: int, why: str) -> None:
        agent = self.agents[index]
        if agent is not None:
            agent.close()
            self.agents[index] = None
            self.send(index, _roost.AGENT_GONE, why.encode())

    def hand_on(self) -> bool:
        while (message := self.link.receive()) is not None:
            index, kind = HEAD.unpack_from(message[1])
            if index < 0:
                return kind != _roost.AGENT_CLOSE
            if self.fault == ["end", "starting"] and kind == START:
                self.send(-1, _roost.AGENT_GONE, b"the ground has just gone")
                self.fault = [""]
            agent = self.agents[index]
            if agent is not None and not self.drops(index, kind):
                agent.send(kind, message[1][HEAD.size :], self.altered(index, message[2]))
        return True

    def drops(self, index: int, kind: int) -> bool:
        """A message that the agent never gets."""
        if self.fault[0] == "deaf":
            return kind == END and str(index) == self.fault[1]
        return self.fault[0] == "mute" and str(index) in self.fault[1].split(",")

    def altered(self, index: int, file: bytes | None) -> bytes | None:
        if self.fault[0] != "alter" or index != int(self.fault[1]) or file is None:
            return file
        return file.replace(self.fault[2].encode(), self.fault[3].encode())

    def hear(self, index: int) -> None:
        agent = self.agents[index]
        try:
            while agent is not None and (message := agent.receive()) is not None:
                self.send(index, message[0], message[1])
        except EOFError:
            self.lose(index, "")

    def serve(self) -> None:
        self.join()
        while True:
            fds = {agent.fileno(): index for index, agent in enumerate(self.agents) if agent is not None}
            ready, _, _ = select.select([self.link.fileno(), *fds], [], [], 0.05)
            for fd in ready:
                if fd in fds:
                    self.hear(fds[fd])
                elif not self.hand_on():
                    return
            if self.fault[0] == "lose" and os.path.exists(self.fault[2]):
                self.lose(int(self.fault[1]), "somebody pulled the plug")
            if self.fault[0] == "end" and os.path.exists(self.fault[1]):
                self.send(-1, _roost.AGENT_GONE, b"the ground is gone")
                self.fault = [""]


if __name__ == "__main__":
    try:
        Bridge().serve()
    except EOFError:
        pass
