"""In every process of a test's Ray, before anything else: Ray as a plain `pip install ray` has it, and without what it
loads and never uses here. Starting processes is most of what the tests of the Ray engine do, and this is a quarter of it.

Agents of nodes look for the dashboard's packages and load all of it where they are; and `import ray` loads what asks
Google's machines for their TPUs, and what checks plugins of runtime environments."""

import sys
from importlib.machinery import ModuleSpec, PathFinder
from types import ModuleType
from typing import Any

OF_THE_DASHBOARD = ("aiohttp_cors", "opencensus", "prometheus_client")
WHEN_USED = ("jsonschema", "requests")


class Later(ModuleType):
    """Loaded at the first question to it. (importlib's LazyLoader takes a second import for one.)"""

    def __getattr__(self, name: str) -> Any:
        if self.__dict__.pop("loader", None):
            self.__loader__.exec_module(self)  # type: ignore[union-attr]
            return getattr(self, name)
        raise AttributeError(f"module {self.__name__!r} has no attribute {name!r}", name=name, obj=self)


class Frugal:
    """A finder, and the loader of what it finds."""

    def __init__(self, loader: Any) -> None:
        self.loader = loader

    @classmethod
    def find_spec(cls, name: str, path: Any = None, target: Any = None) -> ModuleSpec | None:
        if name in OF_THE_DASHBOARD:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)
        spec = PathFinder.find_spec(name, path) if name in WHEN_USED else None
        if spec is not None:
            spec.loader = cls(spec.loader)  # type: ignore[assignment]
        return spec

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        return Later(spec.name)

    def exec_module(self, module: ModuleType) -> None:
        module.__loader__ = self.loader
        module.__dict__["loader"] = self.loader


sys.meta_path.insert(0, Frugal)  # type: ignore[arg-type]
