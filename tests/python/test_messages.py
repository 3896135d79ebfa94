"""Every error, warning, cure and usage line that the sources can say is said by a transcript.

Formats are taken from the sources: the text of diag_error, diag_warn, diag_hint, output_usage and
output_say, and what small helpers put into such a text. Each becomes a pattern, and some answer
in tests/cases must hold it. What no run of the program can reach is listed here, with the test
that covers it.
"""

import re
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from transcripts import ROOST, ROOT, command_of, read, topics

TOKEN = re.compile(r'/\*.*?\*/|//[^\n]*|"(?:\\.|[^"\\])*"|\'(?:\\.|[^\'\\])*\'|\w+|\S', re.S)

# Where the format stands among the arguments, and what comes before it on a line of output.
SAYINGS = {
    "diag_error": (3, r": error: "),
    "diag_warn": (3, r": warning: "),
    "diag_hint": (1, r"^  = "),
    "output_usage": (0, r"^roost: "),
    "output_say": (0, r"^roost: "),
}

# Helpers: which arguments are text, and the sentence they become part of.
HELPERS = {
    "want_mapping": ([2], ": error: {} must be a mapping of keys to values, not "),
    "want_sequence": ([2], ": error: {} must be a list, not "),
    "want_keys": ([3], "detected in {}"),
    "say_unknown": ([2], "detected in {}"),
    "say_missing": ([2, 3], ": error: Missing fields '['{}']' detected in {}"),
    "read_word": ([2], ": error: {} must be text, not "),
    "read_process_word": ([2], ": error: {} must be text, not "),
    "want_open": ([2], ": error: {} comes from the secret variable "),
    "read_int": ([2], ": error: {} must be a whole number from "),
    "read_bool": ([2], ": error: {} must be true or false, not "),
    "read_choice": ([2], ": error: {} cannot be '"),
    "read_ranks": ([2], "Invalid rank format: {} is a number, a text"),
    "snapshot_text": ([1], ": error: {} must be a string or null, not "),
    "snapshot_count": ([1], ": error: {} must be a "),
    "say_errno": ([2], ": error: cannot {} '"),
    "check_rollout_size": ([2], ": error: {} has "),
    "snapshot_refuse": ([2, 3], ": error: {} must be {}, not "),
    "refuse": ([3], "does not describe a cluster: {}"),
}
# Variables that hold a part of a sentence.
VARIABLES = {
    "fault": "with auto_scheduler {}",
    "refusal": "this entry is not composed: {}",
    "no_accelerator_hint": "  = {}",
}

