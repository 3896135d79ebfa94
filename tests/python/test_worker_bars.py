"""Progress bars of a worker group: rows on the driver's terminal, one line elsewhere."""

import contextlib
import fcntl
import os
import pty
import re
import struct
import subprocess
import sys
import termios
import textwrap

from engine import PATIENCE, Engine
from roost import _roost

SCRIPT = """
import sys
import roost


class Bar(roost.Worker):
    def work(self, gate):
        sys.stderr.write(f"\\r 10%\\r\\x1b[2J 50% {'wide ' * 20}")
        sys.stderr.flush()
        if gate:
            open(gate).close()
        sys.stderr.write("\\r100%\\n")
        sys.stderr.flush()


if __name__ == "__main__":
    group = Bar.create_group().launch(roost.Cluster(cluster="1x2"), name="bars")
    print("the driver's own words", end="", flush=True)
    group.work(*sys.argv[1:2]).wait()
    print()
    group.close()
    print("the end", flush=True)
"""


def write_script(engine: Engine) -> str:
    path = engine.home / "bars.py"
    path.write_text(textwrap.dedent(SCRIPT))
    return str(path)


def test_a_pipe_gets_the_final_line_of_a_bar(plain_engine: Engine) -> None:
    done = subprocess.run(
        [sys.executable, write_script(plain_engine), ""], env=plain_engine.env, capture_output=True, timeout=PATIENCE
    )
    assert done.returncode == 0, done.stderr
    assert sorted(done.stderr.decode().splitlines()) == ["[bars/0] 100%", "[bars/1] 100%"]
    plain_engine.wait_empty()


def test_a_terminal_shows_a_row_per_rank_until_the_line_ends(plain_engine: Engine) -> None:
    gate = plain_engine.home / "gate"
    os.mkfifo(gate)
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 40, 0, 0))
    env = {name: value for name, value in plain_engine.env.items() if name != "NO_COLOR"} | {"TERM": "xterm"}
    script = subprocess.Popen(
        [sys.executable, write_script(plain_engine), str(gate)], env=env, stdout=theirs, stderr=theirs
    )
    os.close(theirs)
    seen = b""
    opened = None
    try:
        with contextlib.suppress(OSError), open(ours, "rb", buffering=0) as terminal:
            while more := terminal.read(4096):
                seen += more
                if opened is None and all(re.search(rb"bars/%d\]\x1b\[0m .{0,9} 50%%" % rank, seen) for rank in (0, 1)):
                    opened = os.open(gate, os.O_RDWR)  # both ranks go on, also one that opens it later
    finally:
        if opened is not None:
            os.close(opened)
        assert script.wait(PATIENCE) == 0, seen
    text = seen.decode().replace("\r\r\n", "\r\n")  # the terminal puts a carriage return before each newline
    assert "the driver's own words" in text and "\x1b[2J" not in text
    rows = re.findall(r"\x1b7\r\n(.*?)\x1b8", text, re.DOTALL)
    for row in rows:  # from the row of the driver's words and back, and never as wide as the terminal
        for line in row.split("\r\n"):
            plain = re.sub(r"\x1b\[[0-9;]*m", "", line)
            assert plain.startswith("[bars/") and len(plain) < 40
    # Each drawing makes its room first, and takes the one before away.
    assert len(rows) == len(re.findall(r"\x1b\[J(?:\x1bD)+\x1b\[[12]A\x1b7", text))
    after = text[text.rindex("\x1b8") :]
    for rank in (0, 1):
        assert len(re.findall(rf"\[bars/{rank}\]\x1b\[0m 100%\r\n", text)) == 1
    assert "\x1b[J" in after and after.endswith("the end\r\n")
    plain_engine.wait_empty()


def test_a_bar_is_the_newest_state_until_its_line_is_written() -> None:
    """`show_lines`: lines, bytes that are done with, memo and bar."""
    lines, taken, memo, bar = _roost.show_lines("actor", 3, b"first\n 10%\r 20%", 0, False, False, 80, "")
    assert (lines, bar) == ("[actor/3] first\n", "[actor/3]  20%")
    rest = b"first\n 10%\r 20%"[taken:]
    again = _roost.show_lines("actor", 3, rest, memo, False, False, 80, bar)
    assert (again[0], again[3]) == ("", bar)
    assert _roost.show_lines("actor", 3, rest + b"\r\n", memo, False, False, 80, bar)[::3] == ("[actor/3]  20%\n", "")
    assert _roost.show_lines("actor", 3, rest, memo, True, False, 80, bar)[::3] == ("[actor/3]  20%\n", "")
    assert _roost.show_lines("actor", 3, rest, memo, False, False, 13, "")[3] == "[actor/3]  2"
    assert _roost.show_lines("actor", 3, rest, memo, False, False, 0, "")[3] == ""
    assert _roost.show_lines(None, 3, b"a\r\x1b[31mb\n", 0, False, True, 0, "")[0] == "\x1b[31mb\x1b[0m\n"
