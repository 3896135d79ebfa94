"""What `roost ps` says of the groups of a Python program: its name, and how it ended."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from engine import PATIENCE, ROOST

JOB = """
import sys
import roost


class Adder(roost.Worker):
    def add(self, number):
        if number < 0:
            raise ValueError("negative")
        return number + 1


def main():
    how = sys.argv[1]
    group = Adder.create_group().launch(roost.Cluster(cluster="1x1"), name="adder")
    if how == "with":
        with group:
            group.add(1).wait()
        return
    if how == "exit in with":
        with group:
            sys.exit(3)
    if how == "kept":
        try:
            with group:
                raise KeyError(how)
        except KeyError:
            return
    group.add(-1 if how == "worker" else 1).wait()
    if how == "raise":
        raise RuntimeError(how)
    if how == "interrupt":
        raise KeyboardInterrupt


if __name__ == "__main__":
    main()
"""


@pytest.fixture
def home(tmp_path: Path) -> Path:
    (tmp_path / "runtime").mkdir(mode=0o700)
    (tmp_path / "job.py").write_text(JOB)
    return tmp_path


def run(home: Path, *words: str) -> tuple[int, str, str]:
    """The exit code of the program, and the state and name of its run."""
    env = {name: value for name, value in os.environ.items() if not name.startswith(("ROOST", "XDG_", "RLINF"))}
    env |= {
        "XDG_RUNTIME_DIR": str(home / "runtime"),
        "XDG_STATE_HOME": str(home / "state"),
        "ROOST_PROGRAM": str(ROOST),
    }
    done = subprocess.run([sys.executable, *words], env=env, cwd=home, capture_output=True, timeout=4 * PATIENCE)
    listed = subprocess.run(
        [ROOST, "ps", "--all", "--json"], env=env, capture_output=True, check=True, timeout=PATIENCE
    )
    (shown,) = json.loads(listed.stdout)["runs"]
    return done.returncode, shown["state"], shown["config"]


@pytest.mark.parametrize(
    ("how", "code", "state"),
    [
        ("plain", 0, "done"),
        ("with", 0, "done"),
        ("raise", 1, "failed"),
        ("worker", 1, "failed"),
        ("exit in with", 3, "failed"),
        ("kept", 0, "failed"),  # its block was left by an exception
        ("interrupt", -2, "stopped"),
    ],
)
def test_a_group_ends_as_its_program_does(home: Path, how: str, code: int, state: str) -> None:
    assert run(home, "job.py", how) == (code, state, "job.py: adder")


def test_a_program_without_a_file_has_an_honest_name(home: Path) -> None:
    assert run(home, "-m", "job", "plain") == (0, "done", "python -m job: adder")


def test_code_of_the_command_line_has_an_honest_name(home: Path) -> None:
    code = "exec(compile(open('job.py').read(), 'job.py', 'exec'))"
    assert run(home, "-c", code, "plain") == (0, "done", "python -c: adder")
