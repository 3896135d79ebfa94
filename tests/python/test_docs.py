"""The documents are true: documents.py says how they are run. Each one runs in a folder of its own that
has the repository's examples."""

import os
import re
import shutil
from pathlib import Path

import pytest
from documents import matches, run, run_document

ROOT = Path(__file__).parents[2]
ROOST = Path(os.environ.get("ROOST", ROOT / "build" / "roost")).absolute()
DOCUMENTS = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/*.md")])


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: str(path.relative_to(ROOT)))
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


def test_links_between_documents_lead_somewhere() -> None:
    for document in DOCUMENTS:
        for target in re.findall(r"\]\(([^)#:]+)\)", document.read_text()):
            assert (document.parent / target).exists(), f"{document.name} links to {target}"
