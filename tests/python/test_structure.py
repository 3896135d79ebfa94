"""tools/layers and tools/sizes: this repository keeps their rules, and small trees that break them are found."""

import subprocess
import sys
from pathlib import Path

import pytest

from transcripts import ROOT

pytestmark = pytest.mark.plain


def check(tool: str, *root: Path) -> list[str]:
    """What the tool prints; its status must agree with it."""
    done = subprocess.run([sys.executable, ROOT / "tools" / tool, *root], capture_output=True, text=True, timeout=60)
    assert done.stderr == ""
    lines = done.stdout.splitlines()
    assert done.returncode == (lines != [f"{tool}: ok"])
    return lines


def tree(root: Path, files: dict[str, str]) -> Path:
    for name, text in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)
    return root


def package(root: Path, files: dict[str, str]) -> Path:
    """A tree with a package of four subpackages, and these modules in it."""
    empty = {f"python/roost/{name}/__init__.py": "" for name in (".", "_plan", "_work", "_local", "_ray")}
    return tree(root, empty | {f"python/roost/{name}": text for name, text in files.items()})


def test_this_repository_keeps_its_layers() -> None:
    assert check("layers") == ["layers: ok"]


def test_this_repository_keeps_its_sizes() -> None:
    assert check("sizes") == ["sizes: ok"]


@pytest.mark.parametrize(
    ("name", "line", "said"),
    [
        ("src/base/a.c", '#include "config/config.h"', "base may not include config"),
        ("src/render/a.c", '#include "rpc/frame.h"', "render may not include rpc"),
        ("src/cli/screen/a.c", '#include "cli/command.h"', "cli/screen may not include cli"),
        ("src/run/a.c", '#include "cli/screen/screen.h"', "run may not include cli/screen"),
        ("src/attic/a.c", "int a;", "the folder 'attic' has no layer"),
        ("src/supervise/a/b.c", "int a;", "the folder 'supervise/a' has no layer"),
        ("src/run/a.h", "pid_t pid = fork();", "'fork(' is not for run"),
        ("src/logs/a.c", "#include <yaml.h>", "'#include <yaml.h>' is not for logs"),
        ("include/roost/a.h", '#include "base/text.h"', "a public header may not include a private one"),
        ("include/roost/a.h", "#include <roost/engine/agent.h>", "a header for users may not include one for engines"),
        ("include/roost/engine/a.h", '#include "base/text.h"', "a public header may not include a private one"),
        ("python/_roost/a.c", '#include "base/text.h"', "only public headers are for python/_roost"),
        ("examples/a.c", '#include "base/text.h"', "only public headers are for examples"),
    ],
)
def test_a_line_of_c_that_breaks_a_rule_is_found(tmp_path: Path, name: str, line: str, said: str) -> None:
    assert check("layers", tree(tmp_path, {name: f"/* one */\n{line}\n"})) == [
        f"{name}:{number}: {said}" for number in ((1, 2, 3) if "no layer" in said else (2,))
    ]


def test_what_stands_to_the_left_comments_strings_and_tests_are_fine(tmp_path: Path) -> None:
    files = {
        "src/cli/a.c": '#include "base/text.h"\n#include "cli/screen/screen.h"\n#include "render/plan_rows.h"\n',
        "src/cli/screen/a.c": '#include "cli/screen/screen.h"\nputs("a");\n',
        "src/base/a.c": '/* fork( and\n * exit( */ const char *a = "fork(", *b = "/*";\n',
        "src/base/a_test.c": '#include "cli/command.h"\n',
        "include/roost/engine/a.h": "#include <roost/engine/b.h>\n#include <roost/error.h>\n",
        "python/_roost/a.c": '#include "binding.h"\n',
    }
    assert check("layers", tree(tmp_path, files)) == ["layers: ok"]


@pytest.mark.parametrize(
    ("name", "text", "said"),
    [
        ("_plan/a.py", "from roost._work import b\n", "1: _plan may not import roost._work.b"),
        ("_plan/a.py", "import roost\n", "1: _plan may not import roost"),
        ("_plan/a.py", "from roost import slime\n", "1: _plan may not import roost"),
        ("_work/a.py", "def late():\n    from roost._ray import c\n", "2: _work may not import roost._ray"),
        ("_work/a.py", "from .._local.d import name\n", "1: _work may not import roost._local"),
        ("_local/a.py", "import roost._ray\n", "1: _local may not import roost._ray"),
        (
            "_local/a.py",
            "import importlib\nimportlib.import_module('roost._ray')\n",
            "2: _local may not import roost._ray",
        ),
        ("_work/a.py", "import ray\n", "1: 'import ray' is not for _work"),
        ("slime.py", "from ray.util import state\n", "1: 'import ray.util.state' is not for the root"),
    ],
)
def test_an_import_that_breaks_a_rule_is_found(tmp_path: Path, name: str, text: str, said: str) -> None:
    root = package(tmp_path, {"_work/b.py": "", name: text})
    assert check("layers", root) == [f"python/roost/{name}:{said}"]


def test_imports_to_the_left_are_fine(tmp_path: Path) -> None:
    files = {
        "__init__.py": "from roost._work.b import B\nfrom roost._roost import version\n",
        "_plan/a.py": "import json\nfrom roost import _roost\n",
        "_work/b.py": "from roost._plan.a import A\n",
        "_local/c.py": "from roost._plan import a\nfrom . import d\n",
        "_local/d.py": "from roost._work import b\n",
        "_ray/e.py": "import ray\nfrom ray.util import state\nfrom roost._work import b\n",
    }
    assert check("layers", package(tmp_path, files)) == ["layers: ok"]


def test_an_import_cycle_is_found_inside_functions_too(tmp_path: Path) -> None:
    files = {
        "_work/a.py": "from roost._work import b\n",
        "_work/b.py": "def late():\n    from .c import name\n",
        "_work/c.py": "import roost._work.a\n",
    }
    assert check("layers", package(tmp_path, files)) == [
        "python/roost/_work/a.py: import cycle: roost._work.a -> roost._work.b -> roost._work.c -> roost._work.a"
    ]


def test_what_is_too_large_is_found(tmp_path: Path) -> None:
    c = "static int\n    long_one(int a)\n{\n" + "    a++;\n" * 60 + "}\n\nint short_one(void)\n{\n}\n"
    files = {f"src/rpc/a{i}.c": "" for i in range(46)} | {f"src/run/a{i}_test.c": "" for i in range(46)}
    files |= {
        "src/base/a.c": c,
        "python/roost/a.py": "class A:\n    def long_one(self):\n" + "        pass\n" * 60,
        "tools/a": "#!/usr/bin/env python3\n" + "# a\n" * 450,
        "include/roost/a.h": "\n" * 451,
        "src/base/a_test.c": "\n" * 900,
        "src/base/notes.txt": "\n" * 900,
    }
    assert check("sizes", tree(tmp_path, files)) == [
        "src/base/a.c:1: long_one has 64 lines; a function has at most 60",
        "include/roost/a.h: 451 lines; a file has at most 450",
        "python/roost/a.py:2: long_one has 61 lines; a function has at most 60",
        "tools/a: 451 lines; a file has at most 450",
        "src/rpc: 46 files; a folder has at most 45",
    ]
