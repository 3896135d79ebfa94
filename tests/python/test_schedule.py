"""Tests of one Ray cluster are run by one process of pytest, whatever its plugins make of groups."""

import os
import subprocess
import sys
from pathlib import Path

from ray_schedule import ByCluster

NOTE = """
import os, pathlib, pytest
@pytest.mark.parametrize("number", range(6))
def test_note(number):
    with open(pathlib.Path(__file__).with_name("notes"), "a") as notes:
        print(pathlib.Path(__file__).name, os.getpid(), file=notes)
"""


def test_files_that_share_a_cluster_are_run_by_one_process_and_others_by_the_other(tmp_path: Path) -> None:
    names = [*ByCluster.SHARING, "test_ray_alone.py"]
    for name in names:
        (tmp_path / name).write_text(NOTE)
    (tmp_path / "conftest.py").write_text("from ray_schedule import pytest_xdist_make_scheduler\n")
    (tmp_path / "pytest.ini").write_text("[pytest]\n")
    env = os.environ | {"PYTHONPATH": str(Path(__file__).parent)}
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-n", "2", "--dist", "loadfile", "-p", "no:cacheprovider", *names],
        cwd=tmp_path,
        env=env,
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    notes = [line.split() for line in (tmp_path / "notes").read_text().splitlines()]
    assert len(notes) == 6 * len(names)
    sharing, alone = (
        {pid for name, pid in notes if (name in ByCluster.SHARING) is is_sharing} for is_sharing in (True, False)
    )
    assert len(sharing) == len(alone) == 1 and sharing != alone
