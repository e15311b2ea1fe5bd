"""The CEL rules and schemas as a server applies them: what is accepted, what is refused and with which words."""

from __future__ import annotations

from functools import cache
from typing import cast

import pytest

from quorate.api import wire
from quorate.api.crd import crd
from quorate.api.meta import Object
from quorate.api.names import llv_name, replica_name
from quorate.api.replicated_volume import NAME_LIMIT, ReplicatedVolume, ReplicatedVolumeStatus
from quorate.api.resources import OWN, by_kind
from quorate.api.schema import Json
from quorate.api.value import replace
from quorate.local.cel import RuleSet
from quorate.local.schema import Validator
from quorate.local.structural import Structure, apply_defaults, compile_structure

Document = dict[str, Json]


@cache
def _checks(kind: str) -> tuple[Structure, Validator, RuleSet]:
    versions = cast("dict[str, dict[str, list[dict[str, dict[str, Document]]]]]", crd(by_kind(kind)))["spec"][
        "versions"
    ]
    schema = versions[0]["schema"]["openAPIV3Schema"]
    structure = compile_structure(schema)
    return structure, Validator(schema, structure), RuleSet(structure)


def refusals(kind: str, new: Document, old: Document | None = None) -> str:
    """What a server says against creating `new`, or changing `old` into it; empty = accepted."""
    structure, validator, rules = _checks(kind)
    new = cast("Document", apply_defaults(new, structure))
    old = cast("Document", apply_defaults(old, structure)) if old is not None else None
    found = validator.errors(new, old) or rules.errors(new, old)
    return "; ".join(str(error) for error in found)


def merged(base: Json, change: Json) -> Json:
    """`base` with `change` laid over it; None removes."""
    if not isinstance(base, dict) or not isinstance(change, dict):
        return change
    result = {key: value for key, value in base.items() if change.get(key, value) is not None}
    return result | {key: merged(base.get(key), value) for key, value in change.items() if value is not None}


def changed(base: Document, **spec: Json) -> Document:
    return cast("Document", merged(base, {"spec": spec}))


VOLUME: Document = {"metadata": {"name": "pvc-1"}, "spec": {"size": "1Gi", "replicatedStorageClassName": "fast"}}
MANUAL: Document = {
    "replicatedStoragePoolName": "pool",
    "topology": "Ignored",
    "failuresToTolerate": 1,
    "guaranteedMinimumDataRedundancy": 1,
    "volumeAccess": "Any",
}
REPLICA: Document = {
    "metadata": {"name": "pvc-1-3"},
    "spec": {"replicatedVolumeName": "pvc-1", "type": "Diskful", "nodeName": "n", "lvmVolumeGroupName": "vg"},
}
CLASS: Document = {
    "metadata": {"name": "fast"},
    "spec": {
        "reclaimPolicy": "Delete",
        "topology": "Ignored",
        "storage": {"type": "LVM", "lvmVolumeGroups": [{"name": "vg-1"}]},
    },
}
POOL: Document = {
    "metadata": {"name": "pool"},
    "spec": {"type": "LVM", "lvmVolumeGroups": [{"name": "vg-1"}], "zones": ["a"]},
}
PEER: Document = {
    "name": "pvc-1-1",
    "nodeID": 1,
    "paths": [{"systemNetworkName": "Internal", "address": {"ipv4": "10.0.0.1", "port": 7000}}],
}
DRBDR: Document = {
    "metadata": {"name": "pvc-1-0"},
    "spec": {
        "nodeName": "n",
        "nodeID": 0,
        "systemNetworks": ["Internal"],
        "type": "Diskful",
        "size": "1Gi",
        "lvmLogicalVolumeName": "llv",
        "peers": [PEER],
    },
}
OPERATION: Document = {
    "metadata": {"name": "pvc-1-formation"},
    "spec": {
        "nodeName": "n",
        "drbdResourceName": "pvc-1-0",
        "type": "CreateNewUUID",
        "createNewUUID": {"clearBitmap": True},
        "formationID": "f1",
    },
}
ATTACHMENT: Document = {"metadata": {"name": "a"}, "spec": {"replicatedVolumeName": "pvc-1", "nodeName": "n"}}
LLV: Document = {
    "metadata": {"name": "llv"},
    "spec": {
        "actualLVNameOnTheNode": "llv",
        "type": "Thin",
        "size": "1Gi",
        "lvmVolumeGroupName": "vg",
        "thin": {"poolName": "tp"},
    },
}
LVG: Document = {
    "metadata": {"name": "vg"},
    "spec": {"type": "Local", "local": {"nodeName": "n"}, "actualVGNameOnTheNode": "vg"},
}
SAMPLES = {
    "ReplicatedVolume": VOLUME,
    "ReplicatedVolumeReplica": REPLICA,
    "ReplicatedVolumeAttachment": ATTACHMENT,
    "ReplicatedStorageClass": CLASS,
    "ReplicatedStoragePool": POOL,
    "DRBDResource": DRBDR,
    "DRBDResourceOperation": OPERATION,
    "LVMLogicalVolume": LLV,
    "LVMVolumeGroup": LVG,
}


