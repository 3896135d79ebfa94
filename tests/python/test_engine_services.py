"""Services: components that end with the job. And the addresses by which other components find them."""

import os
import re
import signal
from pathlib import Path

import pytest

from engine import PATIENCE, Engine, is_alive, wait_gone
from run_under_test import until

ROOT = Path(__file__).parents[2]


def shell(text: str, **settings: object) -> dict[str, object]:
    return {"command": ["sh", "-c", text], **settings}


def server(engine: Engine, name: str, at_end: str = "exit 0", **settings: object) -> dict[str, object]:
    """A service that notes when it is asked to end, and then does `at_end`."""
    text = f"trap 'echo {name} >> {engine.home}/order; {at_end}' TERM; echo up; while :; do sleep 0.02; done"
    return shell(text, service=True, ready={"line": "up"}, **settings)


def order(engine: Engine) -> list[str]:
    return (engine.home / "order").read_text().split()


def test_services_end_with_the_job_those_first_that_come_after_others(plain_engine: Engine) -> None:
    engine = plain_engine
    components = {
        "store": server(engine, "store"),
        "router": server(engine, "router", "exit 3", after=["store"]),
        "rollout": server(engine, "rollout", "trap - TERM; kill -TERM $$", after=["router"], ranks="0-1"),
        "actor": shell("echo trained", after=["rollout"], ranks="2-3"),
    }
    done = engine.run(engine.config(components), "--verbose")
    assert done.returncode == 0, done.stderr
    assert order(engine) == ["rollout", "rollout", "router", "store"]
    assert "roost: the job is done: stopping its services\n" in done.stderr
    counts = dict(re.findall(r"^roost:   (\w+) +(.*)$", done.stderr, re.M))
    assert counts == {"store": "1 done", "router": "1 done", "rollout": "2 done", "actor": "2 done"}
    [run] = engine.runs()
    reasons = {record["component"]: (record["code"], record["reason"]) for record in engine.records(run)}
    assert reasons == {
        "store": (0, "exited"),
        "router": (3, "exited"),
        "rollout": (None, "killed-by-roost"),
        "actor": (0, "exited"),
    }
    assert re.search(rf"{run.name} .*\bdone\b", engine.ask("ps", "-a").stdout)


@pytest.mark.parametrize("grace", ["0", "0.2"])
def test_a_service_that_does_not_listen_is_killed_after_the_grace(plain_engine: Engine, grace: str) -> None:
    components = {
        "deaf": shell(
            "trap '' TERM; setsid sleep 1000 & echo up; while :; do sleep 1; done", service=True, ready={"line": "up"}
        ),
        "actor": shell("true", after=["deaf"]),
    }
    done = plain_engine.run(plain_engine.config(components), "--grace", grace)
    assert done.returncode == 0, done.stderr
    assert "deaf   1 done" in done.stderr
    [run] = plain_engine.runs()
    [record] = [record for record in plain_engine.records(run) if record["component"] == "deaf"]
    assert (record["signal"], record["reason"]) == (signal.SIGKILL, "killed-by-roost")


def test_a_job_that_failed_under_keep_going_keeps_its_status(plain_engine: Engine) -> None:
    engine = plain_engine
    config = engine.config(
        {"rollout": server(engine, "rollout"), "actor": shell("exit $((6 + RANK))", after=["rollout"], ranks="1-2")}
    )
    done = engine.run(config, "--keep-going")
    assert done.returncode in (6, 7) and order(engine) == ["rollout"]
    assert "actor    2 failed" in done.stderr and "rollout  1 done" in done.stderr


@pytest.mark.parametrize(("code", "status"), [(0, 1), (5, 5)])
def test_a_service_that_ends_by_itself_fails_the_run(plain_engine: Engine, code: int, status: int) -> None:
    config = plain_engine.config({"rollout": shell(f"exit {code}", service=True), "actor": shell("exec sleep 1000")})
    done = plain_engine.run(config)
    assert done.returncode == status
    assert "roost:   rollout  1 failed\n" in done.stderr
    if code == 0:
        assert (
            "first failure: rollout/0: this service ended by itself, with status 0, before the job was done"
            in done.stderr
        )