# Files whose texts no run of `check` or `plan` reaches.
OTHER_FILES = {
    "src/command/settings.c": "the program reports them as wrong usage; src/command/settings_test.c has all of them",
    "src/command/commands.c": "`plan --commands` wants no command; src/command/commands_test.c has all of them with their cures",
    "src/registry/cl*.c": "needs a living registry server; src/registry/client_test.c",
    "src/registry/connection.c": "no descriptors for a connection",
    "src/registry/namespaces.c": "needs a living registry server; tests/python/test_managers.py",
    "src/command/worker_address.c": "only requests of managers, and groups; src/registry/registry_test.c",
    "src/registry/*.c": "only requests of managers; src/registry/registry_test.c has all of them",
    "src/run/group_name.c": "needs a living group; tests/python/test_managers.py",
    "src/run/registry_server_start.c": "needs a registry server; tests/python/test_managers.py, or no descriptors",
    "src/supervise/registry_server.c": "a full runtime directory",
    "src/json/json_*.c": "src/json/json_reader_test.c has all of them with their places",
    "src/placement/strategy.c": "only the C and Python strategy classes; src/placement/strategy_test.c",
    "src/topology/accelerator.c": "only nodes that Python objects describe; src/topology/described_test.c",
    "src/topology/described.c": "only clusters that Python objects describe; src/topology/described_test.c",
    "src/base/private_*.c": "what a run meets on this machine; src/base/private_dir_test.c has the whole matrix",
    "src/port/*.c": "the same; src/port/leases_test.c and leases_race_test.c",
    "src/command/trainer.c": "only Python starts trainers; src/command/trainer_test.c",
    "src/rpc/*.c": "only calls between processes; src/rpc/links_test.c and worker_test.c",
    "src/bundle/order.c": "only C and Python sort bundles; src/bundle/order_test.c",
    "src/placement/packed.c": "model-parallel checks before it; src/placement/packed_test.c for the strategy class",
    "src/cli/screen/logs_view.c": "needs a run with logs; src/cli/screen/logs_view_test.c",
    "src/agent/agent_start.c": "a node of a run; src/agent/agent_test.c, or no descriptors",
    "src/run/run_agents_ports.c": "a node that does not answer; tests/python/test_agents_start.py",
    "src/agent/ray_join.c": "a bridge that talks nonsense; tests/python/test_agents_start.py",
}
# Texts that no run of `check` or `plan` reaches.
OTHER_TEXTS = {
    "'%%{%s}' is a list of %d addresses: %zu bytes, more than a word may have (%d)": "needs leased ports; src/command/commands_test.c",
    "let the process read the file that ROOST_ADDRESSES_..._FILE names": "its cure",
    "this machine has no accelerators, so ranks are nodes; to simulate some, set ROOST_CLUSTER=1x4 or use --cluster 1x4": "depends on the machine; tests/python/test_first_hour.py",
    "joining the Ray cluster": "on a terminal; tests/python/test_agents_start.py",
    "run %s has ended": "needs a living run; tests/python/test_engine_runs.py",
    "run %s is running but cannot be reached: %s": "the same",
    "`roost stop --now %s` ends it; 0 in %s/cgroup.freeze lets it go on": "its cure when the run is frozen; tests/python/test_engine_guards.py",
    "try again, or end the program that started it": "its cure, when there is no answer for half a minute",
    "set XDG_RUNTIME_DIR as it was where the run was started, or end the program that started it": "its other cure",
    "cannot open the run '%s': %s": "a run that is removed while it is looked at",
    "cannot write the logs: %s": "src/cli/screen/logs_view_test.c",
    "cannot show the logs of the run: %s": "no memory, or no descriptors, after the run has started",
    "cannot find a fresh run id: %s": "sixteen ids in a row that are taken",
    "remove old runs from the log directory": "its cure",
    "cannot write '%s/run.json': %s": "a full disk; tests/python/test_engine_runs.py",
    "free some space, or choose another roost.logs.dir": "its cure",
    "%d runs of this user are alive already": "ten thousand runs",
    "`roost ps` lists them, `roost stop` ends one": "its cure",
    "cannot run the program '%s' as the guardian of the run: %s": "src/run/run_test.c, with its cure",
    "cannot start the guardian of the run: cannot %s: %s": "tests/python/test_engine_lives.py",
    "raise the limit of processes: ulimit -u, or pids.max": "its cure; the same, as an ordinary user",
    "the guardian of the run ended before it began": "src/run/run_test.c",
    "is `program` the roost program that came with this library?": "its cure",
    "the roost program is not of the same version as the library": "two versions of roost on one machine",
    "let `program` name the roost that came with this library": "its cure",
    "cannot find the working directory: %s": "a working directory that was removed",
    "write roost.logs.dir as an absolute path": "its cure",
    "cannot make the socket to the supervisor: %s": "src/run/run_test.c",
    "cannot open /dev/null: %s": "tests/python/test_engine_refusals.py; its cure and those of others are in src/base/cure_test.c",
    "a group of %d processes needs %d open files in its managers (two for each), but they may have %d": "tests/python/test_worker_life.py, with its cure",
    "a group of %d processes needs %d open files here (one for each, and %d are open), but this process may have %d": "tests/python/test_worker_life.py, with its cure",
    "raise the hard limit before this process starts: ulimit -Hn %d": "the same",
    "raise the limit before it starts: ulimit -Sn %d": "the same",
    "cannot reach the supervisor of the run: %s": "a supervisor killed while it is spoken to: tests/python/test_engine_kills.py meets it at random",
    "try again": "its cure",
    "cannot write to '%s': %s": "a full runtime directory; src/base/cure_test.c has its cures",
    "the supervisor of the run gives no answer": "a minute without an answer",
    "the machine is very busy: try again": "its cure",
    "stopped before it began": "tests/python/test_agents_start.py",
    "nothing of it is left": "its cure",
    "kept run %s: another process uses it": "tests/python/test_prune.py",
    "kept run %s: roost did not make '%s' in %s": "tests/python/test_prune.py",
    "kept run %s: %s": "a directory that the system does not let this user change",
    "removed %d %s, %s": "tests/python/test_prune.py; sizes differ between file systems",
    "%d %s, %s would be removed; --yes removes them": "the same",
    "stopping run %s (%s)": "needs a living run; tests/python/test_engine_runs.py",
    "run %s is still starting": "tests/python/test_agents_start.py",
    "wait until it runs, end it where it was started, or name another one; `roost ps` lists them": "its cure",
    "%s: stopped before it began": "the same, as the program says it",
    "the agent on %s is lost: %.*s": "needs a node; tests/python/test_agents_start.py",
    "`ray status` lists the nodes": "its cure",
    "run it from a folder that is there, with a shorter path": "the cure of a working directory that was removed, on Ray",
    "out of memory": "tests/nomem fails every allocation in turn",
    "'%s' is larger than %d bytes": "roost_config_options.text, from C and Python only",
    "no cluster to plan against": "roost_cluster_new without a config and a text, from C and Python only",
    "pass --cluster 2x8, a snapshot, or local": "its cure",
    "the config was read without what model-parallel placement needs": "roost_plan_new with other options than the config's",
    "%lld is what YAML readers make of %lld:%lld; if that is what the file says, resource and process were lost": "composed configs, from C and Python only; src/config/config_node_groups_test.c",
    'write "%lld:%lld" in quotes there': "its cure",
    "'num_nodes' must be a positive integer, or 0 for all nodes, not %d": "roost_cluster_options.num_nodes, from C and Python only; src/topology/described_test.c",
    "num_nodes is asked to be %d, but the config says %d": "the same",
    "the config declares node group '%s', but there is no node group '%s' in the cluster": "a cluster made without the config, from C and Python only; src/placement/plan_again_test.c",
    "make the cluster with this config: pass it to Cluster as cluster_cfg": "its cure",
    "num_nodes is %d, but the cluster to place on has %d": "the same",
    "set num_nodes to %d, or make the cluster with this config": "its cure",
    "merges bring in more than %d keys": "a second fence: the limit on aliases comes before it",
    "cannot write: %s": "test_a_full_disk_is_said below",
    "cannot write to standard output": "test_a_full_disk_is_said below",
    "node groups of more than %d nodes in all": "64 groups of a million nodes: half a gigabyte, too much for a case",
    "use fewer or smaller node groups": "its cure",
    "merge fewer or smaller mappings": "the cure of the limit on merges",
    "set reads_model in the options it is read with": "the cure of a config read without it",
    "pass 0, or leave it out, for all nodes": "the cure of roost_cluster_options.num_nodes below 0",
    "engine %d of '%s' would start on GPUs %d-%d of node %d, but its slots %d-%d are GPUs %s": "what a probe found, from C and Python only; test_binding_slime_layout.py",
    "use %d GPU%s per engine, or reserve GPUs that follow one another": "its cure",
    "pass %d, or leave it out": "the cure of roost_cluster_options.num_nodes beside a config",
}


