"""The documents are true: every console block is run, every config in them is checked.

In a block marked ```console, lines that start with "$ " are run by sh and what they print (both
streams) must be what stands below them; a line "..." stands for any lines. A YAML block behind
a line `NAME`: is written to NAME first; every other YAML block with a `cluster` must pass
`roost check`. Python blocks with a prompt are doctests, all of a document in one session. Each document runs in a folder of its own that has the repository's examples.
"""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
ROOST = Path(os.environ.get("ROOST", ROOT / "build" / "roost")).absolute()
DOCUMENTS = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/*.md")])
BLOCK = re.compile(r"(?:^`(\S+\.yaml)`:\n)?^```(\w+)\n(.*?)^```$", re.M | re.S)


def run(command: str, folder: Path) -> str:
    (folder / ".run").mkdir(mode=0o700, exist_ok=True)
    env = {"PATH": f"{ROOST.parent}:{os.environ['PATH']}", "LC_ALL": "C.UTF-8", "HOME": str(folder), "XDG_RUNTIME_DIR": str(folder / ".run")}
    done = subprocess.run(["sh", "-c", command], cwd=folder, env=env, text=True, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL, timeout=60)  # fmt: skip
    return done.stdout


def commands(block: str) -> list[tuple[str, str]]:
    """Each command with what is said to come of it."""
    pairs: list[tuple[str, str]] = []
    for line in block.splitlines(keepends=True):
        if line.startswith("$ "):
            pairs.append((line[2:].rstrip("\n"), ""))
        else:
            assert pairs, f"a console block starts with a command, not {line!r}"
            pairs[-1] = (pairs[-1][0], pairs[-1][1] + line)
    return pairs


def matches(expected: str, actual: str) -> bool:
    pattern = "".join(".*?" if line == "...\n" else re.escape(line) for line in expected.splitlines(keepends=True))
    return re.fullmatch(pattern, actual, re.S) is not None


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_what_the_document_shows_is_what_happens(document: Path, tmp_path: Path) -> None:
    shutil.copytree(ROOT / "examples", tmp_path / "examples")
    session = ""
    for name, language, text in BLOCK.findall(document.read_text()):
        if name:
            (tmp_path / name).write_text(text)
        elif language == "yaml" and re.search(r"^cluster:", text, re.M):
            (tmp_path / "block.yaml").write_text(text)
            said = run("roost check block.yaml", tmp_path)
            assert "block.yaml: ok" in said, f"{document.name}:\n{text}\n{said}"
        elif language == "python":
            assert ">>>" in text, f"{document.name}: a Python block shows a session:\n{text}"
            session += text + "\n"
        elif language == "console":
            for command, expected in commands(text):
                actual = run(command, tmp_path)
                assert matches(expected, actual), f"{document.name}: $ {command}\n{actual}"
    if session:
        (tmp_path / "session.txt").write_text(session)
        (tmp_path / ".run").mkdir(mode=0o700, exist_ok=True)
        env = os.environ | {"XDG_STATE_HOME": str(tmp_path / ".state"), "XDG_RUNTIME_DIR": str(tmp_path / ".run")}
        done = subprocess.run([sys.executable, "-m", "doctest", "session.txt"], cwd=tmp_path, env=env, capture_output=True, text=True, timeout=120)
        assert done.returncode == 0, f"{document.name}:\n{done.stdout}{done.stderr}"


def test_a_console_block_that_is_wrong_would_be_noticed(tmp_path: Path) -> None:
    assert not matches("roost 9\n", run("roost --version", tmp_path))
    assert matches("...\n", run("roost --help", tmp_path))


def test_links_between_documents_lead_somewhere() -> None:
    for document in DOCUMENTS:
        for target in re.findall(r"\]\(([^)#:]+)\)", document.read_text()):
            assert (document.parent / target).exists(), f"{document.name} links to {target}"
