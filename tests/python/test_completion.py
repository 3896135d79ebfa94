"""The scripts of `roost completion`, in the shells they are for: what the Tab key offers and inserts."""

import os
import pty
import re
import select
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from transcripts import ROOST

# The type of a completion that lists: bash tells it a function as the character '?'.
LISTS = 63
COMMANDS = ["check", "plan", "groups", "probe", "run", "ps", "logs", "stop", "prune", "completion", "version"]
WHEN = ["auto", "always", "never"]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Where completion happens: two configs, another file, a folder, a place for runs."""
    for name in ("train.yaml", "my train.yml", "notes.txt"):
        (tmp_path / name).write_text("cluster: {num_nodes: 1, component_placement: {actor: 0-1}}\n")
    (tmp_path / "sub").mkdir()
    (tmp_path / "rt").mkdir(mode=0o700)
    return tmp_path


def env_of(folder: Path) -> dict[str, str]:
    return {
        "PATH": f"{ROOST.parent}:/usr/bin:/bin",
        "HOME": str(folder),
        "XDG_RUNTIME_DIR": str(folder / "rt"),
        "TERM": "dumb",
        "LC_ALL": "C.UTF-8",
    }


def script(shell: str) -> str:
    return subprocess.run([ROOST, "completion", shell], check=True, capture_output=True, text=True, timeout=60).stdout


def run_shell(shell: str, code: str, folder: Path) -> str:
    (folder / ".script").write_text(script(shell))
    options = {"bash": ["--norc"], "fish": ["--no-config"], "zsh": ["-f"]}[shell]
    done = subprocess.run(
        [shell, *options, "-c", f"source .script; {code}"],
        cwd=folder,
        env=env_of(folder),
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert (done.returncode, done.stderr) == (0, ""), done.stderr
    return done.stdout


def bash(folder: Path, *words: str, kind: int = 9) -> list[str]:
    """What the function answers when the last of the words is completed."""
    quoted = " ".join("'" + word + "'" for word in ("roost", *words))
    code = f"COMP_WORDS=({quoted}); COMP_CWORD={len(words)}; COMP_TYPE={kind}; COLUMNS=200; _roost; printf '%s\\n' \"${{COMPREPLY[@]}}\""
    return run_shell("bash", code, folder).splitlines()


def fish(folder: Path, line: str) -> dict[str, str]:
    """What fish offers at the end of a line, with the help of each."""
    said = run_shell("fish", f"complete -C '{line}'", folder)
    return dict((entry.split("\t", 1) + [""])[:2] for entry in said.splitlines())  # type: ignore[misc]


@pytest.fixture
def run_id(folder: Path) -> str:
    """A run that has ended."""
    (folder / "one.yaml").write_text(
        "cluster: {num_nodes: 1, component_placement: {actor: 0}}\nroost: {cluster: 1x1, launch: {actor: {command: ['true']}}}\n"
    )
    subprocess.run(
        [ROOST, "run", "one.yaml"], cwd=folder, env=env_of(folder), check=True, capture_output=True, timeout=120
    )
    said = subprocess.run(
        [ROOST, "ps", "--all"], env=env_of(folder), check=True, capture_output=True, text=True, timeout=60
    ).stdout
    return said.splitlines()[1].split()[0]


@pytest.mark.parametrize(
    ("words", "offered"),
    [
        ([""], [*COMMANDS, "help", "--help", "--version"]),
        (["p"], ["plan", "probe", "prune", "ps"]),
        (["help", "p"], ["plan", "probe", "prune", "ps"]),
        (["help", ""], COMMANDS),
        (["check", "--n"], ["--no-isolate"]),
        (["stop", "-"], ["--now", "--help"]),
        (
            ["logs", "-"],
            ["-f", "--follow", "--tail", "--since", "--grep", "--timestamps", "--component", "--ranks"]
            + ["--stdout", "--stderr", "--no-label", "--color", "--help"],
        ),
        (["plan", "--color", ""], WHEN),
        (["plan", "--color", "="], WHEN),
        (["plan", "--color", "=", "a"], ["auto", "always"]),
        (["run", "train.yaml", "--engine", ""], ["local", "ray"]),
        (["plan", "--mode", "m"], ["model-parallel"]),
        (["plan", "--component", ""], []),
        (["plan", "--cluster", ""], ["local", "my train.yml", "notes.txt", "rt", "sub", "train.yaml"]),
        (["check", ""], ["train.yaml", "my train.yml", "rt", "sub"]),
        (["check", "tr"], ["train.yaml"]),
        (["check", "no"], ["notes.txt"]),
        (["check", "train.yaml", "cluster.num_nodes", "="], []),
        (["check", "--", "tr"], ["train.yaml"]),
        (["run", "train.yaml", "--", "bas"], ["bash", "base64", "basename", "basenc"]),
        (["run", "train.yaml", "--", "cat", "no"], ["notes.txt"]),
        (["completion", ""], ["bash", "zsh", "fish"]),
        (["ps", "x"], []),
        (["no-such", ""], []),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else None,
)
def test_bash_offers_what_may_come(folder: Path, words: list[str], offered: list[str]) -> None:
    said = [word for word in bash(folder, *words) if word and not word.startswith(".")]
    if words[-1] == "bas":  # what else is installed is not ours
        assert set(offered) <= set(said)
    else:
        assert sorted(said) == sorted(offered)


def test_bash_lists_words_with_their_help(folder: Path) -> None:
    said = bash(folder, "check", "--", kind=LISTS)
    assert "--json          (print JSON)" in said
    assert "--hydra         (follow the config's defaults list, from files beside it)" in said
    # One that is left is inserted, so it is the word alone.
    assert bash(folder, "check", "--js", kind=LISTS) == ["--json"]


def test_shells_offer_the_ids_of_runs(folder: Path, run_id: str) -> None:
    assert bash(folder, "logs", "") == [run_id]
    assert bash(folder, "logs", run_id[:2]) == [run_id]
    assert bash(folder, "stop", "") == [""]  # it has ended
    assert list(fish(folder, "roost logs ")) == [run_id]
    assert fish(folder, "roost stop ") == {}


def test_fish_offers_what_may_come(folder: Path) -> None:
    assert set(fish(folder, "roost ")) == {*COMMANDS, "help"}
    assert fish(folder, "roost pl") == {"plan": "show where every process goes"}
    assert set(fish(folder, "roost help ")) == set(COMMANDS)
    assert fish(folder, "roost check --hy") == {"--hydra": "follow the config's defaults list, from files beside it"}
    assert set(fish(folder, "roost plan --color ")) == set(WHEN)
    assert set(fish(folder, "roost plan --color=n")) == {"--color=never"}
    assert "train.yaml" in fish(folder, "roost check tr")
    assert {"local", "notes.txt"} <= set(fish(folder, "roost check --cluster "))
    assert fish(folder, "roost plan train.yaml --component ") == {}
    assert set(fish(folder, "roost completion ")) == {"bash", "zsh", "fish"}


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_shells_can_read_their_script(shell: str, tmp_path: Path) -> None:
    (tmp_path / "script").write_text(script(shell))
    subprocess.run([shell, "-n", tmp_path / "script"], check=True, timeout=60)


class Terminal:
    """A shell that somebody sits before."""

    def __init__(self, command: list[str], folder: Path) -> None:
        self.pid, self.fd = pty.fork()
        if self.pid == 0:
            os.chdir(folder)
            os.execvpe(command[0], command, env_of(folder) | {"PS1": "at> "})
        self.seen = ""

    def type(self, keys: str) -> None:
        os.write(self.fd, keys.encode())

    def wait_for(self, pattern: str) -> None:
        """Until the screen has it; what was seen is forgotten then."""
        end = time.monotonic() + 120
        while not (found := re.search(pattern, self.seen)):
            assert select.select([self.fd], [], [], max(0, end - time.monotonic()))[0], (
                f"{pattern} did not come: {self.seen!r}"
            )
            self.seen += os.read(self.fd, 65536).decode(errors="replace")
        self.seen = self.seen[found.end() :]

    def close(self) -> None:
        os.close(self.fd)  # hangs up
        os.waitpid(self.pid, 0)


STARTS = {
    "bash": (["bash", "--norc", "--noprofile", "-i"], "source .script"),
    "zsh": (["zsh", "-f", "-i"], "bindkey -e; autoload -Uz compinit; compinit -u -D; source .script"),
}


@pytest.fixture(params=STARTS)
def terminal(request: pytest.FixtureRequest, folder: Path) -> Iterator[Terminal]:
    command, start = STARTS[request.param]
    (folder / ".script").write_text(script(request.param))
    made = Terminal(command, folder)
    made.type(f"{start}; echo ready $((40 + 2))\r")
    made.wait_for(r"ready 42[\s\S]*?at> ")  # keys that come before the prompt are not for the line editor
    yield made
    made.close()


@pytest.mark.parametrize(
    ("keys", "line"),
    [
        ("roost pla\ttra\t--color=nev\t", "roost plan train.yaml --color=never"),
        ("roost check my\t--cluster loc\t", "roost check my train.yml --cluster local"),
        ("roost run tra\t-- basena\t", "roost run train.yaml -- basename"),
    ],
)
def test_the_tab_key_inserts_words(terminal: Terminal, keys: str, line: str) -> None:
    # To the start of the line and one word more: then the shell itself says what the line is.
    terminal.type(f"{keys}\x01echo @\r")
    terminal.wait_for(r"\n@" + re.escape(line))
