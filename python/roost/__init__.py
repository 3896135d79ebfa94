"""roost: places of the workers of distributed RL jobs.

The names are RLinf's, the answers are the C planner's:

>>> import roost
>>> strategy = roost.PackedPlacementStrategy(0, 3, num_hardware_per_process=2)
>>> for placement in strategy.get_placement(roost.Cluster(cluster="2x2")):
...     print(placement.rank, placement.cluster_node_rank, placement.visible_accelerators)
0 0 ['0', '1']
1 1 ['0', '1']
"""

from collections.abc import Sequence as _Sequence
from sys import version_info as _version_info

if _version_info < (3, 11):
    raise ImportError("roost needs Python 3.11 or later, and this is Python %d.%d.%d" % _version_info[:3])

from roost import _roost
from roost._plan.component import ComponentPlacement, HybridComponentPlacement, ModelParallelComponentPlacement
from roost._plan.config import ClusterConfig, NodeGroupConfig
from roost._plan.enums import AcceleratorType, PlacementMode
from roost._plan.errors import EngineError, PlanWarning, Timeout, WorkerError
from roost._plan.nodes import Accelerator, HardwareInfo, HardwareResource, NodeGroupEnvConfig, NodeGroupInfo, NodeInfo
from roost._plan.strategy import (
    FlexiblePlacementStrategy,
    NodePlacementStrategy,
    PackedPlacementStrategy,
    PlacementStrategy,
)
from roost._roost import Column, Error, Placement, Placements, RankError
from roost._work.addresses import CollectiveGroupInfo, WorkerAddress, WorkerInfo
from roost._work.cluster import Cluster
from roost._work.group import WorkerGroup
from roost._work.managers import CollectiveManager, DeviceLockManager, NodeManager, PortLockManager, WorkerManager
from roost._work.worker import Worker

_Sequence.register(Placements)

__version__ = _roost.version

__all__ = [
    "Accelerator",
    "AcceleratorType",
    "Cluster",
    "ClusterConfig",
    "CollectiveGroupInfo",
    "CollectiveManager",
    "Column",
    "ComponentPlacement",
    "DeviceLockManager",
    "EngineError",
    "Error",
    "FlexiblePlacementStrategy",
    "HardwareInfo",
    "HardwareResource",
    "HybridComponentPlacement",
    "ModelParallelComponentPlacement",
    "NodeGroupConfig",
    "NodeGroupEnvConfig",
    "NodeGroupInfo",
    "NodeInfo",
    "NodeManager",
    "NodePlacementStrategy",
    "PackedPlacementStrategy",
    "Placement",
    "PlacementMode",
    "PlacementStrategy",
    "Placements",
    "PlanWarning",
    "PortLockManager",
    "RankError",
    "Timeout",
    "Worker",
    "WorkerAddress",
    "WorkerError",
    "WorkerGroup",
    "WorkerInfo",
    "WorkerManager",
]
