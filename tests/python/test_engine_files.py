"""Files that a config names: roost waits for none of them, and shows nothing of one that is not its own."""

import json
import os
import secrets
import subprocess
from pathlib import Path

import pytest

from engine import PATIENCE, ROOST, Engine


def said(engine: Engine, *words: str) -> str:
    done = subprocess.run(
        [ROOST, *words], env=engine.env, cwd=engine.home, capture_output=True, text=True, timeout=PATIENCE
    )
    return done.stdout + done.stderr


def named(engine: Engine, **sections: object) -> Path:
    path = engine.home / "named.yaml"
    path.write_text(json.dumps({"cluster": {"num_nodes": 1, "component_placement": {"actor": 0}}} | sections))
    return path


@pytest.mark.parametrize("words", [["check"], ["check", "--json"], ["plan"], ["groups"], ["run"]], ids=" ".join)
def test_a_pipe_that_a_config_names_is_not_waited_for(plain_engine: Engine, words: list[str]) -> None:
    os.mkfifo(plain_engine.home / "pipe.yaml")
    pipe = str(plain_engine.home / "pipe.yaml")
    launch = {"actor": {"command": ["true"]}}
    cluster = said(
        plain_engine,
        *words,
        str(named(plain_engine, roost={"cluster": pipe, "launch": launch, "groups": {"colocate": True}})),
    )
    assert "is a pipe; a config can name regular files only" in cluster
    models = said(
        plain_engine,
        *words,
        str(named(plain_engine, roost={"groups": {"rollout_num_gpus": 1, "sglang_config": pipe}, "launch": launch})),
    )
    assert "is a pipe; a config can name regular files only" in models
    defaults = said(
        plain_engine, *words, "--hydra", str(named(plain_engine, defaults=["pipe"], roost={"launch": launch}))
    )
    assert "is a pipe; a config can name regular files only" in defaults


def test_nothing_of_a_file_that_is_not_ours_is_shown(plain_engine: Engine) -> None:
    secret = f"s3-{secrets.token_hex(16)}"
    print(f"the secret is {secret}")
    other = plain_engine.home / "other"
    for text in (
        f"root:{secret}:0\n",
        f'{{"token": "{secret}"}}',
        f'["{secret}"]',
        f'"{secret}"',
        f"{secret}: [\n",
        f"- {secret}\n",
        f"%TAG ! {secret}\n",
        f"a: &{secret} 1\na: *{secret}x\n",
    ):
        other.write_text(text)
        (plain_engine.home / "other.yaml").unlink(missing_ok=True)
        (plain_engine.home / "other.yaml").symlink_to(other)
        shown = ""
        for words in (["check"], ["check", "--json"], ["plan"], ["groups"], ["run"]):
            shown += said(plain_engine, *words, str(named(plain_engine, roost={"cluster": str(other)})))
            shown += said(plain_engine, *words, "--hydra", str(named(plain_engine, defaults=["other"], cluster="x")))
            shown += said(
                plain_engine,
                *words,
                str(named(plain_engine, roost={"groups": {"rollout_num_gpus": 1, "sglang_config": str(other)}})),
            )
        assert "other" in shown and secret not in shown, text


def test_pipes_of_the_command_line_are_read_and_quoted(plain_engine: Engine) -> None:
    config = named(plain_engine)
    snapshot = '{"roost": 1, "cluster": {"nodes": [{"num_accelerators": 2}]}}'
    for text, wanted in ((snapshot, "on 1 node with 2 accelerators"), ("root:x:0", "1 | root:x:0")):
        done = subprocess.run(
            [ROOST, "check", "--cluster", "/dev/stdin", str(config)],
            input=text,
            env=plain_engine.env,
            capture_output=True,
            text=True,
            timeout=PATIENCE,
        )
        assert wanted in done.stdout + done.stderr
        done = subprocess.run(
            [ROOST, "check", str(config)],
            input=text,
            env=plain_engine.env | {"ROOST_CLUSTER": "/dev/stdin"},
            capture_output=True,
            text=True,
            timeout=PATIENCE,
        )
        assert wanted in done.stdout + done.stderr
    done = subprocess.run(
        [ROOST, "check", "-"],
        input="cluster: [\n",
        env=plain_engine.env,
        capture_output=True,
        text=True,
        timeout=PATIENCE,
    )
    assert "1 | cluster: [" in done.stderr or "2 | " in done.stderr
