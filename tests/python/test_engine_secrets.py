"""A secret that a config takes from a variable: processes get it, and nothing that roost says or writes holds it."""

import json
import os
import secrets
import subprocess
from pathlib import Path

import pytest

from engine import PATIENCE, ROOST, Engine

# The ones that were wrong before: whole values, pieces of values, and what goes to a process.
WRONG = {
    "cluster.num_nodes": "${oc.env:MY_SECRET_TOKEN}",
    "cluster.component_placement.actor": "0-${oc.env:MY_SECRET_TOKEN},x",
    "cluster.component_placement.rollout": "${oc.env:MY_SECRET_TOKEN}:${oc.env:MY_SECRET_TOKEN}:1",
    "roost.cluster": "${oc.env:MY_SECRET_TOKEN}",
    "roost.engine": "${oc.env:MY_SECRET_TOKEN}",
    "roost.logs.dir": "${oc.env:MY_SECRET_TOKEN}",
    "roost.launch.actor.cwd": "${oc.env:MY_SECRET_TOKEN}",
    "roost.launch.actor.restart": "${oc.env:MY_SECRET_TOKEN}",
    "roost.launch.actor.after": "['${oc.env:MY_SECRET_TOKEN}']",
    "roost.launch.actor.ready": "{file: '${oc.env:MY_SECRET_TOKEN}'}",
    "roost.launch.actor.bind": "{cpu: '${oc.env:MY_SECRET_TOKEN}'}",
    "roost.launch.actor.ports": "{http: '${oc.env:MY_SECRET_TOKEN}'}",
    "roost.launch.actor.command": "['${oc.env:MY_SECRET_TOKEN}']",
    "roost.launch.actor.env": "{A: '%{${oc.env:MY_SECRET_TOKEN}}'}",
    "roost.groups": "{rollout_num_gpus: '${oc.env:MY_SECRET_TOKEN}', sglang_config: '${oc.env:MY_SECRET_TOKEN}'}",
}


def a_secret() -> str:
    """Another one each time, printed for who looks at a failure."""
    secret = f"s3-{secrets.token_hex(16)}"
    print(f"the secret is {secret}")
    return secret


def said(engine: Engine, *words: str) -> str:
    done = subprocess.run(
        [ROOST, *words], env=engine.env, cwd=engine.home, capture_output=True, text=True, timeout=PATIENCE
    )
    return done.stdout + done.stderr


@pytest.mark.parametrize("key", WRONG)
@pytest.mark.parametrize("kind", ["long", "clipped", "short", "numeric"])
def test_no_error_holds_a_secret(plain_engine: Engine, key: str, kind: str) -> None:
    secret = {"long": a_secret(), "clipped": a_secret() * 9, "short": "qz7", "numeric": "48151623420"}[kind]
    plain_engine.env["MY_SECRET_TOKEN"] = secret
    config = plain_engine.config({"actor": {"command": ["true"]}, "rollout": {"command": ["true"], "ranks": 1}})
    text = ""
    for words in (
        ["check"],
        ["check", "--json"],
        ["plan"],
        ["plan", "--json"],
        ["plan", "--commands"],
        ["plan", "--commands", "--json"],
        ["groups"],
        ["run"],
    ):
        text += said(plain_engine, *words, str(config), f"{key}={WRONG[key]}")
    assert "read from the environment: MY_SECRET_TOKEN" in text and "refused" not in text
    pieces = {secret, secret[:16], secret[-16:]} if len(secret) > 16 else {secret}
    assert [piece for piece in pieces if piece in text] == []


def test_processes_have_the_secret_and_nothing_else_has(engine: Engine) -> None:
    secret = a_secret()
    engine.env["MY_SECRET_TOKEN"] = secret
    pipe = engine.pipe("up")
    script = f"echo told $FOO $1; echo $$ $PPID > {pipe.path}; read line < {engine.home}/go"
    os.mkfifo(engine.home / "go")
    config = engine.config(
        {
            "actor": {
                "command": ["sh", "-c", script, "x", "${oc.env:MY_SECRET_TOKEN}"],
                "env": {"FOO": "Bearer ${oc.env:MY_SECRET_TOKEN}"},
            }
        }
    )
    driver = engine.start(config)
    [[pid, supervisor]] = pipe.lines(1)
    [run] = engine.runs()
    page = engine.page(run)
    watchers = {int(supervisor), driver.pid, page["guardian_pid"], page["supervisor_pid"], page["registry_pid"]}
    words = {watcher: Path(f"/proc/{watcher}/cmdline").read_bytes() for watcher in watchers}
    told = said(engine, "ps", "--json") + said(engine, "ps") + said(engine, "plan", "--commands", str(config))
    (engine.home / "go").write_text("x\n")
    done = engine.finish(driver)
    assert done.returncode == 0, done.stderr
    # The process itself was given it, and its own line is the only one that shows it.
    assert engine.log(run, "actor") == f"told Bearer {secret} {secret}\n"
    assert [line for line in (done.stdout + done.stderr).splitlines() if secret in line] == [
        f"[actor/0] told Bearer {secret} {secret}"
    ]
    assert [watcher for watcher, line in words.items() if secret.encode() in line] == []
    assert secret not in told + said(engine, "ps", "--all", "--json") and "***" in told
    files = [path for path in engine.home.rglob("*") if path.is_file() and secret.encode() in path.read_bytes()]
    assert files == [run / "actor" / "0" / "stdout.log"]


def test_a_process_that_cannot_start_tells_no_secret(plain_engine: Engine) -> None:
    secret = a_secret()
    plain_engine.env["MY_SECRET_TOKEN"] = secret
    config = plain_engine.config({"actor": {"command": ["/nowhere/train", "${oc.env:MY_SECRET_TOKEN}"]}})
    done = plain_engine.run(config)
    assert (
        done.returncode == 5 and "cannot run the program '/nowhere/train'" in done.stderr and secret not in done.stderr
    )
    for run in plain_engine.runs():
        assert secret not in json.dumps(plain_engine.page(run))