@dataclass(frozen=True)
class Saying:
    """A text of the sources and the pattern that finds it in output."""

    where: str
    text: str
    pattern: str


def tokens_of(path: Path) -> list[str]:
    return [token for token in TOKEN.findall(path.read_text()) if not token.startswith(("/*", "//"))]


def arguments(tokens: list[str], opening: int) -> list[list[str]]:
    """The arguments of the call whose "(" is tokens[opening], each a list of tokens."""
    found: list[list[str]] = [[]]
    depth = 0
    for token in tokens[opening:]:
        depth += (token in "([{") - (token in ")]}")
        if depth == 0:
            break
        if token == "," and depth == 1:
            found.append([])
        elif token != "(" or depth > 1:
            found[-1].append(token)
    return found


def literals(argument: list[str]) -> Iterator[str]:
    """The texts an argument can be: adjacent literals joined, both arms of a ?: apart."""
    run, depth = "", 0
    for token in [*argument, ";"]:
        depth += (token in "([{") - (token in ")]}")
        if token[0] == '"' and depth == 0:
            run += token[1:-1].encode().decode("unicode_escape").encode("latin-1").decode()
        elif token.startswith("PRI") and run:
            run += token[3]
        elif run:
            yield run
            run = ""


def pattern_of(text: str) -> str:
    """A printf format as a regular expression."""
    pieces = re.split(r"(%(?:%|[-+ #0]*[\d*]*(?:\.[\d*]+)?(?:hh|h|ll|l|z|j|t)?[a-zA-Z]))", text)
    return "".join(
        "%" if piece == "%%" else ".*?" if piece.startswith("%") and len(piece) > 1 else re.escape(piece)
        for piece in pieces
    )


