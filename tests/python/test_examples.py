"""Examples that form something real: a collective by the environment alone, workers called from C."""

import os
import re
import subprocess
import sys
from pathlib import Path

from engine import ROOST, Engine

ROOT = Path(__file__).parents[2]


def test_processes_find_each_other_by_the_environment_alone(plain_engine: Engine) -> None:
    config = plain_engine.home / "rendezvous.yaml"
    config.write_text(
        (ROOT / "examples/rendezvous.yaml").read_text().replace("build/rendezvous", str(ROOST.parent / "rendezvous"))
    )
    done = plain_engine.run(config)
    assert done.returncode == 0, done.stderr
    assert sorted(done.stdout.splitlines()) == [
        f"[actor/{rank}] rank {rank} of 8: the ranks sum up to 28" for rank in range(8)
    ]


def test_a_driver_in_c_calls_workers_in_c(plain_engine: Engine) -> None:
    build = ROOST.parent  # by paths from the folder above it, as the example says
    env = plain_engine.env | {"ROOST_PROGRAM": f"{build.name}/{ROOST.name}"}
    done = subprocess.run(
        [build / "group", f"{build.name}/adder", "2"],
        env=env,
        cwd=build.parent,
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.returncode == 0, done.stderr
    assert (
        done.stdout
        == """\
add(100):
  rank 0: value 100
  rank 1: value 101
  rank 2: value 102
  rank 3: value 103
fail(0):
  rank 2: error: it was asked to
  rank 0: error: it was asked to
add(200):
  rank 0: value 200
  rank 1: value 201
  rank 2: not_run: its process was killed by signal 9 (Killed), sent by roost
  rank 3: value 203
"""
    )
    assert plain_engine.left() == []


def test_the_driver_says_why_its_workers_did_not_start(plain_engine: Engine) -> None:
    env = plain_engine.env | {"ROOST_PROGRAM": str(ROOST)}
    done = subprocess.run(
        [ROOST.parent / "group", "/nowhere/adder"], env=env, capture_output=True, text=True, timeout=60
    )
    assert done.returncode == 5
    assert done.stderr == "cannot run the program '/nowhere/adder': No such file or directory\n"
    done = subprocess.run([ROOST.parent / "group", "/bin/false"], env=env, capture_output=True, text=True, timeout=60)
    assert done.returncode == 1
    assert re.fullmatch(r"adder/\d ended before it was ready: its process ended with code 1\n", done.stderr)
    assert plain_engine.left() == []


if os.environ.get("ROOST_SOAK"):  # torch is large

    def test_torch_forms_a_collective_by_the_environment_alone(plain_engine: Engine, tmp_path: Path) -> None:
        """Installs torch into an environment of its own; some gigabytes."""
        home = tmp_path / "torch"
        subprocess.run([sys.executable, "-m", "venv", home], check=True)
        subprocess.run([home / "bin/pip", "install", "--quiet", "torch", "numpy"], check=True, timeout=3600)
        config = plain_engine.home / "gloo.yaml"
        text = (ROOT / "examples/gloo.yaml").read_text()
        config.write_text(
            text.replace("python3", str(home / "bin/python")).replace(
                "examples/gloo.py", str(ROOT / "examples/gloo.py")
            )
        )
        driver = plain_engine.start(config)
        done = plain_engine.finish(driver, 300)
        assert done.returncode == 0, done.stderr
        assert sorted(line for line in done.stdout.splitlines() if "sum up" in line) == [
            f"[actor/{rank}] rank {rank} of 4: the ranks sum up to 6" for rank in range(4)
        ]
