"""The JSON reader and Python's json module accept the same documents and see the same values in them.

ROOST_JSON_DUMP  tests/fuzz/json_dump.c, built (default build/tests/json_dump)
ROOST_EXAMPLES   how many documents of each sort (default 2000)
ROOST_RANDOM     as in chance.py

One process reads all documents. What roost refuses and Python does not is refused on this side too
(`strict`): NaN, keys that come twice, lone surrogates, NUL. Numbers are compared by their text.
"""

import json
import os
import subprocess
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from chance import PROFILE

REPO = Path(__file__).resolve().parents[2]
PROGRAM = Path(os.environ.get("ROOST_JSON_DUMP", REPO / "build/tests/json_dump")).absolute()
CORPUS = REPO / "tests/fuzz/corpus/json"
MANY = settings(PROFILE, max_examples=int(os.environ.get("ROOST_EXAMPLES", "2000")))

pytestmark = pytest.mark.skipif(
    not PROGRAM.exists() and "ROOST_JSON_DUMP" not in os.environ, reason="json_dump is not built"
)


class Reader:
    """A json_dump that answers one document after the other."""

    def __init__(self):
        self.process = subprocess.Popen([PROGRAM, "--serve"], stdin=subprocess.PIPE, stdout=subprocess.PIPE)

    def ask(self, document: bytes) -> tuple[str, str]:
        """("ok", the document again) or (error code, place and message)"""
        self.process.stdin.write(b"%d\n%s" % (len(document), document))
        self.process.stdin.flush()
        answer = self.process.stdout.readline()
        assert answer.endswith(b"\n"), f"json_dump died of {document!r}"
        code, _, rest = answer.decode("utf-8")[:-1].partition(" ")
        return code, rest

    def close(self):
        self.process.stdin.close()
        assert self.process.wait(10) == 0
        self.process.stdout.close()


@pytest.fixture(scope="module")
def reader():
    reader = Reader()
    yield reader
    reader.close()


def refuse(what):
    raise ValueError(what)


def unique(pairs):
    return pairs if len({key for key, _ in pairs}) == len(pairs) else refuse("a key comes twice")


def check_strings(value):
    if isinstance(value, str) and ("\0" in value or any("\ud800" <= c <= "\udfff" for c in value)):
        refuse("NUL or half a character")
    if isinstance(value, (list, tuple)):
        for part in value:
            check_strings(part)


def strict(document: bytes):
    """The value, or ValueError. Objects keep the order of their keys, numbers their text."""
    value = json.loads(
        document.decode("utf-8"),
        object_pairs_hook=lambda pairs: ("object", unique(pairs)),
        parse_int=lambda text: ("number", text),
        parse_float=lambda text: ("number", text),
        parse_constant=refuse,
    )
    check_strings(value)
    return value


def compare(reader, document: bytes):
    """Both accept it and see the same, or both refuse it."""
    code, answer = reader.ask(document)
    try:
        expected = strict(document)
    except (ValueError, RecursionError) as why:
        assert code in ("syntax", "limit"), f"accepted, but Python says: {why}"
        return False
    if code == "limit":
        return False
    assert code == "ok", answer
    assert strict(answer.encode()) == expected
    return True


strings = st.one_of(
    st.text(st.sampled_from('abk"\\/\b\n\r\t\x7f\x85\u2028é€🤖'), max_size=8),
    st.text(st.characters(codec="utf-8", exclude_characters="\0"), max_size=12),
)
numbers = st.one_of(
    st.integers(),
    st.floats(allow_nan=False, allow_infinity=False),
    st.sampled_from([0, -1, 2**53 + 1, 10**40, 1e300]),
)
scalars = st.one_of(st.none(), st.booleans(), numbers, strings)
values = st.recursive(
    scalars,
    lambda inner: st.one_of(st.lists(inner, max_size=4), st.dictionaries(strings, inner, max_size=4)),
    max_leaves=8,
)
documents = st.builds(
    lambda value, is_ascii, indent, tail: (json.dumps(value, ensure_ascii=is_ascii, indent=indent) + tail).encode(),
    values,
    st.booleans(),
    st.sampled_from([None, None, 1, "\t"]),
    st.sampled_from(["", "\n", " \r\n\t"]),
)

# What JSON is made of, right and wrong; put together at random it is nearly JSON.
PIECES = [
    *(b'{ } [ ] : , " " \\ / \' # 0 1 -1 -0 00 +1 .5 1. 1.5 1e5 1E-5 1e 0x1 - true false null True None NaN'.split()),
    *(b'Infinity -Infinity "a" "b" "\\n" "\\u0061" "\\ud83e\\udd16" "\\ud83e" "\\udd16" "\\u0000" "\\x" "a":'.split()),
    b" ",
    b"\n",
    b"\r\n",
    b"\t",
    b"\v",
    b"\0",
    b"\x1f",
    b"\x7f",
    b"\xc2\x85",
    b"\xc2\xa0",
    b"\xe2\x80\xa8",
    b"\xef\xbb\xbf",
    b"\xff",
    b"\xc3",
    b"\xc0\x80",
    b"\xed\xa0\x80",
    b"\xf4\x90\x80\x80",
    "é€🤖".encode(),
]


@st.composite
def mutants(draw):
    """A document with a few bytes taken out, put in, doubled or swapped for pieces."""
    document = draw(documents)
    for _ in range(draw(st.integers(1, 3))):
        first = draw(st.integers(0, len(document)))
        last = min(len(document), first + draw(st.integers(0, 4)))
        doubled = st.just(document[first:last] * 2)
        middle = draw(st.one_of(st.sampled_from(PIECES), st.just(b""), doubled, st.binary(max_size=3)))
        document = document[:first] + middle + document[last:]
    return document


@MANY
@given(documents)
def test_every_document_python_writes_is_read_alike(reader, document):
    assert compare(reader, document)


@MANY
@given(mutants())
def test_a_damaged_document_is_accepted_only_when_python_accepts_it(reader, document):
    compare(reader, document)


@MANY
@given(st.lists(st.sampled_from(PIECES), max_size=12).map(b"".join))
def test_pieces_of_json_are_accepted_only_when_python_accepts_them(reader, document):
    compare(reader, document)


@pytest.mark.parametrize("path", sorted(CORPUS.iterdir()), ids=lambda path: path.name)
def test_the_corpus_is_judged_alike(reader, path):
    compare(reader, path.read_bytes())


def test_a_file_is_printed_again_or_refused_with_3(tmp_path):
    path = tmp_path / "d.json"
    path.write_text('{"a": [1, "x"],\n "b": 2}\n')
    done = subprocess.run([PROGRAM, path], capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (0, '{"a":[1,"x"],"b":2}\n')
    path.write_text('{"a": 1,\n "a": 2}\n')
    done = subprocess.run([PROGRAM, path], capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (3, "")
    assert done.stderr == f"{path}:2:2: key 'a' is already in this object, at 1:2\n"
