"""The C library as others find it: installed, found by pkg-config, shared and static.

ROOST  the program whose build folder is installed from (default build/roost); only the plain build is
       what people install.
"""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
BUILD = Path(os.environ.get("ROOST", ROOT / "build" / "roost")).absolute().parent
COMPILERS = ["cc -std=c11", "cc -std=gnu17"]
if shutil.which("c++"):
    COMPILERS += ["c++ -std=c++11", "c++ -std=c++20"]

pytestmark = pytest.mark.plain

EXPECTED = """\
actor: 4 processes
  0 -> 0:0
  1 -> 0:1
  2 -> 0:2
  3 -> 0:3
rollout: 4 processes
  0 -> 1:0,1
  1 -> 1:2,3
  2 -> 1:4,5
  3 -> 1:6,7
agent: 2 processes
  0 -> 0:
  1 -> 1:
"""
CONFIG = """\
cluster:
  num_nodes: 2
  component_placement:
    actor: 0-3
    rollout: 8-15:0-3
    agent: {node_group: node, placement: 0-1}
"""


def run(*command: str | Path, **how: object) -> str:
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, **how)
    assert done.returncode == 0, f"{command}\n{done.stdout}{done.stderr}"
    return done.stdout


@pytest.fixture(scope="session")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder that the library is installed into."""
    folder = tmp_path_factory.mktemp("installed")
    meson = Path(sys.executable).parent / "meson"
    run(meson, "install", "-C", BUILD, "--no-rebuild", "--quiet", "--destdir", folder)
    return folder


@pytest.fixture(scope="session")
def library_folder(installed: Path) -> Path:
    return next(installed.rglob("libroost.a")).parent


@pytest.fixture(scope="session")
def include_folder(installed: Path) -> Path:
    return next(installed.rglob("roost.h")).parents[1]


@pytest.fixture(scope="session")
def flags(installed: Path, library_folder: Path) -> dict[str, list[str]]:
    """What pkg-config says for the shared and the static library, from a folder that is not /."""
    env = os.environ | {
        "PKG_CONFIG_PATH": str(library_folder / "pkgconfig"),
        "PKG_CONFIG_SYSROOT_DIR": str(installed),
        "PKG_CONFIG_ALLOW_SYSTEM_CFLAGS": "1",
    }
    found = {}
    for form, words in {"shared": [], "static": ["--static"]}.items():
        text = run("pkg-config", "--cflags", "--libs", *words, "roost", env=env)
        # The sysroot is put before paths of the system's own libyaml too, which is not in it.
        found[form] = [word for word in text.split() if not (word[:2] in ("-I", "-L") and not Path(word[2:]).exists())]
    return found


@pytest.mark.parametrize("form", ["shared", "static"])
def test_the_example_builds_and_plans(
    tmp_path: Path, flags: dict[str, list[str]], library_folder: Path, form: str
) -> None:
    program = tmp_path / "plan"
    # Where both are installed, the linker takes the shared one unless the other is named.
    words = ["-l:libroost.a" if form == "static" and word == "-lroost" else word for word in flags[form]]
    run("cc", "-std=c17", "-Wall", "-Wextra", "-Werror", ROOT / "examples/plan.c", *words, "-o", program)
    config = tmp_path / "config.yaml"
    config.write_text(CONFIG)
    env = {"LD_LIBRARY_PATH": str(library_folder)} if form == "shared" else {}
    assert run(program, config, "2x8", env=env) == EXPECTED
    assert ("libroost.so.0" in run("ldd", program, env=os.environ | env)) == (form == "shared")

    config.write_text(CONFIG.replace("0-3", "0-33"))
    done = subprocess.run([program, config, "2x8"], env=env, capture_output=True, text=True, timeout=60)
    assert done.returncode == 4
    assert done.stderr.startswith(f"{config}:4:12: ranks '0-33' reach 33")


def test_the_example_runs_a_plan(tmp_path: Path, flags: dict[str, list[str]], library_folder: Path) -> None:
    program = tmp_path / "launch"
    run("cc", "-std=gnu17", "-Wall", "-Wextra", "-Werror", ROOT / "examples/launch.c", *flags["shared"], "-o", program)
    env = os.environ | {
        "LD_LIBRARY_PATH": str(library_folder),
        "XDG_STATE_HOME": str(tmp_path / "state"),
        "XDG_RUNTIME_DIR": str(tmp_path),
        "ROOST_PROGRAM": str(BUILD / "roost"),
    }
    config = tmp_path / "config.yaml"
    config.write_text((ROOT / "examples/bandit.yaml").read_text().replace("build/bandit", str(BUILD / "bandit")))
    out = run(program, config, "1x3", env=env).splitlines()
    assert [line for line in out if line.endswith("is ready")] == ["env is ready", "rollout is ready", "actor is ready"]
    assert sorted(line for line in out if "exited" in line) == sorted(
        f"{name} exited with 0" for name in ("actor/0", "rollout/0", "rollout/1", "env/0", "env/1")
    )
    assert out[-1].startswith("ended with 0; logs are in ")
    [log] = (tmp_path / "state").rglob("actor/0/stdout.log")
    assert "step 5:" in log.read_text() and "lever 2 looks best" in log.read_text()

    config.write_text(config.read_text().replace('actor, "2"', 'actor, "9"'))
    done = subprocess.run([program, config, "1x3"], env=env, capture_output=True, text=True, timeout=60)
    assert done.returncode == 1
    assert "actor/0 exited with 1" in done.stdout


def test_the_shared_library_shows_only_its_own_names(library_folder: Path) -> None:
    names = [
        line.split()[-1] for line in run("nm", "-D", "--defined-only", library_folder / "libroost.so").splitlines()
    ]
    assert names
    assert [name for name in names if not name.startswith("roost_")] == []


def test_every_declared_function_is_there_and_no_other(include_folder: Path, library_folder: Path) -> None:
    headers = "".join(path.read_text() for path in include_folder.rglob("*.h"))
    declared = set(re.findall(r"ROOST_API\s[^;(]*?\b(roost_\w+)\(", headers))
    shown = {
        line.split()[-1] for line in run("nm", "-D", "--defined-only", library_folder / "libroost.so").splitlines()
    }
    assert declared == shown


@pytest.mark.parametrize("compiler", COMPILERS)
def test_every_header_compiles_alone(include_folder: Path, tmp_path: Path, compiler: str) -> None:
    source = tmp_path / ("alone.cc" if compiler.startswith("c++") else "alone.c")
    headers = [path.relative_to(include_folder) for path in sorted(include_folder.rglob("*.h"))]
    assert {Path("roost/roost.h"), Path("roost/engine/agent.h")} < set(headers)
    for header in headers:
        # Twice, for its guard; the declaration because a file must not be empty.
        source.write_text(f"#include <{header}>\n#include <{header}>\nextern int none;\n")
        run(
            *compiler.split(),
            "-Wall",
            "-Wextra",
            "-Wpedantic",
            "-Werror",
            "-fsyntax-only",
            f"-I{include_folder}",
            source,
        )


def test_every_header_is_installed_and_includes_only_installed_ones(include_folder: Path) -> None:
    found = {path.relative_to(include_folder).as_posix(): path.read_text() for path in include_folder.rglob("*.h")}
    sources = {
        path.relative_to(ROOT / "include").as_posix().removesuffix(".in") for path in (ROOT / "include").rglob("*.h*")
    }
    assert set(found) == sources
    for name, text in found.items():
        includes = re.findall(r"#include (\S+)", text)
        assert [word for word in includes if word.startswith('"')] == [], name
        assert {word[1:-1] for word in includes if word.startswith("<roost/")} <= set(found), name


def test_roost_h_includes_all_that_is_for_users(include_folder: Path) -> None:
    included = set(re.findall(r"#include <roost/(\S+)>", (include_folder / "roost/roost.h").read_text()))
    assert included == {path.name for path in (include_folder / "roost").glob("*.h")} - {"roost.h", "export.h"}


def test_what_can_fail_must_be_looked_at(include_folder: Path) -> None:
    declared = [
        text
        for path in include_folder.rglob("*.h")
        for text in re.findall(r"^ROOST_API [^;]*;", path.read_text(), re.M)
    ]
    failing = [
        text
        for text in declared
        if "struct roost_error *err" in text or text.startswith("ROOST_API enum roost_code roost_")
    ]
    assert len(failing) > 50
    assert [text for text in failing if "ROOST_MUST_USE" not in text] == []


# What a door of the design lets through, by the folder that owns it.
DOORS = {
    "base": {"write"},  # whole files, for those below
    "port": {"socket", "bind", "connect", "write"},  # TCP without a listener, and the lease files
    "rpc": {
        "socket",
        "bind",
        "connect",
        "listen",
        "accept4",
        "socketpair",
        "write",
    },  # Unix sockets, waking who waits on them
    "supervise": {
        "fork",
        "execve",
        "kill",
        "raise",
        "_exit",
        "sigaction",
        "signal",
        "write",
    },  # processes, their records
    "agent": {"write"},  # to the link
    "run": {"kill", "sigaction", "signal", "write"},  # a driver's signals, waking other runs, the page
    "topology": {"getaddrinfo"},  # names, for who asks
}


def wanted_by_folder(library: Path) -> dict[str, set[str]]:
    """Folder of src/ -> the names that its objects want from elsewhere."""
    wanted: dict[str, set[str]] = {}
    folder = ""
    for line in run("nm", "-u", library).splitlines():
        if line.endswith(".o:"):
            folder = line.split("_")[0]
        elif " U " in line:
            wanted.setdefault(folder, set()).add(line.split()[-1].split("@")[0])
    return wanted


def test_the_library_never_prints_exits_or_reads_the_environment(library_folder: Path) -> None:
    wanted = wanted_by_folder(library_folder / "libroost.a")
    assert "malloc" in wanted["base"] and {"bind", "socket"} < wanted["port"], "nm was understood"
    forbidden = {
        *("exit", "_exit", "_Exit", "quick_exit", "abort", "raise", "kill", "signal", "sigaction", "atexit"),
        *(
            "printf",
            "vprintf",
            "puts",
            "putchar",
            "fputs",
            "fputc",
            "fwrite",
            "fprintf",
            "vfprintf",
            "perror",
            "dprintf",
            "write",
        ),
        *("__printf_chk", "__fprintf_chk", "__vfprintf_chk", "__vprintf_chk", "__dprintf_chk"),
        *("stdout", "stderr", "stdin", "getenv", "secure_getenv", "setenv", "putenv", "environ", "setlocale", "syslog"),
        *("fork", "vfork", "execve", "execvp", "posix_spawn", "system", "popen", "getaddrinfo", "dlopen"),
        *("socket", "connect", "bind", "listen", "accept", "accept4", "socketpair"),
    }
    found = {folder: (names & forbidden) - DOORS.get(folder, set()) for folder, names in wanted.items()}
    assert {folder: names for folder, names in found.items() if names} == {}


def test_one_door_leads_to_the_resolver(library_folder: Path) -> None:
    """Names are looked up by who asks for it, in one place."""
    members = run("nm", "-A", "-u", library_folder / "libroost.a").splitlines()
    asking = {
        line.split(":")[1]
        for line in members
        if line.split()[-1].split("@")[0] in ("getaddrinfo", "getnameinfo", "gethostbyname")
    }
    assert {name.removesuffix(".o") for name in asking} == {"topology_probe_names.c"}


LARGE_OVERRIDE = r"""
#include <roost/roost.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

