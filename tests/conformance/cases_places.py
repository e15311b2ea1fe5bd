"""Rules at the places that the other cases of our CRDs do not reach: an object that passes there, and one refused there.

`test_every_rule` finds a rule that is missing here.
"""

from __future__ import annotations

from typing import cast

from quorate.local.jsonvalue import Json
from tests.api import test_rules as data
from tests.api.test_rules import CLASS, DRBDR, LVG, MANUAL, POOL, REPLICA, VOLUME, Document, changed
from tests.conformance.cases_own import ADDRESS, MEMBER_WITHOUT_GROUP, PEER_STATUS, VIOLATION, change, creation, status
from tests.conformance.session import Case

SELECTOR: Document = {
    "matchLabels": {"a": "b"},
    "matchExpressions": [{"key": "k", "operator": "In", "values": ["v"]}, {"key": "l", "operator": "Exists"}],
}
SELECTIVE_POOL = changed(POOL, nodeLabelSelector=SELECTOR)
REPAIR: Document = {"type": "RollingRepair", "rollingRepair": {"maxParallel": 2}}
OTHER_ADDRESS: Document = {**ADDRESS, "systemNetworkName": "Other"}

PASSING: dict[str, tuple[str, Document]] = {
    "selector": ("ReplicatedStorageClass", changed(CLASS, nodeLabelSelector=SELECTOR)),
    "repair": ("ReplicatedStorageClass", changed(CLASS, eligibleNodesConflictResolutionStrategy=REPAIR)),
    "selector of a pool": ("ReplicatedStoragePool", SELECTIVE_POOL),
    "selector of a group": ("LVMVolumeGroup", changed(LVG, blockDeviceSelector=SELECTOR)),
}
"""Created: the rules about one state let them pass."""

CHANGES: dict[str, tuple[str, Document, Document]] = {
    "deprecated pool kept": ("ReplicatedStorageClass", changed(CLASS, storagePool="p"), {"reclaimPolicy": "Retain"}),
    "pool unchanged": ("ReplicatedStoragePool", SELECTIVE_POOL, {}),
    "pool with another selector": (
        "ReplicatedStoragePool",
        SELECTIVE_POOL,
        {"nodeLabelSelector": {**SELECTOR, "matchLabels": {"a": "c"}}},
    ),
    "operation unchanged": ("DRBDResourceOperation", data.OPERATION, {}),
    "group with a selector": ("LVMVolumeGroup", LVG, {"blockDeviceSelector": SELECTOR}),
}
"""Replaced by an edited copy: the rules about two states let them pass, or refuse."""


def configurations() -> tuple[Json, ...]:
    """One that passes, and one against each rule."""
    unequal: Document = {**MANUAL, "failuresToTolerate": 0, "guaranteedMinimumDataRedundancy": 2}
    single: Document = {
        **MANUAL,
        "topology": "Zonal",
        "failuresToTolerate": 0,
        "guaranteedMinimumDataRedundancy": 0,
    }
    return tuple(cast("Json", {"configuration": each}) for each in (MANUAL, unequal, single))


def volume(**fields: data.Json) -> Json:
    """A volume's status with what it must have."""
    return cast("Json", data.with_status(**fields)["status"])


def request(name: str) -> Document:
    """A replica's request on its volume."""
    join: Document = {"operation": "Join", "type": "Diskful", "lvmVolumeGroupName": "vg", "thinPoolName": "tp"}
    return {"name": name, "firstObservedAt": "2001-01-01T00:00:00Z", "request": join}


def networks(before: tuple[str, ...], after: tuple[str, ...]) -> Json:
    """A change of networks under way."""
    transition: Document = {
        "type": "ChangeSystemNetworks",
        "group": "Network",
        "fromSystemNetworkNames": list(before),
        "toSystemNetworkNames": list(after),
        "steps": [data.STEP],
    }
    return volume(datameshTransitions=[transition])


STATUSES: dict[str, tuple[str, Document, tuple[Json, ...]]] = {
    "configuration of a class": ("ReplicatedStorageClass", CLASS, configurations()),
    "configuration of a volume": (
        "ReplicatedVolume",
        VOLUME,
        tuple(volume(**cast("Document", each)) for each in configurations()),
    ),
    "networks": (
        "ReplicatedVolume",
        VOLUME,
        (networks(("a", "b"), ("c", "d")), networks(("a", "a"), ("c",)), networks(("a",), ("c", "c"))),
    ),
    "datamesh networks": ("ReplicatedVolume", VOLUME, (volume(datamesh={"systemNetworkNames": ["Internal", "b"]}),)),
    "violations": (
        "ReplicatedVolume",
        VOLUME,
        (volume(eligibleNodesViolations=[VIOLATION, {**VIOLATION, "replicaName": "pvc-1-1"}]),),
    ),
    "requests": (
        "ReplicatedVolume",
        VOLUME,
        tuple(volume(datameshReplicaRequests=[request("pvc-1-0"), request(name)]) for name in ("pvc-1-1", "pvc-1-0")),
    ),
    "diskless member": (
        "ReplicatedVolume",
        VOLUME,
        (volume(datamesh={"members": [{**MEMBER_WITHOUT_GROUP, "type": "TieBreaker"}]}),),
    ),
    "addresses of a replica": ("ReplicatedVolumeReplica", REPLICA, ({"addresses": [ADDRESS, OTHER_ADDRESS]},)),
    "peers of a replica": (
        "ReplicatedVolumeReplica",
        REPLICA,
        ({"peers": [{**PEER_STATUS, "connectionEstablishedOn": ["a", "b"]}, {"name": "pvc-1-2"}]},),
    ),
    "addresses of a resource": ("DRBDResource", DRBDR, ({"addresses": [ADDRESS, OTHER_ADDRESS]},)),
    "peers of a resource": (
        "DRBDResource",
        DRBDR,
        ({"peers": [{"name": "pvc-1-1", "nodeID": 1}, {"name": "pvc-1-2", "nodeID": 2}]},),
    ),
}
"""Status halves, one after the other: each first one passes."""


def cases() -> dict[str, Case]:
    """All of them, by kind and name."""
    found: dict[str, Case] = {}
    for name, (kind, document) in PASSING.items():
        found[f"{kind}: {name} passes"] = creation(kind, document)
    for name, (kind, old, new) in CHANGES.items():
        found[f"{kind}: {name}"] = change(kind, old, changed(old, **new))
    for name, (kind, document, statuses) in STATUSES.items():
        found[f"{kind}: {name}"] = status(kind, document, *statuses)
    return found


CASES = cases()
