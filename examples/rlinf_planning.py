"""Prints where RLinf puts every process of a config: python planning.py CONFIG"""

import sys

from omegaconf import OmegaConf
from rlinf.scheduler import Cluster, ComponentPlacement, PackedPlacementStrategy

cfg = OmegaConf.load(sys.argv[1])
cluster = Cluster(cluster_cfg=cfg.cluster)
placement = ComponentPlacement(cfg, cluster)
for name in placement.components:
    print(f"{name}: {placement.get_world_size(name)} processes")
    for process in placement.get_strategy(name).get_placement(cluster):
        devices = ",".join(process.visible_accelerators)
        print(f"  {process.rank} on node {process.cluster_node_rank}, accelerators {devices}")

spare = PackedPlacementStrategy(0, 7, num_hardware_per_process=4, stride=2)
print("strided:", [process.local_hardware_ranks for process in spare.get_placement(cluster)])
