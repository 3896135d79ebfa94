"""The enumerations of plans: accelerator types and placement modes."""

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


# Placement.accelerator_type answers with these.
_roost.set_accelerator_types(tuple(AcceleratorType(name) for name in _roost.accelerator_types))
