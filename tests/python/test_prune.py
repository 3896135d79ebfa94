"""roost prune and roost.logs.keep: which runs go, and what is never touched."""

import fcntl
import json
import os
import shutil
import signal
import subprocess
import time
from pathlib import Path

import pytest

from engine import PATIENCE, ROOST, Engine


def roost(engine: Engine, *words: str) -> subprocess.CompletedProcess:
    return subprocess.run(
        [ROOST, *words], env=engine.env, cwd=engine.home, capture_output=True, text=True, timeout=PATIENCE
    )


def make_run(engine: Engine, name: str, age: float = 0, size: int = 0, folder: Path | None = None) -> Path:
    """The directory of a run that ended `age` seconds ago, as roost leaves it."""
    ended = time.time() - age
    run = (folder or engine.state) / name
    (run / "actor" / "0").mkdir(parents=True)
    (run / ".values").mkdir()
    (run / ".values" / "ROOST_ADDRESSES_A_B").write_text("long")
    page = {"run": name, "config": "train.yaml", "started": ended - 1, "boot_id": "another"}
    (run / "run.json").write_text(json.dumps(page | {"components": [{"name": "actor", "world_size": 1}]}))
    (run / "records.jsonl").write_text(f'{{"end":true,"failed":false,"status":0,"ended":{ended:.9f}}}\n')
    (run / "actor" / ".times").write_bytes(b"x")
    (run / "actor" / "0" / "stdout.log").write_bytes(b"x" * size)
    (run / "actor" / "0" / "stderr.log").write_bytes(b"")
    engine.state.mkdir(parents=True, exist_ok=True)
    for path in (engine.home / "state", engine.home / "state/roost", engine.state, run):
        path.chmod(0o700)
    if folder is not None:
        (engine.state / name).symlink_to(run)
    return run


def left(engine: Engine) -> list[str]:
    return sorted(os.listdir(engine.state))


HOUR = 3600
AGES = {"aaaaaa": HOUR, "bbbbbb": 2 * HOUR, "cccccc": 30 * HOUR, "dddddd": 50 * HOUR}


@pytest.mark.parametrize(
    ("limits", "gone"),
    [
        (["--older", "1d"], ["cccccc", "dddddd"]),
        (["--older", "1w"], []),
        (["--keep", "1"], ["bbbbbb", "cccccc", "dddddd"]),
        (["--keep", "0"], list(AGES)),
        (["--keep", "3"], ["dddddd"]),
        (["--size", "1G"], []),
        (["--size", "3M"], ["cccccc", "dddddd"]),
        (["--size", "0K"], list(AGES)),
        (["--keep", "3", "--older", "26h"], ["cccccc", "dddddd"]),
        (["--keep", "3", "--size", "1T"], ["dddddd"]),
    ],
)
def test_a_run_goes_if_any_limit_says_so(plain_engine: Engine, limits: list[str], gone: list[str]) -> None:
    for name, age in AGES.items():
        make_run(plain_engine, name, age, 1 << 20)
    listed = roost(plain_engine, "prune", *limits)
    assert listed.returncode == 0
    assert [line.split()[0] for line in listed.stdout.splitlines()[1:]] == gone
    assert left(plain_engine) == list(AGES)  # nothing happens without --yes
    shown = json.loads(roost(plain_engine, "prune", "--json", *limits).stdout)
    assert [row["run"] for row in shown["runs"]] == gone and shown["removed"] is False
    assert shown["size"] == sum(row["size"] for row in shown["runs"]) >= len(gone) << 20
    done = roost(plain_engine, "prune", "--yes", *limits)
    assert done.returncode == 0 and done.stdout == listed.stdout
    assert left(plain_engine) == sorted(set(AGES) - set(gone))


def test_without_a_limit_every_ended_run_is_listed_and_none_removed(plain_engine: Engine) -> None:
    make_run(plain_engine, "aaaaaa")
    assert "1 run, " in roost(plain_engine, "prune").stderr
    refused = roost(plain_engine, "prune", "--yes")
    assert refused.returncode == 2 and left(plain_engine) == ["aaaaaa"]


def test_a_run_that_is_kept_elsewhere_goes_with_its_link(plain_engine: Engine) -> None:
    folder = plain_engine.home / "logs"
    run = make_run(plain_engine, "aaaaaa", folder=folder)
    assert roost(plain_engine, "prune", "--keep", "0", "--yes").returncode == 0
    assert left(plain_engine) == [] and not run.exists() and folder.is_dir()


