"""The program that this process runs: its name, and what it ends with."""

import contextlib
import sys
from collections.abc import Iterator
from contextvars import ContextVar
from pathlib import Path

INTERRUPTED = 130  # 128 + SIGINT

ended_by: ContextVar[BaseException | None] = ContextVar("ended_by", default=None)


def script_name() -> str:
    """What `roost ps` calls this program: the file name of the script, else how Python was started."""
    main = sys.modules.get("__main__")
    spec = getattr(main, "__spec__", None)
    if spec is not None and spec.name:
        return f"python -m {spec.name.removesuffix('.__main__')}"
    file = getattr(main, "__file__", None)
    if file:
        return Path(file).name
    if "ipykernel" in sys.modules:
        return "notebook"
    return "python -c" if sys.argv[:1] == ["-c"] else "python"


@contextlib.contextmanager
def ending(raised: BaseException | None) -> Iterator[None]:
    """What is closed inside is closed because of this exception; None = because its work is done."""
    token = ended_by.set(raised)
    try:
        yield
    finally:
        ended_by.reset(token)


def uncaught() -> BaseException | None:
    """The exception that ends this program, for handlers of atexit. A prompt goes on after the exceptions that it shows."""
    if hasattr(sys, "ps1") or "ipykernel" in sys.modules:
        return None
    return getattr(sys, "last_exc", None) or getattr(sys, "last_value", None)


def closing_status() -> int:
    """The status that a group which is closed now ends with: 0 = its work is done."""
    raised = ended_by.get()
    if raised is None:
        return 0
    if isinstance(raised, KeyboardInterrupt):
        return INTERRUPTED
    if isinstance(raised, SystemExit):
        code = raised.code
        return 0 if code is None else code & 127 or (1 if code else 0) if isinstance(code, int) else 1
    return 1
