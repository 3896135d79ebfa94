"""Output of workers on Ray, as batches of lines come to the driver: whose they are, what is kept and what is shown."""

import logging
import threading
from pathlib import Path
from typing import Any

import pytest

from roost._ray_logs import RayLogs, Source


def batch(pid: int, *lines: str, ip: str = "10.0.0.1", name: str = "", is_err: bool = False) -> dict[str, Any]:
    return {"ip": ip, "pid": str(pid), "actor_name": name, "is_err": is_err, "lines": list(lines)}


def collect(folder: Path | None) -> tuple[RayLogs, list[str]]:
    shown: list[str] = []
    logs = RayLogs(None if folder is None else str(folder), "run")
    logs._show = [lambda batch: shown.extend(batch["lines"])]
    return logs, shown


def test_what_a_rank_wrote_before_it_was_known_is_kept_with_the_rest(tmp_path: Path) -> None:
    logs, shown = collect(tmp_path)
    with logs.launching():
        logs.hear(batch(7, "first"))
        logs.hear(batch(8, "of somebody else"))
        assert shown == []
        logs.know(Source("actor", 0, "10.0.0.1", 7, True))
        logs.hear(batch(7, "second"))
    logs.hear(batch(7, "third", is_err=True))
    folder = tmp_path / "run" / "actor" / "0"
    assert sorted((folder / "stdout.log").read_text().split()) == ["first", "second"]
    assert (folder / "stderr.log").read_text() == "third\n"
    assert sorted(shown) == ["first", "of somebody else", "second", "third"]


def test_processes_of_one_number_on_several_nodes_are_told_apart(tmp_path: Path) -> None:
    logs, shown = collect(tmp_path)
    logs.know(Source("actor", 0, "10.0.0.1", 7, True))
    logs.know(Source("actor", 1, "10.0.0.2", 7, False))
    logs.hear(batch(7, "one", ip="10.0.0.1"))
    logs.hear(batch(7, "two", ip="10.0.0.2"))
    logs.hear(batch(7, "three", ip="10.0.0.9", name="actor:1"))  # a reader for several nodes
    logs.hear(batch(7, "four", ip="10.0.0.9", name="Manager"))
    assert (tmp_path / "run/actor/0/stdout.log").read_text() == "one\n"
    assert (tmp_path / "run/actor/1/stdout.log").read_text() == "two\nthree\n"
    assert shown == ["one", "four"]


def test_a_group_is_drained_when_its_mark_has_come_on_both_streams(tmp_path: Path) -> None:
    logs, shown = collect(tmp_path)
    source = Source("actor", 0, "10.0.0.1", 7, True)
    logs.know(source)
    is_told = threading.Event()

    def tell(mark: str) -> list[Source]:
        logs.hear(batch(7, f"not whole{mark}", is_err=True))
        is_told.set()
        return [source]

    draining = threading.Thread(target=logs.drain, args=("the mark", tell))
    draining.start()
    assert is_told.wait(30) and draining.is_alive()
    logs.hear(batch(7, "last", "the mark"))
    draining.join(30)
    assert not draining.is_alive() and shown == ["not whole", "last"]
    logs.forget([source])
    logs.hear(batch(7, "of the next one"))
    assert (tmp_path / "run/actor/0/stdout.log").read_text() == "last\n"


def test_a_folder_that_takes_nothing_is_told_once_and_lines_are_still_shown(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    (tmp_path / "run").write_text("in the way")
    logs, shown = collect(tmp_path)
    logs.know(Source("actor", 0, "10.0.0.1", 7, True))
    with caplog.at_level(logging.WARNING, "roost"):
        logs.hear(batch(7, "one"))
        logs.hear(batch(7, "two"))
    assert shown == ["one", "two"] and len(caplog.records) == 1
    assert caplog.records[0].getMessage().startswith(f"output of actor:0 is not kept in {tmp_path}/run: ")
