"""Every case of the transcripts in tests/cases gives the answer that stands there; tests/cases/README.md describes them.

ROOST names the program (default build/roost).
"""

import difflib
from collections import Counter
from pathlib import Path

import pytest

from transcripts import CASES, Case, answer_lines, answers_of, read, topics

ALL = [(path.stem, case) for path in topics() for case in read(path)]


@pytest.mark.parametrize(("topic", "case"), ALL, ids=[f"{topic}: {case.sentence}" for topic, case in ALL])
def test_case(topic: str, case: Case, tmp_path: Path) -> None:
    answers = answers_of(case, tmp_path)
    for run, answer in zip(case.runs, answers, strict=True):
        if answer != run.answer:
            diff = difflib.unified_diff(
                answer_lines(run.answer),
                answer_lines(answer),
                f"{topic}.txt: $ {run.line}"[:200],
                "what came out",
                lineterm="",
            )
            pytest.fail("\n".join(diff), pytrace=False)


def test_sentences_are_unique() -> None:
    assert [sentence for sentence, count in Counter(case.sentence for _, case in ALL).items() if count > 1] == []


def test_every_file_of_the_folder_is_a_transcript_with_cases() -> None:
    used = {f"{topic}.txt" for topic, _ in ALL}
    assert sorted(path.name for path in CASES.rglob("*") if path.name not in used) == ["README.md"]
