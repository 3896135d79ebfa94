"""What a newcomer meets on a machine without accelerators, on the command line and in Python."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from roost import Cluster, Error, FlexiblePlacementStrategy, PackedPlacementStrategy

SCRIPT = """
from roost import Cluster, PackedPlacementStrategy, Worker

class Small(Worker):
    def rank(self):
        return self._rank

if __name__ == "__main__":
    cluster = Cluster(cluster="2x2")
    for name in ("first", "second"):
        group = Small.create_group().launch(cluster, placement_strategy=PackedPlacementStrategy(2, 3), name=name)
        print(group.rank().wait())
"""


def test_a_simulated_cluster_is_said_once(tmp_path: Path) -> None:
    script = tmp_path / "small.py"
    script.write_text(SCRIPT)
    terminal, screen = os.openpty()
    run = subprocess.run(
        [sys.executable, str(script)], stdout=subprocess.PIPE, stderr=screen, text=True, cwd=tmp_path, timeout=300
    )
    os.write(screen, b".")  # the end of what is read: a terminal hands on as much as it likes at a time
    shown = b""
    while not shown.endswith(b"."):
        shown += os.read(terminal, 65536)
    seen = shown.decode().replace("\r\n", "\n")
    os.close(screen)
    os.close(terminal)
    here = Cluster(cluster="local").num_accelerators
    said = f"roost: simulated: 2 nodes with 4 accelerators run on this machine, which has {here}\n"
    assert (run.returncode, run.stdout, seen) == (0, "[0, 1]\n[0, 1]\n", said + ".")
    quiet = subprocess.run([sys.executable, str(script)], capture_output=True, text=True, cwd=tmp_path, timeout=300)
    assert (quiet.returncode, quiet.stderr) == (0, "")


def test_one_machine_is_one_node() -> None:
    with pytest.raises(Error) as refused:
        Cluster(num_nodes=2)
    assert str(refused.value) == (
        "num_nodes is 2, but this machine is one node "
        "(Cluster(cluster='2x8') simulates 2 nodes, Cluster(engine='ray') uses real ones)"
    )


def test_a_machine_without_accelerators_names_the_cure() -> None:
    cluster = Cluster(num_nodes=1)
    for strategy in (PackedPlacementStrategy(0, 3), FlexiblePlacementStrategy([[0]])):
        if cluster.num_accelerators == 0:
            with pytest.raises(Error) as refused:
                strategy.get_placement(cluster)
            assert "set ROOST_CLUSTER=1x4 or use Cluster(cluster='1x4')" in refused.value.hint
    assert Cluster(cluster="1x4").num_accelerators == 4


def test_an_older_python_is_refused_in_one_line() -> None:
    older = "import sys; sys.version_info = (3, 10, 4, 'final', 0); import roost"
    run = subprocess.run([sys.executable, "-c", older], capture_output=True, text=True)
    last = run.stderr.splitlines()[-1]
    assert (run.returncode, last) == (1, "ImportError: roost needs Python 3.11 or later, and this is Python 3.10.4")
