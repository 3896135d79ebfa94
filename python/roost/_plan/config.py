"""Configs from Python objects: handed to the C reader as text, nothing is decided here."""

import os
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from roost import _roost
from roost._plan.arguments import as_path, is_int
from roost._plan.errors import fault, warn
from roost._plan.nodes import NodeGroupEnvConfig, Secret

# What model-parallel placement reads beside `cluster` and `roost`. The rest of a training config is
# not read here, and may hold values that cannot be resolved yet.
MODEL_KEYS = ("tensor_model_parallel_size", "pipeline_model_parallel_size", "context_parallel_size")
SECTION_KEYS = ("tensor_parallel_size", "pipeline_parallel_size", "recompute_logprobs")
SECTIONS = ("actor", "rollout", "inference", "actor_inference", "critic", "critic_inference", "algorithm")

# The first word of an interpolation's path.
TOO_DEEP = 64  # twice what the reader takes
REFERRED = re.compile(r"\$\{\s*([^\s.:,$\[\]{}\"]+)")


def is_mapping(value: Any) -> bool:
    return isinstance(value, Mapping) or (hasattr(value, "keys") and hasattr(value, "__getitem__"))


def is_omegaconf(value: Any) -> bool:
    return type(value).__module__.partition(".")[0] == "omegaconf"


@contextmanager
def resolving() -> Iterator[None]:
    """What OmegaConf cannot resolve is an error of the config."""
    try:
        yield
    except Exception as error:
        if not is_omegaconf(error):
            raise
        key = getattr(error, "full_key", None) or ""
        words = str(getattr(error, "msg", None) or error).splitlines()[0]
        raise fault(
            _roost.Error,
            (f"{key}: " if key else "") + words,
            code="reference",
            key=key,
            hint="OmegaConf says so: define what the value refers to, or write the value itself",
        ) from error


def plain(value: Any) -> Any:
    """An OmegaConf container as plain Python, interpolations resolved; anything else as it is."""
    if is_omegaconf(value):
        from omegaconf import OmegaConf

        return OmegaConf.to_container(value, resolve=True)
    return value


def quote(text: str) -> str:
    """A YAML double-quoted scalar."""
    return '"' + "".join(c if c.isprintable() and c not in '"\\' else f"\\U{ord(c):08X}" for c in text) + '"'


def text_of(value: Any, path: str) -> str:
    """What str() makes of it, which must be text."""
    text = str(value)
    try:
        text.encode()
    except UnicodeEncodeError:
        raise fault(
            _roost.Error, f"{path}: {text!a} is not text that UTF-8 can hold", code="syntax", key=path
        ) from None
    return text


def scalar(value: Any, path: str, is_variable: bool) -> str:
    """Ints bare, None null, everything else as the text that str() gives it."""
    if is_variable:
        return quote(text_of(value, path))  # the reference writes str(value) into the environment, None included
    if value is None:
        return "null"
    if is_int(value):
        return str(int(value))
    return quote(text_of(value, path))


def lines(
    value: Any, path: str, key: str = "", is_variable: bool = False, above: tuple[int, ...] = ()
) -> Iterator[tuple[str, str]]:
    """Flow YAML, a line for every value, each with its dotted path. What lies deeper than the reader goes is left
    out: it says so itself."""
    value = plain(value)
    if id(value) in above:
        raise _roost.Error(f"{path} contains itself")
    above = (*above, id(value))
    if len(above) > TOO_DEEP:
        yield key + "~", path
    elif is_mapping(value):
        yield key + "{", path
        for key_object in value.keys():
            name = text_of(key_object, path)
            below = f"{path}.{name}" if path else name
            for line, where in lines(
                value[key_object], below, quote(name) + ": ", is_variable or name == "env_vars", above
            ):
                yield line, where
            yield ",", below
        yield "}", path
    elif isinstance(value, Sequence) and not isinstance(value, str | bytes):
        yield key + "[", path
        for index, item in enumerate(value):
            yield from lines(item, f"{path}[{index}]", "", is_variable, above)
            yield ",", path
        yield "]", path
    else:
        yield key + scalar(value, path, is_variable), path


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


