"""The documents are true: documents.py says how they are run. Each one runs in a folder of its own that
has the repository's examples. The tutorial also needs Ray: test_ray_tutorial.py runs it."""

import json
import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from documents import BLOCK, matches, run, run_document

ROOT = Path(__file__).parents[2]
ROOST = Path(os.environ.get("ROOST", ROOT / "build" / "roost")).absolute()
DOCUMENTS = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md")])
TUTORIALS = [ROOT / "docs/tutorial.md", ROOT / "docs/tutorial.zh.md"]
LANGUAGES = {"c", "console", "json", "python", "sh", "text", "yaml"}


def name_of(path: Path) -> str:
    return str(path.relative_to(ROOT))


@pytest.mark.parametrize("document", [path for path in DOCUMENTS if path not in TUTORIALS], ids=name_of)
def test_what_the_document_shows_is_what_happens(document: Path, tmp_path: Path) -> None:
    shutil.copytree(ROOT / "examples", tmp_path / "examples")
    run_document(document, tmp_path, ROOST)


def test_a_console_block_that_is_wrong_would_be_noticed(tmp_path: Path) -> None:
    assert not matches("roost 9\n", run("roost --version", tmp_path, ROOST))
    assert matches("...\n", run("roost --help", tmp_path, ROOST))
    wrong = tmp_path / "wrong.md"
    wrong.write_text("```console\n$ roost --version\nroost 9\n```\n")
    with pytest.raises(AssertionError, match=r"wrong\.md: \$ roost --version"):
        run_document(wrong, tmp_path, ROOST)


@pytest.mark.plain
def test_the_tutorial_shows_the_same_in_both_languages() -> None:
    english, chinese = (BLOCK.findall(path.read_text()) for path in TUTORIALS)
    assert english == chinese


@pytest.mark.plain
def test_links_between_documents_lead_somewhere() -> None:
    for document in DOCUMENTS:
        for target in re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", document.read_text()):
            assert (document.parent / target).exists(), f"{document.name} links to {target}"


@pytest.mark.plain
def test_links_to_other_sites_are_whole_addresses() -> None:
    for document in DOCUMENTS:
        for target in re.findall(r"\]\(([^)]*:[^)]*)\)", document.read_text()):
            assert re.fullmatch(r"https://[a-z0-9.-]+\.[a-z]+(/\S*)?", target), f"{document.name} links to {target}"


@pytest.mark.plain
@pytest.mark.parametrize("document", DOCUMENTS, ids=name_of)
def test_every_block_is_of_its_language(document: Path) -> None:
    text = document.read_text()
    blocks = BLOCK.findall(text)
    assert len(re.findall(r"^\s*(?:```|~~~)", text, re.M)) == 2 * len(blocks), (
        "a block is indented, not closed, or not of backquotes"
    )
    for name, _, language, block in blocks:
        where = f"{document.name}: {name or block.splitlines()[0]}"
        assert language in LANGUAGES, f"{where} is of the language {language!r}"
        if language == "json":
            json.loads(block)
        elif language == "sh":
            done = subprocess.run(["bash", "-n"], input=block, capture_output=True, text=True)
            assert done.returncode == 0, f"{where}: {done.stderr}"
        elif language == "c":
            compiler = [
                "gcc",
                "-std=gnu17",
                "-Wall",
                "-Wextra",
                "-Werror",
                "-fsyntax-only",
                f"-I{ROOT}/include",
                f"-I{ROOT}/build/include",
                "-xc",
                "-",
            ]
            done = subprocess.run(compiler, input=block, capture_output=True, text=True)
            assert done.returncode == 0, f"{where}: {done.stderr}"
