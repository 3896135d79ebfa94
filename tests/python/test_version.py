"""One version: meson.build has it, everything else takes it from there, and the changelog tells what is in it."""

import io
import os
import re
import subprocess
import sys
import tarfile
from pathlib import Path

import pytest

import roost
from transcripts import ROOST, ROOT

BUILD = ROOST.parent
[VERSION] = re.findall(r"^project\('roost', 'c', version: '(\d+\.\d+\.\d+)'", (ROOT / "meson.build").read_text(), re.M)


def test_program_package_header_and_library_have_the_version() -> None:
    said = subprocess.run([ROOST, "--version"], check=True, capture_output=True, text=True, timeout=60).stdout
    assert said == f"roost {VERSION}\n"
    assert roost.__version__ == VERSION
    assert f'#define ROOST_VERSION "{VERSION}"\n' in (BUILD / "include/roost/version.h").read_text()
    assert f"\nVersion: {VERSION}\n" in (BUILD / "meson-private/roost.pc").read_text()


def test_no_other_file_of_the_build_names_a_version() -> None:
    """A second place would be forgotten."""
    for name in (
        "pyproject.toml",
        "include/roost/version.h.in",
        "include/roost/roost.h",
        "src/base/version.c",
        "python/roost/__init__.py",
        "tools/release",
    ):
        assert not re.search(r"\b\d+\.\d+\.\d+\b", (ROOT / name).read_text()), name
    assert 'dynamic = ["version"]' in (ROOT / "pyproject.toml").read_text()


@pytest.mark.plain
def test_the_source_archive_has_the_version(tmp_path: Path) -> None:
    env = os.environ | {"PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"}
    code = "import sys, mesonpy; print(mesonpy.build_sdist(sys.argv[1]))"
    done = subprocess.run(
        [sys.executable, "-c", code, tmp_path], cwd=ROOT, env=env, capture_output=True, text=True, timeout=600
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.splitlines()[-1] == f"roost-{VERSION}.tar.gz"
    with tarfile.open(tmp_path / f"roost-{VERSION}.tar.gz") as archive:
        names = archive.getnames()
        assert {name.split("/")[0] for name in names} == {f"roost-{VERSION}"}
        metadata = archive.extractfile(f"roost-{VERSION}/PKG-INFO")
        assert isinstance(metadata, io.BufferedReader)
        assert f"\nVersion: {VERSION}\n".encode() in metadata.read()


def test_the_changelog_begins_with_this_version_or_what_comes() -> None:
    sections = re.findall(r"^## (.*)$", (ROOT / "CHANGELOG.md").read_text(), re.M)
    released = sections[1:] if sections[0] == "Unreleased" else sections
    assert all(re.fullmatch(r"\d+\.\d+\.\d+ \(\d{4}-\d\d-\d\d\)", section) for section in released), sections
    assert released[0].split()[0] == VERSION
    numbers = [tuple(map(int, section.split()[0].split("."))) for section in released]
    assert numbers == sorted(set(numbers), reverse=True)
    assert numbers[-1] == (0, 2, 0)
