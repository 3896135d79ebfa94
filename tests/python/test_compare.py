"""roost and the reference model agree on random configs and clusters.

ROOST           the program (default build/roost)
ROOST_EXAMPLES  how many cases (default 2000)
ROOST_RANDOM    as in chance.py
"""

import json
import os
import subprocess
import tempfile
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings

from chance import PROFILE
from generate import Case, cases
from reference import EXIT, Answer, plan

ROOST = Path(os.environ.get("ROOST", Path(__file__).parents[2] / "build" / "roost")).absolute()
EXAMPLES = int(os.environ.get("ROOST_EXAMPLES", "2000"))
# What a user's shell could hold and a plan would read; the cases say all they mean themselves.
READ_FROM_ENVIRONMENT = ("ROOST", "RLINF", "ROBOT", "LEFT_", "RIGHT_", "CAN_", "CAMERA", "RAY_")


@pytest.fixture(scope="module")
def folder() -> Iterator[Path]:
    """One directory for all cases, in memory where there is such a place."""
    base = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None
    with tempfile.TemporaryDirectory(prefix="roost-compare-", dir=base) as name:
        yield Path(name)


def run_roost(case: Case, folder: Path) -> subprocess.CompletedProcess[str]:
    config = folder / "config.yaml"
    config.write_text(case.config_text)
    cluster = case.machines.spec
    if cluster is None:
        snapshot = folder / "cluster.json"
        snapshot.write_text(json.dumps(case.machines.snapshot))
        cluster = str(snapshot)
    command = [str(ROOST), "plan", "--json", "--cluster", cluster]
    if case.mode != "hybrid":
        command += ["--mode", case.mode]
    if not case.isolate:
        command.append("--no-isolate")
    environment = {k: v for k, v in os.environ.items() if not k.startswith(READ_FROM_ENVIRONMENT)}
    return subprocess.run([*command, str(config)], capture_output=True, text=True, timeout=60, env=environment)


def read_json(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        return None


def restrict(got: Any, expected: Any) -> Any:
    """got without the keys expected does not know: additions to the document are allowed."""
    if isinstance(got, dict) and isinstance(expected, dict):
        return {key: restrict(got[key], expected[key]) for key in expected if key in got}
    if isinstance(got, list) and isinstance(expected, list) and len(got) == len(expected):
        return [restrict(g, e) for g, e in zip(got, expected, strict=True)]
    return got


def walk(got: Any, expected: Any, path: str) -> Iterator[str]:
    """The places where two documents differ, innermost first."""
    if isinstance(got, dict) and isinstance(expected, dict) and got.keys() == expected.keys():
        for key in expected:
            yield from walk(got[key], expected[key], f"{path}.{key}")
    elif isinstance(got, list) and isinstance(expected, list) and len(got) == len(expected):
        for i, item in enumerate(expected):
            yield from walk(got[i], item, f"{path}[{i}]")
    elif json.dumps(got) != json.dumps(expected):
        yield f"{path} is {json.dumps(got)}, expected {json.dumps(expected)}"


def find_difference(expected: Answer, run: subprocess.CompletedProcess[str]) -> str | None:
    """What roost did otherwise than the model, or None."""
    if run.returncode != expected.exit:
        return f"exit {run.returncode}, expected {expected.exit} {sorted(expected.codes)}"
    if expected.codes:
        errors = (read_json(run.stderr) or {}).get("errors", [])
        missing = expected.codes - {error["code"] for error in errors}
        return f"codes not reported: {sorted(missing)}" if missing else None
    document = read_json(run.stdout) or {}
    if document.get("mode") != expected.mode:
        return f"mode {document.get('mode')}, expected {expected.mode}"
    components = restrict(document.get("components"), expected.components)
    # As text: to Python 1 == True, to a reader of the document it is not.
    if json.dumps(components) != json.dumps(expected.components):
        first = next(walk(components, expected.components, "components"))
        return f"{first}\n--- expected:\n{json.dumps(expected.components)}"
    return None


# Whoever names the program means it to be there; only the default may be missing.
@pytest.mark.skipif(not ROOST.exists() and "ROOST" not in os.environ, reason="roost is not built")
@settings(PROFILE, max_examples=EXAMPLES)
@given(case=cases())
def test_roost_plans_what_the_reference_model_plans(folder: Path, case: Case) -> None:
    expected = plan(case.config, case.machines.nodes, case.mode, case.isolate)
    run = run_roost(case, folder)
    difference = find_difference(expected, run)
    if difference:
        cluster = case.machines.spec or json.dumps(case.machines.snapshot, indent=1)
        pytest.fail(
            f"{difference}\n--- command: {' '.join(map(str, run.args))}\n"
            f"--- config:\n{case.config_text}--- cluster:\n{cluster}\n"
            f"--- stdout:\n{run.stdout}\n--- stderr:\n{run.stderr}",
            pytrace=False,
        )


def test_generated_cases_reach_every_strategy_mode_and_code() -> None:
    seen: Counter[str] = Counter()

    @settings(PROFILE, max_examples=2000, derandomize=True, database=None)
    @given(case=cases())
    def count(case: Case) -> None:
        got = plan(case.config, case.machines.nodes, case.mode, case.isolate)
        seen.update(["cases", "refused" if got.codes else "accepted", *got.codes])
        seen.update({got.mode, *(component["strategy"] for component in got.components)})

    count()
    assert seen["accepted"] >= 0.6 * seen["cases"], seen
    assert seen["refused"] >= 0.15 * seen["cases"], seen
    wanted = {"flexible", "packed", "node", "hybrid", "collocated", "disaggregated", "auto", *EXIT}
    # Five of each at least: one alone could go with the next change of a generator.
    assert not [word for word in wanted if seen[word] < 5], seen
