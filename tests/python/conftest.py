"""Fixtures that several files share."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from engine import Engine


@pytest.fixture(params=[True, False], ids=["cgroup", "no-cgroup"])
def engine(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Engine]:
    """A place for runs, with a control group where this user may have one, and without."""
    home = Engine(tmp_path, has_cgroup=request.param)
    yield home
    home.close()


@pytest.fixture
def plain_engine(tmp_path: Path) -> Iterator[Engine]:
    """The same, once: for what has nothing to do with control groups."""
    home = Engine(tmp_path)
    yield home
    home.close()