def with_referred(config: Any, whole: dict[str, Any], text: list[tuple[str, str]]) -> list[tuple[str, str]]:
    """The lines with the top-level values that interpolations name, and those that these name in turn."""
    carried = {"cluster", "roost"}
    while True:
        names = {name for line, _ in text if "${" in line for name in REFERRED.findall(line)} - carried
        found = [name for name in sorted(names) if name in config]
        if not found:
            return text
        carried |= names
        whole |= pick(config, found)
        text = list(lines(whole, ""))


def write_mapping(config: Any, model: bool, num_nodes: int | None) -> list[tuple[str, str]]:
    """The lines of a config that came as a mapping, each with its dotted path."""
    with resolving():
        is_whole = "cluster" in config
        section = plain(config["cluster"] if is_whole else config)
        if num_nodes is not None and is_mapping(section) and "num_nodes" not in section:
            section = {**section, "num_nodes": num_nodes}
        whole = {"cluster": section}
        if is_whole:
            whole |= pick(config, ["roost"]) | (model_sections(config) if model else {})
        text = list(lines(whole, ""))
        if is_whole and not is_omegaconf(config):
            text = with_referred(config, whole, text)
    return text


def read_mapping(config: Any, model: bool, num_nodes: int | None) -> _roost.Config:
    text = write_mapping(config, model, num_nodes)
    return _roost.Config(
        b"config",
        text="\n".join(line for line, _ in text),
        paths=tuple(path for _, path in text),
        env=environment(),
        model=model,
    )


def environment(env: Mapping[str, str] | None = None) -> list[str]:
    """The variables as the C library takes them; that of this process by default. Variables that are not UTF-8 are left out."""
    entries = [f"{name}={value}" for name, value in (os.environ if env is None else env).items()]
    return [entry for entry in entries if entry.encode(errors="ignore") == entry.encode(errors="surrogatepass")]


def read_config(
    name: str, config: Any, *, model: bool = False, num_nodes: int | None = None, stacklevel: int = 2
) -> _roost.Config:
    """A config from a path, a ClusterConfig, a whole config mapping or its `cluster` section (dict or OmegaConf).

    `name` is the argument's; `num_nodes` stands in where a mapping has none.
    """
    if isinstance(config, ClusterConfig):
        config = config.section()
    if is_mapping(config):
        value = read_mapping(config, model, num_nodes)
    else:
        value = _roost.Config(as_path(name, config, "a path or a mapping"), env=environment(), model=model)
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
    hardware: Any = None

    def section(self) -> dict[str, Any]:
        """As a config has it."""
        written: dict[str, Any] = {"label": self.label, "node_ranks": list(self.node_ranks)}
        if self.hardware is not None:
            written["hardware"] = self.hardware
        elif self.hardware_type is not None:
            written["hardware_type"] = self.hardware_type
        if self.ignore_hardware:
            written["ignore_hardware"] = True
        if self.env_configs:
            written["env_configs"] = [env.section() for env in self.env_configs]
        return written


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
        if not is_mapping(cfg_dict):
            raise TypeError(f"cfg_dict must be a mapping, not {cfg_dict!r}")
        value = read_config("cfg_dict", cfg_dict)
        section = plain(cfg_dict["cluster"] if "cluster" in cfg_dict else cfg_dict)
        groups = node_group_configs(value)
        for group, written in zip(groups, section.get("node_groups") or ()):
            group.hardware = written.get("hardware")
        return cls(value.num_nodes, section["component_placement"], groups or None)

    def section(self) -> dict[str, Any]:
        """As a config has it."""
        written: dict[str, Any] = {"num_nodes": self.num_nodes, "component_placement": self.component_placement}
        if self.node_groups:
            written["node_groups"] = [group.section() for group in self.node_groups]
        return written


def node_group_configs(config: _roost.Config) -> list[NodeGroupConfig]:
    groups = []
    secret = set(config.secret_variables)
    for label, node_ranks, hardware_type, ignores_hardware, envs in config.groups:
        env_configs = [
            NodeGroupEnvConfig(
                ranks, [{name: Secret(value) if name in secret else value} for name, value in variables.items()], path
            )
            for ranks, variables, path in envs
        ]
        groups.append(NodeGroupConfig(label, node_ranks, hardware_type, ignores_hardware, env_configs or None))
    return groups
