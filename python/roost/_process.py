"""What a process of a worker is prepared with before its worker is made."""

import faulthandler
import importlib
import signal
import sys
import warnings
from collections.abc import Mapping

from roost import _roost

FAILURE_SIGNALS = (signal.SIGINT, signal.SIGQUIT, signal.SIGUSR1, signal.SIGUSR2)
CRASH_SIGNALS = (signal.SIGSEGV, signal.SIGABRT)


def prepare_process(environ: Mapping[str, str], catch_system_failure: bool) -> None:
    _roost.allow_tracing()
    if catch_system_failure:
        catch_failures()
    load_extension(environ)


def catch_failures() -> None:
    """A signal of the list prints the stack of every thread, whatever they are doing, and kills the process."""
    faulthandler.disable()  # Ray, or PYTHONFAULTHANDLER, may have enabled it: then it would stay below what comes now
    for number in (*FAILURE_SIGNALS, *CRASH_SIGNALS):
        _roost.die_on(number)
    # They go on to the handlers that were there before, the ones above.
    faulthandler.enable(file=sys.__stderr__ or 2)
    for number in FAILURE_SIGNALS:
        faulthandler.register(number, file=sys.__stderr__ or 2, chain=True)
    _roost.heed_parent(signal.SIGTERM)  # a group that is closed has not failed


def load_extension(environ: Mapping[str, str]) -> None:
    """RLINF_EXT_MODULE is imported and its register() called; what goes wrong is a warning."""
    name = environ.get("RLINF_EXT_MODULE")
    if not name:
        return
    try:
        importlib.import_module(name).register()
    except Exception as error:
        warnings.warn(f"RLINF_EXT_MODULE {name!r} could not be loaded: {type(error).__name__}: {error}", stacklevel=2)