def sayings_of(path: Path) -> Iterator[Saying]:
    where = str(path.relative_to(ROOT))
    tokens = tokens_of(path)
    for i, name in enumerate(tokens[:-1]):
        if name in VARIABLES and tokens[i + 1] == "=":
            for text in literals(tokens[i + 2 : tokens.index(";", i)]):
                yield Saying(where, text, re.escape(VARIABLES[name]).replace(r"\{\}", re.escape(text)) + "$")
        if tokens[i + 1] != "(":
            continue
        given = arguments(tokens, i + 1)
        if name in SAYINGS and len(given) > SAYINGS[name][0]:
            for text in literals(given[SAYINGS[name][0]]):
                yield Saying(where, text, SAYINGS[name][1] + pattern_of(text) + "$")
        places, sentence = HELPERS.get(name, ([], ""))
        if not places or len(given) <= places[-1]:
            continue
        words = [next(literals(given[place]), "") for place in places]
        if all(words):
            yield Saying(where, " / ".join(words), re.escape(sentence.format(*words)))


def is_elsewhere(saying: Saying) -> bool:
    return saying.text in OTHER_TEXTS or any(Path(saying.where).match(pattern) for pattern in OTHER_FILES)


@cache
def all_sayings() -> list[Saying]:
    sources = sorted(path for path in (ROOT / "src").rglob("*.c") if not path.name.endswith("_test.c"))
    return [saying for path in sources for saying in sayings_of(path)]


@cache
def all_answers() -> list[tuple[str, list[str], str]]:
    """(sentence, words of the command, both streams) of every command in the transcripts."""
    runs = ((case.sentence, run) for path in topics() for case in read(path) for run in case.runs)
    return [
        (sentence, command_of(run.line, "", "").words, (run.answer.stdout + run.answer.stderr).decode(errors="replace"))
        for sentence, run in runs
    ]


@cache
def all_texts() -> str:
    return "\n".join(text for _, words, text in all_answers() if "--json" not in words)


def test_every_message_has_a_case() -> None:
    sayings = [saying for saying in all_sayings() if saying.text != "%s" and not is_elsewhere(saying)]
    assert len(sayings) > 200, "the sources changed their way of saying things"
    missing = {
        f"{saying.where}: {saying.text}" for saying in sayings if not re.search(saying.pattern, all_texts(), re.M)
    }
    assert sorted(missing) == []


def test_the_list_of_other_texts_is_no_longer_than_needed() -> None:
    texts = {saying.text for saying in all_sayings()}
    assert sorted(text for text in OTHER_TEXTS if text not in texts) == []


def uncured(text: str) -> Iterator[str]:
    """The errors in an output that no cure follows before the next thing said."""
    error = None
    for line in [*text.split("\n"), ": error: end"]:
        if re.search(r": (error|warning): ", line):
            if error:
                yield error
            error = line if ": error: " in line else None
        elif line.startswith("  = "):
            error = None


def test_every_error_has_a_cure() -> None:
    missing = [
        f"{sentence}: {error}"
        for sentence, words, text in all_answers()
        if "--json" not in words
        for error in uncured(text)
    ]
    assert missing == []


def words_of(macro: str) -> list[str]:
    """The JSON words of an X-macro list of error.h."""
    header = (ROOT / "include/roost/error.h").read_text()
    body = header[header.index(f"#define {macro}") :].split("\n\n")[0]
    return re.findall(r'X\(\w+, "([\w-]+)"', body)


def test_every_code_and_warning_that_a_planner_says_is_in_a_json_case() -> None:
    expected = "\n".join(text for _, words, text in all_answers() if words[:1] == ["check"] and "--json" in words)
    not_planning = {"memory", "engine", "lease", "access", "timeout", "bug", "worker"}
    words = [word for word in words_of("ROOST_ERROR_MAP") if word not in not_planning] + [
        word for word in words_of("ROOST_WARNING_MAP") if word not in ("bind", "interfaces", "switch")
    ]  # of `run`, which has no --json, and of trainers
    assert {"rank", "fit", "io", "reading", "idle"} < set(words)
    assert [word for word in words if f'"code": "{word}"' not in expected] == []


def test_a_full_disk_is_said() -> None:
    for words, said in {
        ("plan", "--cluster", "1x8", "-"): "roost: cannot write: No space left on device\n",
        ("check", "--cluster", "1x8", "-"): "roost: cannot write: No space left on device\n",
        ("--help",): "roost: cannot write to standard output\n",
    }.items():
        with open("/dev/full", "wb") as full:
            done = subprocess.run(
                [ROOST, *words],
                stdout=full,
                stderr=subprocess.PIPE,
                env={},
                input=b"cluster: {num_nodes: 1, component_placement: {actor: 0-7}}\n",
                timeout=60,
            )
        assert (done.returncode, done.stderr.decode()) == (5, said)
