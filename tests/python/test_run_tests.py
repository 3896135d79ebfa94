"""What tools/run-tests does with tests that fail: once more, alone, with the same seed, or never again. Small trees of
tests, run by the runner itself with a pytest of its own."""

import os
import sys
import textwrap
from collections.abc import Callable
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tools"))

from retry import FEW, may_repeat  # noqa: E402
from stages import Suite  # noqa: E402

pytestmark = pytest.mark.plain

# Fails in its first process, passes in the next; says in what it ran.
LUCK = """
import os
from pathlib import Path

def fails_once(name):
    notes = Path(os.environ["NOTES"]) / name
    with notes.open("a") as file:
        print(os.getpid(), os.environ["ROOST_SEED"], os.environ["MINE"], "PYTEST_XDIST_WORKER" in os.environ, file=file)
    return len(notes.read_text().splitlines()) > 1
"""

TESTS = """
import subprocess, sys, time
import pytest
from luck import fails_once

@pytest.mark.parametrize("number", [1, 2])
def test_passes(number):
    pass

class TestLuck:
    @pytest.mark.parametrize("way", ["a b", "c/d::e[f]"])
    def test_once(self, way):
        assert fails_once("once" + way[0])

def test_always():
    fails_once("always")
    assert False, "always"
"""

# Each would pass at a second try, and is not tried again.
NEVER = """
import os, subprocess, sys, time
import pytest
from engine import Engine
from luck import fails_once
from verdicts import TimedOut

def test_sanitizer():
    if not fails_once("sanitizer"):
        os.write(2, b"==12==ERROR: AddressSanitizer: heap-use-after-free\\n")
        assert False

@pytest.mark.timeout(0.3)
def test_late():
    if not fails_once("late"):
        time.sleep(60)

def test_watchdog():
    if not fails_once("watchdog"):
        raise TimedOut("still not: there")

def test_leaves_a_process(tmp_path):
    engine = Engine(tmp_path)
    if not fails_once("process"):
        process = subprocess.Popen(["sleep", "600"], env=engine.env)
        try:
            assert engine.left() == []
        finally:
            process.kill()
            process.wait()

def test_crashes():
    if not fails_once("crash"):
        os.abort()
"""


