"""Hostile input is refused quickly, within 64 MB, with a short message that says where.

Every case runs the plain program under RLIMIT_AS. Time is only a generous watchdog: it finds what
grows with the square of the input, not what is slow on a busy machine. What has no linear growth is
found by comparing a quarter of an input with the whole.

ROOST  the program (default build/roost)
"""

import itertools
import os
import re
import resource
import subprocess
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

ROOST = Path(os.environ.get("ROOST", Path(__file__).parents[2] / "build" / "roost")).absolute()
MEMORY = 64 << 20
WATCHDOG = 10.0  # seconds
SCREEN = 100  # lines that still count as one answer to one fault
FILE_MAX = 1 << 20
SCALAR_MAX = 64 << 10

pytestmark = pytest.mark.plain


@dataclass(frozen=True)
class Done:
    code: int
    out: str
    err: str
    seconds: float


def run(*words: str | Path, memory: int = MEMORY, env: dict[str, str] | None = None, stdin: bytes = b"") -> Done:
    def limit() -> None:
        resource.setrlimit(resource.RLIMIT_AS, (memory, memory))

    start = time.monotonic()
    done = subprocess.run(
        [ROOST, *words], input=stdin, env=env or {}, preexec_fn=limit, capture_output=True, timeout=WATCHDOG
    )
    seconds = time.monotonic() - start
    return Done(done.returncode, done.stdout.decode(errors="replace"), done.stderr.decode(errors="replace"), seconds)


def check(tmp_path: Path, config: str | bytes, *words: str, **how: object) -> Done:
    path = tmp_path / "c.yaml"
    path.write_bytes(config if isinstance(config, bytes) else config.encode())
    return run("check", path, *words, **how)


def refused(done: Done, code: int = 3, place: str = r"c\.yaml:\d+:\d+: error: ", says: str = "") -> None:
    """Ended in order, with one screen that begins with a place."""
    assert done.code == code, done
    assert re.search(place, done.err.splitlines()[0]), done.err[:300]
    assert says in done.err, done.err[:300]
    assert len(done.err.splitlines()) <= SCREEN, done.err[:300]
    assert len(done.err) < 16_000, done.err[:300]


# --- configs ---


def with_actor(placement: str, before: str = "", after: str = "") -> str:
    return f"{before}cluster:\n  num_nodes: 1\n  component_placement:\n    actor: {placement}\n{after}"


def with_components(lines: Iterator[str] | list[str], before: str = "", num_nodes: int = 1) -> str:
    return f"{before}cluster:\n  num_nodes: {num_nodes}\n  component_placement:\n" + "".join(
        f"    {line}\n" for line in lines
    )


def with_groups(groups: str, num_nodes: int = 1, before: str = "") -> str:
    return f"{before}cluster:\n  num_nodes: {num_nodes}\n  node_groups:\n{groups}  component_placement:\n    actor: 0\n"


def with_command(words: str, before: str = "") -> str:
    return with_actor("0", before, f"roost:\n  launch:\n    actor:\n      command: [{words}]\n")


