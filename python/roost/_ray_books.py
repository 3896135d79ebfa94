"""Placement groups in Ray's books: one for each token that reserves accelerators, with a bundle a node."""

import logging
from collections.abc import Collection, Mapping
from typing import Any

from roost._ray_cluster import version_numbers
from roost._ray_holdings import Devices, Hold, Kinds

log = logging.getLogger("roost")

HEEDS_LABELS = (2, 49)  # before it Ray takes labels of nodes for bundles, and places them anywhere


def create_group(namespace: str, token: str, wanted: Devices, kinds: Kinds) -> Any:
    """Asked for, not waited for; it ends with the process that asks."""
    import ray
    from ray.util.placement_group import placement_group

    bundles = [{kinds[node][0]: float(len(numbers))} for node, numbers in wanted.items()]
    name = f"{namespace}-{token}"
    if version_numbers(ray.__version__) >= HEEDS_LABELS:
        return placement_group(bundles, strategy="SPREAD", name=name, bundle_label_selector=[{"ray.io/node-id": node} for node in wanted])
    for bundle, node in zip(bundles, wanted, strict=True):
        bundle[f"node:{kinds[node][1]}"] = 0.001  # the resource that is its address
    return placement_group(bundles, strategy="SPREAD", name=name)


def remove_group(group: Any) -> None:
    from ray.util.placement_group import remove_placement_group

    try:
        remove_placement_group(group)
    except Exception as error:
        log.info("a placement group could not be removed: %s", error)


def group_state(group: Any) -> str | None:
    from ray.util.placement_group import placement_group_table

    found: str | None = placement_group_table(group).get("state")
    return found


def balance(namespace: str, own: Mapping[str, Hold], gone: Collection[str]) -> None:
    """What the run itself reserves is there, and nothing of tokens that were let go: Ray keeps what an actor reserved that
    has ended, as long as its job."""
    import ray
    from ray.util.placement_group import PlacementGroup, placement_group_table

    there: dict[str, str] = {}
    for number, entry in placement_group_table().items():
        prefix, _, token = entry["name"].rpartition("-")
        if prefix == namespace and entry["state"] != "REMOVED":
            there[token] = number
    for token, hold in own.items():
        if token not in there:
            create_group(namespace, token, hold.reserves, hold.kinds)
    for token in there.keys() & set(gone):
        remove_group(PlacementGroup(ray.PlacementGroupID.from_hex(there[token])))
