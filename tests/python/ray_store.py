"""Ray's control store as a dictionary, for tests of what the managers of a run keep there."""

import asyncio
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from roost._ray import journal as ray_journal


class Store:
    """Keys and values; `before` is called with each key that is written."""

    def __init__(self) -> None:
        self.values: dict[bytes, bytes] = {}
        self.before: Callable[[str], None] = lambda key: None

    def _internal_kv_get(self, key: str | bytes, *, namespace: str) -> bytes | None:
        return self.values.get(key if isinstance(key, bytes) else key.encode())

    def _internal_kv_list(self, prefix: str, *, namespace: str) -> list[bytes]:
        return [key for key in reversed(self.values) if key.startswith(prefix.encode())]

    def _internal_kv_exists(self, key: str, *, namespace: str) -> bool:
        return key.encode() in self.values

    def _internal_kv_put(self, key: str, value: bytes, overwrite: bool, *, namespace: str) -> bool:
        self.before(key)
        was_there = key.encode() in self.values
        if overwrite or not was_there:
            self.values[key.encode()] = value
        return was_there

    def _internal_kv_del(self, key: str, *, del_by_prefix: bool, namespace: str) -> None:
        for found in self._internal_kv_list(key, namespace=namespace):
            del self.values[found]


@pytest.fixture
def store(monkeypatch: pytest.MonkeyPatch) -> Iterator[Store]:
    made = Store()
    monkeypatch.setattr(ray_journal, "store", lambda: made)
    yield made


@pytest.fixture
def hasty(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ray_journal, "KEEP_SECONDS", 0.05)
    monkeypatch.setattr(ray_journal, "PAUSE", 0.01)


def refuse(key: str) -> None:
    raise RuntimeError("the control store is gone\nand so on")


async def settle(future: "asyncio.Task[Any]") -> None:
    for _ in range(20):
        await asyncio.sleep(0)
    assert not future.done()
