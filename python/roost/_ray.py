"""The Ray engine: a cluster of Ray as the place of a run, with the same plan, environment and calls as on
this machine. What is decided is decided by the C library; here Ray is asked and told."""

import contextlib
import json
import os
import socket
import time
from collections.abc import Mapping, Sequence
from typing import Any

from roost import _roost
from roost._allocate import place_one
from roost._arguments import fault
from roost._attach import view_of
from roost._cluster import Cluster
from roost._engine import LaunchRequest
from roost._errors import EngineError
from roost._group import GROUPS
from roost._nodes import NodeInfo
from roost._ray_cluster import MANAGERS_GONE, again, alive_nodes, check_alive, is_answering, is_taken, leave, told
from roost._ray_group import RayGroup, kill_actors, named_actors, rank_names, wait_names_free
from roost._ray_holdings import Devices
from roost._ray_launch import NAME_SECONDS, Launch, find_group
from roost._ray_ledger import Trace, forget_from_outside
from roost._ray_logs import RayLogs
from roost._ray_managers import NAMES, Manager
from roost._ray_nodes import PROBE_SECONDS, environ_texts, own_place, probe_nodes
from roost._ray_ports import RayPorts, SinglePorts
from roost._ray_reserve import Reservation, devices_of, plan_devices
from roost._words import warn

MANAGER_SECONDS = 120.0
END_SECONDS = 5.0
HEAD_SECONDS = 1.0  # for the cluster's head to take a connection: one that does not is not asked for anything


def who_am_i(run_id: str) -> str:
    return f"{run_id} of {socket.gethostname()}, process {os.getpid()}"


def driver_variables() -> dict[str, str]:
    """What the driver's processes have of its environment on other nodes. Ray shows variables of actors to everybody
    in the cluster, so nothing goes along that may be a secret."""
    return {name: value for name, value in os.environ.items() if name.startswith("RLINF_") and name != "RLINF_NODE_RANK"}


