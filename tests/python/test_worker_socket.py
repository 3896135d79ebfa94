"""The pieces below groups: values as bytes, the worker's end of a connection, what is preloaded, what is shown."""

import io
import os
import signal
import socket
import sys
import threading
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import roost
import worker_classes
from chance import PROFILE
from roost import _roost
from roost._local.screen import Followed
from roost._local.warm import library_modules
from roost._work.codec import ALIGNMENT, LARGE, decode, encode
from roost._work.logs import log_level


def sent(value: object) -> memoryview:
    return memoryview(b"".join(encode((value,))))


VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False)
    | st.text()
    | st.binary()
    | st.integers(LARGE, LARGE + 9).map(bytes),
    lambda inner: st.lists(inner, max_size=4) | st.tuples(inner, inner) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=8,
)


@settings(PROFILE, max_examples=60)
@given(VALUES)
def test_a_value_is_itself_when_it_has_been_sent(value: object) -> None:
    (back,) = decode(sent(value))
    assert back == value and type(back) is type(value)


@settings(PROFILE, max_examples=40)
@given(st.lists(st.integers(0, 3 * ALIGNMENT), max_size=6))
def test_arrays_are_aligned_views_of_the_message(sizes: list[int]) -> None:
    arrays = [np.arange(size, dtype=np.uint8) for size in sizes]
    message = np.frombuffer(sent(arrays), np.uint8)
    (back,) = decode(memoryview(message).toreadonly())
    for array, other in zip(arrays, back, strict=True):
        assert np.array_equal(array, other) and not other.flags.writeable
        if other.size:
            assert np.shares_memory(other, message)
            assert (other.ctypes.data - message.ctypes.data) % ALIGNMENT == 0


def test_large_bytes_are_not_copied_when_they_are_sent() -> None:
    data = bytes(LARGE)
    parts = encode((((data,), {}),))
    assert sum(part.obj is data for part in parts if isinstance(part, memoryview)) == 1


def test_what_the_main_script_defines_goes_by_value(monkeypatch: pytest.MonkeyPatch) -> None:
    main = ModuleType("__main__")
    exec("class Thing:\n    def twice(self, number): return 2 * number\n", main.__dict__)
    monkeypatch.setitem(sys.modules, "__main__", main)
    message = sent(main.Thing())
    monkeypatch.setitem(sys.modules, "__main__", ModuleType("__main__"))
    assert decode(message)[0].twice(4) == 8


# --- the worker's end


def test_a_worker_needs_a_connection() -> None:
    with pytest.raises(roost.Error, match="this process has no socket to a driver"):
        _roost.WorkerSocket.open({"PATH": "/bin"})
    with pytest.raises(roost.Error, match="ROOST_CALL_SOCKET does not name a socket: 'x'"):
        _roost.WorkerSocket.open({"ROOST_CALL_SOCKET": "x"})
    with pytest.raises(TypeError, match="environ must map str to str"):
        _roost.WorkerSocket.open({"A": 1})  # type: ignore[dict-item]
    with pytest.raises(roost.Error, match="is not a socket to a driver"):
        _roost.WorkerSocket(-1)


def connection() -> tuple[socket.socket, _roost.WorkerSocket]:
    driver, worker = socket.socketpair()
    return driver, _roost.WorkerSocket(worker.detach())


def test_a_wait_ends_in_time_with_the_driver_or_with_garbage() -> None:
    driver, ours = connection()
    assert ours.next(0) is None and ours.next(0.01) is None and not ours.is_over
    assert ours.fd > 2
    driver.close()
    assert ours.next() is None and ours.is_over
    with pytest.raises(roost.Error, match="the driver has gone"):
        ours.ready([b"hello"])
    driver, ours = connection()
    driver.sendall(b"no frame at all, but long enough to be looked at as if it were one")
    with pytest.raises(roost.Error, match="what the driver sent is not a request"):
        ours.next()
    with pytest.raises(ValueError, match="timeout must be seconds from 0 on"):
        ours.next(-1)
    with pytest.raises(TypeError):
        ours.ready([1])  # type: ignore[list-item]


def test_signals_are_handled_while_a_request_is_waited_for() -> None:
    driver, ours = connection()
    caught = threading.Event()

    def disturb() -> None:
        while not caught.wait(0.01):
            os.kill(os.getpid(), signal.SIGUSR1)

    def handle(*_: object) -> None:
        caught.set()
        driver.close()

    before = signal.signal(signal.SIGUSR1, handle)
    try:
        thread = threading.Thread(target=disturb)
        thread.start()
        assert ours.next() is None and ours.is_over and caught.is_set()
        thread.join()
    finally:
        signal.signal(signal.SIGUSR1, before)


def test_one_thread_at_a_time_takes_requests() -> None:
    driver, ours = connection()

    def take() -> None:
        while not ours.is_over:
            try:
                ours.next()
            except RuntimeError:
                pass  # the other one was there first

    thread, pause = threading.Thread(target=take), threading.Event()
    thread.start()
    with pytest.raises(RuntimeError, match="another thread is waiting for the next request"):
        while True:
            ours.next(0)
            pause.wait(0.01)
    driver.close()
    thread.join()


# --- what is preloaded, and what is shown


def test_libraries_are_preloaded_and_the_users_own_modules_are_not() -> None:
    names = library_modules(worker_classes.Many)
    assert {"numpy", "asyncio", "threading"} <= set(names)
    assert not {"worker_classes", "roost", "roost._work.worker"} & set(names)


def test_lines_are_shown_whole_with_their_rank(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "stdout.log"
    followed = Followed(path, "a", 0, False)
    followed.show(False)
    path.write_bytes(b"one\ntw")
    followed.show(False)
    assert capsys.readouterr().out == "[a/0] one\n"
    with path.open("ab") as file:
        file.write(b"o \x1b[31mred\x1b[2J\xff\nthree")
    followed.show(False)
    assert capsys.readouterr().out == "[a/0] two red\\x1b[2J\\xff\n"
    followed.show(True)
    followed.show(True)
    assert capsys.readouterr().out == "[a/0] three\n"


def test_a_progress_bar_is_one_line_and_none_is_lost(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "stderr.log"
    followed = Followed(path, "a", 1, True)
    with path.open("ab", buffering=0) as file:
        for step in range(20):
            file.write(b"\r %d%%" % (5 * step))
            followed.show(False)
        file.write(b"\r100%\nnext\n\r 1%\r 2%")
        followed.show(False)
    assert capsys.readouterr().err == "[a/1] 100%\n[a/1] next\n"
    followed.show(True)
    assert capsys.readouterr().err == "[a/1]  2%\n"


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize(
    ("no_color", "shown"), [("", "\x1b[38;5;32m[actor/0]\x1b[0m \x1b[31mred\x1b[0m\n"), ("1", "[actor/0] red\n")]
)
def test_colours_pass_on_a_terminal(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, no_color: str, shown: str) -> None:
    path = tmp_path / "stdout.log"
    path.write_bytes(b"\x1b[31mred\n")
    monkeypatch.setenv("NO_COLOR", no_color)
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setattr(sys, "stdout", terminal := Terminal())
    Followed(path, "actor", 0, False).show(False)
    assert terminal.getvalue() == shown


@pytest.mark.parametrize(("word", "level"), [("", 20), ("WARN", 30), ("warning", 30), ("CRITICAL", 50), ("DEBUG", 10)])
def test_levels_of_the_log(word: str, level: int) -> None:
    assert log_level({"RLINF_LOG_LEVEL": word}) == level
