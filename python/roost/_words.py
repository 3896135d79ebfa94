"""Words that placements use, and how things are said to Python."""

import warnings
from collections.abc import Iterable
from enum import Enum

from roost import _roost


class AcceleratorType(str, Enum):
    """The vendor type of a node's accelerators; equal to its text."""

    NO_ACCEL = "NO_ACCEL"
    NV_GPU = "NV_GPU"
    AMD_GPU = "AMD_GPU"
    NPU = "NPU"
    INTEL_GPU = "INTEL_GPU"
    MUSA_GPU = "MUSA_GPU"
    KUNLUN_XPU = "KUNLUN_XPU"


class PlacementMode(str, Enum):
    """How the components of a config share the cluster."""

    COLLOCATED = "collocated"
    DISAGGREGATED = "disaggregated"
    HYBRID = "hybrid"
    AUTO = "auto"


class PlanWarning(UserWarning):
    """What is legal in a config or cluster but looks like a slip."""


def warn(said: Iterable[tuple[str, str, str, str]], stacklevel: int) -> None:
    """Hands the planner's warnings to Python's; `stacklevel` counts from the caller."""
    for _, place, message, hint in said:
        text = (f"{place}: " if place else "") + message + (f" ({hint})" if hint else "")
        warnings.warn(text, PlanWarning, stacklevel=stacklevel + 1)


# Placement.accelerator_type answers with these.
_roost.set_accelerator_types(tuple(AcceleratorType(name) for name in _roost.accelerator_types))
