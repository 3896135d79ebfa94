"""Output of workers on Ray, as batches of lines come to the driver: whose they are, what is kept and what is shown."""

import logging
import os
import threading
from pathlib import Path
from typing import Any

import pytest

import roost
from roost._ray import logs as ray_logs
from roost._ray.logs import RayLogs, Source


def batch(pid: int, *lines: str, ip: str = "10.0.0.1", name: str = "", is_err: bool = False) -> dict[str, Any]:
    return {"ip": ip, "pid": str(pid), "actor_name": name, "is_err": is_err, "lines": list(lines)}


def collect(folder: Path | None) -> tuple[RayLogs, list[str]]:
    shown: list[str] = []
    logs = RayLogs(None if folder is None else str(folder), "run")
    logs._show = [lambda batch: shown.extend(batch["lines"])]
    return logs, shown


def test_what_a_rank_wrote_before_it_was_known_is_kept_with_the_rest(tmp_path: Path) -> None:
    logs, shown = collect(tmp_path)
    with logs.launching("other"):
        logs.hear(batch(7, "first"))
        logs.hear(batch(8, "of somebody else"))
        assert shown == []
        logs.add_source(Source("actor", 0, "10.0.0.1", 7, True))
        logs.hear(batch(7, "second"))
    logs.hear(batch(7, "third", is_err=True))
    folder = tmp_path / "run" / "actor" / "0"
    assert (folder / "stdout.log").read_text() == "first\nsecond\n"
    assert (folder / "stderr.log").read_text() == "third\n"
    assert shown == ["first", "second", "of somebody else", "third"]


def test_what_is_kept_is_for_this_user_alone_whatever_the_umask(tmp_path: Path) -> None:
    """The folder that was there is its owner's."""
    before = os.umask(0)
    try:
        (tmp_path / "own").mkdir(mode=0o755)
        for folder in (tmp_path / "own", tmp_path / "made" / "here"):
            logs, _ = collect(folder)
            logs.add_source(Source("actor", 0, "10.0.0.1", 7, True))
            logs.hear(batch(7, "first"))
            logs.hear(batch(7, "second"))
    finally:
        os.umask(before)
    modes = {str(path.relative_to(tmp_path)): path.stat().st_mode & 0o777 for path in tmp_path.rglob("*")}
    kept = {"run": 0o700, "run/actor": 0o700, "run/actor/0": 0o700, "run/actor/0/stdout.log": 0o600}
    assert modes == {"own": 0o755, "made": 0o700, "made/here": 0o700} | {
        f"{folder}/{name}": mode for folder in ("own", "made/here") for name, mode in kept.items()
    }


@pytest.mark.parametrize("ip", ["10.0.0.1", "10.0.0.9"])
def test_what_a_rank_wrote_is_kept_in_its_order_whenever_it_becomes_known(tmp_path: Path, ip: str) -> None:
    """Whether its log has a reader of its own, or one for several nodes."""
    written = [("Hosted", "1"), ("Hosted", "2"), ("actor:0", "3"), ("actor:0", "4")]
    for known in range(len(written) + 1):
        logs, shown = collect(tmp_path / str(known))
        with logs.launching("other"):
            for number, (name, line) in enumerate(written):
                if number == known:
                    logs.add_source(Source("actor", 0, "10.0.0.1", 7, True))
                logs.hear(batch(7, line, ip=ip, name=name))
            if known == len(written):
                logs.add_source(Source("actor", 0, "10.0.0.1", 7, True))
        assert (tmp_path / str(known) / "run/actor/0/stdout.log").read_text() == "1\n2\n3\n4\n"
        assert shown == ["1", "2", "3", "4"]


def test_a_launch_that_ends_does_not_let_go_of_what_another_one_waits_for(tmp_path: Path) -> None:
    logs, shown = collect(tmp_path)
    with logs.launching("other"):
        logs.hear(batch(7, "first"))
        with logs.launching("other"):
            pass
        assert shown == []
        logs.add_source(Source("actor", 0, "10.0.0.1", 7, True))
    assert (tmp_path / "run/actor/0/stdout.log").read_text() == "first\n"


