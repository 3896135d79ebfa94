"""What no run can show, the sources do."""

import re
from pathlib import Path

SRC = Path(__file__).parents[2] / "src"
FOLDERS = ("supervise", "agent", "logs", "run")


def test_the_wall_clock_is_for_timestamps_alone() -> None:
    """No wait, restart or deadline depends on it: only what is written down or shown."""
    found = [
        f"{path.relative_to(SRC)}: {line.strip()}"
        for folder in FOLDERS
        for path in sorted((SRC / folder).glob("*.c"))
        if not path.name.endswith("_test.c")
        for line in path.read_text().splitlines()
        if re.search(r"CLOCK_REALTIME|\btime\(NULL\)|gettimeofday", line)
    ]
    # The recorder compares the times of files with the clock that these are from; it waits by the other one.
    files = r"log_recorder\.c: return clock_now\(CLOCK_REALTIME_COARSE\);"
    # `prune` compares the ages of runs with the clock that their ends were written by.
    ages = r"run_prune\.c: .*\.now = \(int64_t\)time\(NULL\)"
    stamps = re.compile(rf"(started_at|ended_at|int64_t now) = clock_read\(CLOCK_REALTIME\)|st_[cm]tim|{files}|{ages}")
    assert [line for line in found if not stamps.search(line)] == []
    assert len(found) > 3
