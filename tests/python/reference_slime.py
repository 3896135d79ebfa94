"""An independent reading of slime's placement groups: the layout, and the order of bundles.

Written from what slime does, in the plainest way: it knows nothing of how roost does it.
"""

import ipaddress
import re
from functools import cmp_to_key
from typing import Any


class Refused(Exception):
    """What must not be laid out."""


# --- order ---


def natural(text: bytes) -> list[tuple[int, Any]]:
    """Digit runs as numbers; a digit and another byte compare as bytes."""
    pieces: list[tuple[int, Any]] = []
    for number, byte in re.findall(rb"([0-9]+)|(.)", text, re.S):
        pieces.append((ord("0"), (int(number),)) if number else (byte[0], ()))
    return pieces


def natural_compare(a: bytes, b: bytes) -> int:
    """Pieces first, the texts themselves last: 01 and 1 are two names."""
    left, right = natural(a), natural(b)
    if left != right:
        return -1 if left < right else 1
    return (a > b) - (a < b)


def address_key(text: str | None) -> tuple[int, Any, bytes]:
    """(kind, value, zone or name)"""
    if not text:
        return (3, b"", b"")
    if re.fullmatch(r"\d{1,3}(\.\d{1,3}){3}", text, re.A):
        try:
            return (0, ipaddress.IPv4Address(text).packed, b"")
        except ValueError:
            return (2, b"", text.encode())
    inner = text[1:-1] if text.startswith("[") and text.endswith("]") and len(text) > 2 else text
    value, _, zone = inner.partition("%")
    try:
        address = ipaddress.IPv6Address(value)
    except ValueError:
        return (2, b"", text.encode())
    mark = ("%" + zone if "%" in inner else "").encode()
    if address.ipv4_mapped:
        return (0, address.ipv4_mapped.packed, mark)
    return (1, address.packed, mark)


def compare_addresses(a: tuple[int, Any, bytes], b: tuple[int, Any, bytes]) -> int:
    if a[:2] != b[:2]:
        return -1 if a[:2] < b[:2] else 1
    return natural_compare(a[2], b[2])


def gpu_key(gpu: int | str, visible: str | None) -> tuple[int, Any]:
    text = str(gpu)
    if re.fullmatch(r"[+-]?[0-9]+", text):
        return (0, int(text))
    listed = [item.strip() for item in visible.split(",")] if visible else []
    if text in listed:
        return (1, listed.index(text))
    return (2, text.encode())


def sort_bundles(bundles: list[tuple[int, Any, int | str]], visible: dict[Any, str] | None = None) -> list[int]:
    """By node, then GPU, then index."""
    addresses: dict[str, tuple[int, Any, bytes]] = {}
    for _, node, _ in bundles:
        if isinstance(node, tuple) and node[0]:
            found = address_key(node[1])
            if node[0] not in addresses or compare_addresses(found, addresses[node[0]]) < 0:
                addresses[node[0]] = found

    def node_key(node: Any) -> tuple[tuple[int, Any, bytes], bytes]:
        if isinstance(node, tuple) and node[0]:
            return addresses[node[0]], node[0].encode()
        return address_key(node[1] if isinstance(node, tuple) else node), b""

    def compare(a: tuple[Any, Any, int], b: tuple[Any, Any, int]) -> int:
        (left_address, left_id), (right_address, right_id) = a[0], b[0]
        order = compare_addresses(left_address, right_address) or natural_compare(left_id, right_id)
        return order or (a[1:] > b[1:]) - (a[1:] < b[1:])

    keys = [(node_key(node), gpu_key(gpu, (visible or {}).get(node)), index) for index, node, gpu in bundles]
    return [index for _, _, index in sorted(keys, key=cmp_to_key(compare))]


def seed_order(bundles: list[tuple[int, str, int]]) -> list[int]:
    """The seed's sort_key, for dotted quads and integer ids."""
    return [
        index for index, _, _ in sorted(bundles, key=lambda it: ([int(piece) for piece in it[1].split(".")], it[2]))
    ]


# --- layout ---


def settle(args: dict[str, Any]) -> dict[str, Any]:
    """The argument rules, in their order."""
    it = {
        "actor_num_nodes": 1,
        "actor_num_gpus_per_node": 8,
        "rollout_num_gpus": None,
        "rollout_num_gpus_per_engine": 1,
        "colocate": False,
        "debug_train_only": False,
        "debug_rollout_only": False,
        "rollout_external": False,
        "use_critic": False,
        "train_async": False,
        "prefill_num_servers": None,
        "sglang": None,
        "sglang_dp_size": 1,
        **args,
    }
    if it["debug_rollout_only"] and not it["rollout_external"]:
        rollout = it["rollout_num_gpus"]
        if it["colocate"] and rollout is None:
            it["rollout_num_gpus"] = it["actor_num_nodes"] * it["actor_num_gpus_per_node"]
        elif rollout == 0:
            it["actor_num_nodes"] = it["actor_num_gpus_per_node"] = 0
        elif rollout is not None:
            it["actor_num_gpus_per_node"] = min(8, rollout)
            it["actor_num_nodes"] = rollout // it["actor_num_gpus_per_node"]
        it["colocate"] = False
    if it["debug_train_only"] and it["debug_rollout_only"]:
        raise Refused("both debug modes")
    if it["colocate"]:
        if it["rollout_num_gpus"] is None:
            it["rollout_num_gpus"] = it["actor_num_nodes"] * it["actor_num_gpus_per_node"]
        if it["train_async"]:
            raise Refused("async and colocate")
    return it