@pytest.mark.parametrize("kind", [resource.kind for resource in OWN])
def test_every_rule_compiles(kind: str) -> None:
    assert _checks(kind)[2].compile_errors() == []


@pytest.mark.parametrize("kind", SAMPLES)
def test_a_plain_object_is_accepted_and_can_be_sent_back_unchanged(kind: str) -> None:
    sample = SAMPLES[kind]
    assert refusals(kind, sample) == ""
    typed: type[Object] = by_kind(kind).type
    assert refusals(kind, wire.to_builtins(wire.from_builtins(typed, sample)), sample) == ""


# Numbers of zones that a TransZonal class may list, by (FTT, GMDR): decision 1.
ZONES = {(0, 1): (2,), (1, 0): (3,), (1, 1): (3,), (1, 2): (4,), (2, 1): (3, 4, 5), (2, 2): (3, 4, 5)}


@pytest.mark.parametrize("zones", range(1, 8))
@pytest.mark.parametrize(("ftt", "gmdr"), ZONES)
def test_zone_counts_of_a_trans_zonal_class(ftt: int, gmdr: int, zones: int) -> None:
    names = [f"z{i}" for i in range(zones)]
    spec: Document = {"topology": "TransZonal", "zones": cast("Json", names)}
    candidate = changed(CLASS, **spec, failuresToTolerate=ftt, guaranteedMinimumDataRedundancy=gmdr)
    assert (refusals("ReplicatedStorageClass", candidate) == "") == (zones in ZONES[ftt, gmdr])


@pytest.mark.parametrize(
    ("replication", "least"),
    [("Availability", 3), ("Consistency", 2), ("ConsistencyAndAvailability", 3), (None, 3)],
)
def test_zone_counts_by_the_deprecated_words(replication: str | None, least: int) -> None:
    for zones in range(1, 6):
        names = cast("Json", [f"z{i}" for i in range(zones)])
        candidate = changed(CLASS, topology="TransZonal", zones=names, replication=replication)
        assert (refusals("ReplicatedStorageClass", candidate) == "") == (zones >= least)


def test_without_listed_zones_the_number_is_not_checked() -> None:
    for ftt, gmdr in ZONES:
        candidate = changed(CLASS, topology="TransZonal", failuresToTolerate=ftt, guaranteedMinimumDataRedundancy=gmdr)
        assert refusals("ReplicatedStorageClass", candidate) == ""


@pytest.mark.parametrize("ftt", range(4))
@pytest.mark.parametrize("gmdr", range(4))
@pytest.mark.parametrize("topology", ["Ignored", "Zonal", "TransZonal"])
def test_combinations_of_ftt_and_gmdr(ftt: int, gmdr: int, topology: str) -> None:
    valid = ftt <= 2 and gmdr <= 2 and abs(ftt - gmdr) <= 1 and ((ftt, gmdr) != (0, 0) or topology == "Ignored")
    storage_class = changed(CLASS, topology=topology, failuresToTolerate=ftt, guaranteedMinimumDataRedundancy=gmdr)
    assert (refusals("ReplicatedStorageClass", storage_class) == "") == valid
    manual = {**MANUAL, "topology": topology, "failuresToTolerate": ftt, "guaranteedMinimumDataRedundancy": gmdr}
    volume = changed(VOLUME, configurationMode="Manual", replicatedStorageClassName=None, manualConfiguration=manual)
    assert (refusals("ReplicatedVolume", volume) == "") == valid


