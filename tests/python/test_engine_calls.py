"""Calls to workers that are being killed: every call has exactly one outcome per rank, and what the workers
wrote down of their own tells whether it is true. 20,000 calls under 50 kills; ROOST_SOAK makes it 1,000,000 under
500."""

import os
import subprocess
from collections import Counter

from chance import dice
from engine import ROOST, Engine

CALLS, KILLS = (1_000_000, 500) if os.environ.get("ROOST_SOAK") else (20_000, 50)
RANKS = 64


def test_every_call_has_one_outcome_and_none_is_lost_or_doubled(plain_engine: Engine) -> None:
    engine = plain_engine
    notes = engine.home / "notes"
    notes.touch()
    config = engine.config(
        {
            "actor": {
                "ranks": f"0-{RANKS - 1}",
                "command": [str(ROOST.parent / "tests" / "engine_callee")],
                "restart": {"on-failure": 1000},
            }
        }
    )
    seed = dice().randrange(1 << 31)
    command = [ROOST.parent / "tests" / "engine_caller", config, str(CALLS), str(KILLS), str(seed)]
    env = engine.env | {"NOTES": str(notes), "ROOST_PROGRAM": str(ROOST)}
    done = subprocess.run(command, env=env, cwd=engine.home, capture_output=True, text=True, timeout=60 + CALLS / 50)
    assert done.returncode == 0, f"seed {seed}: {done.stderr}"

    ran = Counter(tuple(map(int, line.split())) for line in notes.read_text().splitlines())
    kinds: Counter[str] = Counter()
    asked, told, killed = set(), set(), set()
    for line in done.stdout.splitlines():
        word, *rest = line.split()
        if word == "killed":
            killed.add((int(rest[0]), int(rest[1])))
            continue
        call, rank = map(int, rest[:2])
        key = rank, call
        if word == "asked":
            assert key not in asked
            asked.add(key)
            continue
        kind, answer = rest[2:]
        assert key not in told, f"seed {seed}: two outcomes of call {call} on rank {rank}"
        told.add(key)
        kinds[kind] += 1
        if kind == "value":
            assert ran[key] == 1 and int(answer) == call * 1000 + rank, f"seed {seed}: {line}, ran {ran[key]} times"
        else:
            assert kind == "unknown" and ran[key] <= 1 or kind == "not_run" and ran[key] == 0, (
                f"seed {seed}: {line}, ran {ran[key]} times"
            )
    assert told == asked, (
        f"seed {seed}: {len(asked - told)} without an outcome, {len(told - asked)} that nobody asked for"
    )
    assert ran.keys() <= asked
    assert {call for _, call in asked} == set(range(CALLS))
    assert kinds["value"] > CALLS
    assert sum(kinds.values()) - kinds["value"] > 0, "no call met a kill"
    # Every kill is one that was meant, and was the end of a life.
    ended = {(record["rank"], record["pid"]) for record in engine.records(engine.runs()[0]) if record["signal"] == 9}
    assert len(killed) == KILLS and killed <= ended, f"seed {seed}: {sorted(killed - ended)} lived on"
    assert engine.left() == []
