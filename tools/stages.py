"""Runs tests, a stage at a time, and counts them. tools/run-tests says which stages there are.

A failed test is tried once more where tools/retry.py allows it: the same command in the same environment with the same
seed, but this test alone. One that passes then counts as passed, and the last lines name it.
"""

import os
import re
import secrets
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path

from retry import FEW, bare, may_repeat, read_results, read_unsteady

UNIT_SECONDS = 600
# For a second try: more than the watchdog of a single test, which speaks better.
AGAIN_SECONDS = 900


class Suite:
    """All stages of a run in a source folder. `watchdog`: seconds for each pytest test, or None."""

    def __init__(self, root: Path, environment: Mapping[str, str], *, repeats: bool, watchdog: float | None) -> None:
        self.root = root
        self.repeats = repeats
        self.seed = int(environment.get("ROOST_SEED") or secrets.randbelow(1_000_000))
        self.environment = {**environment, "ROOST_SEED": str(self.seed)}
        self.options = [] if watchdog is None else [f"--timeout={watchdog}"]
        if environment.get("ROOST_RANDOM") == "1":  # tests/python/chance.py
            self.options.append(f"--hypothesis-seed={self.seed}")
        self.passed = self.failed = 0
        self.unsteady: list[str] = []
        print(f"seed {self.seed} (ROOST_SEED={self.seed} runs the same again)", flush=True)
        self.listed, faults = read_unsteady(root)
        if faults:
            print("\n".join(faults))
            self.add("tests/unsteady", 0, len(faults), time.monotonic())

    def add(self, stage: str, passed: int, failed: int, started: float) -> None:
        self.passed += passed
        self.failed += failed
        print(f"== {stage}: {passed} passed, {failed} failed ({time.monotonic() - started:.0f} s)", flush=True)

    def summary(self) -> str:
        """Its last line is the count alone."""
        return "\n".join([*self.unsteady, f"{self.passed} passed, {self.failed} failed"])

    def has_passed(self) -> bool:
        return self.passed > 0 and not self.failed

    def mend(self, failed: dict[str, str], passes_alone: Callable[[str], bool]) -> set[str]:
        """Those of the failed tests (to what they say) that pass when they are tried once more."""
        mended: set[str] = set()
        if not self.repeats or len(failed) > FEW:
            return mended
        for name, said in failed.items():
            if not may_repeat(said):
                continue
            if bare(name) in self.listed:
                print(f"-- {name} is listed in tests/unsteady: it is not tried again = mend it", flush=True)
                continue
            print(f"-- once more, alone: {name} (seed {self.seed})", flush=True)
            if passes_alone(name):
                mended.add(name)
                line = f"unsteady: {name} (seed {self.seed})"
                if line not in self.unsteady:
                    self.unsteady.append(line)
        return mended

    # --- cmocka programs

    def run_unit(self, build: str, stage: str) -> None:
        """cmocka programs speak TAP; one that dies without a verdict is a failure of its own."""
        started = time.monotonic()
        env = self.environment | {"CMOCKA_MESSAGE_OUTPUT": "TAP"}
        folder = self.root / build / "tests"
        counts: dict[str, tuple[int, int]] = {}
        said: dict[str, str] = {}

        def run_one(name: str) -> bool:
            good, bad, text = run_program(folder / name, self.root, env)
            counts[name] = good, bad
            if bad:
                said[name] = text
                print(f"-- {text}", flush=True)
            return bad == 0

        for program in sorted(folder.glob("unit_*")):
            if not program.suffix and os.access(program, os.X_OK) and not program.is_dir():
                run_one(program.name)
        self.mend(dict(said), run_one)
        self.add(stage, sum(good for good, _ in counts.values()), sum(bad for _, bad in counts.values()), started)

    # --- pytest

    def run_pytest(self, build: str, stage: str, *arguments: str, folder: str = "tests", **environment: str) -> None:
        started = time.monotonic()
        files = sorted(str(path.relative_to(self.root)) for path in self.root.glob(folder))
        env = self.environment | environment

        def run(name: str, *words: str, timeout: float | None = None) -> tuple[int, Path]:
            results = self.root / build / name
            results.unlink(missing_ok=True)
            form = [f"--junitxml={results}", "-o", "junit_family=xunit1", "-o", "junit_logging=all", "-o", "junit_log_passing_tests=false"]
            command = [sys.executable, "-m", "pytest", "-q", "-n", "2", "--no-header", *form, *self.options, *arguments, *words]
            return subprocess.run(command, cwd=self.root, env=env, timeout=timeout).returncode, results

        def passes_alone(name: str) -> bool:
            try:
                status, results = run("pytest-again.xml", "-n", "0", name, timeout=AGAIN_SECONDS)
            except subprocess.TimeoutExpired:
                print(f"-- {name} was ended after {AGAIN_SECONDS} s", flush=True)
                return False
            return status == 0 and results.exists() and read_results(results).passed == {name}

        status, results = run("pytest.xml", *files)
        if not results.exists():
            self.add(stage, 0, 1, started)
            return
        found = read_results(results)
        # 1: tests failed. With any other status pytest itself was stopped, so nothing is known of the rest.
        mended = self.mend(found.failed, passes_alone) if status == 1 else set()
        passed, failed = len(found.passed) + len(mended), len(found.failed) - len(mended) + len(found.lost)
        if status and not found.failed and not failed:
            failed = 1
        self.add(stage, passed, failed, started)


def run_program(program: Path, root: Path, env: Mapping[str, str]) -> tuple[int, int, str]:
    """How many of its tests passed and failed, and what it says."""
    try:
        done = subprocess.run([program], cwd=root, env=env, capture_output=True, text=True, errors="replace", timeout=UNIT_SECONDS)
    except subprocess.TimeoutExpired as late:
        said = b"".join(part for part in (late.stdout, late.stderr) if part).decode(errors="replace")
        return 0, 1, f"{program.name} took longer than {UNIT_SECONDS} s\n{said}"
    good = len(re.findall(r"^ok \d+", done.stdout, re.M))
    bad = len(re.findall(r"^not ok \d+", done.stdout, re.M))
    if bad == 0 and (done.returncode != 0 or good == 0):
        bad = 1
    end = f"ended with {done.returncode}" if done.returncode >= 0 else f"was killed by signal {-done.returncode}"
    return good, bad, f"{program.name} {end}\n{done.stdout}{done.stderr}"
