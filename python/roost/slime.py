"""slime's placement groups: what to reserve, whose it is, and the trainers that run in it.

``args`` is any object with slime's argument names as attributes, such as an ``argparse.Namespace``,
or a mapping with them as keys; what it does not have takes slime's default. Texts mean what they
say: ``${...}`` in them is no interpolation. Everything is decided by the C planner.

A plan needs no cluster:

>>> from types import SimpleNamespace
>>> args = SimpleNamespace(actor_num_nodes=2, rollout_num_gpus=32, rollout_num_gpus_per_engine=16)
>>> get_placement_group_layout(args)
(48, 16)
>>> [[part.slot for part in engine.parts] for engine in get_engine_layout(args).engines]
[[16, 24], [32, 40]]
>>> sort_bundles([(0, "10.0.0.10", 0), (1, "10.0.0.9", "GPU-b"), (2, "10.0.0.9", 3)])
[2, 1, 0]
"""

from roost._slime.external import (
    ExternalEngine,
    apply_external_engine_info_to_args,
    discover_external_engines,
    get_model_url,
)
from roost._slime.layout import (
    BundleOrder,
    Engine,
    EngineLayout,
    EnginePart,
    ServerGroup,
    Share,
    get_engine_layout,
    get_placement_group_layout,
    order_bundles,
    sort_bundles,
)
from roost._slime.placement import create_placement_groups, remove_placement_groups
from roost._slime.train import (
    RayTrainGroup,
    TrainGroup,
    allocate_train_group,
    create_actor_model,
    create_training_models,
    get,
)

__all__ = [
    "BundleOrder",
    "Engine",
    "EngineLayout",
    "EnginePart",
    "ExternalEngine",
    "RayTrainGroup",
    "ServerGroup",
    "Share",
    "TrainGroup",
    "allocate_train_group",
    "apply_external_engine_info_to_args",
    "create_actor_model",
    "create_placement_groups",
    "create_training_models",
    "discover_external_engines",
    "get",
    "get_engine_layout",
    "get_model_url",
    "get_placement_group_layout",
    "order_bundles",
    "remove_placement_groups",
    "sort_bundles",
]

# The names under which programs import them.
for name in __all__:
    globals()[name].__module__ = "roost.slime"
