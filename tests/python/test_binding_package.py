"""The package as people get it: doctests, types, the example with one changed import line, and the
wheel with nothing in it that does not belong there."""

import doctest
import importlib
import importlib.util
import inspect
import os
import pkgutil
import subprocess
import sys
import zipfile
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest

import roost
import roost.slime
from roost import _roost
from test_version import VERSION

ROOT = Path(__file__).parents[2]
MODULES = [
    "roost",
    *(module.name for module in pkgutil.walk_packages(roost.__path__, "roost.") if module.name != "roost._roost"),
]
WITH_EXAMPLES = {
    "roost",
    "roost._work.addresses",
    "roost._work.cluster",
    "roost._plan.component",
    "roost._plan.config",
    "roost._plan.nodes",
    "roost._plan.strategy",
    "roost._work.worker",
    "roost.slime",
}


@pytest.mark.parametrize("name", MODULES)
def test_examples_in_the_package_are_true(name: str) -> None:
    result = doctest.testmod(importlib.import_module(name))
    assert result.failed == 0
    assert bool(result.attempted) == (name in WITH_EXAMPLES)


def test_every_public_name_is_there() -> None:
    assert all(hasattr(roost, name) for name in roost.__all__)
    assert sorted(roost.__all__) == roost.__all__


def undocumented(module: ModuleType) -> Iterator[str]:
    """Public names of a module, and public methods of its classes, that help() shows nothing of."""
    for name in module.__all__:
        found = getattr(module, name)
        members = vars(found).items() if inspect.isclass(found) else ()
        functions = {
            member: getattr(value, "fget", None) or getattr(value, "__func__", value)
            for member, value in members
            if not member.startswith("_")
        }
        yield from (
            f"{name}.{member}"
            for member, function in functions.items()
            if callable(function) and not inspect.getdoc(function)
        )
        if not inspect.getdoc(found):
            yield name


def test_help_shows_every_public_name() -> None:
    assert [*undocumented(roost), *undocumented(roost.slime)] == []
    assert inspect.signature(roost.Cluster.allocate).parameters.keys() >= {
        "cls",
        "worker_name",
        "node_id",
        "gpu_id",
        "env_vars",
    }


def test_an_engine_is_imported_when_it_is_used() -> None:
    """Ray is optional, and an import of roost must stay quick."""
    code = "import sys, roost; roost.Cluster(cluster='1x4'); print(sorted({name for name in sys.modules if name.startswith(('roost._local', 'roost._ray'))}), 'ray' in sys.modules)"
    said = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True).stdout
    assert said == "['roost._local', 'roost._local.registry_server'] False\n"  # what starts the managers, and no engine


def test_the_extension_has_no_globals() -> None:
    """A second instance of the module shares nothing with the first."""
    spec = importlib.util.spec_from_file_location("roost._roost", _roost.__file__)
    assert spec and spec.loader
    other = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(other)
    assert other.Error is not _roost.Error and other.Placement is not _roost.Placement
    [row] = other.Strategy.node([0], []).place(other.Cluster(b"1x4"), True)
    assert type(row) is other.Placement and row.accelerator_type == "NV_GPU" and type(row.accelerator_type) is str
    with pytest.raises(TypeError, match="cluster has the wrong type"):
        other.Strategy.node([0], []).place(_roost.Cluster(b"1x4"), True)
    del other, row
    assert roost.NodePlacementStrategy([0]).get_placement(4, True)[0].accelerator_type is roost.AcceleratorType.NV_GPU


def test_accelerator_types_are_the_planners() -> None:
    assert tuple(member.value for member in roost.AcceleratorType) == _roost.accelerator_types


def test_one_import_line_changes() -> None:
    theirs = (ROOT / "examples/rlinf_planning.py").read_text().splitlines()
    ours = (ROOT / "examples/roost_planning.py").read_text().splitlines()
    changed = [(a, b) for a, b in zip(theirs, ours, strict=True) if a != b]
    [(was, now)] = changed
    assert now == was.replace("rlinf.scheduler", "roost")
    command = [sys.executable, ROOT / "examples/roost_planning.py", ROOT / "examples/grpo.yaml"]
    said = subprocess.run(
        command, env=os.environ | {"ROOST_CLUSTER": "2x8"}, check=True, capture_output=True, text=True
    ).stdout
    assert "rollout: 4 processes\n  0 on node 1, accelerators 0,1\n" in said
    assert said.endswith("strided: [[0, 2, 4, 6], [1, 3, 5, 7]]\n")