ROLLING: Document = {"type": "RollingUpdate", "rollingUpdate": {"maxParallel": 3}}
REFUSED: list[tuple[str, Document, str]] = [
    ("ReplicatedStorageClass", changed(CLASS, replication="None", topology="Zonal"), "replication None requires"),
    (
        "ReplicatedStorageClass",
        changed(CLASS, replication="Availability", failuresToTolerate=1, guaranteedMinimumDataRedundancy=0),
        "replication excludes",
    ),
    ("ReplicatedStorageClass", changed(CLASS, failuresToTolerate=1), "must be set together"),
    (
        "ReplicatedStorageClass",
        changed(CLASS, storage={"type": "LVMThin"}),
        "thinPoolName is required for every volume group",
    ),
    (
        "ReplicatedStorageClass",
        changed(CLASS, storage={"lvmVolumeGroups": [{"name": "vg-1", "thinPoolName": "tp"}]}),
        "must not be set when type is LVM",
    ),
    ("ReplicatedStorageClass", changed(CLASS, storage={"lvmVolumeGroups": []}), "at least 1 items"),
    ("ReplicatedStorageClass", changed(CLASS, systemNetworkNames=["Public"]), "Internal"),
    (
        "ReplicatedStorageClass",
        changed(CLASS, configurationRolloutStrategy={"type": "RollingUpdate"}),
        "rollingUpdate is required",
    ),
    (
        "ReplicatedStorageClass",
        changed(CLASS, configurationRolloutStrategy={**ROLLING, "type": "NewVolumesOnly"}),
        "forbidden otherwise",
    ),
    (
        "ReplicatedStorageClass",
        changed(CLASS, eligibleNodesConflictResolutionStrategy={"type": "RollingRepair"}),
        "rollingRepair is required",
    ),
    (
        "ReplicatedStorageClass",
        changed(CLASS, nodeLabelSelector={"matchExpressions": [{"key": "k", "operator": "Is"}]}),
        "operator must be one of",
    ),
    (
        "ReplicatedStoragePool",
        changed(POOL, nodeLabelSelector={"matchExpressions": [{"key": "k", "operator": "Exists", "values": ["v"]}]}),
        "must be empty for Exists",
    ),
    (
        "ReplicatedStoragePool",
        changed(POOL, nodeLabelSelector={"matchExpressions": [{"key": "k", "operator": "In"}]}),
        "must not be empty for In",
    ),
    ("ReplicatedVolume", cast("Document", merged(VOLUME, {"metadata": {"name": "v" * 93}})), "92 characters"),
    ("ReplicatedVolume", changed(VOLUME, size="0"), "greater than 0"),
    ("ReplicatedVolume", changed(VOLUME, size=-5), "greater than 0"),
    (
        "ReplicatedVolume",
        changed(VOLUME, replicatedStorageClassName=None),
        "is required when configurationMode is Auto",
    ),
    ("ReplicatedVolume", changed(VOLUME, manualConfiguration=MANUAL), "must not be set when configurationMode is Auto"),
    (
        "ReplicatedVolume",
        changed(VOLUME, configurationMode="Manual", replicatedStorageClassName=None),
        "manualConfiguration is required",
    ),
    (
        "ReplicatedVolume",
        changed(VOLUME, configurationMode="Manual", manualConfiguration=MANUAL),
        "replicatedStorageClassName must not be set",
    ),
    ("ReplicatedVolume", changed(VOLUME, maxAttachments=33), "less than or equal to 32"),
    (
        "ReplicatedVolumeReplica",
        cast("Document", merged(REPLICA, {"metadata": {"name": "other-1"}})),
        "must start with",
    ),
    ("ReplicatedVolumeReplica", cast("Document", merged(REPLICA, {"metadata": {"name": "pvc-1-32"}})), "replica id"),
    ("ReplicatedVolumeReplica", cast("Document", merged(REPLICA, {"metadata": {"name": "pvc-1-05"}})), "replica id"),
    ("ReplicatedVolumeReplica", cast("Document", merged(REPLICA, {"metadata": {"name": "pvc-1-x"}})), "replica id"),
    (
        "ReplicatedVolumeReplica",
        changed(REPLICA, type="Access", nodeName=None, lvmVolumeGroupName=None),
        "nodeName is required for Access",
    ),
    ("ReplicatedVolumeReplica", changed(REPLICA, nodeName=None), "lvmVolumeGroupName requires nodeName"),
    ("ReplicatedVolumeReplica", changed(REPLICA, type="TieBreaker"), "only for Diskful"),
    (
        "ReplicatedVolumeReplica",
        changed(REPLICA, lvmVolumeGroupName=None, lvmVolumeGroupThinPoolName="tp"),
        "requires lvmVolumeGroupName",
    ),
    ("ReplicatedVolumeReplica", changed(REPLICA, nodeName=""), "at least 1"),
    ("DRBDResource", changed(DRBDR, size=None), "are required when spec.type is Diskful"),
    ("DRBDResource", changed(DRBDR, lvmLogicalVolumeName=None), "are required when spec.type is Diskful"),
    ("DRBDResource", changed(DRBDR, type="Diskless"), "must not be set when spec.type is Diskless"),
    ("DRBDResource", changed(DRBDR, size="1000"), "multiple of 4096"),
    ("DRBDResource", changed(DRBDR, size="4096500m"), "multiple of 4096"),
    (
        "DRBDResource",
        changed(DRBDR, type="Diskless", size=None, lvmLogicalVolumeName=None, nonVoting=True),
        "nonVoting must be false",
    ),
    ("DRBDResource", changed(DRBDR, systemNetworks=[]), "at least 1 items"),
    (
        "DRBDResourceOperation",
        changed(OPERATION, createNewUUID={"forceResync": True}),
        "mutually exclusive",
    ),
    ("LVMLogicalVolume", changed(LLV, thin=None), "thin is required when type is Thin"),
    ("LVMLogicalVolume", changed(LLV, type="Thick"), "forbidden otherwise"),
    ("LVMLogicalVolume", changed(LLV, thick={"contiguous": True}), "thick must not be set"),
    ("LVMVolumeGroup", changed(LVG, local=None), "local is required"),
]


