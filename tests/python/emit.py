"""A config as YAML text: enough YAML for generated configs, and no YAML library's opinion of it."""

import json
import re
from typing import Any


def emit_scalar(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return json.dumps(value)  # a JSON string is a double-quoted YAML scalar
    return str(value)


def emit_key(key: str) -> str:
    # ASCII only: plain keys must not look like anything but a word.
    return key if re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", key) else json.dumps(key)


def emit_yaml(value: Any, indent: int = 0) -> str:
    """Block style for what holds something, flow style for `[]`, `{}` and lists of scalars."""
    pad = "  " * indent
    if isinstance(value, dict) and value:
        lines = [f"{pad}{emit_key(key)}:{emit_child(item, indent)}" for key, item in value.items()]
        return "".join(lines)
    if value == {}:
        return "{}\n"
    if isinstance(value, list) and any(isinstance(item, dict) for item in value):
        # A mapping in a list starts on the dash's line: its first pad becomes the dash.
        return "".join(f"{pad}- {emit_yaml(item, indent + 1).lstrip(' ')}" for item in value)
    raise ValueError(f"nothing to write in block style: {value!r}")


def emit_child(value: Any, indent: int) -> str:
    if isinstance(value, list) and not any(isinstance(item, dict) for item in value):
        return f" [{', '.join(emit_scalar(item) for item in value)}]\n"
    if isinstance(value, dict | list):
        return f"\n{emit_yaml(value, indent + 1)}" if value else " {}\n"
    return f" {emit_scalar(value)}\n"
