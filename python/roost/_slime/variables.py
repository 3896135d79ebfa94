"""What trainers are started with beside their ranks: the user's variables, and a library to preload. The C library makes the
variables of it. And how arguments are set."""

import importlib
from collections.abc import Mapping, MutableMapping
from pathlib import Path
from typing import Any

from roost import _roost
from roost._plan.config import environment
from roost._plan.errors import fault
from roost._slime.layout import argument, lay_out

MEMORY_SAVER = "torch_memory_saver_hook_mode_preload"
MEMORY_SAVERS = (f"{MEMORY_SAVER}_cu13.abi3.so", f"{MEMORY_SAVER}_cu12.abi3.so", f"{MEMORY_SAVER}.abi3.so")


def own_variables(args: Any) -> dict[str, str]:
    """args.train_env_vars, checked: roost.Error names one that the user may not set."""
    given = argument(args, "train_env_vars") or {}
    if not isinstance(given, Mapping):
        raise TypeError(f"train_env_vars must be a mapping from names to values, not {given!r}")
    own = {str(name): str(value) for name, value in given.items()}
    _roost.trainer_variables(-1, 0, None, 0, None, None, None, False, [], environment(own))
    return own


def offloads(args: Any) -> bool:
    """As it is set, else as the plan says."""
    given = argument(args, "offload_train")
    return bool(lay_out(args, None, None, True)["offload_train"] if given is None else given)


def memory_saver(args: Any, is_slimes: bool) -> str | None:
    """The library that trainers which offload preload. `is_slimes`: they are slime's own, whose backend is Megatron by default."""
    backend = argument(args, "train_backend") or ("megatron" if is_slimes else None)
    if backend != "megatron" or not offloads(args):
        return None
    hint = "install torch_memory_saver, or turn offload_train off"
    try:
        module = importlib.import_module("torch_memory_saver")
    except ImportError as error:
        raise fault(
            _roost.Error, f"offload_train needs torch_memory_saver: {error}", hint=hint, code="reference"
        ) from error
    folder = Path(str(module.__file__)).parents[1]
    for name in MEMORY_SAVERS:
        if (folder / name).exists():
            return str(folder / name)
    raise fault(
        _roost.Error,
        f"{folder} has no library of torch_memory_saver: {', '.join(MEMORY_SAVERS)}",
        hint=hint,
        code="reference",
    )


def set_argument(args: Any, name: str, value: Any) -> None:
    if isinstance(args, MutableMapping):
        args[name] = value
    else:
        setattr(args, name, value)