@pytest.mark.plain
def test_the_types_hold(tmp_path: Path) -> None:
    user = tmp_path / "user.py"
    user.write_text(
        "import roost\n"
        "rows = roost.PackedPlacementStrategy(0, 3).get_placement(roost.Cluster(cluster='1x4'))\n"
        "total: int = sum(row.rank for row in rows) + len(rows.column('local_rank'))\n"
        "names: list[str] = roost.ComponentPlacement({}, None).components\n"
    )
    command = [
        sys.executable,
        "-m",
        "mypy",
        "--strict",
        "--cache-dir",
        tmp_path / "cache",
        "--config-file",
        ROOT / "pyproject.toml",
        "-p",
        "roost",
    ]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout
    done = subprocess.run([*command[:-2], user], cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout


# What stands below share/ of the environment that the wheel is installed into.
SHARED = [
    "man/man1/roost.1",
    "bash-completion/completions/roost",
    "zsh/site-functions/_roost",
    "fish/vendor_completions.d/roost.fish",
]


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("wheel")
    env = os.environ | {"PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"}
    command = [
        sys.executable,
        "-m",
        "pip",
        "wheel",
        "-q",
        "--no-build-isolation",
        "--no-deps",
        "--disable-pip-version-check",
        "-w",
        folder,
        ROOT,
    ]
    done = subprocess.run(command, env=env, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    [found] = folder.glob("*.whl")
    return found


def tool(*command: object) -> str:
    return subprocess.run(list(map(str, command)), check=True, capture_output=True, text=True).stdout


@pytest.mark.plain
def test_the_wheel_has_what_it_should_and_nothing_else(wheel: Path, tmp_path: Path) -> None:
    assert wheel.name.startswith(f"roost-{VERSION}-cp311-abi3-linux_")
    with zipfile.ZipFile(wheel) as archive:
        names = [name for name in archive.namelist() if ".dist-info/" not in name]
        archive.extractall(tmp_path)
    metadata = (tmp_path / f"roost-{VERSION}.dist-info/METADATA").read_text().splitlines()
    assert [
        line for line in metadata if line.startswith(("Provides-Extra", "Requires-Dist", "License-Expression"))
    ] == [
        "License-Expression: Apache-2.0",
        "Requires-Dist: cloudpickle>=2.2",
        "Provides-Extra: ray",
        'Requires-Dist: ray[default]>=2.47; extra == "ray"',
    ]
    data = tmp_path / f"roost-{VERSION}.data"
    sources = {
        str(path.relative_to(ROOT / "python"))
        for path in (ROOT / "python/roost").rglob("*")
        if path.suffix in (".py", ".pyi", ".typed") or path.name == "py.typed"
    }
    brought = {"scripts/roost", *(f"data/share/{name}" for name in SHARED)}
    assert set(names) == sources | {"roost/_roost.abi3.so"} | {f"{data.name}/{name}" for name in brought}
    assert (data / "data/share/man/man1/roost.1").read_text().startswith('.\\" Generated by scdoc')
    extension = tmp_path / "roost/_roost.abi3.so"
    assert [line.split()[-1] for line in tool("nm", "-D", "--defined-only", extension).splitlines()] == [
        "PyInit__roost"
    ]
    for binary in (extension, data / "scripts/roost"):
        needed = [line.split()[-1] for line in tool("readelf", "-d", binary).splitlines() if "(NEEDED)" in line]
        assert needed == ["[libc.so.6]"]


@pytest.mark.plain
def test_a_new_environment_gets_package_and_program(wheel: Path, tmp_path: Path) -> None:
    tool(sys.executable, "-m", "venv", "--without-pip", tmp_path / "env")
    python = tmp_path / "env/bin/python"
    tool(sys.executable, "-m", "pip", "--python", python, "install", "-q", "--no-index", "--no-deps", wheel)
    code = "import roost; print(len(roost.NodePlacementStrategy([0]).get_placement(roost.Cluster(cluster='1x4'))), roost.__file__)"
    said = tool(python, "-I", "-c", code)
    assert said.startswith("1 ") and str(tmp_path) in said
    assert tool(tmp_path / "env/bin/roost", "--version") == f"roost {VERSION}\n"