@pytest.mark.parametrize(("kind", "candidate", "words"), REFUSED, ids=[f"{k}: {w}" for k, _, w in REFUSED])
def test_refused_at_creation(kind: str, candidate: Document, words: str) -> None:
    assert words in refusals(kind, candidate)


SELECTOR: Document = {"matchLabels": {"a": "b"}}
IMMUTABLE: list[tuple[str, Document, Document]] = [
    ("ReplicatedStorageClass", CLASS, {"topology": "Zonal"}),
    ("ReplicatedStorageClass", CLASS, {"volumeAccess": "Any"}),
    ("ReplicatedStorageClass", CLASS, {"zones": ["a"]}),
    ("ReplicatedStorageClass", changed(CLASS, zones=["a"]), {"zones": None}),
    ("ReplicatedStorageClass", changed(CLASS, systemNetworkNames=["Internal"]), {"systemNetworkNames": None}),
    ("ReplicatedStorageClass", changed(CLASS, eligibleNodesPolicy={}), {"eligibleNodesPolicy": None}),
    (
        "ReplicatedStorageClass",
        changed(CLASS, eligibleNodesPolicy={}),
        {"eligibleNodesPolicy": {"notReadyGracePeriod": "1m"}},
    ),
    ("ReplicatedStorageClass", CLASS, {"storage": {"lvmVolumeGroups": [{"name": "vg-2"}]}}),
    ("ReplicatedStorageClass", CLASS, {"storage": None}),
    ("ReplicatedStorageClass", CLASS, {"nodeLabelSelector": SELECTOR}),
    ("ReplicatedStorageClass", changed(CLASS, storagePool="p"), {"storagePool": "q"}),
    ("ReplicatedStoragePool", POOL, {"type": "LVMThin"}),
    ("ReplicatedStoragePool", POOL, {"lvmVolumeGroups": [{"name": "vg-1"}, {"name": "vg-2"}]}),
    ("ReplicatedStoragePool", POOL, {"zones": ["b"]}),
    ("ReplicatedStoragePool", POOL, {"zones": None}),
    ("ReplicatedStoragePool", POOL, {"nodeLabelSelector": SELECTOR}),
    ("ReplicatedVolumeReplica", REPLICA, {"replicatedVolumeName": "pvc"}),
    ("ReplicatedVolumeReplica", REPLICA, {"nodeName": "m"}),
    ("ReplicatedVolumeAttachment", ATTACHMENT, {"nodeName": "m"}),
    ("ReplicatedVolumeAttachment", ATTACHMENT, {"replicatedVolumeName": "w"}),
    ("DRBDResource", DRBDR, {"nodeName": "m"}),
    ("DRBDResource", DRBDR, {"nodeID": 5}),
    ("DRBDResource", DRBDR, {"size": "512Mi"}),
    ("DRBDResource", DRBDR, {"peers": [{**PEER, "protocol": "A"}]}),
    ("DRBDResourceOperation", OPERATION, {"nodeName": "m"}),
    ("DRBDResourceOperation", OPERATION, {"drbdResourceName": "r"}),
    ("DRBDResourceOperation", OPERATION, {"type": "Verify"}),
    ("DRBDResourceOperation", OPERATION, {"createNewUUID": {"clearBitmap": False, "forceResync": True}}),
    ("DRBDResourceOperation", OPERATION, {"createNewUUID": None}),
    ("DRBDResourceOperation", OPERATION, {"formationID": "f2"}),
    ("DRBDResourceOperation", OPERATION, {"formationID": None}),
    ("LVMLogicalVolume", LLV, {"actualLVNameOnTheNode": "x"}),
    ("LVMLogicalVolume", LLV, {"lvmVolumeGroupName": "x"}),
    ("LVMLogicalVolume", LLV, {"thin": {"poolName": "x"}}),
    ("LVMLogicalVolume", LLV, {"type": "Thick", "thin": None}),
    ("LVMVolumeGroup", LVG, {"actualVGNameOnTheNode": "x"}),
    ("LVMVolumeGroup", LVG, {"local": {"nodeName": "x"}}),
]


