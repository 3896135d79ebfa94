"""What roost.slime does on every engine: scripts of drivers, each with a sentence and the answer. `cluster` is what they hand to
create_placement_groups; they print their answer as JSON."""

import textwrap
from dataclasses import dataclass
from typing import Any

PRELUDE = """
import json, os, sys, tempfile, warnings
import roost
from roost.slime import *
from slime_trainers import *
"""


@dataclass(frozen=True)
class Script:
    """A driver and its answer; ANY stands for what differs between engines."""

    sentence: str
    body: str
    answer: Any

    @property
    def text(self) -> str:
        return textwrap.dedent(self.body)


class Any_:
    """Equal to everything."""

    def __eq__(self, other: object) -> bool:
        return True

    def __hash__(self) -> int:
        return 0

    def __repr__(self) -> str:
        return "ANY"


ANY = Any_()

SUITE = [
    Script(
        "shares are slices of one group in its stable order",
        """
        pgs = create_placement_groups(job(use_critic=True), cluster)
        actor, critic, rollout = pgs["actor"], pgs["critic"], pgs["rollout"]
        print(json.dumps([
            len(actor), sorted(actor[1]), actor is critic, rollout[0] is actor[0], rollout[1] == actor[1][4:], rollout[2] == actor[2][4:],
            actor[0].bundle_count, [actor[0].bundle_specs[0][kind] for kind in ("GPU", "CPU")],
        ]))
        remove_placement_groups(pgs)
        remove_placement_groups(pgs)
        """,
        [3, list(range(8)), True, True, True, True, 8, [1, 1]],
    ),
    Script(
        "the seed's shares are pairs, and a job without a critic has none",
        """
        pgs = create_placement_groups(job(profile="seed", port_base=20000), cluster)
        print(json.dumps([len(pgs["actor"]), len(pgs["rollout"]), pgs["critic"]]))
        remove_placement_groups(pgs)
        """,
        [2, 2, None],
    ),
    Script(
        "a job of no GPUs needs no engine",
        """
        args = job(debug_rollout_only=True, rollout_num_gpus=0)
        print(json.dumps([create_placement_groups(args, cluster), create_placement_groups(args)]))
        """,
        [{"actor": [None, [], []], "critic": None, "rollout": [None, [], []]}] * 2,
    ),
    Script(
        "a trainer has its ranks, its GPU, the rendezvous and the user's variables before its constructor runs",
        """
        pgs = create_placement_groups(job(), cluster)
        group = TrainGroup(job(train_env_vars={"MINE": 5, "NCCL_CUMEM_ENABLE": "2"}), 1, 4, pgs["actor"], actor_cls=Trainer, with_ref=True)
        found = [group.create("the manager", timeout=60), group.create()]
        for rank, (made, variables, calls) in enumerate(get([handle.seen.remote() for handle in group._actor_handlers])):
            port = variables["MASTER_PORT"]
            found.append([
                made == [4, rank, variables["MASTER_ADDR"], int(port)], [variables["RANK"], variables["WORLD_SIZE"]],
                variables["LOCAL_RANK"] == str(pgs["actor"][2][rank]), 1024 <= int(port) < 65536 and not 10002 <= int(port) < 20000,
                variables["NCCL_CUMEM_ENABLE"], variables["MINE"], variables["RAY_USE_UVLOOP"], calls,
            ])
        print(json.dumps(found))
        remove_placement_groups(pgs)
        """,
        [
            [3, 3, 3, 3],
            None,
            *(
                [
                    True,
                    [str(rank), "4"],
                    True,
                    True,
                    "2",
                    "5",
                    "0",
                    [["init", "actor", True, False], ["manager", "the manager"]],
                ]
                for rank in range(4)
            ),
        ],
    ),
    Script(
        "every operation calls all trainers in rank order",
        """
        pgs = create_placement_groups(job(), cluster)
        group = RayTrainGroup(job(), 1, 2, pgs["actor"], actor_cls=Trainer)
        found = [refused(group.update_weights), refused(group.async_train, 1, "d")]
        group.create(timeout=60)
        found += [
            get(group.async_train(1, "data")), get(group.async_train(2, "d", external_data={"a": 1})), get(group.async_train(3, "d", external_data=["x", "y"])),
            refused(group.async_train, 4, "d", external_data=["x"]), group.save_model(5, force_sync=True), group.update_weights(), group.onload(), group.offload(),
            group.clear_memory(), group.set_rollout_manager("m"), get(group.async_eval(6, "e")), get(group.async_save_model(7)),
            get(group.async_update_weights()), get(group.async_offload()), get(group.async_init(job(), "actor")), get(group.async_train(8, "d")[1]), get([]),
        ]
        print(json.dumps(found))
        remove_placement_groups(pgs)
        """,
        [
            ["EngineError", "the trainers of 'actor' do not exist (call create() first, also after release())"],
            ["EngineError", "the trainers of 'actor' do not exist (call create() first, also after release())"],
            [[0, 1, "data", None], [1, 1, "data", None]],
            [[0, 2, "d", {"a": 1}], [1, 2, "d", {"a": 1}]],
            [[0, 3, "d", "x"], [1, 3, "d", "y"]],
            [
                "Error",
                "external_data has 1 items, but 'actor' has 2 ranks: pass one for each, or one value that is not a list",
            ],
            [[0, "saved", 5, True], [1, "saved", 5, True]],
            [[0, "updated"], [1, "updated"]],
            ["awake"] * 2,
            ["asleep"] * 2,
            ["cleared"] * 2,
            [0, 1],
            [[0, "eval", 6, "e"], [1, "eval", 6, "e"]],
            [[0, "saved", 7, False], [1, "saved", 7, False]],
            [[0, "updated"], [1, "updated"]],
            ["asleep"] * 2,
            [3, 3],
            [1, 8, "d", None],
            [],
        ],
    ),
    Script(
        "a critic's references go to the actor as external data",
        """
        args = job(use_critic=True, num_rollout=2)
        pgs = create_placement_groups(args, cluster)
        actor, critic = create_training_models(args, pgs, None, actor_cls=Trainer)
        values = critic.async_train(1, "d")
        first = actor.async_train(1, "d", external_data=values)
        second = actor.async_train(2, "e")
        print(json.dumps([args.start_rollout_id, [actor.role, critic.role], get(first), get(second)[0], get(actor._actor_handlers[0].seen.remote())[2][1:]]))
        remove_placement_groups(pgs)
        """,
        [
            3,
            ["actor", "critic"],
            [[rank, 1, "d", [rank, 1, "d", None]] for rank in range(4)],
            [0, 2, "e", None],
            [["train", 1, "d", [0, 1, "d", None]], ["train", 2, "e", None]],
        ],
    ),
    Script(
        "trainers that do not agree where to start are refused, and none is left",
        """
        args = job()
        pgs = create_placement_groups(args, cluster)
        found = [refused(create_training_models, args, pgs, None, actor_cls=Divided), args.start_rollout_id]
        group = TrainGroup(args, 1, 4, pgs["actor"], 1, actor_cls=Trainer)  # all of each GPU is free again
        print(json.dumps([*found, group.create(timeout=60)]))
        remove_placement_groups(pgs)
        """,
        [["Error", "ranks do not agree where to start: rank 0 says rollout 0, rank 1 says 1"], None, [3] * 4],
    ),
    Script(
        "a rank that raises is named with its traceback, and the answers of the others are kept",
        """
        pgs = create_placement_groups(job(), cluster)
        group = TrainGroup(job(), 1, 3, pgs["actor"], actor_cls=Faulty)
        group.create(timeout=60)
        try:
            group._run("train", (1, "raise"), {}, __import__("time").monotonic() + 60, 60)
        except roost.WorkerError as error:
            print(json.dumps([
                str(error).splitlines()[0].partition(" (")[0], error.rank, error.accelerators == [str(pgs["actor"][2][1])], "in train" in error.traceback,
                "no good data" in str(error), repr(error.__cause__), [[outcome.kind, outcome.value] for outcome in error.outcomes],
            ]))
        remove_placement_groups(pgs)
        """,
        [
            "rank 1 of group 'actor'",
            1,
            True,
            True,
            True,
            "ValueError('no good data')",
            [["value", 0], ["error", None], ["value", 2]],
        ],
    ),
    Script(
        "a rank that dies is named, and after release() all of them can be created again",
        """
        pgs = create_placement_groups(job(), cluster)
        group = TrainGroup(job(), 1, 3, pgs["actor"], actor_cls=Faulty)
        group.create(timeout=60)
        try:
            group._run("train", (1, "die"), {}, __import__("time").monotonic() + 60, 60)
        except roost.WorkerError as error:
            found = [error.rank, [outcome.kind for outcome in error.outcomes], "ended" in str(error)]
        pids = get([group._actor_handlers[rank].pid.remote() for rank in (0, 2)])
        group.release()
        group.release()
        found += [[os.path.exists(f"/proc/{pid}") for pid in pids], group._actor_handlers, group.create(timeout=60), get(group.async_train(1, "d"))]
        print(json.dumps(found))
        remove_placement_groups(pgs)
        """,
        [1, ["value", "unknown", "value"], True, [False, False], [], [3, 3, 3], [0, 1, 2]],
    ),
    Script(
        "a constructor that fails leaves nothing, and create() can be repeated",
        """
        pgs = create_placement_groups(job(), cluster)
        with tempfile.NamedTemporaryFile() as file:
            group = TrainGroup(job(train_env_vars={"MINE": file.name}), 1, 3, pgs["actor"], 1, actor_cls=Unmade)
            try:
                group.create(timeout=60)
            except roost.WorkerError as error:
                found = [error.rank, "ValueError: cannot be made" in str(error), "__init__" in error.traceback, group._actor_handlers]
        print(json.dumps([*found, group.create(timeout=60)]))
        remove_placement_groups(pgs)
        """,
        [1, True, True, [], [3, 3, 3]],
    ),
    Script(
        "a hang in the constructor, init, update or train ends with its name",
        """
        pgs = create_placement_groups(job(), cluster)
        found = []
        for cls in (Hanging, HangingInit):
            group = TrainGroup(job(), 1, 2, pgs["actor"], 1, actor_cls=cls)
            found += [refused(group.create, timeout=4), group._actor_handlers]
        group = TrainGroup(job(), 1, 2, pgs["actor"], 1, actor_cls=Faulty)
        group.create(timeout=60)
        found.append(refused(group.update_weights, timeout=0.5))
        group.release()
        group.create(timeout=60)
        found.append(refused(get, group.async_train(1, "hang")[1], timeout=0.5)[0])
        print(json.dumps([entry[:1] + [entry[1].partition(" (")[0]] if isinstance(entry, list) and entry else entry for entry in found]))
        remove_placement_groups(pgs)
        """,
        [
            ["Timeout", "'__init__' of 'actor' was not done after 4 seconds: no answer from rank 1"],
            [],
            ["Timeout", "'init' of 'actor' was not done after 4 seconds: no answer from rank 1"],
            [],
            ["Timeout", "'update_weights' of 'actor' was not done after 0.5 seconds: no answer from rank 1"],
            "Timeout",
        ],
    ),
    Script(
        "0.4, 0.4 and 0.2 of a GPU live together, and a further 0.1 is refused by the plan",
        """
        pgs = create_placement_groups(job(use_critic=True), cluster)
        groups = [TrainGroup(job(), 1, 1, pgs["actor"], part, role, actor_cls=Trainer) for part, role in ((0.4, "actor"), (0.4, "critic"), (0.2, "third"))]
        found = [group.create(timeout=60) for group in groups]
        fourth = TrainGroup(job(), 1, 1, pgs["actor"], 0.1, "fourth", actor_cls=Trainer)
        found.append(refused(fourth.create)[1].replace(f"bundle {pgs['actor'][1][0]},", "bundle B,"))
        groups[2].release()
        found.append(fourth.create(timeout=60))
        print(json.dumps(found))
        remove_placement_groups(pgs)
        """,
        [
            [3],
            [3],
            [3],
            "a trainer of 'fourth' wants 0.1 of the GPU of bundle B, but 0 of it is left (release what else runs there, or lower num_gpus_per_actor)",
            [3],
        ],
    ),
    Script(
        "what cannot run is refused before anything is reserved or started",
        """
        found = [refused(create_placement_groups, args, cluster) for args in (
            job(actor_num_nodes=-1), job(rollout_num_gpus=None), job(rollout_num_gpus=3, rollout_num_gpus_per_engine=2),
            job(train_env_vars={"RANK": "1"}), job(train_env_vars={"ROOST_RUN_ID": "x"}), job(train_env_vars=["A"]),
        )]
        found.append(refused(create_placement_groups, job(), "2x8"))
        found.append(refused(create_placement_groups, job(), cluster, timeout=-1))
        pgs = create_placement_groups(job(), cluster)
        share = pgs["actor"]
        for words in (
            dict(num_nodes=3, num_gpus_per_node=4), dict(num_nodes=0), dict(num_gpus_per_actor=0), dict(num_gpus_per_actor=1.5), dict(num_gpus_per_actor=0.00001),
            dict(num_gpus_per_actor="0.4"), dict(pg=None), dict(pg=(None, [], [])), dict(actor_cls="Trainer"), dict(role=5),
        ):
            found.append(refused(TrainGroup, **(dict(args=job(), num_nodes=1, num_gpus_per_node=4, pg=share, actor_cls=Trainer) | words)))
        found.append(refused(TrainGroup(job(), 1, 4, share, actor_cls=WithoutInit).create))
        found.append(refused(TrainGroup(job(), 1, 4, share).create)[0])
        print(json.dumps([[entry[0], entry[1].partition("<")[0]] if isinstance(entry, list) else entry for entry in found]))
        remove_placement_groups(pgs)
        """,
        [
            ["Error", ANY],
            ["Error", ANY],
            [
                "RankError",
                "rollout_num_gpus: 3 GPUs are not a multiple of the 2 that one engine takes: 1 would be left over (give them 2 or 4 GPUs)",
            ],
            [
                "Error",
                "train_env_vars: 'RANK' is set by roost for each trainer (leave it out; num_nodes, num_gpus_per_node and the share decide ranks)",
            ],
            [
                "Error",
                "train_env_vars: 'ROOST_RUN_ID' is set by roost for each trainer (leave it out; num_nodes, num_gpus_per_node and the share decide ranks)",
            ],
            ["TypeError", "train_env_vars must be a mapping from names to values, not ['A']"],
            ["TypeError", "cluster must be a roost.Cluster, not '2x8'"],
            ["Error", "timeout must be a number of seconds, not -1"],
            [
                "RankError",
                "'actor' has 12 ranks, but its share has 8 slots (lower num_nodes or num_gpus_per_node, or reserve more GPUs)",
            ],
            ["Error", "num_nodes must be at least 1"],
            ["Error", "num_gpus_per_actor must be more than 0 and at most 1, with at most four decimals, not 0"],
            ["Error", "num_gpus_per_actor must be more than 0 and at most 1, with at most four decimals, not 1.5"],
            ["Error", "num_gpus_per_actor must be more than 0 and at most 1, with at most four decimals, not 1e-05"],
            ["TypeError", "num_gpus_per_actor must be a number, not '0.4'"],
            ["TypeError", "pg must be a share of create_placement_groups(), (group, indices, gpu_ids), not None"],
            [
                "RankError",
                "'actor' has 4 ranks, but its share has 0 slots (lower num_nodes or num_gpus_per_node, or reserve more GPUs)",
            ],
            ["TypeError", "actor_cls must be a class, not 'Trainer'"],
            ["TypeError", "role must be a str, not 5"],
            ["Error", "class WithoutInit has no method 'init', which every trainer needs"],
            "Error",
        ],
    ),
    Script(
        "a share of a group that is gone is refused",
        """
        pgs = create_placement_groups(job(), cluster)
        group = TrainGroup(job(), 1, 2, pgs["actor"], actor_cls=Trainer)
        group.create(timeout=60)
        pids = get([handle.pid.remote() for handle in group._actor_handlers])
        remove_placement_groups(pgs)
        gone = [os.path.exists(f"/proc/{pid}") for pid in pids]
        group.release()
        found = refused(group.create)
        print(json.dumps([gone, found[0], "is gone (make the placement groups again with create_placement_groups())" in found[1]]))
        """,
        [[False, False], "EngineError", True],
    ),
    Script(
        "sizes and fractions of trainers are those of the plan",
        """
        args = job(debug_rollout_only=True, rollout_num_gpus=2, actor_num_nodes=None, actor_num_gpus_per_node=None)
        pgs = create_placement_groups(args, cluster)
        actor, _ = create_training_models(args, pgs, None, actor_cls=Trainer)
        found = [len(actor._actor_handlers), actor._fraction]
        remove_placement_groups(pgs)
        args = job(profile="seed", port_base=20000, actor_num_gpus_per_node=2)
        pgs = create_placement_groups(args, cluster)
        actor, _ = create_training_models(args, pgs, None, actor_cls=Trainer)
        print(json.dumps([*found, len(actor._actor_handlers), actor._fraction]))
        remove_placement_groups(pgs)
        """,
        [2, 0.4, 2, 0.8],
    ),
    Script(
        "trainers that ended with their group do not exist any more",
        """
        pgs = create_placement_groups(job(), cluster)
        group = TrainGroup(job(), 1, 2, pgs["actor"], actor_cls=Trainer)
        group.create(timeout=60)
        remove_placement_groups(pgs)
        print(json.dumps([refused(group.async_train, 1, "d"), refused(group.create)[0], group._actor_handlers]))
        """,
        [
            ["EngineError", "the trainers of 'actor' do not exist (call create() first, also after release())"],
            "EngineError",
            [],
        ],
    ),
    Script(
        "under release_train a saved model is what the next trainers load",
        """
        args = job(release_train=True, save="/models/saved", load="/models/base", ckpt_step=4, finetune=True, no_load_optim=True, no_load_rng=True)
        pgs = create_placement_groups(args, cluster)
        group = TrainGroup(args, 1, 1, pgs["actor"], actor_cls=Trainer)
        group.create(timeout=60)
        group.save_model(5)
        print(json.dumps([args.load, args.ckpt_step, args.finetune, args.no_load_optim, args.no_load_rng, args.update_weight_start_version]))
        remove_placement_groups(pgs)
        """,
        ["/models/saved", None, False, False, False, 0],
    ),
    Script(
        "a user's switch for visible devices is a warning",
        """
        pgs = create_placement_groups(job(), cluster)
        group = TrainGroup(job(train_env_vars={"RAY_EXPERIMENTAL_NOSET_CUDA_VISIBLE_DEVICES": "1"}), 1, 1, pgs["actor"], actor_cls=Trainer)
        with warnings.catch_warnings(record=True) as seen:
            warnings.simplefilter("always")
            group.create(timeout=60)
        print(json.dumps([str(entry.message).partition(" (")[0] for entry in seen if issubclass(entry.category, roost.PlanWarning)]))
        remove_placement_groups(pgs)
        """,
        ["train_env_vars: 'RAY_EXPERIMENTAL_NOSET_CUDA_VISIBLE_DEVICES' decides which devices Ray shows to a trainer"],
    ),
]
