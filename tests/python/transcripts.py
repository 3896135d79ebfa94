"""Reads and rewrites the transcripts of tests/cases; tests/cases/README.md describes their form.

A transcript is read once into cases. Rewriting replaces the lines of an answer that changed and nothing else.
"""

import os
import re
import shlex
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
CASES = Path(os.environ.get("ROOST_CASES", ROOT / "tests" / "cases"))
ROOST = Path(os.environ.get("ROOST", ROOT / "build" / "roost")).absolute()

INDENT = "    "
LABEL = re.compile(r"(\S+?)(, escaped)?:")
# In a block: what cannot be seen, or would be lost. In a command: a place, a character, or a repetition.
ESCAPE = re.compile(rb"\\(?:x([0-9a-f]{2})|u([0-9a-f]{4})|([nrt\\]))")
BRACES = re.compile(r"\{(?:(folder|run)|\\u([0-9a-f]{4})|([^{}*]+)\*(\d+))\}")
LETTERS = {b"n": b"\n", b"r": b"\r", b"t": b"\t", b"\\": b"\\"}
# These commands need a place for runs; without variables of their own they get an empty one.
RUNS = {"run", "ps", "stop", "logs"}


@dataclass(frozen=True)
class Answer:
    """What a command gave: its exit status and both streams."""

    status: int
    stdout: bytes
    stderr: bytes


@dataclass(frozen=True)
class Run:
    """A command of a case, the answer it must give, and the lines [first, last) in which that answer stands."""

    line: str
    answer: Answer
    first: int
    last: int


@dataclass
class Case:
    sentence: str
    files: dict[str, bytes] = field(default_factory=dict)
    runs: list[Run] = field(default_factory=list)


class Malformed(Exception):
    """A transcript that is not in the form of the README."""


def unescaped(lines: list[str]) -> bytes:
    """The bytes of an escaped block: a backslash at the end of a line takes the line end away."""
    plain = b"".join(line.encode() + b"\n" for line in lines)
    whole = re.sub(rb"(?<!\\)((?:\\\\)*)\\\n", rb"\1", plain)
    return ESCAPE.sub(
        lambda m: bytes.fromhex(m[1].decode()) if m[1] else chr(int(m[2], 16)).encode() if m[2] else LETTERS[m[3]],
        whole,
    )


def escaped(data: bytes) -> list[str]:
    """The lines of an escaped block that holds data."""

    def shown(char: str) -> str:
        if char == "\\":
            return "\\\\"
        if "\udc80" <= char <= "\udcff":
            return f"\\x{ord(char) - 0xDC00:02x}"
        if char.isprintable():
            return char
        if char in "\r\t":
            return {"\r": "\\r", "\t": "\\t"}[char]
        return (
            f"\\u{ord(char):04x}"
            if 0x80 <= ord(char) < 0x10000
            else "".join(f"\\x{byte:02x}" for byte in char.encode())
        )

    lines = ["".join(map(shown, line)) for line in data.decode(errors="surrogateescape").split("\n")]
    lines = [line[:-1] + "\\x20" if line.endswith(" ") else line for line in lines]
    last = lines.pop()
    if last:
        lines.append(last + "\\")
    elif lines and not lines[-1]:
        lines[-1] = "\\n\\"
    return lines


def is_plain(data: bytes) -> bool:
    """Whether a block can show these bytes as they are: printable lines, the last one not empty."""
    try:
        lines = data.decode().split("\n")
    except UnicodeDecodeError:
        return False
    ends_well = len(lines) == 1 and not lines[0] or len(lines) > 1 and not lines[-1] and bool(lines[-2])
    return ends_well and all(line.isprintable() and not line.endswith(" ") for line in lines)


def block_lines(label: str, data: bytes) -> list[str]:
    """A block with its label; plain bytes without a label are the standard output of a command."""
    plain = is_plain(data)
    content = data.decode().split("\n")[:-1] if plain else escaped(data)
    head = [f"{label}:"] if label and plain else [f"{label or 'stdout'}, escaped:"] if not plain else []
    return head + [INDENT + line if line else "" for line in content]


def answer_lines(answer: Answer) -> list[str]:
    """An answer as it stands below its command."""
    lines = block_lines("", answer.stdout)
    lines += block_lines("stderr", answer.stderr) if answer.stderr else []
    return lines + ([f"exit {answer.status}"] if answer.status else [])


