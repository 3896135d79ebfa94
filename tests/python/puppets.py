"""Python processes that do what a test tells them, a line at a time: for what needs several processes.

ROOST  the program (default build/roost)
"""

import json
import os
import select
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from engine import PATIENCE, ROOST
from verdicts import TimedOut

PUPPET = """
import json, os, signal, sys, threading, time
import roost
from roost import _roost
from roost._work import managers
from roost._local.registry_server import start_registry_server
def plan(**words):
    # A Cluster whose managers have not started.
    os.environ["ROOST_NAMESPACE"] = "none"
    try:
        return roost.Cluster(**words)
    finally:
        del os.environ["ROOST_NAMESPACE"]
out = os.fdopen(os.dup(1), "w")
for line in sys.stdin:
    try:
        try:
            value = eval(compile(json.loads(line), "test", "eval"))
        except SyntaxError:
            value = exec(compile(json.loads(line), "test", "exec"))
        print(json.dumps(["value", value if isinstance(value, (int, str, list, type(None))) else repr(value)]), file=out, flush=True)
    except BaseException as error:
        print(json.dumps(["error", type(error).__name__, str(error), getattr(error, "code", "")]), file=out, flush=True)
"""


class Failed(Exception):
    """What a puppet ran into: the name of the exception, its text, its code."""


class Puppet:
    def __init__(self, env: dict[str, str], **more: Any) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-c", PUPPET], env=env, stdin=subprocess.PIPE, stdout=subprocess.PIPE, **more
        )
        self.pid = self.process.pid
        self.text = b""

    def tell(self, code: str) -> None:
        """Does it; the answer is taken later."""
        assert self.process.stdin
        self.process.stdin.write(json.dumps(code).encode() + b"\n")
        self.process.stdin.flush()

    def hear(self, patience: float = PATIENCE) -> Any:
        """The next answer; Failed when it is an exception."""
        assert self.process.stdout
        deadline = time.monotonic() + patience
        while b"\n" not in self.text:
            if not select.select([self.process.stdout], [], [], max(0.0, deadline - time.monotonic()))[0]:
                raise TimedOut("no answer")
            more = os.read(self.process.stdout.fileno(), 65536)
            assert more, "the process has ended"
            self.text += more
        line, _, self.text = self.text.partition(b"\n")
        kind, *words = json.loads(line)
        if kind == "error":
            raise Failed(*words)
        return words[0]

    def do(self, code: str) -> Any:
        self.tell(code)
        return self.hear()

    def kill(self) -> None:
        self.process.send_signal(signal.SIGKILL)
        self.process.wait(PATIENCE)

    def end(self) -> None:
        if self.process.poll() is None:
            self.process.kill()
        self.process.communicate()


class Theatre:
    """A private runtime directory and the puppets in it."""

    def __init__(self, home: Path) -> None:
        self.runtime = home / "runtime"
        self.runtime.mkdir(mode=0o700)
        self.env = {
            name: value for name, value in os.environ.items() if not name.startswith(("ROOST", "XDG_", "RLINF"))
        }
        side = int(os.environ.get("PYTEST_XDIST_WORKER", "gw0").removeprefix("gw"))
        self.env |= {"XDG_RUNTIME_DIR": str(self.runtime), "XDG_STATE_HOME": str(home / "state")}
        self.port_base = 20000 + 1500 * (side % 8) + 1000
        self.env["ROOST_PORT_BASE"] = str(self.port_base)
        self.puppets: list[Puppet] = []

    def puppet(self, **env: str) -> Puppet:
        self.puppets.append(Puppet(self.env | env))
        return self.puppets[-1]

    def driver(self, cluster: str = "cluster='2x4'", namespace: str | None = None) -> Puppet:
        """A process with managers."""
        it = self.puppet()
        it.do(
            f"registry_server = start_registry_server(plan({cluster}), {namespace!r}, program={str(ROOST)!r}, port_base={self.port_base})"
        )
        return it

    def path(self, namespace: str = "roost") -> Path:
        return self.runtime / "roost" / f"{namespace}.registry"

    def connect(self, namespace: str = "roost") -> socket.socket:
        it = socket.socket(socket.AF_UNIX)
        it.connect(os.fspath(self.path(namespace)))  # waits for room in the queue, which a time limit would not
        it.settimeout(PATIENCE)
        return it

    def close(self) -> None:
        for puppet in self.puppets:
            puppet.end()