@pytest.fixture
def tree(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name in list(os.environ):
        if name.startswith(("PYTEST_", "ROOST_SEED")):
            monkeypatch.delenv(name)
    for folder in ("tests", "build/tests", "notes"):
        (tmp_path / folder).mkdir(parents=True)
    (tmp_path / "pytest.ini").write_text(
        f"[pytest]\npythonpath = tests {ROOT}/tests/python\naddopts = -p no:cacheprovider -p xdist -p pytest_timeout\n"
    )
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")  # others take a second to load
    (tmp_path / "tests" / "luck.py").write_text(LUCK)
    (tmp_path / "tests" / "unsteady").write_text("# none\n")
    return tmp_path


def run(tree: Path, text: str = "", *, repeats: bool = True, workers: str = "0", **more: str) -> Suite:
    (tree / "tests" / "test_x.py").write_text(text)
    suite = Suite(tree, {**os.environ, "NOTES": str(tree / "notes"), **more}, repeats=repeats, watchdog=60)
    suite.run_pytest("build", "some", "-n", workers, folder="tests/test_*.py", MINE="mine")
    return suite


def tries(tree: Path) -> dict[str, int]:
    return {path.name: len(path.read_text().splitlines()) for path in sorted((tree / "notes").iterdir())}


def listing(tree: Path, *entries: str) -> None:
    (tree / "tests" / "unsteady").write_text("".join(f"{entry}\n" for entry in ("# a comment", "", *entries)))


def test_a_failed_test_is_tried_once_more_alone_with_the_same_seed(
    tree: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    suite = run(tree, TESTS, workers="2", ROOST_SEED="5")
    out = capfd.readouterr().out
    assert out.startswith("seed 5 (ROOST_SEED=5 runs the same again)\n")
    ways = ["tests/test_x.py::TestLuck::test_once[a b]", "tests/test_x.py::TestLuck::test_once[c/d::e[f]]"]
    assert sorted(suite.summary().splitlines()[:2]) == [f"unsteady: {way} (seed 5)" for way in ways]
    assert suite.summary().splitlines()[2:] == ["4 passed, 1 failed"] and not suite.has_passed()
    assert all(f"-- once more, alone: {name} (seed 5)\n" in out for name in (*ways, "tests/test_x.py::test_always"))
    assert tries(tree) == {"always": 2, "oncea": 2, "oncec": 2}
    for path in (tree / "notes").iterdir():  # a new process, the same environment, no worker of pytest-xdist
        first, second = (line.split() for line in path.read_text().splitlines())
        assert first[0] != second[0] and (first[1:], second[1:]) == (["5", "mine", "True"], ["5", "mine", "False"])


def test_a_run_whose_failures_do_not_repeat_has_passed(tree: Path) -> None:
    suite = run(tree, "from luck import fails_once\ndef test_x():\n    assert fails_once('x')\n")
    assert (
        suite.has_passed()
        and suite.summary() == f"unsteady: tests/test_x.py::test_x (seed {suite.seed})\n1 passed, 0 failed"
    )


def test_some_failures_are_never_tried_again(tree: Path) -> None:
    suite = run(tree, NEVER, workers="1")
    assert suite.summary() == "0 passed, 5 failed"
    assert tries(tree) == {"crash": 1, "late": 1, "process": 1, "sanitizer": 1, "watchdog": 1}


def test_many_failures_are_not_bad_luck(tree: Path) -> None:
    text = f"import pytest\nfrom luck import fails_once\n@pytest.mark.parametrize('x', range({FEW + 1}))\ndef test_x(x):\n    assert fails_once(str(x))\n"
    assert run(tree, text).summary() == f"0 passed, {FEW + 1} failed"
    assert set(tries(tree).values()) == {1}


def test_a_test_that_is_listed_fails_the_run(tree: Path, capfd: pytest.CaptureFixture[str]) -> None:
    listing(tree, "tests/test_x.py::test_x[1] (seed 3) 2026-11-18: seen under load")
    text = "import pytest\nfrom luck import fails_once\n@pytest.mark.parametrize('x', [1, 2])\ndef test_x(x):\n    assert x == 1 or fails_once('x')\n"
    (tree / "tests" / "test_x.py").write_text(text)
    assert run(tree, text).summary() == "1 passed, 1 failed"
    assert (
        "tests/test_x.py::test_x[2] is listed in tests/unsteady: it is not tried again = mend it"
        in capfd.readouterr().out
    )
    assert tries(tree) == {"x": 1}


def test_nothing_is_tried_again_when_soaking_nor_what_never_ran(tree: Path) -> None:
    assert (
        run(tree, "from luck import fails_once\ndef test_x():\n    assert fails_once('x')\n", repeats=False).summary()
        == "0 passed, 1 failed"
    )
    assert tries(tree) == {"x": 1}
    skipping = "import pytest\ndef test_x():\n    pytest.skip('no')\n"
    assert run(tree, skipping).summary() == "0 passed, 1 failed"
    uncollected = "from luck import fails_once\nassert fails_once('import')\n"
    assert run(tree, uncollected).summary() == "0 passed, 1 failed"
    assert tries(tree) == {"import": 1, "x": 1}


def test_a_test_that_fails_to_tidy_up_counts_once(tree: Path) -> None:
    text = """
        import pytest
        from luck import fails_once
        @pytest.fixture
        def place():
            yield
            assert fails_once("down")
        def test_up_and_down(place):
            assert fails_once("up")
        def test_down(place):
            pass
        """
    suite = run(tree, textwrap.dedent(text))
    assert suite.summary() == f"unsteady: tests/test_x.py::test_up_and_down (seed {suite.seed})\n2 passed, 0 failed"


ENTRIES: list[tuple[str, str]] = [
    (
        "tests/test_x.py::test_z (seed 3) 2026-11-18: gone",
        "there is no test 'tests/test_x.py::test_z' = remove the line, or name the test as the run printed it",
    ),
    (
        "tests/test_w.py::test_x (seed 3) 2026-11-18: gone",
        "there is no test 'tests/test_w.py::test_x' = remove the line, or name the test as the run printed it",
    ),
    (
        "unit_gone (seed 3) 2026-11-18: gone",
        "there is no test 'unit_gone' = remove the line, or name the test as the run printed it",
    ),
    (
        "tests/test_x.py::test_x",
        "'tests/test_x.py::test_x' is not an entry = write: NAME (seed N) YYYY-MM-DD: what is known",
    ),
]


@pytest.mark.parametrize("entry, fault", ENTRIES)
def test_the_list_stays_true(tree: Path, capfd: pytest.CaptureFixture[str], entry: str, fault: str) -> None:
    (tree / "tests" / "test_x.py").write_text("class TestX:\n    def test_y(self): pass\ndef test_x(): pass\n")
    program(tree, "unit_x", "echo ok 1")
    listing(tree, "tests/test_x.py::TestX::test_y (seed 3) 2026-11-18: slow", "unit_x (seed 3) 2026-11-18: slow", entry)
    suite = Suite(tree, {}, repeats=True, watchdog=None)
    assert f"tests/unsteady:5: {fault}\n" in capfd.readouterr().out
    assert suite.summary() == "0 passed, 1 failed"


def test_the_list_of_this_tree_is_true(tmp_path: Path) -> None:
    assert Suite(ROOT, {}, repeats=True, watchdog=None).failed == 0


# --- programs of unit tests


def program(tree: Path, name: str, text: str) -> None:
    path = tree / "build" / "tests" / name
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)


@pytest.fixture
def unit(tree: Path) -> Callable[[str], Suite]:
    def run_unit(text: str) -> Suite:
        program(
            tree,
            "unit_x",
            f'echo "$$ $ROOST_SEED" >> {tree}/notes/unit; first() {{ [ "$(wc -l < {tree}/notes/unit)" = 1 ]; }}; echo ok 1 - a\n{text}',
        )
        suite = Suite(tree, {**os.environ, "ROOST_SEED": "7"}, repeats=True, watchdog=None)
        suite.run_unit("build", "unit tests")
        return suite

    return run_unit


def test_a_unit_program_that_fails_is_run_once_more(tree: Path, unit: Callable[[str], Suite]) -> None:
    assert (
        unit("if first; then echo not ok 2 - b; exit 1; fi; echo ok 2 - b").summary()
        == "unsteady: unit_x (seed 7)\n2 passed, 0 failed"
    )
    assert len({line.split()[0] for line in (tree / "notes" / "unit").read_text().splitlines()}) == 2


@pytest.mark.parametrize(
    "end",
    [
        "echo 'src/a.c:3:5: runtime error: shift' >&2; exit 1",
        "kill -SEGV $$",
        "echo 'not ok 2 - b'; echo '# Test failed with exception: Segmentation fault'; exit 1",
    ],
)
def test_a_unit_program_that_crashes_is_not(tree: Path, unit: Callable[[str], Suite], end: str) -> None:
    assert unit(f"if first; then {end}; fi").summary() == "1 passed, 1 failed"
    assert tries(tree) == {"unit": 1}


@pytest.mark.parametrize(
    "said",
    [
        "==1==ERROR: LeakSanitizer: detected memory leaks",
        "SUMMARY: UndefinedBehaviorSanitizer: undefined-behavior",
        "WARNING: ThreadSanitizer: data race",
        "E   subprocess.TimeoutExpired: Command '['roost']' timed out after 30 seconds",
        'failed on teardown with "AssertionError: LeftOver([12])"',
    ],
)
def test_what_is_said_decides(said: str) -> None:
    assert not may_repeat(f"def test_x():\n{said}\n")
    assert may_repeat("    except subprocess.TimeoutExpired:  # LeftOver\nE   assert 1 == 2")
