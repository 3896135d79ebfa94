"""What the warm interpreter of a group imports before it forks: the libraries that its class uses.

Code of the user's own is left to the workers. It may read the variables of its rank while it is imported, and one
rank's values must not be in another."""

import os
import sys
import sysconfig
from types import ModuleType
from typing import Any

LIBRARIES = tuple(os.path.join(sysconfig.get_path(name), "") for name in ("stdlib", "platstdlib", "purelib", "platlib"))


def module_of(value: Any) -> str | None:
    name = value.__name__ if isinstance(value, ModuleType) else getattr(value, "__module__", None)
    return name if isinstance(name, str) else None


def is_library(name: str) -> bool:
    module = sys.modules.get(name)
    origin = getattr(module, "__file__", None)
    return bool(origin) and str(origin).startswith(LIBRARIES)


def library_modules(cls: type) -> list[str]:
    """Installed modules that the modules of the class and its bases name at their top."""
    names: set[str] = set()
    for one in cls.__mro__:
        home = sys.modules.get(one.__module__)
        if home is None or is_library(one.__module__) or one.__module__.partition(".")[0] == "roost":
            continue
        for value in list(vars(home).values()):
            name = module_of(value)
            if name and is_library(name):
                names.add(name)
    return sorted(names)