@pytest.mark.parametrize(("kind", "old", "change"), IMMUTABLE, ids=[f"{k} {c}" for k, _, c in IMMUTABLE])
def test_immutable(kind: str, old: Document, change: Document) -> None:
    assert refusals(kind, old) == ""
    assert refusals(kind, changed(old, **change), old) != ""


MUTABLE: list[tuple[str, Document, Document]] = [
    ("ReplicatedStorageClass", CLASS, {"reclaimPolicy": "Retain"}),
    ("ReplicatedStorageClass", CLASS, {"replication": "Availability"}),
    ("ReplicatedStorageClass", CLASS, {"failuresToTolerate": 2, "guaranteedMinimumDataRedundancy": 1}),
    ("ReplicatedStorageClass", CLASS, {"configurationRolloutStrategy": ROLLING}),
    ("ReplicatedStorageClass", CLASS, {"systemNetworkNames": ["Internal"], "eligibleNodesPolicy": {}}),
    ("ReplicatedStorageClass", changed(CLASS, storage=None), {"storage": cast("Document", CLASS["spec"])["storage"]}),
    ("ReplicatedStorageClass", changed(CLASS, storagePool="p"), {"storagePool": None}),
    ("ReplicatedVolume", VOLUME, {"size": "2Gi"}),
    ("ReplicatedVolume", VOLUME, {"maxAttachments": 2}),
    (
        "ReplicatedVolume",
        VOLUME,
        {"configurationMode": "Manual", "replicatedStorageClassName": None, "manualConfiguration": MANUAL},
    ),
    ("ReplicatedVolumeReplica", changed(REPLICA, nodeName=None, lvmVolumeGroupName=None), {"nodeName": "n"}),
    ("ReplicatedVolumeReplica", REPLICA, {"type": "TieBreaker", "lvmVolumeGroupName": None}),
    ("DRBDResource", DRBDR, {"size": "2Gi"}),
    ("DRBDResource", DRBDR, {"size": str(2**31)}),
    ("DRBDResource", DRBDR, {"type": "Diskless", "size": None, "lvmLogicalVolumeName": None}),
    ("DRBDResource", DRBDR, {"peers": None}),
    ("LVMLogicalVolume", LLV, {"size": "2Gi"}),
]


