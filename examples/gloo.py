"""A collective of torch.distributed, formed by the environment that roost gives every process, and nothing else.

From the top of the repository, where torch is installed:   build/roost run examples/gloo.yaml
"""

import torch
import torch.distributed as dist

dist.init_process_group("gloo")  # MASTER_ADDR, MASTER_PORT, RANK, WORLD_SIZE
total = torch.tensor([dist.get_rank()])
dist.all_reduce(total)
size = dist.get_world_size()
print(f"rank {dist.get_rank()} of {size}: the ranks sum up to {int(total)}", flush=True)
assert int(total) == size * (size - 1) // 2
dist.destroy_process_group()
