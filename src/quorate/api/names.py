"""Names of objects and of things on a node, all derived from the volume's name (facts/api 7.1)."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterable

from quorate.api.fnv import fnv128a
from quorate.api.id_set import MAX_ID
from quorate.api.meta import LabelSelector
from quorate.api.replicated_storage_class import LVMVolumeGroupRef

_REPLICA = re.compile(r"(.+)-(0|[1-9][0-9]?)")
LABEL_VALUE_LIMIT = 63
NAME_LIMIT = 253


def replica_name(volume: str, id_: int) -> str:
    """Name of a replica (RVR, DRBDR, member, request, peer)."""
    if not 0 <= id_ <= MAX_ID:
        raise ValueError(f"replica id out of range 0..{MAX_ID}: {id_}")
    return f"{volume}-{id_}"


def split_replica_name(name: str) -> tuple[str, int]:
    """Volume name and id of a replica name; ValueError when it is none (zero-padded ids included)."""
    match = _REPLICA.fullmatch(name)
    if match is None or int(match[2]) > MAX_ID:
        raise ValueError(f"not a replica name: {name!r}")
    return match[1], int(match[2])


def replica_id(name: str) -> int:
    """Id of a replica name; ValueError when it is none."""
    return split_replica_name(name)[1]


def llv_name(replica: str, lvg: str, thin_pool: str = "") -> str:
    """Name of the LVMLogicalVolume of a replica on a volume group and thin pool."""
    return f"{replica}-" + fnv128a(f"{lvg}\0{thin_pool}".encode())


def formation_operation_name(volume: str) -> str:
    """Name of the DRBDResourceOperation that bootstraps the data."""
    return f"{volume}-formation"


def drbd_name_on_node(replica: str, actual_name: str = "") -> str:
    """Name of the DRBD resource in the kernel."""
    return actual_name or f"sdsrv-{replica}"


def device_path(replica: str) -> str:
    """Path of the block device link on the node."""
    return f"/dev/sdsrv/{replica}"


def orphan_peer_name(node_id: int) -> str:
    """Name under which a kernel peer without spec entry is reported."""
    return f"peer-{node_id}"


def label_value(text: str) -> str:
    """`text` as a label value: over 63 characters it is shortened and a hash keeps it unique (decision 12)."""
    if len(text) <= LABEL_VALUE_LIMIT:
        return text
    digest = hashlib.sha1(text.encode(), usedforsecurity=False).hexdigest()[:8]
    return f"{text[: LABEL_VALUE_LIMIT - 9].rstrip('-_.')}-{digest}"


def attachment_name(volume: str, node: str) -> str:
    """Name of the ReplicatedVolumeAttachment that the CSI driver makes."""
    full = f"csi-{volume}-{node}"
    if len(full) <= NAME_LIMIT:
        return full
    digest = hashlib.sha1(full.encode(), usedforsecurity=False).hexdigest()[:8]
    return f"csi-{_stripped(volume[:119])}-{_stripped(node[:120])}-{digest}"


def _stripped(text: str) -> str:
    return text.rstrip("-").rstrip(".")


def auto_pool_name(
    pool_type: str,
    lvm_volume_groups: Iterable[LVMVolumeGroupRef],
    zones: Iterable[str],
    node_label_selector: LabelSelector | None,
    system_network_names: Iterable[str],
) -> str:
    """Name of the pool that a class's storage is turned into: equal storage, equal pool (facts/controllers 2.3)."""
    parts = [pool_type, "\0"]
    parts += [f"{entry}\0" for entry in sorted(f"{group.name}:{group.thin_pool_name}" for group in lvm_volume_groups)]
    parts += [f"{zone}\0" for zone in sorted(zones)]
    if node_label_selector is not None:
        parts.append(_go_json(node_label_selector))
    parts.append("\0")
    parts += [f"{network}\0" for network in sorted(system_network_names)]
    return f"auto-rsp-{fnv128a(''.join(parts).encode())}"


def _go_json(selector: LabelSelector) -> str:
    """The selector as Go's encoding/json writes it: fixed key order, sorted map keys, `<>&` escaped."""
    value: dict[str, object] = {}
    if selector.match_labels:
        value["matchLabels"] = dict(sorted(selector.match_labels.items()))
    if selector.match_expressions:
        value["matchExpressions"] = [
            {"key": e.key, "operator": e.operator} | ({"values": list(e.values)} if e.values else {})
            for e in selector.match_expressions
        ]
    text = json.dumps(value, separators=(",", ":"), ensure_ascii=False)
    for character in "<>&\u2028\u2029":
        text = text.replace(character, f"\\u{ord(character):04x}")
    return text