@pytest.mark.parametrize(("kind", "old", "change"), MUTABLE, ids=[f"{k} {c}"[:80] for k, _, c in MUTABLE])
def test_mutable(kind: str, old: Document, change: Document) -> None:
    assert refusals(kind, changed(old, **change), old) == ""


def test_the_longest_volume_name_fits_everything_derived_from_it() -> None:
    volume = "v" * NAME_LIMIT
    llv = llv_name(replica_name(volume, 31), "vg", "tp")
    assert refusals("ReplicatedVolume", {**VOLUME, "metadata": {"name": volume}}) == ""
    assert refusals("DRBDResource", changed(DRBDR, lvmLogicalVolumeName=llv)) == ""
    assert refusals("LVMLogicalVolume", changed(LLV, actualLVNameOnTheNode=llv)) == ""


def test_the_device_uuid_is_set_once() -> None:
    def with_uuid(uuid: str) -> Document:
        return {**DRBDR, "status": {"deviceUUID": uuid}}

    assert refusals("DRBDResource", with_uuid("0123456789ABCDEF"), with_uuid("")) == ""
    assert "cannot be changed" in refusals("DRBDResource", with_uuid("FFFFFFFFFFFFFFFF"), with_uuid("0123456789ABCDEF"))


REQUESTS: list[tuple[Document, bool]] = [
    ({"operation": "Join", "type": "Diskful", "lvmVolumeGroupName": "vg", "thinPoolName": "tp"}, True),
    ({"operation": "Join", "type": "Access"}, True),
    ({"operation": "Join"}, False),
    ({"operation": "Join", "type": "Diskful"}, False),
    ({"operation": "Join", "type": "TieBreaker", "lvmVolumeGroupName": "vg"}, False),
    ({"operation": "ChangeRole", "type": "Diskful", "lvmVolumeGroupName": "vg"}, True),
    ({"operation": "ChangeRole"}, False),
    ({"operation": "Leave"}, True),
    ({"operation": "Leave", "type": "Access"}, False),
    ({"operation": "Leave", "lvmVolumeGroupName": "vg"}, False),
    ({"operation": "ChangeBackingVolume", "lvmVolumeGroupName": "vg"}, True),
    ({"operation": "ChangeBackingVolume"}, False),
    ({"operation": "ChangeBackingVolume", "type": "Diskful", "lvmVolumeGroupName": "vg"}, False),
    ({"operation": "ForceLeave"}, True),
    ({"operation": "ForceLeave", "type": "Diskful"}, True),
    ({"operation": "ForceDetach"}, True),
    ({"operation": "ForceDetach", "lvmVolumeGroupName": "vg"}, False),
    ({"operation": "Join", "type": "Access", "thinPoolName": "tp"}, False),
    ({"operation": "Dance"}, False),
]


@pytest.mark.parametrize(("request_", "valid"), REQUESTS, ids=[str(r) for r, _ in REQUESTS])
def test_membership_requests(request_: Document, valid: bool) -> None:
    replica: Document = {**REPLICA, "status": {"datameshRequest": request_}}
    assert (refusals("ReplicatedVolumeReplica", replica) == "") == valid