def test_processes_of_one_number_on_several_nodes_are_told_apart(tmp_path: Path) -> None:
    logs, shown = collect(tmp_path)
    logs.add_source(Source("actor", 0, "10.0.0.1", 7, True))
    logs.add_source(Source("actor", 1, "10.0.0.2", 7, False))
    logs.hear(batch(7, "one", ip="10.0.0.1"))
    logs.hear(batch(7, "two", ip="10.0.0.2"))
    logs.hear(batch(7, "three", ip="10.0.0.9", name="actor:1"))  # a reader for several nodes
    logs.hear(batch(7, "four", ip="10.0.0.9", name="Manager"))
    assert (tmp_path / "run/actor/0/stdout.log").read_text() == "one\n"
    assert (tmp_path / "run/actor/1/stdout.log").read_text() == "two\nthree\n"
    assert shown == ["one", "four"]


def test_an_address_tells_more_than_a_name_that_is_anybodys(tmp_path: Path) -> None:
    """In containers processes of several nodes have one number, and until their workers are made one name."""
    logs, _ = collect(tmp_path)
    with logs.launching("other"):
        logs.hear(batch(7, "one", ip="10.0.0.1", name="Hosted"))
        logs.hear(batch(7, "two", ip="10.0.0.2", name="Hosted"))
        logs.add_source(Source("actor", 0, "10.0.0.1", 7, True))
        logs.add_source(Source("actor", 1, "10.0.0.2", 7, True))
    logs.hear(batch(7, "three", ip="10.0.0.2", name="Hosted"))
    assert (tmp_path / "run/actor/0/stdout.log").read_text() == "one\n"
    assert (tmp_path / "run/actor/1/stdout.log").read_text() == "two\nthree\n"


@pytest.mark.parametrize("is_kept", [False, True])
@pytest.mark.parametrize("ip", ["10.0.0.1", "10.0.0.9"])
def test_lines_of_a_hidden_group_are_not_shown_however_late_they_come(tmp_path: Path, is_kept: bool, ip: str) -> None:
    logs, shown = collect(tmp_path if is_kept else None)
    source = Source("actor", 0, "10.0.0.1", 7, False)
    with logs.launching("actor", is_hidden=True):
        logs.hear(batch(7, "early", ip=ip, name="Hosted"))
        logs.add_source(source)
    logs.hear(batch(7, "in time", ip=ip, name="actor:0"))
    logs.forget([source])
    logs.hear(batch(7, "late", ip=ip, name="actor:0"))
    logs.hear(batch(7, "late and first of its stream", ip=ip, name="Hosted", is_err=True))
    assert shown == []
    logs.hear(batch(7, "of a task that has its number now", ip=ip))
    with logs.launching("other"):
        logs.hear(batch(7, "of a rank that has its number now", ip=ip, name="Hosted"))
        logs.add_source(Source("shown", 0, "10.0.0.1", 7, True))
    assert shown == ["of a task that has its number now", "of a rank that has its number now"]
    if is_kept:
        assert (tmp_path / "run/actor/0/stdout.log").read_text() == "early\nin time\nlate\n"


def test_lines_of_a_hidden_group_that_did_not_start_are_not_shown() -> None:
    """Its ranks never were known."""
    logs, shown = collect(None)
    with pytest.raises(ValueError), logs.launching("actor", is_hidden=True):
        logs.hear(batch(7, "of a rank", name="Hosted"))
        logs.hear(batch(8, "of a rank that was made", name="actor:1"))
        logs.hear(batch(9, "of somebody else", name="other:0"))
        raise ValueError
    logs.hear(batch(7, "late", name="Hosted"))
    logs.hear(batch(10, "of another launch", name="Hosted"))
    assert shown == ["of somebody else", "of another launch"]


