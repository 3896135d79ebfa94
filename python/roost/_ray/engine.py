"""The Ray engine: a run on a Ray cluster, with the same plan, environment and calls as on this machine. The C library makes
the decisions; this module asks Ray to carry them out."""

import contextlib
import json
import os
import socket
import time
from collections.abc import Mapping
from typing import Any

from roost import _roost
from roost._plan.cluster import PlanningCluster
from roost._plan.config import environment
from roost._plan.errors import EngineError, fault, warn
from roost._plan.nodes import NodeInfo
from roost._plan.view import view_of
from roost._ray.allocate import as_allocated
from roost._ray.environment import own_place
from roost._ray.group import RayGroup, kill_actors, named_actors, rank_names, wait_names_free
from roost._ray.join import MANAGERS_GONE, again, alive_nodes, check_alive, is_answering, is_taken, leave, told
from roost._ray.journal import Trace, forget_from_outside
from roost._ray.launch import NAME_SECONDS, Launch, find_group
from roost._ray.logs import RayLogs
from roost._ray.managers import NAMES, Manager
from roost._ray.nodes import PROBE_SECONDS, probe_nodes
from roost._ray.ports import RayPorts, SinglePorts
from roost._ray.reservations import Devices
from roost._ray.reserve import Reserver, devices_of, plan_devices
from roost._work.engine import AllocateRequest, LaunchRequest
from roost._work.group import GROUPS

MANAGER_SECONDS = 120.0
END_SECONDS = 5.0
HEAD_SECONDS = 1.0  # for the cluster's head to take a connection: one that does not is not asked for anything


def who_am_i(run_id: str) -> str:
    return f"{run_id} of {socket.gethostname()}, process {os.getpid()}"


def driver_variables() -> dict[str, str]:
    """What the driver's processes have of its environment on other nodes. Ray shows variables of actors to everybody
    in the cluster, so nothing goes along that may be a secret."""
    return {
        name: value for name, value in os.environ.items() if name.startswith("RLINF_") and name != "RLINF_NODE_RANK"
    }