STEP: Document = {"name": "s"}
TRANSITIONS: list[tuple[Document, bool]] = [
    ({"type": "Formation", "group": "Formation"}, True),
    ({"type": "Formation", "group": "Formation", "replicaName": "pvc-1-0"}, False),
    ({"type": "Attach", "group": "Attachment", "replicaName": "pvc-1-0"}, True),
    ({"type": "Attach", "group": "Attachment"}, False),
    ({"type": "Attach", "group": "Attachment", "replicaName": "pvc-1-0", "replicaType": "Access"}, False),
    ({"type": "AddReplica", "group": "VotingMembership", "replicaName": "pvc-1-0", "replicaType": "Diskful"}, True),
    ({"type": "AddReplica", "group": "VotingMembership", "replicaName": "pvc-1-0"}, False),
    (
        {
            "type": "ChangeReplicaType",
            "group": "VotingMembership",
            "replicaName": "pvc-1-0",
            "fromReplicaType": "Access",
            "toReplicaType": "Diskful",
        },
        True,
    ),
    ({"type": "ChangeReplicaType", "group": "VotingMembership", "replicaName": "pvc-1-0"}, False),
    (
        {
            "type": "ChangeSystemNetworks",
            "group": "Network",
            "fromSystemNetworkNames": ["a"],
            "toSystemNetworkNames": [],
        },
        True,
    ),
    ({"type": "ChangeSystemNetworks", "group": "Network", "fromSystemNetworkNames": ["a"]}, False),
    ({"type": "ChangeQuorum", "group": "Quorum", "quorum": 3, "previousQuorum": 2}, True),
]


def with_status(**status: Json) -> Document:
    required: Document = {"datameshRevision": 1, "datamesh": {"size": "1Gi"}}
    return {**VOLUME, "status": merged(required, status)}


@pytest.mark.parametrize(("transition", "valid"), TRANSITIONS, ids=[str(t)[:90] for t, _ in TRANSITIONS])
def test_transitions(transition: Document, valid: bool) -> None:
    volume = with_status(datameshTransitions=[{**transition, "steps": [STEP]}])
    assert (refusals("ReplicatedVolume", volume) == "") == valid


MEMBER: Document = {
    "name": "pvc-1-0",
    "type": "Diskful",
    "nodeName": "n",
    "addresses": [{"systemNetworkName": "Internal", "address": {"ipv4": "10.0.0.1", "port": 7000}}],
    "lvmVolumeGroupName": "vg",
}
MEMBERS: list[tuple[list[Document], bool]] = [
    ([MEMBER], True),
    ([MEMBER, {**MEMBER, "name": "pvc-1-1"}], True),
    ([MEMBER, MEMBER], False),
    ([{**MEMBER, "name": "pvc-1-32"}], False),
    ([{**MEMBER, "type": "LiminalDiskful"}], True),
    ([{**MEMBER, "type": "TieBreaker"}], False),
    ([{**MEMBER, "addresses": []}], False),
    ([{**MEMBER, "lvmVolumeGroupThinPoolName": "t" * 128}], True),
]


@pytest.mark.parametrize(("members", "valid"), MEMBERS, ids=range(len(MEMBERS)))
def test_members(members: list[Document], valid: bool) -> None:
    volume = with_status(datamesh={"members": cast("Json", members)})
    assert (refusals("ReplicatedVolume", volume) == "") == valid


@pytest.mark.parametrize("status", [{}, {"datameshRevision": 1}, {"datameshRevision": 1, "datamesh": {}}])
def test_a_status_without_revision_and_size_is_refused(status: Document) -> None:
    assert "Required" in refusals("ReplicatedVolume", {**VOLUME, "status": status})


def test_the_status_that_we_write_first_is_accepted() -> None:
    before = wire.from_builtins(ReplicatedVolume, VOLUME)
    after = replace(before, status=ReplicatedVolumeStatus())
    assert refusals("ReplicatedVolume", {**VOLUME, "status": wire.merge_patch(before, after)["status"]}) == ""
