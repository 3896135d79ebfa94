"""TrainGroup: the trainers of one role of a slime job, one in each slot of its share."""

import copy
import importlib
import logging
import time
from collections.abc import Callable, Mapping, Sequence
from numbers import Real
from typing import Any

from roost import _roost
from roost._plan.arguments import as_count, as_text, check_seconds
from roost._plan.errors import EngineError, Timeout, fault
from roost._slime.layout import argument, planned_share
from roost._slime.placement import WHOLE, Share, placed_of, where
from roost._slime.variables import memory_saver, own_variables, set_argument
from roost._work.bundles import LocalReference, TrainerRequest, Trainers, load_bundles

log = logging.getLogger("roost")

SAY_EVERY = 5.0
INIT_SECONDS = 3600.0  # for trainers to start and load their models
CALL_SECONDS = 3600.0  # for weights to be saved, sent or moved
NAMED = 8  # ranks in a message
RELOAD = {
    "ckpt_step": None,
    "finetune": False,
    "no_load_optim": False,
    "no_load_rng": False,
}  # to go on where it was saved


class TrainGroup:
    """The trainers of a role: rank r runs in the bundle of slot r of the role's share.

    ``args`` has slime's arguments; ``pg`` is a share of ``create_placement_groups``. There are ``num_nodes`` times
    ``num_gpus_per_node`` trainers, and each takes ``num_gpus_per_actor`` of its GPU and as much of a CPU. ``actor_cls`` is the class of
    the trainers; without it slime's own ``MegatronTrainRayActor`` is imported when trainers are created.

    Nothing is started before ``create()``. ``_actor_handlers`` are the handles of the trainers by rank: Ray's own on Ray, and on the
    local engine objects with the same ``handle.method.remote(...)``.

    Methods that wait have the keyword ``timeout`` in seconds. They raise WorkerError for a rank that raised or died, with its
    traceback or its node and with the answers of the others in ``outcomes``, and Timeout with the ranks that have not answered.

    Raises roost.Error for sizes that do not fit the share and for ``args.train_env_vars`` that roost sets itself.
    """

    def __init__(
        self,
        args: Any,
        num_nodes: int,
        num_gpus_per_node: int,
        pg: Share,
        num_gpus_per_actor: float = 0.4,
        role: str = "actor",
        with_ref: bool = False,
        with_opd_teacher: bool = False,
        actor_cls: type | None = None,
    ) -> None:
        self.args, self.role = args, as_text("role", role)
        self.with_ref, self.with_opd_teacher = with_ref, with_opd_teacher
        self._world_size = as_count("num_nodes", num_nodes, 1) * as_count("num_gpus_per_node", num_gpus_per_node, 1)
        self._share = check_share(pg, self._world_size, self.role)
        self._fraction = check_fraction(num_gpus_per_actor)
        self._cls = None if actor_cls is None else plain_class(actor_cls)
        self._own = own_variables(args)
        self._trainers: Trainers | None = None
        self._where: list[str] = []  # by rank
        self._end: Callable[[], None] = lambda: None
        self._weight_version = argument(args, "update_weight_start_version") or 0

    @property
    def _actor_handlers(self) -> list[Any]:
        return [] if self._trainers is None else list(self._trainers.handles)

    def create(self, rollout_manager: Any = None, *, timeout: float = INIT_SECONDS) -> list[Any] | None:
        """Starts the trainers, calls ``init`` of all at once and then ``set_rollout_manager`` where there is a manager.

        Returns what ``init`` returned, by rank; None where the trainers exist already. Nothing is left of trainers that could not be
        created, and ``create`` may be called again.
        """
        check_seconds("timeout", timeout)
        if self._trainers is not None and not self._trainers.is_closed:
            return None
        self.release()  # of trainers that ended with their placement group
        deadline = time.monotonic() + timeout
        set_argument(self.args, "update_weight_start_version", self._weight_version)
        trainers = self._start(timeout)
        try:
            self._wait("__init__", trainers.check, deadline, timeout)
            words = {"with_ref": self.with_ref, "with_opd_teacher": self.with_opd_teacher}
            answers = self._run("init", (self.args, self.role), words, deadline, timeout)
            if rollout_manager is not None:
                self._run("set_rollout_manager", (rollout_manager,), {}, deadline, timeout)
        except BaseException:
            self.release()
            raise
        return answers

    def _start(self, timeout: float) -> Trainers:
        cls = self._cls if self._cls is not None else megatron_class()
        if not callable(getattr(cls, "init", None)):
            raise _roost.Error(f"class {cls.__name__} has no method 'init', which every trainer needs")
        group, indices = self._share[0], self._share[1]
        placed = placed_of(group)
        placed.refresh(timeout)
        used = list(indices[: self._world_size])
        by_index = {bundle.index: bundle for bundle in placed.bundles}
        request = TrainerRequest(
            cls=cls,
            name=self.role,
            bundles=[by_index[index] for index in used],
            fraction=self._fraction,
            preload=memory_saver(self.args, self._cls is None),
            is_replaying=self.role == "actor" and bool(argument(self.args, "use_routing_replay")),
            own=self._own,
        )
        placed.take(used, self._fraction, f"a trainer of '{self.role}'")
        try:
            self._trainers = placed.reservation.start(request)
        except BaseException:
            placed.give_back(used, self._fraction)
            raise
        self._where = [where(bundle) for bundle in request.bundles]
        self._end = lambda: placed.give_back(used, self._fraction)
        return self._trainers

    def release(self) -> None:
        """Ends the trainers. Their processes are gone when it returns, and ``create()`` may follow."""
        trainers, self._trainers = self._trainers, None
        if trainers is None:
            return
        try:
            trainers.close()
        finally:
            self._end()

    # --- calls

    def async_init(self, args: Any, role: str, with_ref: bool = False, with_opd_teacher: bool = False) -> list[Any]:
        """Calls ``init`` of all trainers, which are started where they do not exist. Returns references by rank."""
        if self._trainers is None or self._trainers.is_closed:
            self.release()
            self._start(INIT_SECONDS)
        self.args = args
        return self._send("init", (args, role), {"with_ref": with_ref, "with_opd_teacher": with_opd_teacher})

    def async_train(self, rollout_id: int, data: Any, external_data: Any = None) -> list[Any]:
        """Calls ``train`` of all trainers and returns references by rank, without waiting.

        ``external_data`` is one value for all, or a list of exactly one value for each rank; references in it are resolved.
        """
        trainers = self._trainers_now()
        if not isinstance(external_data, list):
            return self._send("train", (rollout_id, data), {"external_data": external_data})
        if len(external_data) != self._world_size:
            raise _roost.Error(
                f"external_data has {len(external_data)} items, but '{self.role}' has {self._world_size} ranks: pass one for each, or one value that is not a list"
            )
        return trainers.send("train", [((rollout_id, data), {"external_data": each}) for each in external_data])

    def save_model(self, rollout_id: int, force_sync: bool = False, *, timeout: float = CALL_SECONDS) -> list[Any]:
        """Saves the model. Under ``release_train`` the next ``create()`` loads what was saved."""
        answers = self._call("save_model", (rollout_id,), {"force_sync": force_sync}, timeout)
        if argument(self.args, "release_train"):
            for name, value in RELOAD.items():
                set_argument(self.args, name, value)
            set_argument(self.args, "load", argument(self.args, "save"))
        return answers

    def update_weights(self, *, timeout: float = CALL_SECONDS) -> list[Any]:
        """Sends the weights to the inference engines."""
        return self._call("update_weights", (), {}, timeout)

    def onload(self, *, timeout: float = CALL_SECONDS) -> list[Any]:
        """Moves the models back to GPU memory."""
        return self._call("wake_up", (), {}, timeout)

    def offload(self, *, timeout: float = CALL_SECONDS) -> list[Any]:
        """Moves the models out of GPU memory."""
        return self._call("sleep", (), {}, timeout)

    def clear_memory(self, *, timeout: float = CALL_SECONDS) -> list[Any]:
        """Drops caches."""
        return self._call("clear_memory", (), {}, timeout)

    def set_rollout_manager(self, rollout_manager: Any, *, timeout: float = CALL_SECONDS) -> list[Any]:
        """Hands the rollout manager to all trainers."""
        return self._call("set_rollout_manager", (rollout_manager,), {}, timeout)

    def async_eval(self, rollout_id: int, data: Any) -> list[Any]:
        """Calls ``eval`` of all trainers and returns references by rank."""
        return self._send("eval", (rollout_id, data), {})

    def async_save_model(self, rollout_id: int) -> list[Any]:
        """Calls ``save_model`` of all trainers and returns references by rank."""
        return self._send("save_model", (rollout_id,), {})

    def async_update_weights(self) -> list[Any]:
        """Calls ``update_weights`` of all trainers and returns references by rank."""
        return self._send("update_weights", (), {})

    def async_offload(self) -> list[Any]:
        """Calls ``sleep`` of all trainers and returns references by rank."""
        return self._send("sleep", (), {})

    def _trainers_now(self) -> Trainers:
        if self._trainers is None or self._trainers.is_closed:
            raise fault(
                EngineError,
                f"the trainers of '{self.role}' do not exist",
                hint="call create() first, also after release()",
            )
        return self._trainers

    def _send(self, method: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> list[Any]:
        return self._trainers_now().send(method, [(args, kwargs)] * self._world_size)

    def _call(self, method: str, args: tuple[Any, ...], kwargs: dict[str, Any], timeout: float) -> list[Any]:
        check_seconds("timeout", timeout)
        return self._run(method, args, kwargs, time.monotonic() + timeout, timeout)

    def _run(
        self, method: str, args: tuple[Any, ...], kwargs: dict[str, Any], deadline: float, timeout: float
    ) -> list[Any]:
        trainers = self._trainers_now()
        references = self._send(method, args, kwargs)
        found: list[Any] = self._wait(method, lambda left: trainers.gather(method, references, left), deadline, timeout)
        return found

    def _wait(self, method: str, step: Callable[[float], Any], deadline: float, timeout: float) -> Any:
        """Repeats a step that waits, and reports every few seconds which ranks it waits for."""
        while True:
            left = deadline - time.monotonic()
            try:
                return step(max(0.0, min(left, SAY_EVERY)))
            except Timeout as error:
                late = self._late(getattr(error, "ranks", None))
                if left <= SAY_EVERY:
                    raise fault(
                        Timeout,
                        f"'{method}' of '{self.role}' was not done after {timeout:g} seconds: no answer from {late}",
                        hint="look at the output of these ranks, or pass a larger timeout",
                    ) from None
                log.warning(
                    "waiting for '%s' of '%s': no answer from %s; %.0f seconds are left",
                    method,
                    self.role,
                    late,
                    left - SAY_EVERY,
                )

    def _late(self, ranks: Sequence[int] | None) -> str:
        late = range(self._world_size) if ranks is None else ranks
        named = ", ".join(f"rank {rank} ({self._where[rank]})" for rank in late[:NAMED])
        return named + (f" and {len(late) - NAMED} more" if len(late) > NAMED else "")


RayTrainGroup = TrainGroup


# --- what a TrainGroup is asked for


def check_share(pg: Any, world_size: int, role: str) -> Share:
    if not isinstance(pg, tuple) or len(pg) not in (2, 3) or not isinstance(pg[1], Sequence):
        raise TypeError(f"pg must be a share of create_placement_groups(), (group, indices, gpu_ids), not {pg!r}")
    if len(pg[1]) < world_size:
        raise fault(
            _roost.RankError,
            f"'{role}' has {world_size} ranks, but its share has {len(pg[1])} slots",
            hint="lower num_nodes or num_gpus_per_node, or reserve more GPUs",
            code="fit",
        )
    return pg


def check_fraction(value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, Real):
        raise TypeError(f"num_gpus_per_actor must be a number, not {value!r}")
    fraction = float(value)
    if not 0 < fraction <= 1 or abs(fraction * WHOLE - round(fraction * WHOLE)) > 1e-6:
        raise _roost.Error(
            f"num_gpus_per_actor must be more than 0 and at most 1, with at most four decimals, not {value!r}"
        )
    return fraction


def plain_class(cls: Any) -> type:
    """The class itself of one that was decorated with ray.remote."""
    found = getattr(getattr(cls, "__ray_metadata__", None), "modified_class", cls)
    if not isinstance(found, type):
        raise TypeError(f"actor_cls must be a class, not {cls!r}")
    return found


def megatron_class() -> type:
    """slime's own trainer."""
    try:
        found = importlib.import_module("slime.backends.megatron_utils.actor").MegatronTrainRayActor
    except ImportError as error:
        raise fault(
            _roost.Error,
            f"slime's trainer cannot be imported: {error}",
            hint="install slime and Megatron, or pass actor_cls",
            code="reference",
        ) from error
    return plain_class(found)


# --- slime's helpers


def allocate_train_group(
    args: Any,
    num_nodes: int,
    num_gpus_per_node: int,
    pg: Share,
    role: str = "actor",
    with_ref: bool = False,
    with_opd_teacher: bool = False,
    actor_cls: type | None = None,
) -> TrainGroup:
    """A TrainGroup whose trainers take as much of a GPU as the plan says: 0.4, or ``args.num_gpus_per_actor``."""
    return TrainGroup(
        args,
        num_nodes,
        num_gpus_per_node,
        pg,
        planned_share(args, "actor").gpu_each,
        role,
        with_ref,
        with_opd_teacher,
        actor_cls,
    )


def create_actor_model(
    args: Any, pgs: Mapping[str, Any], rollout_manager: Any, actor_cls: type | None = None
) -> tuple[TrainGroup, list[Any] | None]:
    """The trainers of the actor, created, and what their ``init`` returned."""
    own = role_args(args, "actor")
    has_teacher = bool(argument(own, "use_opd")) and argument(own, "opd_type") == "megatron"
    group = allocate_train_group(
        own,
        1,
        planned_share(args, "actor").world_size,
        pgs["actor"],
        with_ref=bool(argument(own, "kl_coef")) or bool(argument(own, "use_kl_loss")),
        with_opd_teacher=has_teacher,
        actor_cls=actor_cls,
    )
    return group, group.create(rollout_manager)


def create_training_models(
    args: Any, pgs: Mapping[str, Any], rollout_manager: Any, actor_cls: type | None = None
) -> tuple[TrainGroup, TrainGroup | None]:
    """The trainers of actor and critic, created: ``(actor, critic or None)``.

    Sets ``args.start_rollout_id`` where it is unset: to what the critic's ``init`` returned, else the actor's. With
    ``rollout_global_dataset`` the manager loads the position before it. Raises roost.Error where ranks do not agree on that id; no
    trainers are left then.
    """
    actor, starts = create_actor_model(args, pgs, rollout_manager, actor_cls)
    critic = None
    try:
        if pgs.get("critic") is not None and argument(args, "num_rollout") != 0:
            critic = create_critic(args, pgs["critic"], actor_cls)
            starts = critic.create(rollout_manager)
        start = agreed(starts or [])
        if argument(args, "start_rollout_id") is None:
            set_argument(args, "start_rollout_id", start)
        if argument(args, "rollout_global_dataset"):
            reference = rollout_manager.load.remote(argument(args, "start_rollout_id") - 1)
            get([reference], timeout=CALL_SECONDS)
    except BaseException:
        for group in (actor, critic):
            if group is not None:
                group.release()
        raise
    return actor, critic


def create_critic(args: Any, share: Share, actor_cls: type | None) -> TrainGroup:
    own = role_args(args, "critic")
    if own is args:
        own = copy.deepcopy(args)
        set_argument(own, "disable_param_buffers_cpu_backup", False)
    size = planned_share(args, "critic").world_size
    return allocate_train_group(own, 1, size, share, role="critic", actor_cls=actor_cls)


def role_args(args: Any, role: str) -> Any:
    """The arguments of a role where a file has some; slime reads that file."""
    path = argument(args, "megatron_config_path")
    if path is None:
        return args
    return importlib.import_module("slime.utils.arguments").parse_megatron_role_args(args, path, role=role)


def agreed(starts: Sequence[Any]) -> Any:
    """The rollout id that all ranks start with."""
    for rank, start in enumerate(starts):
        if start != starts[0]:
            raise _roost.Error(
                f"ranks do not agree where to start: rank 0 says rollout {starts[0]}, rank {rank} says {start}"
            )
    return starts[0] if starts else 0


def get(references: Any, timeout: float | None = None) -> Any:
    """The values of references of either engine: of one reference its value, of a list a list.

    ``timeout`` is in seconds; None waits for ever. Raises Timeout when time is up, and what the call raised.
    """
    if timeout is not None:
        check_seconds("timeout", timeout)
    if not isinstance(references, list | tuple):
        return get([references], timeout)[0]
    if not references:
        return []
    engine = "local" if isinstance(references[0], LocalReference) else "ray"
    return load_bundles(engine).get(references, timeout)
