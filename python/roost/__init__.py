"""roost: places of the workers of distributed RL jobs.

The names are RLinf's, the answers are the C planner's:

>>> import roost
>>> strategy = roost.PackedPlacementStrategy(0, 3, num_hardware_per_process=2)
>>> for placement in strategy.get_placement(roost.Cluster(cluster="2x2")):
...     print(placement.rank, placement.cluster_node_rank, placement.visible_accelerators)
0 0 ['0', '1']
1 1 ['0', '1']
"""

from collections.abc import Sequence

from roost._addresses import CollectiveGroupInfo, WorkerAddress, WorkerInfo
from roost._cluster import Cluster
from roost._component import ComponentPlacement, HybridComponentPlacement, ModelParallelComponentPlacement
from roost._config import ClusterConfig, NodeGroupConfig
from roost._errors import EngineError, Timeout, WorkerError
from roost._group import WorkerGroup
from roost._managers import CollectiveManager, DeviceLockManager, NodeManager, PortLockManager, WorkerManager
from roost._nodes import Accelerator, HardwareInfo, HardwareResource, NodeGroupEnvConfig, NodeGroupInfo, NodeInfo
from roost._roost import Column, Error, Placement, Placements, RankError
from roost._roost import version as __version__
from roost._strategy import FlexiblePlacementStrategy, NodePlacementStrategy, PackedPlacementStrategy, PlacementStrategy
from roost._words import AcceleratorType, PlacementMode, PlanWarning
from roost._worker import Worker

Sequence.register(Placements)

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