def test_the_output_of_a_run_is_kept_in_one_folder(tmp_path: Path) -> None:
    logs, _ = collect(tmp_path / "x")
    logs.keep_in(str(tmp_path / "x"), "run")
    with pytest.raises(
        roost.EngineError,
        match=rf"^the output of this run is kept in '{tmp_path}/x' already, and not in '{tmp_path}/y' \(use one distributed_log_dir in a process\)$",
    ):
        logs.keep_in(str(tmp_path / "y"), "run")


def test_what_a_rank_wrote_is_kept_also_when_it_never_was_ready(tmp_path: Path) -> None:
    """Why a launch failed is most likely among it."""
    logs, shown = collect(tmp_path)
    with pytest.raises(ValueError), logs.launching("actor"):
        logs.hear(batch(7, "early", name="actor:1"))
        logs.hear(batch(9, "of somebody else", name="another:1"))
        raise ValueError
    logs.hear(batch(7, "late", name="actor:1"))
    logs.hear(batch(7, "later", name="actor:1", is_err=True))
    assert shown == ["early", "of somebody else", "late", "later"]
    kept = {str(path.relative_to(tmp_path)): path.read_text() for path in tmp_path.rglob("*.log")}
    assert kept == {"run/actor/1/stdout.log": "early\nlate\n", "run/actor/1/stderr.log": "later\n"}


def test_lines_that_are_too_many_to_be_kept_back_are_told_of_once(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ray_logs, "EARLY_MAX", 2)
    logs, shown = collect(tmp_path)
    with caplog.at_level(logging.WARNING, "roost"), logs.launching("other"):
        for line in ("1", "2", "3", "4"):
            logs.hear(batch(7, line))
        logs.add_source(Source("actor", 0, "10.0.0.1", 7, True))
        logs.hear(batch(7, "5"))
        for line in ("6", "7", "8"):  # there is room again
            logs.hear(batch(8, line))
    assert [record.getMessage() for record in caplog.records] == [
        "workers write too much before they are ready: after 2 batches of lines, what comes until then is not kept"
    ]
    assert (tmp_path / "run/actor/0/stdout.log").read_text() == "1\n2\n5\n"
    assert shown == ["3", "4", "1", "2", "5", "8", "6", "7"]


def test_lines_of_a_hidden_group_that_are_too_many_are_not_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ray_logs, "EARLY_MAX", 1)
    logs, shown = collect(None)
    with logs.launching("actor", is_hidden=True):
        for line in ("1", "2"):
            logs.hear(batch(7, line, name="Hosted"))
        logs.add_source(Source("actor", 0, "10.0.0.1", 7, False))
    assert shown == []


def test_a_group_is_drained_when_its_mark_has_come_on_both_streams(tmp_path: Path) -> None:
    logs, shown = collect(tmp_path)
    source = Source("actor", 0, "10.0.0.1", 7, True)
    logs.add_source(source)
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


def test_a_folder_that_takes_nothing_is_told_once_and_lines_are_still_shown(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "run").write_text("in the way")
    logs, shown = collect(tmp_path)
    logs.add_source(Source("actor", 0, "10.0.0.1", 7, True))
    with caplog.at_level(logging.WARNING, "roost"):
        logs.hear(batch(7, "one"))
        logs.hear(batch(7, "two"))
    assert shown == ["one", "two"] and len(caplog.records) == 1
    assert caplog.records[0].getMessage().startswith(f"output of actor:0 is not kept in {tmp_path}/run: ")


def test_lines_are_shown_filtered_and_kept_as_they_are(tmp_path: Path) -> None:
    logs, shown = collect(tmp_path)
    logs.add_source(Source("actor", 0, "10.0.0.1", 7, True))
    lines = ["\x1b[31mred\x1b[2J", " 10%\r 20%\r100%", "", "plain \udcff"]
    logs.hear(batch(7, *lines))
    assert shown == ["red\\x1b[2J", "100%", "", "plain \\xff"]
    assert (tmp_path / "run" / "actor" / "0" / "stdout.log").read_bytes() == (
        b"\x1b[31mred\x1b[2J\n 10%\r 20%\r100%\n\nplain \xff\n"
    )