def test_a_service_that_ends_by_itself_under_keep_going_lets_the_job_end(plain_engine: Engine) -> None:
    engine = plain_engine
    config = engine.config(
        {"rollout": shell("exit 0", service=True), "actor": {"do": [f"read={engine.pipe('go').path}"], "ranks": "1"}}
    )
    driver = engine.start(config, "--keep-going")
    [run] = until(engine.runs, "the run has a folder")
    until(lambda: (run / "records.jsonl").exists() and engine.records(run, may_be_cut=True), "the service has ended")
    engine.pipes[0].write()
    done = engine.finish(driver)
    assert done.returncode == 1 and "actor    1 done" in done.stderr


def test_services_that_restart_end_with_the_others(plain_engine: Engine) -> None:
    engine = plain_engine
    again = f"echo life >> {engine.home}/lives; [ $(wc -l < {engine.home}/lives) -ge 3 ] || exit %d; echo up; exec sleep 1000"
    components = {
        "always": shell(again % 0, service=True, restart="always", ready={"line": "up"}),
        "actor": shell("true", after=["always"]),
    }
    done = engine.run(engine.config(components))
    assert done.returncode == 0, done.stderr
    assert "always  1 done, 2 restarts" in done.stderr
    (engine.home / "lives").unlink()
    components["always"] = shell(again % 4, service=True, restart={"on-failure": 5}, ready={"line": "up"})
    done = engine.run(engine.config(components))
    assert done.returncode == 0 and "always  1 done, 2 restarts" in done.stderr, done.stderr


def test_services_that_rest_or_wait_are_not_started_any_more(plain_engine: Engine) -> None:
    engine = plain_engine
    go = engine.pipe("go")
    components = {
        "never": shell("exec sleep 1000", service=True, ready={"line": "it never says this", "timeout": 600}),
        "late": shell("exec sleep 1000", service=True, after=["never"]),
        "resting": shell("exit 1", service=True, restart={"on-failure": 1000}),
        "actor": {"do": [f"read={go.path}"]},
    }
    driver = engine.start(engine.config(components))
    [run] = until(engine.runs, "the run has a folder")
    until(
        lambda: (run / "records.jsonl").exists() and len(engine.records(run, may_be_cut=True)) >= 3,
        "the service has three lives",
    )
    go.write()
    done = engine.finish(driver)
    assert done.returncode == 0, done.stderr
    assert "late     1 never started" in done.stderr and "never    1 done" in done.stderr


@pytest.mark.parametrize("words", [[], ["--component", "router,rollout"]])
def test_services_alone_run_until_they_are_stopped(plain_engine: Engine, words: list[str]) -> None:
    engine = plain_engine
    components = {"router": server(engine, "router"), "rollout": server(engine, "rollout", after=["router"])}
    if words:
        components["actor"] = shell("exit 9")
    up = engine.pipe("up")
    components["rollout"]["command"][2] = f"echo here > {up.path}; " + components["rollout"]["command"][2]  # type: ignore[index]
    driver = engine.start(engine.config(components), *words)
    up.lines(1)
    assert engine.ask("stop").returncode == 0
    done = engine.finish(driver)
    assert done.returncode == 128 + signal.SIGTERM
    assert "roost: all components are services: the run goes on until it is stopped\n" in done.stderr


def closing(engine: Engine) -> tuple[object, int]:
    """A run that waits for a service to end, which does not."""
    up = engine.pipe("up")
    text = f"trap 'echo $$ > {up.path}' TERM; echo up; while :; do sleep 0.02; done"
    components = {"deaf": shell(text, service=True, ready={"line": "up"}), "actor": shell("true", after=["deaf"])}
    driver = engine.start(engine.config(components), "--grace", "600")
    return driver, int(up.lines(1)[0][0])