class RayEngine:
    """A run on a Ray cluster."""

    def __init__(self, ray: Any, namespace: str, run_id: str, value: _roost.Cluster, config: _roost.Config | None, is_owner: bool) -> None:
        self._ray, self.namespace, self.run_id = ray, namespace, run_id
        self.value, self.config = value, config
        self._is_owner = is_owner
        self._nodes = [value.node(rank) for rank in range(value.num_nodes)]
        self.ids = [node["id"] for node in self._nodes]
        self._managers: dict[str, Any] = {}
        self._ports = RayPorts(ray, run_id, self._affinity, self.node_words, self._check_node, self._environment_here)
        self._groups: list[RayGroup] = []
        self._parts: list[Any] = []  # actors of a run of commands
        self._single = SinglePorts(self._ports)
        self._pid = os.getpid()
        self._facts: dict[int, dict[str, Any]] = {}
        self._reservation: Reservation | None = None
        self._planned: Devices | None = None
        self.interpreters: dict[str, str] = {}  # by Ray's id of the node
        self.master_address = self._nodes[0]["address"]
        self.master_port = 0
        self.made_with: Any = None  # what the Cluster was asked for
        self.trace: Trace = ("", None, "")  # of this process in the cluster: _ray_ledger.trace_of
        self._logs: RayLogs | None = None
        self._is_closed = False

    # --- birth

    def start_managers(self, section: Any) -> None:
        """Raises what Ray does (is_taken) when somebody else has the namespace. NodeManager comes last: it
        tells others of the run, and what it tells is complete from its first moment."""
        made = self._managers
        try:
            # What tells nodes apart, for locks of devices.
            view = view_of(Cluster._of(self.value, self.config, section), self.master_address, 0)
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
            "name": name, "namespace": self.namespace, "num_cpus": 0, "max_restarts": -1, "max_task_retries": 0,
            "scheduling_strategy": self._affinity(0), "max_concurrency": 1000,
        }  # fmt: skip
        described = {"run_id": self.run_id, "view": view, "interpreters": self.interpreters, "master_port": view["master_port"]}
        self._managers[name] = self._ray.remote(Manager).options(**options).remote(json.dumps(view), described, self.run_id, who_am_i(self.run_id))
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
        """What the probe told of a node."""
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

    def _reserved(self) -> Reservation:
        if self._reservation is None:
            resources = {node["NodeID"]: node["Resources"] for node in alive_nodes(self._ray)}
            nodes = [node | {"resources": resources.get(node["id"], {})} for node in self._nodes]
            self._reservation = Reservation(self._ray, self.namespace, nodes, self._managers["NodeManager"], self.config is None or self.config.ray_reserves)
        return self._reservation

    def _planned_devices(self) -> Devices:
        """All that the config places: reserved together, by one placement group."""
        if self._planned is None:
            self._planned = plan_devices(self.config, self.value, self.ids)
        return self._planned

    def reserve(self, wanted: Devices, timeout: float) -> str | None:
        """The token of what is held; None for nothing."""
        if not wanted:
            return None
        # Who attaches reserves for itself: it may end before the run.
        planned = self._planned_devices() if self._is_owner else {}
        wanted = {node: wanted.get(node, set()) | planned.get(node, set()) for node in {*wanted, *planned}}
        return self._reserved().add(wanted, timeout)

    def _unreserve(self, token: str | None) -> None:
        if token is not None:
            self._reserved().drop(token)

    # --- ports

    def _environment_here(self, node_rank: int) -> list[str] | None:
        """That of a node which this process is on, in its network, as who runs Ray there."""
        if self.ids[node_rank] != self._ray.get_runtime_context().get_node_id():
            return None
        facts = self.facts(node_rank)
        return environ_texts(facts["env"]) if facts.get("place") == own_place() else None

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
        return [(driver_variables() | made[node_rank][rank][0], made[node_rank][rank][3]) for rank, node_rank in enumerate(node_of_rank)]

    def _processes(self, request: LaunchRequest, node_rank: int) -> _roost.Processes:
        extra = request.env | ({"CATCH_SYSTEM_FAILURE": "1"} if request.catch_system_failure else {})
        processes = _roost.Processes(
            self.value, request.placements, request.name, self.config, environ_texts(self._inherited(node_rank)), extra=environ_texts(extra),
        )  # fmt: skip
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
        self._reserved().check_alive({self.ids[node_rank] for node_rank in memoryview(request.placements.column("cluster_node_rank")).tolist()})
        deadline = time.monotonic() + request.timeout
        token = self.reserve(devices_of(request.placements, self.value, self.ids), request.timeout)
        if request.disable_distributed_log:
            self.keep_logs(None)
        try:
            with self._logs.launching(request.name, request.disable_distributed_log) if self._logs else contextlib.nullcontext():
                group = Launch(self, request, deadline).begin()
        except BaseException:
            self._unreserve(token)
            raise
        self._reserved().keep(token)
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
            EngineError, f"a worker named '{name}' is in namespace '{self.namespace}' already",
            hint="use another name, or end the group or actor that has it", code="name",
        )  # fmt: skip

    def options(self, name: str, node_rank: int, variables: Mapping[str, str], interpreter: str | None, max_concurrency: int | None) -> dict[str, Any]:
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

    def allocate(
        self, cls: type, name: str, node_rank: int, gpu_id: int | None, variables: Mapping[str, str], interpreter: str | None, max_concurrency: int | None,
        args: Sequence[Any], kwargs: Mapping[str, Any], disable_distributed_log: bool = False,
    ) -> Any:  # fmt: skip
        """A named actor of the class itself on that node, which is there; returns without waiting for it."""
        self._check_managers()
        self._check_names({name})
        self._check_node(node_rank)
        owner = self._single.owner()
        token = self.reserve({self.ids[node_rank]: {gpu_id}} if gpu_id is not None else {}, PROBE_SECONDS)
        try:
            options = self.options(name, node_rank, self._environment_of_one(cls, name, node_rank, gpu_id, variables, owner), interpreter, max_concurrency)
            actor = self._ray.remote(cls).options(**options).remote(*args, **kwargs)
        except BaseException as error:
            self._unreserve(token)
            self._ports.free(owner)
            if is_taken(self._ray, error):
                raise self.taken(name) from error
            raise
        self._reserved().keep(token)
        self._single.note(actor, owner)
        return actor

    def _environment_of_one(self, cls: type, name: str, node_rank: int, gpu_id: int | None, variables: Mapping[str, str], owner: str) -> dict[str, str]:
        """What the process would have as a group of one, as on this machine; the caller's own variables win."""
        placements = place_one(Cluster._of(self.value, self.config, None), node_rank, gpu_id)
        return self.environments(LaunchRequest(cls, (), {}, name.replace(":", "."), placements, env=dict(variables)), owner)[0][0]

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
        kill_actors(ray, [*self._parts, *self._single.actors()])
        if self._reservation:
            self._reservation.close(not self._is_owner)
        if not self._is_owner:
            return
        with contextlib.suppress(Exception):  # one that is gone writes nothing
            ray.get([again(manager.end).remote() for manager in self._managers.values()], timeout=END_SECONDS)
        kill_actors(ray, list(self._managers.values()))
