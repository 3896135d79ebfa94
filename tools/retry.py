"""Which failed tests are tried once more, and which of them are known already (tests/unsteady).

Pure but for reading files: tools/stages.py runs what is decided here. A failure is worth a second try only if it may be
bad luck. Reports of sanitizers, crashes, time-outs and what a run leaves over never are: a second try that passes would
hide a fault of the program.
"""

import ast
import re
import xml.etree.ElementTree as ElementTree
from dataclasses import dataclass, field
from pathlib import Path

# A stage with more failures than this is broken, not unsteady: none of them is tried again.
FEW = 5

# Anywhere in what a test says. cmocka calls a signal that it catches an exception; the last two are words of tools/stages.py.
NEVER = re.compile(
    r"AddressSanitizer|LeakSanitizer|UndefinedBehaviorSanitizer|ThreadSanitizer|runtime error:"
    r"|from pytest-timeout|^worker '\w+' crashed while running|Test failed with exception"
    r"|^unit_\w+ (?:took longer than|was killed by signal)",
    re.MULTILINE,
)
# Only in what was raised: a traceback shows lines of source that name these too. LeftOver and TimedOut: tests/python/verdicts.py.
NEVER_RAISED = re.compile(r"^(?:E .*|failed on .*)\b(?:LeftOver|TimedOut|TimeoutExpired)\b", re.MULTILINE)


def may_repeat(said: str) -> bool:
    """Whether a test that says this when it fails is tried once more."""
    return not (NEVER.search(said) or NEVER_RAISED.search(said))


@dataclass
class Results:
    """What pytest tells in its result file, by the id of the test."""

    passed: set[str] = field(default_factory=set)
    failed: dict[str, str] = field(default_factory=dict)  # to everything that it says
    # Not of a test that ran: files that cannot be collected, and skipped tests, which are checks that did not happen.
    lost: set[str] = field(default_factory=set)


def node_id(case: ElementTree.Element) -> str:
    """The id that pytest runs a test by. Needs junit_family=xunit1, which gives the file."""
    file, name, owner = case.get("file", ""), case.get("name", ""), case.get("classname", "")
    module = file.removesuffix(".py").replace("/", ".")
    classes = [word for word in owner.removeprefix(module).split(".") if word]
    return "::".join([file, *classes, name]) if file else f"{owner}::{name}"


def read_results(path: Path) -> Results:
    found = Results()
    for case in ElementTree.parse(path).getroot().iter("testcase"):
        name = node_id(case)
        faults = [*case.iter("failure"), *case.iter("error")]
        if case.find("skipped") is not None or any(fault.get("message") == "collection failure" for fault in faults):
            found.lost.add(name)
        elif faults:
            said = [text for part in case.iter() for text in (part.get("message"), part.text) if text]
            found.failed[name] = "\n".join([found.failed.get(name, ""), *said])
        else:
            found.passed.add(name)
    # One that fails and then fails to tidy up comes twice, and one that only fails at that may come as passed too.
    found.passed -= found.failed.keys() | found.lost
    return found


# --- tests/unsteady

ENTRY = re.compile(r"(?P<name>\S.*?) \(seed \d+\) \d{4}-\d\d-\d\d: \S")


def bare(name: str) -> str:
    """Without parameters."""
    return name.partition("[")[0]


def is_test(root: Path, name: str) -> bool:
    file, _, rest = bare(name).partition("::")
    if not rest:
        return file.startswith("unit_") and (root / "build" / "tests" / file).is_file()
    try:
        inside: list[ast.stmt] = ast.parse((root / file).read_bytes()).body
    except (OSError, SyntaxError):
        return False
    for word in rest.split("::"):
        # `if` and the like may hold tests too.
        nodes = [node for statement in inside for node in ast.walk(statement)]
        named = [node for node in nodes if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef) and node.name == word]
        if not named:
            return False
        inside = named[0].body
    return True


def read_unsteady(root: Path) -> tuple[set[str], list[str]]:
    """The names in tests/unsteady, without parameters, and what is wrong with its lines."""
    names, faults = set(), []
    for number, line in enumerate((root / "tests" / "unsteady").read_text().splitlines(), 1):
        if not line.strip() or line.startswith("#"):
            continue
        place, entry = f"tests/unsteady:{number}", ENTRY.match(line)
        if not entry:
            faults.append(f"{place}: '{line}' is not an entry = write: NAME (seed N) YYYY-MM-DD: what is known")
        elif not is_test(root, entry["name"]):
            faults.append(f"{place}: there is no test '{entry['name']}' = remove the line, or name the test as the run printed it")
        else:
            names.add(bare(entry["name"]))
    return names, faults
