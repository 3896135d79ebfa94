"""What people see of workers that write colours and progress bars: on a real terminal, and in a pipe."""

import contextlib
import os
import pty
import subprocess
from pathlib import Path

import pytest

from engine import PATIENCE, ROOST, Engine

# roost reads %% as %, and so does printf.
WORKER = r"""printf '\033[31mred\033[2J\n'; printf '\r 10%%%%\r 20%%%%\r100%%%%\n\n' >&2; printf '\r 1%%%%\r 2%%%%' >&2; exit 3"""


@pytest.fixture
def config(plain_engine: Engine) -> Path:
    path = plain_engine.home / "colours.yaml"
    path.write_text(
        "cluster: {num_nodes: 1, component_placement: {actor: 0}}\n"
        f"roost: {{cluster: 1x1, launch: {{actor: {{command: [sh, -c, {quoted(WORKER)}]}}}}}}\n"
    )
    return path


def quoted(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


def on_terminal(engine: Engine, *words: str | Path, **variables: str) -> str:
    ours, theirs = pty.openpty()
    env = {name: value for name, value in engine.env.items() if name != "NO_COLOR"}
    started = subprocess.Popen(
        [ROOST, *words], env=env | {"TERM": "xterm"} | variables, cwd=engine.home, stdout=theirs, stderr=theirs
    )
    os.close(theirs)
    seen = b""
    with contextlib.suppress(OSError), open(ours, "rb", buffering=0) as terminal:
        while more := terminal.read(4096):
            seen += more
    started.wait(PATIENCE)
    return seen.decode().replace("\r\n", "\n")


RED = "\x1b[38;5;32m[actor/0]\x1b[0m \x1b[31mred\\x1b[2J\x1b[0m\n"


def test_a_terminal_gets_colours_and_a_pipe_none(plain_engine: Engine, config: Path) -> None:
    assert RED in on_terminal(plain_engine, "run", config)
    for words in (["logs"], ["logs", "-f"]):
        assert RED in on_terminal(plain_engine, *words)
    assert "[actor/0] red\\x1b[2J\n" in on_terminal(plain_engine, "logs", NO_COLOR="1")
    assert "[actor/0] red\\x1b[2J\n" in on_terminal(plain_engine, "logs", "--color", "never")

    def piped(*words: str) -> bytes:
        return subprocess.run(
            [ROOST, "logs", *words], env=plain_engine.env, capture_output=True, timeout=PATIENCE
        ).stdout

    assert piped() == b"[actor/0] red\\x1b[2J\n"
    assert piped("--color", "always") == RED.encode()
    assert piped("--no-label") == b"\x1b[31mred\x1b[2J\n"


def test_a_bar_is_one_line_in_a_pipe_and_in_the_tail_of_a_failure(plain_engine: Engine, config: Path) -> None:
    done = subprocess.run(
        [ROOST, "run", config], env=plain_engine.env, cwd=plain_engine.home, capture_output=True, timeout=PATIENCE
    )
    assert done.returncode == 3
    lines = done.stderr.decode().split("\n")
    assert [line for line in lines if line.startswith("[actor/0]")] == ["[actor/0] 100%", "[actor/0] ", "[actor/0]  2%"]
    assert [line for line in lines if line.startswith("  |")] == ["  | 100%", "  |  2%"]