def sizes(it: dict[str, Any]) -> tuple[int, int]:
    actor, rollout = it["actor_num_nodes"] * it["actor_num_gpus_per_node"], it["rollout_num_gpus"]
    if it["debug_train_only"]:
        return actor, 0
    if it["rollout_external"]:
        return actor, 0 if it["debug_rollout_only"] else actor
    if rollout is None:
        raise Refused("rollout_num_gpus is not set")
    if it["debug_rollout_only"]:
        return rollout, 0
    if it["colocate"]:
        return max(actor, rollout), 0
    return actor + rollout, actor


def server_groups(it: dict[str, Any]) -> list[tuple[str, str, int, int]]:
    """(model, type, GPUs, GPUs per engine)"""
    rollout, each = it["rollout_num_gpus"], it["rollout_num_gpus_per_engine"]
    if it["sglang"] is not None and (it["prefill_num_servers"] or it["rollout_external"]):
        raise Refused("two ways to say which servers there are")
    if it["debug_train_only"] or it["rollout_external"]:
        return []
    if it["sglang"] is not None:
        groups = [
            (
                model["name"],
                group["worker_type"],
                group["num_gpus"],
                group.get("num_gpus_per_engine") or model.get("num_gpus_per_engine") or each,
            )
            for model in it["sglang"]
            for group in model["server_groups"]
        ]
        if sum(group[2] for group in groups) != rollout:
            raise Refused("the sum is not rollout_num_gpus")
        return groups
    if rollout == 0:
        return []
    if it["prefill_num_servers"]:
        prefill = it["prefill_num_servers"] * each
        if prefill >= rollout:
            raise Refused("nothing is left for decode")
        return [("default", "prefill", prefill, each), ("default", "decode", rollout - prefill, each)]
    return [("default", "regular", rollout, each)]


def lay_out(args: dict[str, Any], nodes: list[int] | None) -> dict[str, Any]:
    """Sizes, and the engines with their parts; `nodes` are the GPUs of each node."""
    it = settle(args)
    num_gpus, offset = sizes(it)
    per_node = it.get("num_gpus_per_node") or (max(nodes) if nodes else 8)
    node_of_slot = (
        [node for node, count in enumerate(nodes) for _ in range(count)]
        if nodes
        else [slot // per_node for slot in range(num_gpus)]
    )
    if len(node_of_slot) < num_gpus:
        raise Refused("not enough GPUs")
    trainers = it["actor_num_nodes"] * it["actor_num_gpus_per_node"]
    next_port = dict.fromkeys(node_of_slot, 0)
    engines: list[dict[str, Any]] = []
    gpu_offset = rank = 0
    for model, kind, count, each in server_groups(it):
        size = min(each, per_node)
        if kind != "placeholder":
            if each > per_node and each % per_node or count % each:
                raise Refused("does not tile")
            made = []
            for first in range(offset + gpu_offset, offset + gpu_offset + count, each):
                parts = []
                for node_rank, slot in enumerate(range(first, first + each, size)):
                    if len(set(node_of_slot[slot : slot + size])) != 1 or slot + size > num_gpus:
                        raise Refused("straddles")
                    parts.append(
                        {
                            "rank": rank + len(made),
                            "slot": slot,
                            "node_rank": node_rank,
                            "node": node_of_slot[slot],
                            "kind": kind,
                            "at": {},
                        }
                    )
                    made.append(parts[-1])
                engines.append({"model": model, "worker_type": kind, "gpus": each, "first_slot": first, "parts": parts})
            for node in dict.fromkeys(part["node"] for part in made):
                here = [part for part in made if part["node"] == node]
                for part in here:
                    for name in ("server", "nccl", "bootstrap") if kind == "prefill" else ("server", "nccl"):
                        part["at"][name] = next_port[node]
                        next_port[node] += 1
                for part in here:
                    if part["node_rank"] == 0:
                        part["at"]["dist_init"] = next_port[node]
                        next_port[node] += 30 + it["sglang_dp_size"]
        rank += count // size
        gpu_offset += count
    shared = 0.4 * (1 + it["use_critic"]) + (0.2 if any(e["first_slot"] < trainers for e in engines) else 0)
    if trainers and round(shared, 6) > 1:
        raise Refused("more than a GPU")
    return {"num_gpus": num_gpus, "rollout_offset": offset, "trainers": trainers, "engines": engines}