def test_signals_while_services_are_stopped_hurry_them_and_leave_the_job_done(plain_engine: Engine) -> None:
    driver, pid = closing(plain_engine)
    driver.send_signal(signal.SIGINT)  # type: ignore[attr-defined]
    plain_engine.pipes[0].lines(2)  # it was asked once more
    driver.send_signal(signal.SIGINT)  # type: ignore[attr-defined]
    done = plain_engine.finish(driver)  # type: ignore[arg-type]
    assert done.returncode == 0, done.stderr
    wait_gone([pid])


@pytest.mark.parametrize("victim", ["driver", "guardian", "supervisor"])
def test_nothing_is_left_when_a_process_is_killed_while_services_are_stopped(engine: Engine, victim: str) -> None:
    driver, pid = closing(engine)
    page = engine.page(engine.runs()[0])
    os.kill(
        {"driver": driver.pid, "guardian": page["guardian_pid"], "supervisor": page["supervisor_pid"]}[victim],
        signal.SIGKILL,
    )  # type: ignore[attr-defined]
    if victim != "driver":
        assert engine.finish(driver).returncode == 5  # type: ignore[arg-type]
    else:
        engine.finish_one(driver)  # type: ignore[arg-type]
    engine.wait_empty()
    assert not is_alive(pid)


def test_what_a_run_waits_for_is_named_after_a_while(plain_engine: Engine) -> None:
    engine = plain_engine
    config = engine.config(
        {"actor": shell("true"), "env": shell("true"), "rollout": shell("exec sleep 1000", ranks="1-2")}
    )
    driver = engine.start(config)
    line = b"roost: waiting for rollout (2 processes): actor, env have ended; mark it as a service if it should end with the others\n"
    said = b""
    assert driver.stderr is not None
    while line not in said and (more := os.read(driver.stderr.fileno(), 65536)):
        said += more
    assert line in said, said
    assert engine.ask("stop").returncode == 0
    assert engine.finish(driver, 2 * PATIENCE).returncode == 128 + signal.SIGTERM


# --- addresses


def test_trainers_find_the_servers_of_the_example(plain_engine: Engine) -> None:
    text = (ROOT / "examples/serve.yaml").read_text().replace("examples/serve.py", str(ROOT / "examples/serve.py"))
    (plain_engine.home / "serve.yaml").write_text(text)
    done = plain_engine.run(plain_engine.home / "serve.yaml")
    assert done.returncode == 0, done.stderr
    lines = sorted(line for line in done.stdout.splitlines() if line.startswith("[actor/"))
    assert lines == [
        f"[actor/{rank}] step {step}: STEP-{step} from server {(rank + step) % 2}"
        for rank in range(4)
        for step in range(3)
    ]


def test_addresses_work_whatever_the_order_of_starts(plain_engine: Engine) -> None:
    """Both know each other, and themselves; each port of a block is its first."""
    show = "echo $ROOST_ADDRESSES_%s_HTTP; echo $ROOST_PORT_HTTP"
    components = {
        "a": {**shell(show % "B", ports={"http": 2}, ranks="0-1"), "env": {"OWN": "%{a.1.port.http} %{b.0.host}"}},
        "b": {
            **shell(show % "A" + "; echo $SELF", ports={"http": 1}, after=["a"], ranks="2"),
            "env": {"SELF": "%{b.0.port.http}"},
        },
    }
    done = plain_engine.run(plain_engine.config(components))
    assert done.returncode == 0, done.stderr
    [run] = plain_engine.runs()
    ports = [plain_engine.log(run, "a", rank).split()[1] for rank in range(2)]
    told, port, self_port = plain_engine.log(run, "b").split()
    assert told == ",".join(f"127.0.0.1:{port}" for port in ports) and self_port == port
    assert [plain_engine.log(run, "a", rank).split()[0] for rank in range(2)] == [f"127.0.0.1:{port}"] * 2


def test_addresses_of_another_run_are_not_inherited(plain_engine: Engine) -> None:
    env = plain_engine.env | {"ROOST_ADDRESSES_X_HTTP": "10.9.9.9:1"}
    done = plain_engine.run(plain_engine.config({"a": shell("env | grep -c ROOST_ADDRESSES")}), "--keep-going", env=env)
    assert done.stdout == "[a/0] 0\n"