class RayEngine:
    """A run on a Ray cluster."""

    def __init__(
        self, ray: Any, namespace: str, run_id: str, value: _roost.Cluster, config: _roost.Config | None, is_owner: bool
    ) -> None:
        self._ray, self.namespace, self.run_id = ray, namespace, run_id
        self.value, self.config = value, config
        self._is_owner = is_owner
        self.is_reserving = config is None or config.ray_reserves
        self._nodes = [value.node(rank) for rank in range(value.num_nodes)]
        self.ids = [node["id"] for node in self._nodes]
        self._managers: dict[str, Any] = {}
        self._ports = RayPorts(ray, run_id, self._affinity, self.node_words, self._check_node, self._environment_here)
        self._groups: list[RayGroup] = []
        self._agents: list[Any] = []  # actors of a run of commands
        self._single = SinglePorts(self._ports)
        self._pid = os.getpid()
        self._facts: dict[int, dict[str, Any]] = {}
        self._reserver: Reserver | None = None
        self._planned: Devices | None = None
        self.interpreters: dict[str, str] = {}  # by Ray's id of the node
        self.master_address = self._nodes[0]["address"]
        self.master_port = 0
        self.made_with: Any = None  # what the Cluster was asked for
        self.trace: Trace = ("", None, "")  # of this process in the cluster: journal.trace_of
        self._logs: RayLogs | None = None
        self._is_closed = False

    # --- start

    def start_managers(self, section: Any) -> None:
        """Raises Ray's error (is_taken) when another run has the namespace. NodeManager starts last: other processes find the run
        by it, and its answers are complete from the first moment."""
        made = self._managers
        try:
            # The locks of devices need the nodes.
            view = view_of(PlanningCluster._of(self.value, self.config, section), self.master_address, 0)
            first = [self._start_manager(name, view) for name in NAMES if name != "NodeManager"]
            (self.master_port,) = self._ports.lease(0, (1,), self.run_id)
            self._await_managers(first)
            self._await_managers([self._start_manager("NodeManager", view | {"master_port": self.master_port})])
        except BaseException:
            kill_actors(self._ray, list(made.values()))
            made.clear()
            self._ports.close()
            raise

    def _start_manager(self, name: str, view: dict[str, Any]) -> Any:
        # Ray makes a manager again that was killed, one at a time, and never one of a driver that is gone.
        options = {
            "name": name,
            "namespace": self.namespace,
            "num_cpus": 0,
            "max_restarts": -1,
            "max_task_retries": 0,
            "scheduling_strategy": self._affinity(0),
            "max_concurrency": 1000,
        }
        described = {
            "run_id": self.run_id,
            "view": view,
            "interpreters": self.interpreters,
            "master_port": view["master_port"],
        }
        self._managers[name] = (
            self._ray.remote(Manager)
            .options(**options)
            .remote(json.dumps(view), described, self.run_id, who_am_i(self.run_id))
        )
        return self._managers[name]

    def _await_managers(self, managers: list[Any]) -> None:
        hint = "look at the raylet's log there; `ray status` lists the nodes"
        with told(self._ray, f"the managers of the run do not start on {self.node_words(0)}", hint, MANAGER_SECONDS):
            self._ray.get([again(manager.epoch).remote() for manager in managers], timeout=MANAGER_SECONDS)

    def find_managers(self) -> None:
        with told(self._ray, f"the managers of the run in namespace '{self.namespace}' have ended", "begin a new run"):
            for name in NAMES:
                self._managers[name] = self._ray.get_actor(name, namespace=self.namespace)

    def manager(self, name: str) -> Any:
        return self._managers.get(name) or self._managers["WorkerManager"]

    # --- nodes

    def _affinity(self, node_rank: int) -> Any:
        from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

        return NodeAffinitySchedulingStrategy(self.ids[node_rank], soft=False)

    def node_words(self, node_rank: int) -> str:
        return f"node {node_rank} ({self._nodes[node_rank]['address']})"

    def _check_node(self, node_rank: int) -> None:
        check_alive(self._ray, {self.ids[node_rank]: self.node_words(node_rank)})

    def _check_managers(self) -> None:
        """Nothing is launched without them; Ray itself would look for their node for a long time."""
        check_alive(self._ray, {self.ids[0]: self.node_words(0)}, MANAGERS_GONE)

    def keep_facts(self, facts: Mapping[str, dict[str, Any]]) -> None:
        self._facts |= {rank: facts[node] for rank, node in enumerate(self.ids) if node in facts}

    def facts(self, node_rank: int) -> dict[str, Any]:
        """What the probe of a node found."""
        self._learn({node_rank})
        return self._facts[node_rank]

    def _learn(self, node_ranks: set[int]) -> None:
        """An attached process asks nodes when it needs to know, and no others."""
        wanted = {self.ids[node_rank] for node_rank in node_ranks - self._facts.keys()}
        if wanted:
            nodes = [node for node in alive_nodes(self._ray) if node["NodeID"] in wanted]
            answers = probe_nodes(self._ray, nodes, PROBE_SECONDS)
            self.keep_facts({node["NodeID"]: answer for node, answer in zip(nodes, answers, strict=True)})

    def complete(self, node: NodeInfo) -> None:
        """What only the node itself knows; its environment only where it was probed, in the driver."""
        facts = self._facts.get(node.node_rank)
        node.python_interpreter_path = self.interpreters.get(node.ray_id, "")
        node.default_env_vars = dict(facts["env"]) if facts else {}

    def reserver(self) -> Reserver:
        if self._reserver is None:
            resources = {node["NodeID"]: node["Resources"] for node in alive_nodes(self._ray)}
            nodes = [node | {"resources": resources.get(node["id"], {})} for node in self._nodes]
            self._reserver = Reserver(
                self._ray, self.namespace, nodes, self._managers["NodeManager"], self.is_reserving
            )
        return self._reserver

    def _planned_devices(self) -> Devices:
        """All that the config places: reserved together, by one placement group."""
        if self._planned is None:
            self._planned = plan_devices(self.config, self.value, self.ids)
        return self._planned

    def reserve(self, wanted: Devices, timeout: float) -> str | None:
        """Reserves devices and returns the id of the reservation; None where nothing is needed."""
        if not wanted:
            return None
        # A process that attaches reserves for itself: it may end before the run.
        planned = self._planned_devices() if self._is_owner else {}
        wanted = {node: wanted.get(node, set()) | planned.get(node, set()) for node in {*wanted, *planned}}
        return self.reserver().add(wanted, timeout)

    def _unreserve(self, reservation_id: str | None) -> None:
        if reservation_id is not None:
            self.reserver().drop(reservation_id)

    # --- ports

    def _environment_here(self, node_rank: int) -> list[str] | None:
        """The environment of a node, if this process is on it, in the same network and as the same user; else None."""
        if self.ids[node_rank] != self._ray.get_runtime_context().get_node_id():
            return None
        facts = self.facts(node_rank)
        return environment(facts["env"]) if facts.get("place") == own_place() else None

    # --- what every process is given

    def environments(self, request: LaunchRequest, owner: str) -> list[tuple[dict[str, str], str | None]]:
        """Variables and interpreter of each rank, with ports that are the owner's. What lists of folders are joined with is its
        own node's."""
        placements = request.placements
        node_of_rank = memoryview(placements.column("cluster_node_rank")).tolist()
        self._learn(set(node_of_rank))
        first = self._processes(request, node_of_rank[0])
        ports = self._ports.lease_wants(first.wants, owner)
        facts = (self.run_id, self.namespace, self._nodes[node_of_rank[0]]["address"], ports)
        made = {node_of_rank[0]: first.fill(*facts)}
        for node_rank in node_of_rank:
            if node_rank not in made:
                made[node_rank] = self._processes(request, node_rank).fill(*facts)
        return [
            (driver_variables() | made[node_rank][rank][0], made[node_rank][rank][3])
            for rank, node_rank in enumerate(node_of_rank)
        ]

    def _processes(self, request: LaunchRequest, node_rank: int) -> _roost.Processes:
        extra = request.env | ({"CATCH_SYSTEM_FAILURE": "1"} if request.catch_system_failure else {})
        processes = _roost.Processes(
            self.value,
            request.placements,
            request.name,
            self.config,
            environment(self._inherited(node_rank)),
            extra=environment(extra),
        )
        warn(processes.warnings, 5)
        return processes

    def _inherited(self, node_rank: int) -> dict[str, str]:
        return dict(self.facts(node_rank)["env"]) | driver_variables()

    # --- groups

    def keep_logs(self, folder: str | None) -> None:
        """What workers write is kept there, and from now on what is shown can be chosen."""
        if self._logs is None:
            self._logs = RayLogs(folder, self.run_id)
            self._logs.begin()
        elif folder is not None:
            self._logs.keep_in(folder, self.run_id)

    def launch(self, request: LaunchRequest) -> RayGroup:
        names = rank_names(request.name, len(request.placements))
        self._check_managers()
        self._check_names(set(names))
        self.reserver().check_alive(
            {self.ids[node_rank] for node_rank in memoryview(request.placements.column("cluster_node_rank")).tolist()}
        )
        deadline = time.monotonic() + request.timeout
        reservation_id = self.reserve(devices_of(request.placements, self.value, self.ids), request.timeout)
        if request.disable_distributed_log:
            self.keep_logs(None)
        try:
            with (
                self._logs.launching(request.name, request.disable_distributed_log)
                if self._logs
                else contextlib.nullcontext()
            ):
                group = Launch(self, request, deadline).begin()
        except BaseException:
            self._unreserve(reservation_id)
            raise
        self.reserver().keep(reservation_id)
        self._groups.append(group)
        return group

    def _check_names(self, names: set[str]) -> None:
        there = named_actors(self._ray, self.namespace)
        taken = names & there
        closed = self._closed_names(there)
        if taken and taken <= closed:
            taken = wait_names_free(self._ray, taken, self.namespace, NAME_SECONDS)
        if taken:
            raise self.taken(sorted(taken)[0])

    def _closed_names(self, there: set[str]) -> set[str]:
        """Of groups that were closed and may still be there; others are forgotten, as a driver may launch without end."""
        found: set[str] = set()
        for group in [group for group in self._groups if group._is_closed]:
            names = set(rank_names(group.name, group.world_size))
            found |= names
            if not names & there:
                with contextlib.suppress(ValueError):  # another thread was first
                    self._groups.remove(group)
        return found

    def find_group(self, name: str) -> RayGroup:
        return find_group(self, name)

    def taken(self, name: str) -> EngineError:
        return fault(
            EngineError,
            f"a worker named '{name}' is in namespace '{self.namespace}' already",
            hint="use another name, or end the group or actor that has it",
            code="name",
        )

    def options(
        self,
        name: str,
        node_rank: int,
        variables: Mapping[str, str],
        interpreter: str | None,
        max_concurrency: int | None,
    ) -> dict[str, Any]:
        runtime_env: dict[str, Any] = {"env_vars": dict(variables)}
        if interpreter:
            runtime_env["py_executable"] = interpreter
        options: dict[str, Any] = {
            "name": name,
            "namespace": self.namespace,
            "num_cpus": 0,
            "num_gpus": 0,
            "max_restarts": 0,
            "max_task_retries": 0,
            "runtime_env": runtime_env,
            "scheduling_strategy": self._affinity(node_rank),
        }
        if max_concurrency is not None:
            options["max_concurrency"] = max_concurrency
        return options

    # --- one actor by hand

    def allocate(self, request: AllocateRequest) -> Any:
        """A named actor of the class itself on that node. Returns without waiting for it."""
        name, node_rank = request.name, request.node_rank
        self._check_managers()
        self._check_names({name})
        self._check_node(node_rank)
        owner = self._single.owner()
        reservation_id = self.reserve(
            {self.ids[node_rank]: {request.gpu_id}} if request.gpu_id is not None else {}, PROBE_SECONDS
        )
        try:
            options = self.options(
                name, node_rank, self._environment_of_one(request, owner), request.interpreter, request.max_concurrency
            )
            actor = self._ray.remote(request.cls).options(**options).remote(*request.args, **request.kwargs)
        except BaseException as error:
            self._unreserve(reservation_id)
            self._ports.free(owner)
            if is_taken(self._ray, error):
                raise self.taken(name) from error
            raise
        self.reserver().keep(reservation_id)
        self._single.note(actor, owner)
        return as_allocated(self._ray, actor, name, request.placements)

    def _environment_of_one(self, request: AllocateRequest, owner: str) -> dict[str, str]:
        """What the process would have as a group of one, as on this machine; the caller's own variables win."""
        launch = LaunchRequest(request.cls, (), {}, request.group_name, request.placements, env=request.env)
        return self.environments(launch, owner)[0][0]

    # --- end

    def close(self) -> None:
        if self._is_closed or os.getpid() != self._pid:  # a fork of the driver ends nothing of it
            return
        self._is_closed = True
        try:
            if self._ray.is_joined and is_answering(self.trace[0], HEAD_SECONDS):
                self._leave()
        finally:
            self._end()

    def _end(self) -> None:
        """What is to be done also when the program has shut Ray down, or the cluster is gone; nothing of it waits for Ray."""
        is_over = not self._ray.is_joined
        self._ports.close()
        if self._is_owner:
            forget_from_outside(*self.trace)
        if self._is_owner or is_over:
            leave(self._ray)
        GROUPS.close_links(self._groups)

    def _leave(self) -> None:
        ray = self._ray
        for group in self._groups:
            group.close()
        kill_actors(ray, [*self._agents, *self._single.actors()])
        if self._reserver:
            self._reserver.close(not self._is_owner)
        if not self._is_owner:
            return
        with contextlib.suppress(Exception):  # one that is gone writes nothing
            ray.get([again(manager.end).remote() for manager in self._managers.values()], timeout=END_SECONDS)
        kill_actors(ray, list(self._managers.values()))