def test_living_and_unjudged_runs_are_never_touched(plain_engine: Engine) -> None:
    pipe = plain_engine.pipe("up")
    driver = plain_engine.start(plain_engine.config({"actor": {"do": [f"say={pipe.path}", "pause"]}}))
    pipe.lines(1)
    [living] = plain_engine.runs()
    (make_run(plain_engine, "aaaaaa") / "records.jsonl").write_text("")  # it may live on another machine
    (make_run(plain_engine, "bbbbbb") / "run.json").write_text("")  # it starts,
    starting = os.open(plain_engine.state / "bbbbbb", os.O_RDONLY)
    fcntl.flock(starting, fcntl.LOCK_EX)  # and this is its driver
    make_run(plain_engine, "cccccc")
    assert "removed 1 run" in roost(plain_engine, "prune", "--keep", "0", "--older", "0s", "--yes").stderr
    assert left(plain_engine) == sorted(["aaaaaa", "bbbbbb", living.name])
    assert (plain_engine.state / "aaaaaa" / "actor" / "0" / "stdout.log").exists()
    os.close(starting)
    driver.send_signal(signal.SIGTERM)
    assert plain_engine.finish(driver).returncode == 143
    assert plain_engine.log(living, "actor", 0) == ""


def test_what_roost_did_not_make_keeps_the_whole_run(plain_engine: Engine) -> None:
    outside = plain_engine.home / "outside"
    (outside / "0").mkdir(parents=True)
    (outside / "0" / "stdout.log").write_text("mine")
    (make_run(plain_engine, "aaaaaa") / "notes.txt").write_text("mine")
    (make_run(plain_engine, "bbbbbb") / "actor" / "0" / "core").write_text("mine")
    (make_run(plain_engine, "cccccc") / "critic").symlink_to(outside)
    (make_run(plain_engine, "dddddd") / "actor" / "1").symlink_to(outside / "0")
    done = roost(plain_engine, "prune", "--keep", "0", "--yes")
    assert done.returncode == 0 and "nothing to remove" in done.stderr
    for name, what in zip("abcd", ("notes.txt", "actor/0/core", "critic", "actor/1"), strict=True):
        folder = plain_engine.state / (name * 6)
        assert f"kept run {name * 6}: roost did not make '{what}' in {folder}\n" in done.stderr
        assert (folder / "run.json").exists() and (folder / "actor" / "0" / "stdout.log").exists()
    assert (outside / "0" / "stdout.log").read_text() == "mine"


def test_a_log_that_is_a_link_is_removed_and_not_followed(plain_engine: Engine) -> None:
    outside = plain_engine.home / "outside"
    outside.write_text("mine")
    log = make_run(plain_engine, "aaaaaa") / "actor" / "0" / "stdout.log"
    log.unlink()
    log.symlink_to(outside)
    assert roost(plain_engine, "prune", "--keep", "0", "--yes").returncode == 0
    assert left(plain_engine) == [] and outside.read_text() == "mine"


def test_a_run_that_is_read_is_kept(plain_engine: Engine) -> None:
    run = make_run(plain_engine, "aaaaaa", size=1 << 20)
    reader = subprocess.Popen(
        [ROOST, "logs", "--no-label"], env=plain_engine.env, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
    )
    assert reader.stdout is not None and reader.stdout.read(1) == b"x"  # the rest does not fit its pipe: it waits
    done = roost(plain_engine, "prune", "--keep", "0", "--yes")
    assert done.stderr == "roost: kept run aaaaaa: another process uses it\nroost: nothing to remove\n"
    assert len(reader.stdout.read()) == (1 << 20) - 1
    assert reader.wait(PATIENCE) == 0 and run.exists()
    assert roost(plain_engine, "prune", "--keep", "0", "--yes").returncode == 0 and left(plain_engine) == []


def test_two_prunes_at_once_remove_every_run_once(plain_engine: Engine) -> None:
    names = [f"{a}{b}aaaa" for a in "abcdefgh" for b in "abcdefgh"]
    for name in names:
        make_run(plain_engine, name)
    words = [ROOST, "prune", "--keep", "0", "--yes", "--json"]
    both = [subprocess.Popen(words, env=plain_engine.env, stdout=subprocess.PIPE, text=True) for _ in range(2)]
    shown = [json.loads(prune.communicate(timeout=PATIENCE)[0])["runs"] for prune in both]
    assert [prune.returncode for prune in both] == [0, 0]
    assert left(plain_engine) == []
    assert sorted(row["run"] for rows in shown for row in rows if row["kept"] is None) == names


