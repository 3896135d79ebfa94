"""Golden cases: every folder of tests/cases is one run of the program and its whole answer.

config.yaml   the config; `roost check|plan|groups` is run inside the folder, so messages name just it
cluster.txt   what goes to --cluster, one line
args.txt      further words of the command line, one a line
env.txt       the whole environment, NAME=value a line; {folder} is where the case runs, {run} a runtime directory
stdin.txt     standard input
command.txt   instead of all this: every word behind `roost`, one a line
make.py       makes files too large to keep; the case then runs in a copy of its folder

check.txt, check.json, plan.txt, plan.json, groups.txt, groups.json, output.txt (of command.txt): what must come out:
`exit N`, then standard output and standard error, byte for byte. `tools/bless` rewrites them.

ROOST names the program (default build/roost).
"""

import difflib
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
CASES = ROOT / "tests" / "cases"
ROOST = Path(os.environ.get("ROOST", ROOT / "build" / "roost")).absolute()

# Expected file -> the words of its command.
COMMANDS = {
    "check.txt": ["check"],
    "check.json": ["check", "--json"],
    "plan.txt": ["plan"],
    "plan.json": ["plan", "--json"],
    "groups.txt": ["groups"],
    "groups.json": ["groups", "--json"],
    "output.txt": [],
}


# Commands that need a place for runs; without env.txt they get an empty one.
RUNS = [["run"], ["ps"], ["stop"], ["logs"]]


def lines_of(path: Path) -> list[str]:
    return path.read_text().splitlines() if path.exists() else []


def words_of(case: Path, expected: str) -> list[str]:
    """The command line of a case, without the program."""
    if expected == "output.txt":
        return lines_of(case / "command.txt")
    words = list(COMMANDS[expected])
    for cluster in lines_of(case / "cluster.txt"):
        words += ["--cluster", cluster]
    return [*words, "config.yaml", *lines_of(case / "args.txt")]


def answer_of(case: Path, expected: str, scratch: Path) -> bytes:
    """Runs the program on a case and returns its answer in the form of an expected file."""
    folder = case
    if (case / "make.py").exists():
        folder = Path(shutil.copytree(case, scratch / case.name, dirs_exist_ok=True))
        subprocess.run([sys.executable, "make.py"], cwd=folder, check=True, timeout=60)
    (scratch / "run").mkdir(mode=0o700, exist_ok=True)
    words = words_of(case, expected)
    env = {}
    if words[:1] in RUNS and not (case / "env.txt").exists():
        env = {"HOME": str(scratch), "XDG_RUNTIME_DIR": str(scratch / "run"), "PATH": "/usr/bin:/bin"}
    env |= dict(line.replace("{folder}", str(folder)).replace("{run}", str(scratch / "run")).split("=", 1) for line in lines_of(case / "env.txt"))
    stdin = case / "stdin.txt"
    done = subprocess.run(
        [ROOST, *words],
        cwd=folder,
        env=env,
        input=stdin.read_bytes() if stdin.exists() else b"",
        capture_output=True,
        timeout=60,
    )
    return b"exit %d\n--- stdout\n%s--- stderr\n%s" % (done.returncode, done.stdout, done.stderr)


def expectations() -> list[tuple[str, str]]:
    """(case, expected file), for all that are kept."""
    return [(case.name, name) for case in sorted(CASES.iterdir()) for name in COMMANDS if (case / name).exists()]


def test_every_folder_expects_something() -> None:
    with_answer = {case for case, _ in expectations()}
    assert [case.name for case in sorted(CASES.iterdir()) if case.name not in with_answer] == []


@pytest.mark.parametrize(("case", "expected"), expectations(), ids=lambda value: str(value))
def test_case(case: str, expected: str, tmp_path: Path) -> None:
    wanted = (CASES / case / expected).read_bytes()
    answer = answer_of(CASES / case, expected, tmp_path)
    if answer != wanted:
        diff = difflib.unified_diff(
            wanted.decode(errors="backslashreplace").splitlines(),
            answer.decode(errors="backslashreplace").splitlines(),
            f"{case}/{expected}",
            "what came out",
            lineterm="",
        )
        pytest.fail("\n".join(diff) or "the answers differ in their line ends", pytrace=False)