/* An override of a megabyte: more than a command line can carry. argv[1] is what it is made of. */
int main(int argc, char **argv)
{
    static const char config[] = "cluster:\n  num_nodes: 1\n  component_placement:\n    actor: 0\n";
    static const char key[] = "cluster.component_placement.actor=";
    enum { SIZE = 1000000 };
    struct rlimit limit = {64 << 20, 64 << 20};
    char *override = malloc(sizeof key + SIZE);
    if (argc != 2 || !override || setrlimit(RLIMIT_AS, &limit) != 0)
        return 1;
    strcpy(override, key);
    char *at = override + strlen(key), *end = at + SIZE;
    for (unsigned rank = 0; end - at > 16; rank += 2)
        at += snprintf(at, 16, argv[1], rank);
    const char *overrides[] = {override};
    struct roost_config_options options = {.path = "c.yaml", .text = config, .text_len = strlen(config),
                                           .overrides = overrides, .override_count = 1};
    struct roost_error err;
    struct roost_config *loaded = roost_config_load(&options, NULL, &err);
    printf("%s %s:%d:%d\n", roost_code_word(err.code), err.file, (int)err.line, (int)err.column);
    roost_config_free(loaded);
    free(override);
    return loaded ? 1 : 0;
}
"""


@pytest.mark.parametrize("piece", ["%u,", "x%u"])
def test_an_override_of_a_megabyte_is_refused(
    tmp_path: Path, flags: dict[str, list[str]], library_folder: Path, piece: str
) -> None:
    source = tmp_path / "large.c"
    source.write_text(LARGE_OVERRIDE)
    run("cc", "-std=gnu17", "-Wall", "-Wextra", source, *flags["shared"], "-o", tmp_path / "large")
    out = run(tmp_path / "large", piece, env={"LD_LIBRARY_PATH": str(library_folder)})
    assert out == "limit command line:1:35\n"
