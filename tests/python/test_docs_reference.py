"""The reference pages agree with the program: every code, key, variable, name and call that it has is on its page, and the
pages name none that it does not have."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import roost

pytestmark = pytest.mark.plain

ROOT = Path(__file__).parents[2]
REFERENCE = ROOT / "docs/reference"
PAGES = {path.name: path.read_text() for path in REFERENCE.glob("*.md")}
ALL = "\n".join(PAGES.values())


def rows(text: str, heading: str) -> list[list[str]]:
    """The cells of the first table below a heading."""
    section = text.split(f"\n## {heading}\n", 1)[1]
    table = re.search(r"(?:^\|.*\n)+", section, re.M)
    assert table, heading
    return [[cell.strip() for cell in line.strip("|").split(" | ")] for line in table[0].splitlines()[2:]]


def sources(*patterns: str) -> str:
    return "\n".join(
        path.read_text()
        for pattern in patterns
        for path in sorted(ROOT.glob(pattern))
        if not path.name.endswith("_test.c")
    )


def mentions(text: str, word: str) -> bool:
    return re.search(rf"(?<![A-Za-z0-9_]){re.escape(word)}(?![A-Za-z0-9_])", text) is not None


def test_the_written_pages_are_up_to_date() -> None:
    done = subprocess.run([sys.executable, ROOT / "tools/reference", "--check"], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr


def test_every_code_is_listed_with_its_exit_status() -> None:
    header = (ROOT / "include/roost/error.h").read_text()
    errors = dict(re.findall(r'X\(\w+, "([\w-]+)", (\d)\)', header))
    assert {row[0].strip("`"): row[1] for row in rows(PAGES["errors.md"], "Codes and exit statuses")} == errors
    warnings = re.findall(r'X\(\w+, "([\w-]+)"\)', header)
    assert sorted(row[0].strip("`") for row in rows(PAGES["errors.md"], "Warnings")) == sorted(warnings)


def test_every_variable_that_roost_sets_is_listed() -> None:
    names = re.findall(r"X\((\w+), (?:EVERY|VENDOR|DEFAULT)\)", (ROOT / "src/config/variables.h").read_text())
    assert len(names) > 30
    assert [name for name in names if not mentions(PAGES["environment.md"], name)] == []


def test_every_variable_that_roost_reads_is_listed() -> None:
    program = sources("src/cli/**/*.c", "src/cli/*.c", "tools/man.c")
    names = set(re.findall(r'(?:getenv\(|invocation_env\(\w+, )"([A-Z_]+)"', program)) | set(
        re.findall(r"\*((?:ROOST|XDG|NO)_[A-Z_]+)\*", program)
    )
    package = sources("python/roost/**/*.py", "python/roost/*.py")
    names |= set(re.findall(r'environ(?:\.get)?[(\[]"((?:ROOST|RLINF)_[A-Z_]+)"', package))
    listed = " ".join(row[0] for row in rows(PAGES["environment.md"], "What roost reads"))
    assert {"ROOST_CLUSTER", "ROOST_ENGINE", "NO_COLOR"} <= names
    assert sorted(name for name in names if not mentions(listed, name)) == []


def test_every_key_of_a_config_is_described() -> None:
    lists = re.findall(r"KEYS\(([^)]*)\)", sources("src/config/*.c"))
    keys = {key for words in lists for key in re.findall(r'"([a-z_]+)"', words)}
    assert {"command", "ready", "node_group", "hardware_type"} <= keys
    described = PAGES["config.md"] + PAGES["cluster.md"] + PAGES["groups.md"]
    assert sorted(key for key in keys if not mentions(described, key)) == []


def test_every_public_name_of_the_package_is_described() -> None:
    assert [name for name in roost.__all__ if not mentions(ALL, name)] == []


def test_c_names_in_the_pages_are_in_the_headers() -> None:
    headers = sources("include/roost/*.h", "include/roost/**/*.h")
    documents = [*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md")]
    used = {
        (path.name, name)
        for path in documents
        if path.name != "CHANGELOG.md"
        for name in re.findall(r"`(roost_[a-z_]+)`", path.read_text())
    }
    private = sources("src/**/*.h") if (ROOT / "src").exists() else ""
    missing = [
        (page, name)
        for page, name in used
        if not mentions(headers, name) and not (page == "ARCHITECTURE.md" and mentions(private, name))
    ]
    assert sorted(missing) == []


def test_every_call_of_the_managers_is_listed_with_its_arguments() -> None:
    calls = {
        name: int(count) for name, count in re.findall(r'\{"(\w+\.\w+)", (\d), \w+\}', sources("src/registry/*.c"))
    }
    listed = {}
    for names, arguments in rows(PAGES["managers.md"], "Requests and answers"):
        words = arguments.split(";")[0]
        for name in re.findall(r"`([\w.]+)`", names):
            listed[name] = 0 if words == "none" else len(words.split(","))
    assert listed == calls


def test_every_command_is_named_on_the_page_of_the_command_line() -> None:
    program = os.environ.get("ROOST", str(ROOT / "build/roost"))
    text = subprocess.run([program, "--help"], check=True, capture_output=True, text=True).stdout
    names = [line.split()[0] for line in text.partition("commands:\n")[2].partition("\n\n")[0].splitlines()]
    assert re.findall(r"^## roost (\w+)$", PAGES["cli.md"], re.M) == names


JOB = """\
cluster: {num_nodes: 2, component_placement: {actor: 0-1}}
roost: {cluster: 2x8, launch: {actor: {command: ["true"]}}, groups: {rollout_num_gpus: 8}}
"""


def keys_of(value: Any) -> set[str]:
    """The keys of a document, at any depth, but not the names of variables, ports and roles."""
    if isinstance(value, list):
        return {key for item in value for key in keys_of(item)}
    if not isinstance(value, dict):
        return set()
    inner = {
        key for name, item in value.items() if name not in ("env", "ports", "port_offsets") for key in keys_of(item)
    }
    return set(value) | inner


def test_every_key_of_json_is_described(tmp_path: Path) -> None:
    program = os.environ.get("ROOST", str(ROOT / "build/roost"))
    (tmp_path / "job.yaml").write_text(JOB)
    (tmp_path / "run").mkdir(mode=0o700)
    env = {"PATH": os.environ["PATH"], "HOME": str(tmp_path), "XDG_RUNTIME_DIR": str(tmp_path / "run")}

    def ask(*words: str) -> str:
        return subprocess.run(
            [program, *words], cwd=tmp_path, env=env, check=True, capture_output=True, text=True
        ).stdout

    ask("run", "--quiet", "job.yaml")
    commands = [
        ["plan", "--json", "--commands", "job.yaml"],
        ["check", "--json", "job.yaml"],
        ["groups", "--json", "job.yaml"],
        ["probe", "--json"],
        ["ps", "--all", "--json"],
    ]
    keys = {key for words in commands for key in keys_of(json.loads(ask(*words)))}
    (records,) = tmp_path.glob(".local/state/roost/runs/*/records.jsonl")
    keys |= {key for line in records.read_text().splitlines()[:-1] for key in keys_of(json.loads(line))}
    described = PAGES["json.md"] + PAGES["errors.md"] + PAGES["cluster.md"] + PAGES["groups.md"]
    assert {"visible_accelerators", "server_groups", "reason", "warnings"} <= keys
    assert sorted(key for key in keys if not mentions(described, key)) == []


def glossary(path: Path) -> dict[str, str]:
    text = path.read_text()
    # The page is the glossary; in ARCHITECTURE.md it is a section.
    text = text if "\n## Glossary\n" in text else text.replace("# Glossary\n", "\n## Glossary\n", 1)
    return {row[0]: row[1] for row in rows("\n" + text, "Glossary")}


def test_the_two_glossaries_agree() -> None:
    public, inside = glossary(ROOT / "docs/glossary.md"), glossary(ROOT / "ARCHITECTURE.md")
    assert len(inside) <= 30
    assert {word: public.get(word) for word in inside} == inside
