"""What the environment sets for runs on this machine. `roost run` reads the same variables, with the same words."""

import os

from roost import _roost


def port_base() -> int:
    """ROOST_PORT_BASE: the first port that leases try; 0 = as ever."""
    text = os.environ.get("ROOST_PORT_BASE") or ""
    if not text:
        return 0
    if not (text.isascii() and text.isdigit() and 1024 <= int(text[:9]) <= 65535):
        raise _roost.Error(f"ROOST_PORT_BASE is a port from 1024 to 65535, not {text!r}")
    return int(text)


def has_cgroup() -> bool:
    """ROOST_CGROUP: whether a run may have a control group."""
    word = os.environ.get("ROOST_CGROUP") or "auto"
    if word not in ("auto", "never"):
        raise _roost.Error(f"ROOST_CGROUP is 'auto' or 'never', not {word!r}")
    return word == "auto"
