"""What a process of a worker is prepared with before its worker is made."""

import faulthandler
import importlib
import os
import signal
import sys
import warnings
from collections.abc import Mapping

from roost import _roost

# Where each kind of accelerators reads its network interfaces from.
INTERFACES = {
    "NV_GPU": "NCCL_SOCKET_IFNAME",
    "AMD_GPU": "NCCL_SOCKET_IFNAME",
    "NPU": "HCCL_SOCKET_IFNAME",
    "INTEL_GPU": "CCL_MNIC_NAME",
    "MUSA_GPU": "MCCL_SOCKET_IFNAME",
    "KUNLUN_XPU": "BKCL_SOCKET_IFNAME",
}
FAILURE_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGQUIT, signal.SIGUSR1, signal.SIGUSR2)
CRASH_SIGNALS = (signal.SIGSEGV, signal.SIGABRT)


def prepare_process(environ: Mapping[str, str], catch_system_failure: bool) -> None:
    _roost.allow_tracing()
    if catch_system_failure:
        catch_failures()
    copy_interfaces(environ)
    load_extension(environ)


def catch_failures() -> None:
    """A signal of the list prints the stack of every thread, whatever they are doing, and kills the process."""
    for number in (*FAILURE_SIGNALS, *CRASH_SIGNALS):
        _roost.die_on(number)
    # They go on to the handlers that were there before, the ones above.
    faulthandler.enable(file=sys.__stderr__ or 2)
    for number in FAILURE_SIGNALS:
        faulthandler.register(number, file=sys.__stderr__ or 2, chain=True)


def copy_interfaces(environ: Mapping[str, str]) -> None:
    """RLINF_COMM_NET_DEVICES is what the collective libraries use, unless they were told something else."""
    devices = environ.get("RLINF_COMM_NET_DEVICES")
    if not devices:
        return
    for name in filter(None, ("GLOO_SOCKET_IFNAME", INTERFACES.get(environ.get("ACCELERATOR_TYPE", "")))):
        if os.environ.setdefault(name, devices) != devices:
            warnings.warn(f"{name} is {os.environ[name]!r} and stays so: RLINF_COMM_NET_DEVICES is {devices!r}", stacklevel=2)


def load_extension(environ: Mapping[str, str]) -> None:
    """RLINF_EXT_MODULE is imported and its register() called; what goes wrong is a warning."""
    name = environ.get("RLINF_EXT_MODULE")
    if not name:
        return
    try:
        importlib.import_module(name).register()
    except Exception as error:
        warnings.warn(f"RLINF_EXT_MODULE {name!r} could not be loaded: {type(error).__name__}: {error}", stacklevel=2)
