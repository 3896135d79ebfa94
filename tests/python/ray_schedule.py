"""Which process of pytest runs which tests of the Ray engine: clusters have the same addresses, and tests of one look at,
and kill, what is on the machine."""

from typing import Any

import pytest
from xdist.scheduler import LoadFileScheduling


class ByCluster(LoadFileScheduling):
    """Tests of one cluster are run by one process: those of a file, and of all files that share the four nodes. (Groups of
    xdist's own, `--dist loadgroup`, need a pytest before 9.2: with this one they are passed over without a word.)"""

    SHARING = ("test_ray_engine.py", "test_ray_groups.py")

    def _split_scope(self, nodeid: str) -> str:
        file = super()._split_scope(nodeid)
        return "four" if file.endswith(self.SHARING) else file


def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> ByCluster | None:
    return ByCluster(config, log) if config.getvalue("dist") == "loadfile" else None
