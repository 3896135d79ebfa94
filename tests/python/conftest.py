"""Fixtures that several files share."""

import os
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from agents_home import Home
from engine import Engine, OtherUser
from ray_cluster import RayCluster
from ray_four import open_four
from ray_schedule import pytest_xdist_make_scheduler  # noqa: F401
from worker_home import ENGINES, WorkerHome, make_home


@pytest.fixture(scope="session")
def four() -> Iterator[RayCluster]:
    """A Ray cluster of four nodes with eight accelerators each."""
    yield from open_four()


@pytest.fixture(params=[True, False], ids=["cgroup", "no-cgroup"])
def engine(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Engine]:
    """A place for runs, with a control group where this user may have one, and without."""
    home = Engine(tmp_path, has_cgroup=request.param)
    yield home
    home.close()


WHO = ["cgroup", "no-cgroup"] if os.geteuid() else ["cgroup", "no-cgroup", "user-cgroup", "user-no-cgroup"]


@pytest.fixture(params=WHO)
def any_engine(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Engine]:
    """The same, and where root runs the tests once more as another user."""
    has_cgroup = not request.param.endswith("no-cgroup")
    if not request.param.startswith("user"):
        home = Engine(tmp_path, has_cgroup=has_cgroup)
        yield home
        home.close()
        return
    # The folders of pytest are this user's own.
    with tempfile.TemporaryDirectory(prefix="roost-user-") as folder:
        user = OtherUser(has_cgroup=has_cgroup)
        home = Engine(Path(folder), has_cgroup=has_cgroup, user=user)
        yield home
        home.close()
        user.close()


@pytest.fixture
def plain_engine(tmp_path: Path) -> Iterator[Engine]:
    """The same, once: for what has nothing to do with control groups."""
    home = Engine(tmp_path)
    yield home
    home.close()


@pytest.fixture
def home(tmp_path: Path) -> Iterator[Home]:
    """A place for runs on several nodes, which are all this machine."""
    made = Home(tmp_path)
    yield made
    for process in made.started:  # of a test that failed
        process.kill()
        process.wait()


@pytest.fixture(scope="module", params=ENGINES)
def workers(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[WorkerHome]:
    """Where the groups of a file run, on each engine."""
    yield from make_home(request.param, tmp_path_factory.mktemp("workers"))


@pytest.fixture(params=ENGINES)
def own_workers(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[WorkerHome]:
    """The same for a single test."""
    yield from make_home(request.param, tmp_path)
