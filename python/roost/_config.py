"""Configs from Python objects: handed to the C reader as text, nothing is decided here."""

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from roost import _roost
from roost._nodes import NodeGroupEnvConfig
from roost._words import warn

# What model-parallel placement reads beside `cluster` and `roost`. The rest of a training config is
# nobody's business here, and may hold what cannot be resolved yet.
MODEL_KEYS = ("tensor_model_parallel_size", "pipeline_model_parallel_size", "context_parallel_size")
SECTION_KEYS = ("tensor_parallel_size", "pipeline_parallel_size", "recompute_logprobs")
SECTIONS = ("actor", "rollout", "inference", "actor_inference", "critic", "critic_inference", "algorithm")


def is_mapping(value: Any) -> bool:
    return isinstance(value, Mapping) or (hasattr(value, "keys") and hasattr(value, "__getitem__"))


def plain(value: Any) -> Any:
    """An OmegaConf container as plain Python, interpolations resolved; anything else as it is."""
    if type(value).__module__.partition(".")[0] == "omegaconf":
        from omegaconf import OmegaConf

        return OmegaConf.to_container(value, resolve=True)
    return value


def quote(text: str) -> str:
    """A YAML double-quoted scalar."""
    return '"' + "".join(c if c.isprintable() and c not in '"\\' else f"\\U{ord(c):08X}" for c in text) + '"'


def scalar(value: Any, is_variable: bool) -> str:
    """Ints bare, None null, everything else as the text that str() gives it."""
    if is_variable:
        return quote(str(value))  # the reference writes str(value) into the environment, None included
    if value is None:
        return "null"
    if isinstance(value, int) and not isinstance(value, bool):
        return str(int(value))
    return quote(str(value))


def lines(value: Any, path: str, key: str = "", is_variable: bool = False) -> Iterator[tuple[str, str]]:
    """Flow YAML, a line for every value, each with its dotted path."""
    value = plain(value)
    if is_mapping(value):
        yield key + "{", path
        for name in value.keys():
            below = f"{path}.{name}" if path else str(name)
            for line, where in lines(value[name], below, quote(str(name)) + ": ", is_variable or name == "env_vars"):
                yield line, where
            yield ",", below
        yield "}", path
    elif isinstance(value, Sequence) and not isinstance(value, str | bytes):
        yield key + "[", path
        for index, item in enumerate(value):
            yield from lines(item, f"{path}[{index}]", "", is_variable)
            yield ",", path
        yield "]", path
    else:
        yield key + scalar(value, is_variable), path


def pick(section: Any, names: Sequence[str]) -> dict[str, Any]:
    return {name: section[name] for name in names if is_mapping(section) and name in section}


def model_sections(config: Any) -> dict[str, Any]:
    """The sizes of models, where the config has them."""
    found = {}
    for name in SECTIONS:
        if name in config and is_mapping(config[name]):
            found[name] = pick(config[name], SECTION_KEYS)
            model = pick(config[name], ["model"])
            if model:
                found[name]["model"] = pick(model["model"], MODEL_KEYS)
    return found


def read_mapping(config: Any, model: bool, num_nodes: int | None) -> _roost.Config:
    is_whole = "cluster" in config
    section = plain(config["cluster"] if is_whole else config)
    if num_nodes is not None and is_mapping(section) and "num_nodes" not in section:
        section = {**section, "num_nodes": num_nodes}
    whole = {"cluster": section}
    if is_whole:
        whole |= pick(config, ["roost"]) | (model_sections(config) if model else {})
    text = list(lines(whole, ""))
    return _roost.Config(
        "config",
        text="\n".join(line for line, _ in text),
        paths=tuple(path for _, path in text),
        env=environment(),
        model=model,
    )


def environment() -> list[str]:
    """For ${oc.env:...}; what is not UTF-8 cannot be text of a config and is left out."""
    entries = [f"{name}={value}" for name, value in os.environ.items()]
    return [entry for entry in entries if entry.encode(errors="ignore") == entry.encode(errors="surrogatepass")]


def read_config(config: Any, *, model: bool = False, num_nodes: int | None = None, stacklevel: int = 2) -> _roost.Config:
    """A config from a path, a whole config mapping or its `cluster` section (dict or OmegaConf).

    `num_nodes` stands in where a mapping has none.
    """
    if isinstance(config, str | os.PathLike):
        value = _roost.Config(os.fspath(config), env=environment(), model=model)
    elif is_mapping(config):
        value = read_mapping(config, model, num_nodes)
    else:
        raise TypeError(f"config must be a path or a mapping, not {type(config).__name__}")
    warn(value.warnings, stacklevel + 1)
    return value


@dataclass
class NodeGroupConfig:
    """An entry of ``cluster.node_groups``, read."""

    label: str
    node_ranks: list[int]
    hardware_type: str | None = None
    ignore_hardware: bool = False
    env_configs: list[NodeGroupEnvConfig] | None = None


@dataclass
class ClusterConfig:
    """The ``cluster`` section, read and checked.

    >>> config = ClusterConfig.from_dict_cfg(
    ...     {"num_nodes": 2, "component_placement": {"actor": 0}, "node_groups": [{"label": "a800", "node_ranks": "0-1"}]}
    ... )
    >>> config.num_nodes, config.node_groups[0].label, config.node_groups[0].node_ranks
    (2, 'a800', [0, 1])
    """

    num_nodes: int
    component_placement: Any
    node_groups: list[NodeGroupConfig] | None = None

    @classmethod
    def from_dict_cfg(cls, cfg_dict: Any) -> "ClusterConfig":
        """From the section itself: a dict or an OmegaConf DictConfig."""
        value = read_config(cfg_dict)
        section = plain(cfg_dict["cluster"] if "cluster" in cfg_dict else cfg_dict)
        return cls(value.num_nodes, section["component_placement"], node_group_configs(value) or None)


def node_group_configs(config: _roost.Config) -> list[NodeGroupConfig]:
    groups = []
    for label, node_ranks, hardware_type, ignores_hardware, envs in config.groups:
        env_configs = [NodeGroupEnvConfig(ranks, [{name: value} for name, value in variables.items()], path) for ranks, variables, path in envs]
        groups.append(NodeGroupConfig(label, node_ranks, hardware_type, ignores_hardware, env_configs or None))
    return groups
