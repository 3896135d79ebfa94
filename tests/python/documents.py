"""What a document shows is what happens: runs its console blocks and Python sessions, and checks its configs.

In a block marked ```console, lines that start with "$ " are run by sh and what they print (both
streams) must be what stands below them; a line "..." stands for any lines. A YAML block behind
a line `NAME`: is written to NAME first; every other YAML block with a `cluster` must pass
`roost check`. Python blocks with a prompt are doctests, all of a document in one session.

    python3 documents.py DOCUMENT ...    with the program on PATH and the package of this Python

runs documents in the current folder, with nothing but the standard library: that is how a release is
tried where it has been installed (tools/release).
"""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

BLOCK = re.compile(r"(?:^`(\S+\.yaml)`:\n)?^```(\w+)\n(.*?)^```$", re.M | re.S)


def run(command: str, folder: Path, program: Path) -> str:
    (folder / ".run").mkdir(mode=0o700, exist_ok=True)
    env = {"PATH": f"{program.parent}:{os.environ['PATH']}", "LC_ALL": "C.UTF-8", "HOME": str(folder), "XDG_RUNTIME_DIR": str(folder / ".run")}
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


def run_session(session: str, folder: Path, name: str) -> None:
    (folder / "session.txt").write_text(session)
    (folder / ".run").mkdir(mode=0o700, exist_ok=True)
    env = os.environ | {"XDG_STATE_HOME": str(folder / ".state"), "XDG_RUNTIME_DIR": str(folder / ".run")}
    done = subprocess.run([sys.executable, "-m", "doctest", "session.txt"], cwd=folder, env=env, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, f"{name}:\n{done.stdout}{done.stderr}"


def run_document(document: Path, folder: Path, program: Path) -> int:
    """Runs all that a document shows, in a folder of its own. Returns how many blocks that were."""
    session, count = "", 0
    for name, language, text in BLOCK.findall(document.read_text()):
        if name:
            (folder / name).write_text(text)
        elif language == "yaml" and re.search(r"^cluster:", text, re.M):
            (folder / "block.yaml").write_text(text)
            said = run("roost check block.yaml", folder, program)
            assert "block.yaml: ok" in said, f"{document.name}:\n{text}\n{said}"
        elif language == "python":
            assert ">>>" in text, f"{document.name}: a Python block shows a session:\n{text}"
            session += text + "\n"
        elif language == "console":
            for command, expected in commands(text):
                actual = run(command, folder, program)
                assert matches(expected, actual), f"{document.name}: $ {command}\n{actual}"
        count += language in ("console", "python")
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
