"""The reader and writer of transcripts lose nothing, and tools/bless rewrites answers and nothing else."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from chance import PROFILE
from transcripts import (
    CASES,
    ROOST,
    ROOT,
    Answer,
    Malformed,
    answer_lines,
    answers_of,
    block_lines,
    command_of,
    read,
    rewrite,
    topics,
)

pytestmark = pytest.mark.plain
MANY = settings(PROFILE, max_examples=500)

# Three cases, written by hand: empty lines, escapes, two commands, no answer yet.
BY_HAND = """What stands here is for people.

# the first
a.yaml:
    # a comment

    a: 1
b/c, escaped:
    \\ufeff\\xff\\x00 a\\\\b\\r\\
$ roost plan a.yaml

# the second
$ roost --version
    roost 0.0


$ roost nonsense
stderr:
    roost: no
exit 1
# the third
$ roost
"""


def written(path: Path, text: str) -> Path:
    path.write_bytes(text.encode())
    return path


def as_text(answer: Answer) -> str:
    return "# a sentence\n$ roost check\n" + "\n".join([*answer_lines(answer), "", "# another", "$ roost plan", ""])


def test_a_transcript_is_read_as_it_is_written(tmp_path: Path) -> None:
    first, second, third = read(written(tmp_path / "topic.txt", BY_HAND))
    assert [first.sentence, second.sentence, third.sentence] == ["the first", "the second", "the third"]
    assert first.files == {"a.yaml": b"# a comment\n\na: 1\n", "b/c": b"\xef\xbb\xbf\xff\x00 a\\b\r"}
    assert [run.answer for run in first.runs] == [Answer(0, b"", b"")]
    assert [run.answer for run in second.runs] == [Answer(0, b"roost 0.0\n", b""), Answer(1, b"", b"roost: no\n")]


def test_a_command_is_read_like_that_of_a_shell() -> None:
    command = command_of("A= B='x y' roost run '{folder}/a b' {x=1 *2} '{\\u001b}{0*3}' < in.txt", "/f", "/r")
    assert command.variables == {"A": "", "B": "x y"}
    assert command.words == ["run", "/f/a b", "x=1", "x=1", "\x1b000"]
    assert command.stdin == "in.txt"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("# a\nconfig.yaml:\n    a\n", "there is no command in 'a'"),
        ("# a\nwhat is this\n$ roost\n", "this is not a label, a command or an exit status: 'what is this'"),
        ("# a\nx:\nx:\n$ roost\n", "'x' is written twice, or after a command"),
        ("# a\n$ roost\nx:\n    y\n", "'x' is written twice, or after a command"),
        ("# a\n$ roost\n  two blanks\n", "this is not a label, a command or an exit status: '  two blanks'"),
    ],
)
def test_a_malformed_transcript_is_refused(text: str, said: str, tmp_path: Path) -> None:
    with pytest.raises(Malformed, match=said.replace("?", r"\?")):
        read(written(tmp_path / "topic.txt", text))


STREAMS = st.one_of(
    st.binary(max_size=20),
    st.text(max_size=20).map(lambda text: text.encode(errors="replace")),
    st.text("a \\\n\r\tn", max_size=20).map(str.encode),
)


@MANY
@given(status=st.integers(-15, 255), stdout=STREAMS, stderr=STREAMS)
@example(0, b"\n", b"\n\n")
@example(0, b"# a\n\n$ roost\n", b"exit 3\n")
@example(0, b"\\", b" \n \n")
@example(0, "\u2028a\x85\n".encode(), b"\\\\\n\\n\n")
def test_every_answer_comes_back(
    tmp_path_factory: pytest.TempPathFactory, status: int, stdout: bytes, stderr: bytes
) -> None:
    path = tmp_path_factory.getbasetemp() / "answers.txt"
    answer = Answer(status, stdout, stderr)
    text = as_text(answer)
    first, second = read(written(path, text))
    assert [run.answer for run in first.runs] == [answer]
    assert [run.answer for run in second.runs] == [Answer(0, b"", b"")]
    assert all(line.isprintable() and line == line.rstrip(" ") for line in text.split("\n"))


@MANY
@given(data=STREAMS)
def test_every_file_comes_back(tmp_path_factory: pytest.TempPathFactory, data: bytes) -> None:
    path = tmp_path_factory.getbasetemp() / "files.txt"
    text = "\n".join(["# a", *block_lines("x", data), *block_lines("y", data), "$ roost", ""])
    (case,) = read(written(path, text))
    assert case.files == {"x": data, "y": data}


@pytest.mark.parametrize("path", topics(), ids=lambda path: path.stem)
def test_answers_that_were_lost_are_rewritten_byte_for_byte(path: Path, tmp_path: Path) -> None:
    whole = path.read_bytes()
    answers = {case.sentence: [run.answer for run in case.runs] for case in read(path)}
    copy = tmp_path / path.name
    copy.write_bytes(whole)
    assert rewrite(copy, answers) == []
    assert copy.read_bytes() == whole
    nothing = {sentence: [Answer(77, b"", b"")] * len(wanted) for sentence, wanted in answers.items()}
    assert rewrite(copy, nothing) == list(answers)
    assert rewrite(copy, answers) == list(answers)
    assert copy.read_bytes() == whole


def test_the_example_of_the_readme_is_true(tmp_path: Path) -> None:
    text = (CASES / "README.md").read_text().split("```\n")[1]
    (case,) = read(written(tmp_path / "example.txt", text))
    assert answers_of(case, tmp_path) == [run.answer for run in case.runs]


def bless(folder: Path, *words: str) -> tuple[int, str, str]:
    env = os.environ | {"ROOST": str(ROOST), "ROOST_CASES": str(folder)}
    done = subprocess.run(
        [sys.executable, ROOT / "tools" / "bless", *words], env=env, capture_output=True, text=True, timeout=120
    )
    return done.returncode, done.stdout, done.stderr


def test_bless_changes_nothing_where_nothing_changed_and_only_what_it_is_asked_for(tmp_path: Path) -> None:
    whole = {name: (CASES / name).read_text() for name in ("hydra.txt", "without-a-cluster.txt")}
    for name, text in whole.items():
        (tmp_path / name).write_text(text)
    assert bless(tmp_path) == (0, "", "")
    assert {name: (tmp_path / name).read_text() for name in whole} == whole
    broken = {name: text.replace("\nexit 3\n", "\nexit 9\n") for name, text in whole.items()}
    for name, text in broken.items():
        (tmp_path / name).write_text(text)
    sentence = "files whose defaults name each other are refused"
    assert bless(tmp_path, sentence) == (0, f"hydra: {sentence}\n", "")
    assert (tmp_path / "hydra.txt").read_text().count("\nexit 9\n") == broken["hydra.txt"].count("\nexit 9\n") - 1
    cases = (tmp_path / "hydra.txt").read_text().split("\n# ")  # some have several commands
    status, said, _ = bless(tmp_path, "hydra")
    assert (status, said.count("\n")) == (0, sum("\nexit 9\n" in f"{case}\n" for case in cases))
    assert (tmp_path / "hydra.txt").read_text() == whole["hydra.txt"]
    assert (tmp_path / "without-a-cluster.txt").read_text() == broken["without-a-cluster.txt"]
    assert bless(tmp_path, "hidra") == (2, "", "tools/bless: there is no topic and no sentence 'hidra'\n")