class Reader:
    """Goes through the lines of a transcript once."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.lines = path.read_bytes().decode().split("\n")
        self.at = 0

    def refuse(self, what: str) -> Malformed:
        return Malformed(f"{self.path}:{self.at + 1}: {what}")

    def line(self) -> str | None:
        return self.lines[self.at] if self.at < len(self.lines) else None

    def block(self, is_escaped: bool) -> bytes:
        """The indented lines from here on. Empty lines between them belong to the block, those after it do not."""
        start = end = self.at
        while self.at < len(self.lines) and (self.lines[self.at].startswith(INDENT) or not self.lines[self.at]):
            self.at += 1
            if self.lines[self.at - 1]:
                end = self.at
        self.at = end
        content = [line[len(INDENT) :] for line in self.lines[start:end]]
        return unescaped(content) if is_escaped else b"".join(line.encode() + b"\n" for line in content)

    def labelled(self, wanted: str) -> bytes:
        """The block with this label when it is the next one."""
        found = LABEL.fullmatch(self.line() or "")
        if not found or found[1] != wanted:
            return b""
        self.at += 1
        return self.block(bool(found[2]))

    def run(self) -> Run:
        line = (self.line() or "")[2:]
        self.at += 1
        first = self.at
        stdout = self.block(False) or self.labelled("stdout")
        stderr = self.labelled("stderr")
        status = re.fullmatch(r"exit (-?\d+)", self.line() or "")
        self.at += bool(status)
        return Run(line, Answer(int(status[1]) if status else 0, stdout, stderr), first, self.at)

    def case(self) -> Case:
        case = Case((self.line() or "")[2:])
        self.at += 1
        while (line := self.line()) is not None and not line.startswith("# "):
            if line.startswith("$ "):
                case.runs.append(self.run())
            elif found := LABEL.fullmatch(line):
                if found[1] in case.files or case.runs:
                    raise self.refuse(f"'{found[1]}' is written twice, or after a command")
                self.at += 1
                case.files[found[1]] = self.block(bool(found[2]))
            elif not line:
                self.at += 1
            else:
                raise self.refuse(f"this is not a label, a command or an exit status: '{line}'")
        if not case.runs:
            raise self.refuse(f"there is no command in '{case.sentence}'")
        return case

    def cases(self) -> list[Case]:
        while self.line() is not None and not (self.line() or "").startswith("# "):
            self.at += 1
        found = []
        while self.line() is not None:
            found.append(self.case())
        return found


def read(path: Path) -> list[Case]:
    """The cases of a transcript, in its order. What stands before the first sentence is for people."""
    return Reader(path).cases()


def topics(folder: Path = CASES) -> list[Path]:
    return sorted(folder.glob("*.txt"))


@dataclass(frozen=True)
class Command:
    """A command line, taken apart."""

    variables: dict[str, str]
    words: list[str]
    stdin: str | None


def command_of(line: str, folder: str, run: str) -> Command:
    """NAME=value ... roost WORD ... [< FILE], as a shell would read it, with braces filled in."""

    places = {"folder": folder, "run": run}
    filled = BRACES.sub(lambda m: places[m[1]] if m[1] else chr(int(m[2], 16)) if m[2] else m[3] * int(m[4]), line)
    words = shlex.split(filled)
    program = words.index("roost")
    stdin = words[-1] if words[-2:-1] == ["<"] else None
    end = len(words) - 2 if stdin else len(words)
    return Command(dict(word.split("=", 1) for word in words[:program]), words[program + 1 : end], stdin)


def unpack(case: Case, folder: Path) -> None:
    """Writes the files of a case. A script (#!) is executable, and make.py makes what is too large to keep."""
    for name, data in case.files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
        if data.startswith(b"#!"):
            path.chmod(0o755)
    if "make.py" in case.files:
        subprocess.run([sys.executable, "make.py"], cwd=folder, check=True, timeout=60)


def answers_of(case: Case, scratch: Path) -> list[Answer]:
    """Runs the commands of a case in a folder of its own below scratch."""
    folder, run = scratch / "case", scratch / "run"
    folder.mkdir()
    run.mkdir(mode=0o700)
    unpack(case, folder)
    answers = []
    for wanted in case.runs:
        command = command_of(wanted.line, str(folder), str(run))
        env = command.variables
        if command.words[:1] and command.words[0] in RUNS and not env:
            env = {"HOME": str(scratch), "XDG_RUNTIME_DIR": str(run), "PATH": "/usr/bin:/bin"}
        given = (folder / command.stdin).read_bytes() if command.stdin else b""
        done = subprocess.run(
            [ROOST, *command.words], cwd=folder, env=env, input=given, capture_output=True, timeout=60
        )
        answers.append(Answer(done.returncode, done.stdout, done.stderr))
    return answers


def rewrite(path: Path, answers: dict[str, list[Answer]]) -> list[str]:
    """Puts answers, by sentence, into a transcript. Returns the sentences whose answers were others before."""
    lines = path.read_bytes().decode().split("\n")
    changed = []
    for case in reversed(read(path)):
        for run, answer in reversed(list(zip(case.runs, answers.get(case.sentence, [])))):
            if run.answer == answer:
                continue
            lines[run.first : run.last] = answer_lines(answer)
            changed.append(case.sentence)
    if changed:
        path.write_bytes("\n".join(lines).encode())
    return sorted(set(changed), key=changed.index, reverse=True)
