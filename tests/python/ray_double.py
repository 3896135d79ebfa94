"""A Ray of a few facts, for tests of what the engine says when the real one is not as it should be."""

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest

errors = pytest.importorskip("ray").exceptions


class Method:
    """Of an actor: what it is asked goes to a function, and raises where the answer is fetched."""

    def __init__(self, answer: Callable[..., Any]) -> None:
        self.answer = answer

    def options(self, **options: Any) -> "Method":
        return self

    def remote(self, *args: Any) -> Callable[[], Any]:
        return lambda: self.answer(*args)


def actor(**methods: Callable[..., Any]) -> Any:
    return SimpleNamespace(**{name: Method(answer) for name, answer in methods.items()})


def raising(error: BaseException) -> Callable[..., Any]:
    def answer(*args: Any, **words: Any) -> None:
        raise error

    return answer


def fake_ray(**words: Any) -> Any:
    context = SimpleNamespace(get_actor_id=lambda: None, get_job_id=lambda: "01")
    facts: dict[str, Any] = {
        "is_joined": True,
        "check": lambda: None,
        "exceptions": errors,
        "get": lambda ref, timeout=None: ref(),
        "nodes": lambda: [{"NodeID": "n", "Alive": True, "Resources": {}}],
        "get_runtime_context": lambda: context,
        "util": SimpleNamespace(list_named_actors=lambda all_namespaces: []),
    }
    return SimpleNamespace(**facts | words)
