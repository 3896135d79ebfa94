"""Runs what a document shows: its console blocks and Python sessions. Checks its configs.

- A block after a line `NAME`: is a file. It is written to NAME before the blocks below it run.
- In a block marked ```console, sh runs the lines that start with "$ ". What they print (both streams) must be what stands below
  them; a line "..." stands for any lines.
- A Python block with prompts is a doctest; all of a document are one session. A Python block without prompts must compile.
- A YAML block must pass `roost check`, unless it is a file or the line before it is <!-- fragment -->.

    python3 documents.py DOCUMENT ...    with the program on PATH and the package of this Python

runs documents in the current folder, with nothing but the standard library: tools/release tries a release this way where it has
been installed.
"""

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

SECONDS = 300  # a watchdog, ten times what is needed
# What stands before a block (the name of a file, or the mark of a fragment), its language, its text.
BLOCK = re.compile(r"(?:^`(\S+)`:\n|^<!-- (fragment) -->\n)?^```(\w*)\n(.*?)^```$", re.M | re.S)


def run(command: str, folder: Path, program: Path, variables: Mapping[str, str] | None = None) -> str:
    """What a command prints. `variables` are added to its environment, which is otherwise empty but for the path."""
    (folder / ".run").mkdir(mode=0o700, exist_ok=True)
    path = f"{program.parent}:{Path(sys.executable).parent}:{os.environ['PATH']}"
    env = (
        {"LC_ALL": "C.UTF-8", "HOME": str(folder), "XDG_RUNTIME_DIR": str(folder / ".run")}
        | dict(variables or {})
        | {"PATH": path}
    )
    done = subprocess.run(["sh", "-c", command], cwd=folder, env=env, text=True, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL, timeout=SECONDS)  # fmt: skip
    return done.stdout


def commands(block: str) -> list[tuple[str, str]]:
    """Each command with the output that the document shows."""
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


def run_session(session: str, folder: Path, name: str) -> None:
    (folder / "session.txt").write_text(session)
    (folder / ".run").mkdir(mode=0o700, exist_ok=True)
    env = os.environ | {"XDG_STATE_HOME": str(folder / ".state"), "XDG_RUNTIME_DIR": str(folder / ".run")}
    done = subprocess.run(
        [sys.executable, "-m", "doctest", "session.txt"],
        cwd=folder,
        env=env,
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 0, f"{name}:\n{done.stdout}{done.stderr}"


def check_config(text: str, folder: Path, program: Path, name: str) -> None:
    (folder / "block.yaml").write_text(text)
    printed = run("roost check block.yaml", folder, program)
    assert "block.yaml: ok" in printed, f"{name}:\n{text}\n{printed}"


def run_document(document: Path, folder: Path, program: Path, variables: Mapping[str, str] | None = None) -> int:
    """Runs all that a document shows, in a folder of its own. Returns how many blocks that were."""
    session, count = "", 0
    for name, fragment, language, text in BLOCK.findall(document.read_text()):
        if name:
            (folder / name).write_text(text)
        elif language == "yaml" and not fragment:
            check_config(text, folder, program, document.name)
        elif language == "python" and ">>>" in text:
            session += text + "\n"
            count += 1
        elif language == "python":
            compile(text, document.name, "exec")
        elif language == "console":
            for command, expected in commands(text):
                actual = run(command, folder, program, variables)
                assert matches(expected, actual), f"{document.name}: $ {command}\n{actual}"
            count += 1
    if session:
        run_session(session, folder, document.name)
    return count


def main() -> int:
    program = shutil.which("roost")
    if program is None:
        print("documents.py: roost is not on PATH", file=sys.stderr)
        return 2
    for name in sys.argv[1:]:
        count = run_document(Path(name), Path.cwd(), Path(program))
        print(f"{name}: {count} blocks are true")
        if not count:
            return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