@pytest.mark.parametrize("is_elsewhere", [False, True])
def test_a_half_removed_run_is_no_run_and_the_next_prune_finishes_it(plain_engine: Engine, is_elsewhere: bool) -> None:
    run = make_run(plain_engine, "aaaaaa", folder=plain_engine.home / "logs" if is_elsewhere else None)
    (run / "actor" / "0" / "stdout.log").unlink()
    (plain_engine.state / "aaaaaa").rename(plain_engine.state / ".removed-aaaaaa")
    assert roost(plain_engine, "ps", "--all", "--quiet").stdout == ""
    assert "there is no run" in roost(plain_engine, "logs", "aaaaaa").stderr
    listed = roost(plain_engine, "prune")
    assert listed.stdout.splitlines()[1].split()[:2] == ["aaaaaa", "removed"]
    assert left(plain_engine) == [".removed-aaaaaa"]
    assert "removed 1 run" in roost(plain_engine, "prune", "--older", "1w", "--yes").stderr
    assert left(plain_engine) == [] and not run.exists()


def test_a_run_that_starts_applies_keep_to_its_own_log_folder(plain_engine: Engine) -> None:
    (plain_engine.home / "runs").mkdir(mode=0o700)
    for name, age in AGES.items():
        make_run(plain_engine, name, age, folder=plain_engine.home / "runs")
    make_run(plain_engine, "eeeeee", 99 * HOUR)
    config = plain_engine.config(
        {"actor": {"do": ["exit=0"]}}, logs={"dir": "runs", "keep": {"count": 3, "age": "1d", "size": "1G"}}
    )
    assert plain_engine.run(config).returncode == 0
    [new] = set(left(plain_engine)) - {*AGES, "eeeeee"}
    assert left(plain_engine) == sorted(["aaaaaa", "bbbbbb", "eeeeee", new])
    assert sorted(os.listdir(plain_engine.home / "runs")) == sorted(["aaaaaa", "bbbbbb", new])
    assert plain_engine.run(plain_engine.config({"actor": {"do": ["exit=0"]}})).returncode == 0
    assert "eeeeee" in left(plain_engine)  # unset, nothing is removed


def test_all_that_a_real_run_leaves_can_be_pruned(plain_engine: Engine) -> None:
    config = plain_engine.config({"actor": {"ranks": "0-2", "do": ["out=hello", "@1:exit=3"]}})
    assert plain_engine.run(config).returncode == 3
    assert "removed 1 run" in roost(plain_engine, "prune", "--keep", "0", "--yes").stderr
    assert left(plain_engine) == []


@pytest.mark.parametrize("alias", ["latest", "zlatest", "aaaaaa-saved"])
def test_a_link_or_a_copy_of_a_run_is_no_second_run(plain_engine: Engine, alias: str) -> None:
    """Neither costs the run, and prune does not touch what a user has put beside the runs."""
    run = make_run(plain_engine, "aaaaaa", HOUR)
    (plain_engine.state / alias).symlink_to("aaaaaa")
    shutil.copytree(run, plain_engine.state / f"x{alias}")
    shutil.copytree(run, plain_engine.state / "cppppp")
    (plain_engine.home / "aaaaaa").mkdir()  # where a relative link would lead from here
    before = left(plain_engine)
    assert [row.split()[0] for row in roost(plain_engine, "ps", "-a").stdout.splitlines()[1:]] == ["aaaaaa"]
    assert roost(plain_engine, "prune", "--keep", "1", "--yes").returncode == 0
    assert left(plain_engine) == before and (run / "run.json").exists()
    assert roost(plain_engine, "prune", "--keep", "0", "--yes").returncode == 0
    assert left(plain_engine) == [name for name in before if name != "aaaaaa"]
    assert (plain_engine.state / "cppppp" / "run.json").exists() and (plain_engine.home / "aaaaaa").is_dir()


@pytest.mark.parametrize("name", [".notes", "actor/.bashrc", "actor/0/.hidden"])
def test_a_file_of_the_users_keeps_the_run_also_with_a_dot(plain_engine: Engine, name: str) -> None:
    run = make_run(plain_engine, "aaaaaa", HOUR)
    (run / name).write_text("mine")
    done = roost(plain_engine, "prune", "--keep", "0", "--yes")
    assert (run / name).read_text() == "mine" and (run / "run.json").exists(), done.stderr