def evens(size: int) -> str:
    """0,2,4,... in at most `size` bytes."""
    text = ",".join(str(2 * i) for i in range(size // 2))[: size + 1]
    return text[: text.rindex(",")]


def filled(line: Callable[[int], str], size: int) -> list[str]:
    """line(0), line(1), ... until they have `size` bytes."""
    lines: list[str] = []
    total = 0
    while total < size:
        lines.append(line(len(lines)))
        total += len(lines[-1]) + 5
    return lines


# --- bombs ---


def alias_bomb() -> str:
    levels = ["a0: &a0 [x, x, x, x, x, x, x, x, x]\n"]
    levels += [f"a{i}: &a{i} [{', '.join([f'*a{i - 1}'] * 9)}]\n" for i in range(1, 30)]
    return with_actor("0", "".join(levels))


def merge_bomb() -> str:
    keys = ", ".join(f"k{i}: 0" for i in range(40))
    levels = [f"a0: &a0 {{{keys}}}\n"]
    for i in range(1, 300):
        levels.append(f"a{i}: &a{i} {{<<: [{', '.join([f'*a{i - 1}'] * 9)}], n{i}: {{<<: *a{i - 1}}}}}\n")
    return with_actor("0", "".join(levels))


def interpolation_bomb() -> str:
    levels = ["a0: lol\n"] + [f'a{i}: "{f"${{a{i - 1}}}" * 10}"\n' for i in range(1, 40)]
    return with_actor("${a39}", "".join(levels))


def container_bomb() -> str:
    """Lists of references to lists of references: 200 x 200 x 200 variables from 15 kB."""
    before = "var: {A: b}\nvars: [" + ", ".join(['"${var}"'] * 200) + "]\n"
    before += 'env: {node_ranks: 0, env_vars: "${vars}"}\nenvs: [' + ", ".join(['"${env}"'] * 200) + "]\n"
    before += 'group: {label: g, node_ranks: 0, env_configs: "${envs}"}\n'
    return with_groups("".join(['    - "${group}"\n'] * 200), before=before)


def aliased_text() -> str:
    return with_components([f"a{i}: *big" for i in range(4000)], f'big: &big "{evens(SCALAR_MAX)}"\n')


def referenced_text() -> str:
    return with_components([f"a{i}: ${{big}}" for i in range(4000)], f'big: "{evens(SCALAR_MAX)}"\n')


def copied_text() -> str:
    return with_components([f'a{i}: "0${{big}}"' for i in range(4000)], f'big: "{",2" * 30_000}"\n')


@pytest.mark.parametrize(
    "bomb", [alias_bomb, merge_bomb, interpolation_bomb, container_bomb, aliased_text, referenced_text, copied_text]
)
def test_a_small_file_cannot_become_a_large_one(tmp_path: Path, bomb: Callable[[], str]) -> None:
    done = check(tmp_path, bomb())
    assert done.code == 3, done
    assert re.match(r".*c\.yaml:\d+:\d+: error: ", done.err), done.err[:300]
    with_cluster = check(tmp_path, bomb(), "--cluster", "64x1024")
    assert with_cluster.code == 3, with_cluster


def test_a_chain_of_merges_is_refused(tmp_path: Path) -> None:
    refused(check(tmp_path, merge_bomb()), says="values")


# --- limits, and what is just within them ---


def padded(size: int) -> str:
    config = with_actor("0")
    return config + "#" * (size - len(config) - 1) + "\n"


def nested(depth: int) -> str:
    """A file with containers `depth` deep, its own mapping counted."""
    return with_actor("0", f"x: {'[' * (depth - 1)}{']' * (depth - 1)}\n")


def listed(count: int) -> str:
    """A file of `count` values: 11 of them are keys and containers, the rest is one list."""
    return with_actor("0", f"x: [{','.join(['0'] * (count - 11))}]\n")


WITHIN = {
    "a file of 1 MiB": padded(FILE_MAX),
    "32 levels": nested(32),
    "100,000 values": listed(100_000),
    "a text of 64 KiB": with_actor("0", f"x: {'y' * SCALAR_MAX}\n"),
    "1024 anchors": with_actor("0", "x:\n" + "".join(f"- &a{i} 0\n" for i in range(1024))),
    "ranks of 64 KiB": with_actor(f'"{evens(SCALAR_MAX)}"'),
    "4096 components in one key": with_components(["? " + ",".join(f"a{i}" for i in range(4096)), ": 0"]),
    "2^24 processes": with_actor("0:0-16777215"),
    "a byte order mark": "\ufeff" + with_actor("0"),
    "a megabyte of blank lines": "\n" * 1_000_000 + with_actor("0"),
    "a name of 63": with_components([f"{'a' * 63}: 0"]),
}
BEYOND = {
    "a file of 1 MiB and a byte": (padded(FILE_MAX + 1), "larger than 1048576 bytes"),
    "33 levels": (nested(33), "32 deep"),
    "100,001 values": (listed(100_001), "more than 100000 values"),
    "a text of 64 KiB and a byte": (with_actor("0", f"x: {'y' * (SCALAR_MAX + 1)}\n"), "65537 bytes"),
    "1025 anchors": (with_actor("0", "x:\n" + "".join(f"- &a{i} 0\n" for i in range(1025))), "anchors"),
    "100,000 anchors": (with_actor("0", "x: [" + ",".join(f"&{i} 0" for i in range(100_000)) + "]\n"), "anchors"),
    "4097 components in one key": (
        with_components(["? " + ",".join(f"a{i}" for i in range(4097)), ": 0"]),
        "components",
    ),
    "30,000 components in one key": (
        with_components(["? " + ",".join(f"a{i}" for i in range(30_000))[:60_000], ": 0"]),
        "components",
    ),
    "2^24 + 1 processes": (with_actor("0:0-16777216"), "processes"),
    "2^24 + 1 processes in two components": (with_components(["a: 0:0-16777214", "b: 0-1"]), "together"),
    "4096 components of 2^24 processes": (
        with_components(["? " + ",".join(f"a{i}" for i in range(4096)), ": 0:0-16777215"]),
        "together",
    ),
    "a name of 64": (with_components([f"{'a' * 64}: 0"]), "component name"),
    "a name of 60 kB": (with_components([f"? {'a' * 60_000}", ": 0"]), "component name"),
    "a name of escapes": (with_components(['"\\e[31m\\a\\x00": 0']), "\\x1b[31m\\x07\\x00"),
    "200 kB of [": ("[" * 200_000, "32 deep"),
    "200 kB of {": ("{a: " * 50_000, "32 deep"),
    "200 kB of -": ("- " * 100_000, "32 deep"),
    "200 kB of ?": ("? " * 100_000, "32 deep"),
    "indented 1000 deep": ("".join(" " * i + "a:\n" for i in range(1000)), "32 deep"),
    "60,000 %TAG": ("".join(f"%TAG !a{i}! b\n" for i in range(60_000)), "%TAG"),
    "a rank of ten digits": (with_actor("0-9999999999"), "2147483647"),
    "a rank of 60 kB": (with_actor("9" * 60_000), "2147483647"),
    "a number of nodes of 60 kB": (with_actor("0").replace("num_nodes: 1", f"num_nodes: {'9' * 60_000}"), "num_nodes"),
    "an MB of ranks": (with_actor(f'"{evens(1_000_000)}"'), "65536"),
    "an MB that is no ranks": (with_actor(f'"{"x" * 1_000_000}"'), "65536"),
    "64 kB that is no rank": (with_actor(f'"{"x" * 60_000}"'), "Invalid rank format"),
    "Arabic digits": (with_actor("\u0660-\u0663"), "Invalid rank format '\u0660-\u0663'"),
    "fullwidth digits": (with_actor("\uff10"), "Invalid rank format '\uff10'"),
    "superscript digits": (with_actor("\u00b2"), "Invalid rank format '\u00b2'"),
    "a fullwidth number of nodes": (with_actor("0").replace("num_nodes: 1", "num_nodes: \uff11"), "num_nodes"),
    "NUL": (with_actor("0\0"), "U+0000"),
    "a NUL alone": ("\0", "U+0000"),
    "a byte that is not UTF-8": (with_actor("0").encode() + b"x: \xe9\n", "0xe9 is not UTF-8"),
    "an overlong slash": (with_actor("0").encode() + b"x: \xc0\xaf\n", "0xc0 is not UTF-8"),
    "a surrogate": (with_actor("0").encode() + b"x: \xed\xa0\x80\n", "0xed is not UTF-8"),
    "half a character": (with_actor("0").encode() + b"x: \xe2\x82", "0xe2 is not UTF-8"),
    "UTF-16": (with_actor("0").encode("utf-16"), "UTF-16"),
    "UTF-16, big end first": (b"\xfe\xff" + with_actor("0").encode("utf-16-be"), "UTF-16"),
    "an unclosed interpolation of 60 kB": (with_actor(f'"{"${" * 30_000}"'), "without its '}'"),
    "environment defaults 5000 deep": (with_actor(f'"{"${oc.env:A," * 5000}0{"}" * 5000}"'), "interpolations"),
    "30,000 variables looked up": (
        with_command(", ".join(f'"${{oc.env:V{i},0}}"' for i in range(30_000))),
        "environment variables",
    ),
}


@pytest.mark.parametrize("name", WITHIN)
def test_within_a_limit_is_fine(tmp_path: Path, name: str) -> None:
    done = check(tmp_path, WITHIN[name])
    assert done.code == 0, done


@pytest.mark.parametrize("name", BEYOND)
def test_beyond_a_limit_is_refused(tmp_path: Path, name: str) -> None:
    config, says = BEYOND[name]
    place = r"c\.yaml: error: " if name == "a file of 1 MiB and a byte" else r"c\.yaml:\d+:\d+: error: "
    refused(check(tmp_path, config), place=place, says=says)


def test_a_pipe_without_end_is_refused() -> None:
    refused(run("check", "-", stdin=b"#" * (FILE_MAX + 1)), place="error: '-' is larger", says="1048576 bytes")


def test_components_are_counted_before_any_is_placed(tmp_path: Path) -> None:
    many = [f"a{i}: 0:0-16777214" for i in range(1000)]
    refused(check(tmp_path, with_components(many), "--cluster", "1x8"), says="together")
    held = [f"a{i}: all:0-16383" for i in range(1000)]
    refused(check(tmp_path, with_components(held, num_nodes=16384), "--cluster", "16384x1024"), says="together")


def test_ranks_beyond_the_cluster_are_not_counted_one_by_one(tmp_path: Path) -> None:
    done = check(tmp_path, with_actor("0-2147483647"), "--cluster", "1x8")
    refused(done, 4, says="out of range")


# --- many faults: the report stays bounded ---


MANY_FAULTS = {
    "100,000 duplicate keys": ("".join("k: 0\n" for _ in range(49_000)) + with_actor("0"), 3, 48_999),
    "50,000 unknown keys": (
        with_actor("0").replace("  num", "".join(f"  k{i}: 0\n" for i in range(49_000)) + "  num", 1),
        3,
        49_000,
    ),
    "300 components, each wrong": (
        with_components([f"a{i}: 9-{i}" for i in range(9)] + [f"b{i}: x" for i in range(291)]),
        3,
        300,
    ),
    "30,000 entries that are no ranks": (with_actor(f'"{"x," * 30_000}"'), 3, 30_000),
    "30,000 ranks that are not numbers": (
        with_groups(f"    - label: g\n      node_ranks: [{', '.join(['x'] * 30_000)}]\n"),
        3,
        30_000,
    ),
}


@pytest.mark.parametrize("name", MANY_FAULTS)
def test_many_faults_make_a_bounded_report(tmp_path: Path, name: str) -> None:
    config, code, count = MANY_FAULTS[name]
    done = check(tmp_path, config)
    assert done.code == code, done.err[:300]
    assert f"c.yaml: {count} errors" in done.err, done.err[-300:]
    assert len(done.err) < 100_000
    assert f"... and {count - 256} more\n" in done.err
    json = check(tmp_path, config, "--json")
    assert json.code == code
    assert len(json.out) < 100_000


# --- the command line and the environment ---

LONGEST_WORD = 131_000  # Linux takes 128 KiB a word


@pytest.mark.parametrize(
    ("override", "code", "says"),
    [
        ("cluster.component_placement.actor=" + evens(LONGEST_WORD - 100), 3, "65536"),
        ("cluster.component_placement.actor=" + "x," * 60_000, 3, "65536"),
        ("cluster.component_placement.actor=" + "[" * 120_000, 3, "32 deep"),
        ("cluster.component_placement.actor=0-9999999999", 3, "2147483647"),
        ("cluster.component_placement.actor=\u0663", 3, "Invalid rank format"),
        ("+" + ".".join("a" * 60_000) + "=1", 2, "dotted path"),
        ("." * 60_000 + "=1", 2, "dotted path"),
        ("a" * 120_000, 2, "not an override"),
        ("cluster." + "a" * 120_000 + "=1", 3, "Unknown fields"),
    ],
)
def test_a_hostile_override_is_refused(tmp_path: Path, override: str, code: int, says: str) -> None:
    refused(check(tmp_path, with_actor("0"), override), code, place=r"command line:1:\d+: error: ", says=says)


def test_an_override_of_64_kb_is_fine(tmp_path: Path) -> None:
    assert check(tmp_path, with_actor("0"), "cluster.component_placement.actor=" + evens(65_000)).code == 0


def test_overrides_are_limited_in_number(tmp_path: Path) -> None:
    assert check(tmp_path, with_actor("0"), *[f"+x.k{i}=0" for i in range(1024)]).code == 0
    refused(
        check(tmp_path, with_actor("0"), *[f"+x.k{i}=0" for i in range(60_000)]),
        place="error: ",
        says="more than 1024 overrides",
    )


def test_a_long_variable_is_refused(tmp_path: Path) -> None:
    config = with_actor("${oc.env:BIG}")
    refused(check(tmp_path, config, env={"BIG": "0," * 60_000}), says="'BIG' is too long")
    assert check(tmp_path, config, env={"BIG": evens(65_000)}).code == 0


@pytest.mark.parametrize(
    "spec", ["1x" + "9" * 100_000, "9" * 100_000 + "x8", "1048577x1", "1x1025", ",".join(["1048576x1"] * 3)]
)
def test_a_spec_that_is_too_large_is_refused(tmp_path: Path, spec: str) -> None:
    refused(check(tmp_path, with_actor("0"), "--cluster", spec), place="error: ", says="larger than 1048576 nodes")


# --- snapshots: streamed, so memory follows the nodes ---


def snapshot(nodes: Iterator[str] | list[str]) -> str:
    return '{"roost": 1, "cluster": {"nodes": [' + ", ".join(nodes) + "]}}"


SNAPSHOTS = {
    "arrays 200,000 deep": ('{"roost": 1, "x": ' + "[" * 200_000, "inside each other"),
    "objects 200,000 deep": ('{"a": ' * 200_000, "inside each other"),
    "a skipped value 200,000 deep": ('{"x": ' + "[" * 200_000 + "]" * 200_000 + "}", "inside each other"),
    "a number of 1 MB": (snapshot(['{"num_accelerators": ' + "9" * 1_000_000 + "}"]), ""),
    "an exponent": (snapshot(['{"num_accelerators": 1e999999999}']), "whole number"),
    "a negative number": (snapshot(['{"num_accelerators": -1}']), "whole number"),
    "a fraction": (snapshot(['{"num_accelerators": 1.5}']), "whole number"),
    "too many accelerators": (snapshot(['{"num_accelerators": 1025}']), "1024"),
    "a list of too many": (
        snapshot(['{"accelerators": [' + ", ".join(["{}"] * 1025) + "]}"]),
        "accelerators on one node",
    ),
    "too many robots": (
        snapshot(['{"hardware": [' + ", ".join(['{"type": "Franka"}'] * 4097) + "]}"]),
        "hardware entries",
    ),
    "a string of 70 MB": ('{"x": "' + "y" * 70_000_000 + '"}', ""),
    "a key of 70 MB": ('{"' + "y" * 70_000_000 + '": 0}', ""),
    "200,000 duplicate keys": ("{" + ", ".join(['"k": 0'] * 200_000) + ', "cluster": 1}', ""),
    "NUL": ("\0", ""),
    "half a character": ('{"x": "\udce2"}', ""),
    "nothing": ("", ""),
}


@pytest.mark.parametrize("name", SNAPSHOTS)
def test_a_hostile_snapshot_is_refused(tmp_path: Path, name: str) -> None:
    text, says = SNAPSHOTS[name]
    path = tmp_path / "s.json"
    path.write_bytes(text.encode(errors="surrogateescape"))
    refused(check(tmp_path, with_actor("0"), "--cluster", str(path)), place=r"s\.json:\d+:\d+: error: ", says=says)


def test_a_snapshot_of_too_many_nodes_is_refused(tmp_path: Path) -> None:
    """A node takes about 100 bytes, twice while the list grows: 2^20 of them have their own limit."""
    fifo = tmp_path / "s.json"
    os.mkfifo(fifo)
    (tmp_path / "c.yaml").write_text(with_actor("0"))
    with subprocess.Popen(
        [ROOST, "check", tmp_path / "c.yaml", "--cluster", fifo],
        env={},
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS, (512 << 20, 512 << 20)),
        stderr=subprocess.PIPE,
    ) as process:
        with fifo.open("wb") as stream:
            stream.write(b'{"cluster": {"nodes": [{}')
            for _ in range((1 << 20) // 1024):
                stream.write(b",{}" * 1024)
            stream.write(b"]}}")
        error = process.communicate(timeout=60)[1].decode()
    assert process.returncode == 3
    assert re.match(r".*s\.json:1:\d+: error: more than 1048576 nodes\n", error), error


def test_a_large_value_of_a_snapshot_that_is_skipped_costs_no_memory(tmp_path: Path) -> None:
    path = tmp_path / "s.json"
    with path.open("w") as stream:
        stream.write('{"cluster": {"nodes": [{"num_accelerators": 1}]}, "components": [')
        stream.writelines(itertools.repeat('{"rank": 0, "x": [1, 2, 3]}, ', 3_000_000))
        stream.write("0]}")
    done = check(tmp_path, with_actor("0"), "--cluster", str(path))
    assert done.code == 0, done


# --- growth: four times the input, not sixteen times the time ---
# Where two lists meet, each with a limit of its own, one stays at its limit while the other grows.


GROWTH: dict[str, tuple[Callable[[float], str], list[str]]] = {
    "texts of ranks": (
        lambda agent: with_components(filled(lambda i: f'a{i}: "{evens(60_000)}"', int(900_000 * agent))),
        [],
    ),
    "texts of one rank again and again": (
        lambda agent: with_components(filled(lambda i: f'a{i}: "{"1," * 30_000}"', int(900_000 * agent))),
        ["--cluster", "1x8"],
    ),
    "texts of garbage": (
        lambda agent: with_components(filled(lambda i: f'a{i}: "{"x," * 30_000}"', int(900_000 * agent))),
        [],
    ),
    "texts of commas": (
        lambda agent: with_components(filled(lambda i: f'a{i}: "{"," * 60_000}"', int(900_000 * agent))),
        ["--cluster", "1x8"],
    ),
    "a list of ranks, falling": (
        lambda agent: with_groups(
            f"    - label: g\n      node_ranks: [{', '.join(str(2 * i) for i in range(int(90_000 * agent), 0, -1))}]\n",
            1_000_000,
        ),
        [],
    ),
    "unknown keys": (
        lambda agent: with_actor("0").replace(
            "  num", "".join(f"  k{i}: 0\n" for i in range(int(49_000 * agent))) + "  num", 1
        ),
        [],
    ),
    "duplicate keys": (lambda agent: "".join("k: 0\n" for _ in range(int(49_000 * agent))) + with_actor("0"), []),
    "one label again and again": (
        lambda agent: with_actor(f'{{node_group: "{"node," * int(12_000 * agent)}node", placement: 0}}'),
        ["--cluster", "1x8"],
    ),
    "labels that are not there": (
        lambda agent: with_components(
            filled(lambda i: f'a{i}: {{node_group: "{"z," * 30_000}z", placement: 0}}', int(900_000 * agent))
        ),
        ["--cluster", "1x8"],
    ),
    "labels that are not there among 4000": (
        lambda agent: (
            with_groups("".join(f"    - {{label: g{i}, node_ranks: 0}}\n" for i in range(4000)))
            + "".join(f'    a{i}: {{node_group: "{"z," * 30_000}z", placement: 0}}\n' for i in range(int(12 * agent)))
        ),
        ["--cluster", "1x8"],
    ),
    "labels that are nearly there": (
        lambda agent: (
            with_groups("".join(f"    - {{label: group{i}, node_ranks: 0}}\n" for i in range(4000)))
            + "".join(f"    a{i}: {{node_group: grpup{i}, placement: 0}}\n" for i in range(int(4000 * agent)))
        ),
        ["--cluster", "1x8"],
    ),
    "components": (lambda agent: with_components([f"a{i}: 0" for i in range(int(4096 * agent))]), ["--cluster", "1x8"]),
    "groups": (
        lambda agent: with_groups("".join(f"    - {{label: g{i}, node_ranks: 0}}\n" for i in range(int(4096 * agent)))),
        ["--cluster", "1x8"],
    ),
    "groups with variables": (
        lambda agent: with_groups(
            "".join(
                f"    - {{label: g{i}, node_ranks: {i}, env_configs: [{{node_ranks: {i}, env_vars: [A: b]}}]}}\n"
                for i in range(int(4000 * agent))
            ),
            50_000,
        ).replace("actor: 0", "actor: 10000-49999"),
        ["--cluster", "50000x1"],
    ),
    "robots": (
        lambda agent: with_groups(
            "    - label: g\n      node_ranks: 0\n      hardware:\n        type: Franka\n        configs:\n"
            + "".join(
                f"          - {{node_rank: 0, robot_ip: 10.0.{i // 256}.{i % 256}}}\n" for i in range(int(4096 * agent))
            )
        ),
        ["--cluster", "1x8"],
    ),
    "references into a large mapping": (
        lambda agent: with_command(
            ", ".join(f'"${{x.k{i}}}"' for i in range(int(20_000 * agent))),
            "x:\n" + "".join(f"  k{i}: v\n" for i in range(int(20_000 * agent))),
        ),
        [],
    ),
    "references in one text": (lambda agent: with_actor(f'"{"${v}" * int(16_000 * agent)}"', "v: 0\n"), []),
    "references in many texts": (
        lambda agent: with_command(", ".join(filled(lambda i: f'"{"${v}" * 15_000}"', int(900_000 * agent))), "v: 0\n"),
        [],
    ),
    "a mapping merged": (
        lambda agent: with_actor(
            "0",
            f"a: &a {{{', '.join(f'k{i}: 0' for i in range(int(10_000 * agent)))}}}\nb: {{<<: *a}}\nc: {{<<: *a}}\n",
        ),
        [],
    ),
    "commands": (
        lambda agent: (
            with_components([f"a{i}: 0" for i in range(int(4096 * agent))])
            + "roost:\n  launch:\n"
            + "".join(
                f"    a{i}: {{command: [x], after: [a{(i + 1) % int(4096 * agent)}]}}\n"
                for i in range(int(4096 * agent))
            )
        ),
        [],
    ),
    "ports": (
        lambda agent: (
            with_command("x") + "      ports:\n" + "".join(f"        p{i}: 1\n" for i in range(int(40_000 * agent)))
        ),
        [],
    ),
    "faults at the end of a long file": (
        lambda agent: "#\n" * int(500_000 * agent) + with_components([f"a{i}: x" for i in range(300)]),
        [],
    ),
    "comments": (lambda agent: "#\n" * int(500_000 * agent), []),
    "quotes": (lambda agent: '"' * int(1_000_000 * agent), []),
    "directives": (lambda agent: "".join(f"%YAML 1.{i}\n" for i in range(int(80_000 * agent))), []),
    "lines in a text": (lambda agent: with_actor("0", "x: |\n" + "  y\n" * int(15_000 * agent)), []),
    "tabs": (lambda agent: "\t" * int(1_000_000 * agent), []),
    "question marks in a flow": (lambda agent: "{" + "?," * int(49_000 * agent) + "}", []),
    "a long line of keys": (lambda agent: "{" + ", ".join(f"k{i}: 0" for i in range(int(49_000 * agent))) + "}", []),
}


@pytest.mark.parametrize("name", GROWTH)
def test_time_does_not_grow_with_the_square(tmp_path: Path, name: str) -> None:
    """The watchdog of `run` bounds both; what takes a blink is not compared."""
    config, words = GROWTH[name]
    quarter = min(check(tmp_path, config(0.25), *words).seconds for _ in range(2))
    whole = check(tmp_path, config(1), *words)
    assert whole.code in (0, 3), whole.err[:300]
    assert len(whole.err) < 100_000
    if whole.seconds > 1.0:
        again = check(tmp_path, config(1), *words)
        assert min(whole.seconds, again.seconds) < 10 * quarter, (quarter, whole.seconds, again.seconds)
