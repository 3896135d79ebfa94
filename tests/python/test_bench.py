"""What the benches say when something they compare with is not there, and what the manual has to list."""

import importlib.machinery
import importlib.util
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

from transcripts import ROOT


def load(name: str) -> Any:
    loader = importlib.machinery.SourceFileLoader(f"bench_{name}", str(ROOT / "bench" / name))
    spec = importlib.util.spec_from_loader(loader.name, loader)
    assert spec
    module = importlib.util.module_from_spec(spec)
    loader.exec_module(module)
    return module


def test_the_table_says_what_was_not_measured() -> None:
    measure = {"name": "one", "value": 1, "target": 2, "at_most": True, "ok": True}
    lines = load("run").table(
        [{"measures": [measure]}, {"measures": [], "left_out": ["calls against Ray, which is not installed"]}]
    )
    assert [line.split() for line in lines[1:2]] == [["one", "1", "<=", "2", "ok"]]
    assert lines[2:] == ["not measured: calls against Ray, which is not installed"]


def test_a_launch_bench_without_mpirun_fails_and_says_how_to_get_it(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, ROOT / "bench/launch_speed"],
        env={"PATH": str(tmp_path)},
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == "launch_speed: mpirun is not installed: `tools/setup bench` installs it\n"


def test_the_manual_lists_every_variable_that_the_program_reads() -> None:
    sources = "".join(path.read_text() for path in (ROOT / "src/cli").rglob("*.c"))
    sources += (ROOT / "src/command/settings.c").read_text()
    read = set(re.findall(r'(?:invocation_env\(invocation|find\(env), "(ROOST_\w+)"', sources)) | {"ROOST_NAMESPACE"}
    manual = (ROOT / "tools/man.c").read_text()
    assert read >= {"ROOST_CGROUP", "ROOST_ENGINE", "ROOST_PORT_BASE", "ROOST_PYTHON"}
    assert [name for name in sorted(read) if f"*{name}*" not in manual] == []
