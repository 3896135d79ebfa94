"""The table of `roost plan` fits the terminal, whatever the names; what is folded is still whole.

ROOST  the program (default build/roost)
"""

import fcntl
import os
import pty
import re
import struct
import subprocess
import termios
from pathlib import Path

import pytest

ROOST = Path(os.environ.get("ROOST", Path(__file__).parents[2] / "build" / "roost")).absolute()
ACTOR = "actor" + "_of_a_long_name" * 3 + "abcdefghijklm"
ROLLOUT = "r" * 63
GROUP = "group." + "g" * 57
CONFIG = f"""\
cluster:
  num_nodes: 1024
  node_groups:
    - {{label: {GROUP}, node_ranks: all}}
  component_placement:
    {ACTOR}: 0-8191
    {ROLLOUT}: {{node_group: {GROUP}, placement: "0,2,4:2-8193"}}
"""


def shown(columns: int, config: Path) -> list[str]:
    """The lines that a terminal of `columns` is given, colours aside."""
    master, slave = pty.openpty()
    fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 50, columns, 0, 0))
    with subprocess.Popen([ROOST, "plan", "--cluster", "1024x8", config], stdout=slave, env={}) as program:
        os.close(slave)
        text = b""
        while True:
            try:
                piece = os.read(master, 65536)
            except OSError:  # the other end is closed
                break
            if not piece:
                break
            text += piece
        os.close(master)
    assert program.returncode == 0
    return re.sub(r"\x1b\[[\d;]*m", "", text.decode()).replace("\r\n", "\n").split("\n")


@pytest.mark.parametrize("columns", [80, 81, 99, 120, 300])
def test_a_table_fits_its_terminal(tmp_path: Path, columns: int) -> None:
    config = tmp_path / "c.yaml"
    config.write_text(CONFIG)
    lines = shown(columns, config)
    assert max(map(len, lines)) <= columns
    assert [line for line in lines if line.endswith(" ")] == []
    left = lines[2].index("RANKS")
    rows = lines[3 : lines.index("", 3)]  # what is shared and idle comes behind an empty line
    assert "".join(line[:left].strip() for line in rows) == ACTOR + ROLLOUT
    if columns == 300:
        assert any(ACTOR in line for line in lines) and any(GROUP in line for line in lines)
