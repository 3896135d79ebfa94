"""Workers that are forked, while they are started: what is sent to them then is not lost."""

import json
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

import roost
from engine import PATIENCE, ROOST
from worker_home import WorkerHome, make_home
from worker_small import Small

# A warm program whose workers come no further than the moment before they have a group of their own.
SLOW_BIRTH = """
import os, signal, sys
from roost._local import fork_server

def become(wanted):
    with open({up!r}, "w") as up:
        up.write(f"{{wanted.rank}} {{os.getpid()}} {{os.getpgid(0)}}\\n")
    signal.pause()

fork_server.become = become
sys.exit(fork_server.main())
"""


@pytest.fixture
def local_workers(tmp_path: Path) -> Iterator[WorkerHome]:
    yield from make_home("local", tmp_path)


@pytest.mark.parametrize(("words", "number"), [(["stop"], 15), (["stop", "--now"], 9)])
def test_a_worker_without_a_group_of_its_own_yet_hears_its_end(
    local_workers: WorkerHome, monkeypatch: pytest.MonkeyPatch, words: list[str], number: int
) -> None:
    engine = local_workers.engine
    up = engine.pipe("up")
    program = local_workers.home / "slow_start.py"
    program.write_text(SLOW_BIRTH.format(up=str(up.path)))
    order = json.dumps({"path": sys.path, "modules": [], "main": "roost._local.worker_main"})
    monkeypatch.setattr(
        "roost._local.engine.forker_command", lambda request: [sys.executable, "-P", str(program), order]
    )
    failed: list[Exception] = []

    def launch() -> None:
        try:
            Small.create_group().launch(local_workers.cluster("1x4"), name="unstarted")
        except roost.Error as error:
            failed.append(error)

    launching = threading.Thread(target=launch)
    launching.start()
    said = up.lines(4)
    assert all(pid != group for _, pid, group in said), said
    [run] = [run for run in engine.runs() if (run / "unstarted").is_dir()]
    subprocess.run([ROOST, *words, run.name], env=engine.env, timeout=PATIENCE, check=True)
    launching.join(PATIENCE)
    assert not launching.is_alive() and len(failed) == 1 and "cannot be killed" not in str(failed[0])
    records = engine.records(run)
    assert sorted((record["rank"], record["pid"]) for record in records) == sorted(
        (int(rank), int(pid)) for rank, pid, _ in said
    )
    assert {(record["signal"], record["reason"]) for record in records} == {(number, "killed-by-roost")}
    assert not [pid for _, pid, _ in said if os.path.exists(f"/proc/{pid}")]
