"""The tutorial, from its empty folder to its run on Ray. It tells the reader to start a Ray with four accelerators; here a
cluster of the tests takes the place of that Ray."""

from pathlib import Path

import pytest

from documents import run_document
from ray_cluster import RayCluster
from test_docs import ROOST, TUTORIALS

pytestmark = pytest.mark.ray


def test_the_tutorial_runs_from_an_empty_folder_to_ray(tmp_path: Path) -> None:
    with RayCluster(nodes=1, gpus=4) as cluster:
        assert (
            run_document(
                TUTORIALS[0],
                tmp_path,
                ROOST,
                cluster.driver(HOME=str(tmp_path), XDG_RUNTIME_DIR=str(tmp_path / ".run")),
            )
            > 8
        )
        assert cluster.left() == [[], [], 0]
