"""The roost program, whose processes guard runs and keep managers."""

import os
import shutil
import sys
import sysconfig
from pathlib import Path

from roost._plan.errors import EngineError


def find_program() -> str:
    """The one that came with this package: ROOST_PROGRAM, in the build, beside the interpreter, on the path."""
    named = os.environ.get("ROOST_PROGRAM")
    if named:
        return named
    places = [
        Path(__file__).parents[3] / "roost",
        Path(sys.executable).with_name("roost"),
        Path(sysconfig.get_path("scripts")) / "roost",
    ]
    for place in places:
        if place.is_file() and os.access(place, os.X_OK):
            return str(place)
    found = shutil.which("roost")
    if found is None:
        raise EngineError(
            f"the roost program is not there: it was looked for at {', '.join(map(str, places))} and on PATH"
        )
    return found
