"""roost warns about a plain scalar exactly where OmegaConf, RLinf's reader, sees another text in it."""

import json
import random
import re
import subprocess
from pathlib import Path

import yaml
from omegaconf import OmegaConf

from transcripts import ROOST

LISTED = """
0 7 -7 +7 00 07 007 010 0100 08 09 -010 +010 0b0 0b101 -0b1 0b2 0B1 0o17 0x0 0x10 0xfF 0XFF -0x1 0x 0b 0xg
1_0 1__0 _1 1_ 0_7 0x_1 12_345 9223372036854775807 9223372036854775808 99999999999999999999 -99999999999999999999
099999999999999999999999 0xffffffffffffffffffff 1:0 1:30 1:60 1:59:59 01:30 0:30 -1:30 +1:30 1:3:0 1:300 1:5:5:5 1:30.5 -1:30.25
1.0 1.5 1.50 01.5 .5 5. -.5 +.5 0.1 0.10 1.25 100.0 1e3 1E3 1e+3 1e-3 1.0e3 1.5e3 1.5e+3 1.5e-3 1e5 1e400 -1e400 1e-400 e3 1e
0.0001 0.00001 1e15 1e16 1e17 123456789012345678.0 1_0.5 1.0_5 1._5 .5e3 .5e+3 ._5 . .. ... -. +. 1.2.3 -0.0 0.0 -0
.inf .Inf .INF +.inf -.inf -.INF .nan .NaN .NAN inf nan Infinity NaN -.nan .iNf
true True TRUE tRUE false False FALSE yes Yes YES yEs no No NO on On ON off Off OFF y Y n N t f
null Null NULL nULL ~ none None nil 2001-12-14 2001-12-14T21:59:43Z 2001-01 12:30:45 1.2.3.4 10.0.0.1 4090 a800 A800 v1.0 1a 1-2 0-7 0,1
1,000 +1 ++1 -- 1e3e3 1e3.5 0.e1 0.e 1.e5 1.e 00.5 00e1 0e0 1e00 1e+ 1e- 1.5E 1e_3 1e3_0 0x1.8 0b1.1 12e03 -1e3 +1e3 -5. +5.
""".split()


def generated() -> list[str]:
    """Scalars of the characters that numbers, truths and times are made of, always the same."""
    dice = random.Random(11)
    texts = [
        "".join(dice.choices("0123456789", k=1) + dice.choices("0011259_.:+-eExbf", k=dice.randint(0, 7)))
        for _ in range(500)
    ]
    texts += ["".join(dice.choices("0159_.:+-eE", k=dice.randint(1, 9))) for _ in range(400)]
    # Up to 15 digits are the same in every reader; beyond them roost warns without looking closer.
    texts += [
        repr(float(f"{dice.uniform(-1, 1) * 10.0 ** dice.randint(-20, 20):.{dice.randint(1, 15)}g}"))
        for _ in range(200)
    ]
    return texts


def is_plain(text: str) -> bool:
    """Whether the text, written behind a key, is one plain scalar and itself."""
    try:
        root = yaml.compose(f"- V: {text}\n")
    except yaml.YAMLError:
        return False
    value = root.value[0].value[0][1] if isinstance(root, yaml.SequenceNode) else None
    return isinstance(value, yaml.ScalarNode) and value.style is None and value.value == text


def scalars() -> list[str]:
    return [text for text in dict.fromkeys(LISTED + generated()) if is_plain(text)]


def warned_lines(folder: Path, config: str) -> set[int]:
    (folder / "config.yaml").write_text(config)
    done = subprocess.run(
        [ROOST, "check", "--json", "config.yaml"], cwd=folder, env={}, capture_output=True, text=True, timeout=60
    )
    report = json.loads(done.stdout)
    assert report["errors"] == []
    return {warning["line"] for warning in report["warnings"] if warning["code"] == "reading"}


def seen_by_omegaconf(text: str) -> str:
    try:
        return str(OmegaConf.create(f"V: {text}\n").V)
    except ValueError as error:  # 0x_: a number by its pattern, and none when it is read
        return f"an error: {error}"


def compare(texts: list[str], warned: set[str]) -> None:
    seen = {text: seen_by_omegaconf(text) for text in texts}
    noise = [text for text in texts if text in warned and seen[text] == text]
    silence = {text: seen[text] for text in texts if text not in warned and seen[text] != text}
    assert (noise, silence) == ([], {})


def test_values_of_variables(tmp_path: Path) -> None:
    warned: set[str] = set()
    texts = scalars()
    assert len(texts) > 800
    for first in range(0, len(texts), 200):  # reports keep a few hundred entries, not all
        some = texts[first : first + 200]
        head = "cluster:\n  num_nodes: 1\n  component_placement: {actor: {node_group: g, placement: 0}}\n  node_groups:\n    - label: g\n      node_ranks: 0\n      env_configs:\n        - node_ranks: 0\n          env_vars:\n"
        start = head.count("\n") + 1
        lines = warned_lines(tmp_path, head + "".join(f"            - V{i}: {text}\n" for i, text in enumerate(some)))
        warned |= {some[line - start] for line in lines}
    compare(texts, warned)


def test_labels_and_component_names(tmp_path: Path) -> None:
    names = [text for text in scalars() if re.fullmatch(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,62}", text)]
    names = [name for name in names if name.lower() != "null"]  # a null label is no label
    assert len(names) > 200
    warned: set[str] = set()
    for first in range(0, len(names), 100):
        some = names[first : first + 100]
        config = "cluster:\n  num_nodes: 1\n  node_groups:\n" + "".join(
            f"    - {{node_ranks: 0, label: {name}}}\n" for name in some
        )
        config += "  component_placement:\n" + "".join(
            f"    {name}: {{placement: 0, node_group: [{name}]}}\n" for name in some
        )
        lines = warned_lines(tmp_path, config)
        as_label = {some[line - 4] for line in lines if line < 4 + len(some)}
        as_name = {some[line - 5 - len(some)] for line in lines if line > 4 + len(some)}
        assert as_label == as_name
        warned |= as_label
    compare(names, warned)
