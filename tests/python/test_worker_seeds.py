"""The worker examples of the seed documents run as they stand, apart from the import line."""

import subprocess
import sys
from pathlib import Path

import pytest

from worker_home import WorkerHome

ROOT = Path(__file__).parents[2]
SEEDS = ROOT / "tests" / "seeds"

# There is no GPU here: devices are counted by what a worker is shown.
TORCH = """
import os

class cuda:
    def device_count():
        return len([word for word in os.environ["CUDA_VISIBLE_DEVICES"].split(",") if word])

    def get_device_properties(number):
        assert 0 <= number < cuda.device_count()
        return f"device {number}"
"""


def with_our_import(text: str) -> str:
    assert text.count("from rlinf.scheduler import") == 1
    return text.replace("from rlinf.scheduler import", "from roost import")


@pytest.mark.parametrize("name", ["flexible", "packed", "node"])
def test_001_workers_of_a_strategy(own_workers: WorkerHome, name: str) -> None:
    """The sessions of the document, with the answers it prints."""
    (own_workers.home / "torch.py").write_text(TORCH)
    (own_workers.home / "session.txt").write_text(
        with_our_import((SEEDS / "001_17cd740334cacf71" / f"{name}-workers.txt").read_text())
    )
    done = own_workers.script(
        """
        import doctest, sys
        failed, attempted = doctest.testfile("session.txt", module_relative=False)
        sys.exit(0 if attempted > 4 and not failed else 1)
        """
    )
    assert done.returncode == 0, done.stdout + done.stderr
    own_workers.engine.wait_empty()


def test_000_worker_of_a_component(own_workers: WorkerHome) -> None:
    folder = SEEDS / "000_7abe36f9418ee2f5"
    (own_workers.home / "worker.py").write_text(with_our_import((folder / "worker.py").read_text()))
    (own_workers.home / "conf.yaml").write_bytes((folder / "conf.yaml").read_bytes())
    env = own_workers.engine.env | {"ROOST_CLUSTER": "1x8", "ROOST_ENGINE": own_workers.name}
    done = subprocess.run(
        [sys.executable, "worker.py"], env=env, cwd=own_workers.home, capture_output=True, text=True, timeout=120
    )
    assert (done.returncode, done.stderr) == (0, "")
    said = sorted(line.split("] ", 1)[1].split("][") for line in done.stdout.splitlines())
    assert [where for where, _ in said] == [
        f"[INFO {where[6:14]} worker_group_TestWorker-Rank-{rank}" for rank, (where, _) in enumerate(said)
    ]
    assert [text for _, text in said] == [f"worker.py:9] Hello from TestWorker rank {rank}!" for rank in range(4)]
    own_workers.engine.wait_empty()
