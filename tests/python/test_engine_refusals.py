"""Runs that cannot begin, and the cures that are named."""

import errno
import os
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from engine import PATIENCE, ROOST, Engine

IS_ROOT = os.geteuid() == 0
HELLO: dict[str, dict] = {"actor": {"do": ["out=hello"]}}


def said(done: subprocess.CompletedProcess) -> list[str]:
    assert done.returncode == 5, done.stderr
    return done.stderr.splitlines()[-2:]


def in_namespace(engine: Engine, script: str) -> subprocess.CompletedProcess:
    """roost run, in a mount namespace that `script` has changed."""
    command = ["unshare", "-m", "sh", "-c", f'{script} && exec "$0" run "$1"', ROOST, engine.config(HELLO)]
    return subprocess.run(command, env=engine.env, cwd=engine.home, capture_output=True, text=True, timeout=PATIENCE)


@pytest.mark.skipif(not IS_ROOT, reason="needs a mount namespace")
def test_a_system_without_dev_null_is_told_to_make_it(plain_engine: Engine) -> None:
    done = in_namespace(plain_engine, "mount -t tmpfs -o mode=755 roost /dev")
    assert said(done) == [
        "roost: error: cannot open /dev/null: No such file or directory",
        "  = let this system have it: mknod -m 666 /dev/null c 1 3",
    ]
    assert plain_engine.left() == []


def make_folder(path: Path) -> None:
    path.mkdir(mode=0o700)


def fill_folder(path: Path) -> None:
    make_folder(path)
    (path / "full").touch()


@pytest.mark.parametrize("make", [make_folder, fill_folder])
def test_a_folder_in_the_place_of_the_managers_socket_is_to_be_removed(
    plain_engine: Engine, make: Callable[[Path], None]
) -> None:
    (plain_engine.runtime / "roost").mkdir(mode=0o700)
    socket = plain_engine.runtime / "roost" / "roost.registry"
    make(socket)
    done = plain_engine.run(plain_engine.config(HELLO))
    assert said(done) == [
        f"roost: error: cannot make the managers' socket '{socket}': Is a directory",
        "  = remove what stands in its place, or set XDG_RUNTIME_DIR",
    ]
    assert socket.is_dir() and plain_engine.runs() == []


@pytest.mark.skipif(not IS_ROOT, reason="needs a mount namespace")
def test_a_full_runtime_directory_is_to_be_emptied(plain_engine: Engine) -> None:
    """Room for a few files: the managers and the supervisor make theirs at the same time, and either may be refused first."""
    runtime = plain_engine.runtime
    for inodes in range(3, 8):
        done = in_namespace(plain_engine, f"mount -t tmpfs -o nr_inodes={inodes},mode=700 roost {runtime}")
        if done.returncode == 0:
            break
        fault, cure = said(done)
        assert os.strerror(errno.ENOSPC) in fault and (
            cure.startswith("  = free some space there, or set XDG_RUNTIME_DIR")
            or cure.startswith("  = make room on that disk")
        ), done.stderr
    assert plain_engine.left() == []
