"""Every rule of our own CRDs, with objects that are accepted and objects that are refused (the data of tests/api)."""

from __future__ import annotations

from typing import cast

from quorate.api.resources import by_kind
from quorate.local.jsonvalue import Json, JsonObject
from tests.api import test_rules as data
from tests.api.test_rules import ATTACHMENT, CLASS, DRBDR, LVG, MANUAL, POOL, REPLICA, VOLUME, Document, changed, merged
from tests.conformance.session import Case, Session

AUTO_OFF = changed(VOLUME, configurationMode="Manual", replicatedStorageClassName=None)
ZONED = tuple(
    ("ReplicatedStorageClass", changed(CLASS, topology="TransZonal", zones=cast("Json", [f"z{n}" for n in range(zones)]),
                                      failuresToTolerate=ftt, guaranteedMinimumDataRedundancy=gmdr))
    for ftt, gmdr in data.ZONES for zones in range(1, 7)
)  # fmt: skip
LAYOUTS = tuple(
    ("ReplicatedStorageClass", changed(CLASS, topology=topology, failuresToTolerate=ftt, guaranteedMinimumDataRedundancy=gmdr))
    for ftt in range(4) for gmdr in range(4) for topology in ("Ignored", "Zonal")
)  # fmt: skip
WORDS = tuple(
    ("ReplicatedStorageClass", changed(CLASS, topology="TransZonal", zones=cast("Json", [f"z{n}" for n in range(zones)]),
                                      replication=replication))
    for replication in ("Availability", "Consistency", "ConsistencyAndAvailability") for zones in (1, 2, 3)
)  # fmt: skip


ODD_SELECTORS: tuple[Document, ...] = (
    {"matchExpressions": [{"key": "k", "operator": "Is"}]},
    {"matchExpressions": [{"key": "k", "operator": "Exists", "values": ["v"]}]},
    {"matchExpressions": [{"key": "k", "operator": "In"}]},
)
MORE_REFUSED: tuple[tuple[str, Document], ...] = (
    *(("ReplicatedStorageClass", changed(CLASS, nodeLabelSelector=odd)) for odd in ODD_SELECTORS),
    *(("ReplicatedStoragePool", changed(POOL, nodeLabelSelector=odd)) for odd in ODD_SELECTORS),
    *(("LVMVolumeGroup", changed(LVG, blockDeviceSelector=odd)) for odd in ODD_SELECTORS),
    ("ReplicatedStoragePool", changed(POOL, lvmVolumeGroups=[{"name": "vg-1", "thinPoolName": "tp"}])),
    ("ReplicatedVolume", changed(AUTO_OFF, manualConfiguration={**MANUAL, "topology": "Zonal", "failuresToTolerate": 0,
                                                               "guaranteedMinimumDataRedundancy": 0})),
    ("ReplicatedVolume", changed(AUTO_OFF, manualConfiguration={**MANUAL, "failuresToTolerate": 0,
                                                               "guaranteedMinimumDataRedundancy": 2})),
    ("ReplicatedVolumeReplica", cast("Document", merged(changed(REPLICA, replicatedVolumeName="v" * 120),
                                                        {"metadata": {"name": f"{'v' * 120}-123"}}))),
)  # fmt: skip
ADDRESS: Document = {"systemNetworkName": "Internal", "address": {"ipv4": "10.0.0.1", "port": 7000}}
PEER_STATUS: Document = {"name": "pvc-1-1"}
MORE_STATUSES: tuple[tuple[str, Document, Json], ...] = (
    ("ReplicatedVolumeReplica", REPLICA, {"addresses": [ADDRESS, ADDRESS]}),
    ("ReplicatedVolumeReplica", REPLICA, {"peers": [PEER_STATUS, PEER_STATUS]}),
    ("ReplicatedVolumeReplica", REPLICA, {"peers": [{**PEER_STATUS, "connectionEstablishedOn": ["a", "a"]}]}),
    ("DRBDResource", DRBDR, {"addresses": [ADDRESS, ADDRESS]}),
    ("DRBDResource", DRBDR, {"peers": [{"name": "pvc-1-1", "nodeID": 1}, {"name": "pvc-1-2", "nodeID": 1}]}),
)
MEMBER_WITHOUT_GROUP: Document = {key: value for key, value in data.MEMBER.items() if key != "lvmVolumeGroupName"}
VIOLATION: Document = {"replicaName": "pvc-1-0", "nodeName": "n", "reason": "OutOfEligibleNodes"}
MORE_VOLUME_STATUSES: tuple[Document, ...] = (
    {"datamesh": {"systemNetworkNames": ["Internal", "Internal"]}},
    {"datamesh": {"members": [{**MEMBER_WITHOUT_GROUP, "lvmVolumeGroupThinPoolName": "tp"}]}},
    {"datamesh": {"members": [{**data.MEMBER, "addresses": [ADDRESS, ADDRESS]}]}},
    {"eligibleNodesViolations": [VIOLATION, VIOLATION]},
    *(
        {
            "datameshReplicaRequests": [
                {"name": "pvc-1-0", "firstObservedAt": "2001-01-01T00:00:00Z", "request": request}
            ]
        }
        for request, valid in data.REQUESTS
        if not valid
    ),
)


def path_of(kind: str) -> str:
    """Where a kind is served."""
    return by_kind(kind).path()


def whole(kind: str, document: Document) -> JsonObject:
    """A document with its kind."""
    return cast("JsonObject", {"apiVersion": by_kind(kind).api_version, "kind": kind, **document})


def creation(kind: str, document: Document) -> Case:
    def case(api: Session) -> None:
        api.post(path_of(kind), whole(kind, document), dryRun="All")

    return case


def change(kind: str, old: Document, new: Document) -> Case:
    """An update by replacing, as `kubectl replace` would do it."""

    def case(api: Session) -> None:
        created = api.post(path_of(kind), whole(kind, old))
        name = created.metadata["name"]
        after = merged(cast("data.Json", created.body), {"spec": None})
        body = {**cast("JsonObject", after), "spec": cast("Json", new["spec"])}
        api.put(f"{path_of(kind)}/{name}", body, dryRun="All")

    return case


def status(kind: str, document: Document, *statuses: Json) -> Case:
    """Status halves, one after the other."""

    def case(api: Session) -> None:
        created = api.post(path_of(kind), whole(kind, document))
        for each in statuses:
            api.merge(f"{path_of(kind)}/{created.metadata['name']}/status", {"status": each})

    return case


def cases() -> dict[str, Case]:
    """All of them, by name."""
    found: dict[str, Case] = {}
    for kind, document in data.SAMPLES.items():
        found[f"{kind}: plain"] = creation(kind, document)
    for number, (kind, document, words) in enumerate(data.REFUSED):
        found[f"{kind}: refused {number} {words}"] = creation(kind, document)
    for number, (kind, document) in enumerate((*ZONED, *LAYOUTS, *WORDS)):
        found[f"{kind}: layout {number}"] = creation(kind, document)
    for number, (kind, old, new) in enumerate(data.IMMUTABLE):
        found[f"{kind}: immutable {number} {' '.join(new)}"] = change(kind, old, changed(old, **new))
    for number, (kind, old, new) in enumerate(data.MUTABLE):
        found[f"{kind}: mutable {number} {' '.join(new)}"] = change(kind, old, changed(old, **new))
    for number, (request, _) in enumerate(data.REQUESTS):
        made = cast("Json", {"datameshRequest": request})
        found[f"ReplicatedVolumeReplica: request {number}"] = status("ReplicatedVolumeReplica", REPLICA, made)
    for number, (transition, _) in enumerate(data.TRANSITIONS):
        volume = data.with_status(datameshTransitions=[{**transition, "steps": [data.STEP]}])
        found[f"ReplicatedVolume: transition {number}"] = status(
            "ReplicatedVolume", data.VOLUME, cast("Json", volume["status"])
        )
    for number, (members, _) in enumerate(data.MEMBERS):
        volume = data.with_status(datamesh={"members": cast("data.Json", members)})
        found[f"ReplicatedVolume: members {number}"] = status(
            "ReplicatedVolume", data.VOLUME, cast("Json", volume["status"])
        )
    for number, (kind, document) in enumerate(MORE_REFUSED):
        found[f"{kind}: more refused {number}"] = creation(kind, document)
    for number, (kind, document, each) in enumerate(MORE_STATUSES):
        found[f"{kind}: more status {number}"] = status(kind, document, each)
    for number, each in enumerate(MORE_VOLUME_STATUSES):
        volume = data.with_status(**each)
        found[f"ReplicatedVolume: more status {number}"] = status(
            "ReplicatedVolume", data.VOLUME, cast("Json", volume["status"])
        )
    found["DRBDResource: device UUID"] = status(
        "DRBDResource", DRBDR, {"deviceUUID": "0123456789ABCDEF"}, {"deviceUUID": "FFFFFFFFFFFFFFFF"}
    )
    found["ReplicatedVolume: first status"] = status(
        "ReplicatedVolume", data.VOLUME, {}, {"datameshRevision": 1}, {"datameshRevision": 1, "datamesh": {}}
    )
    found["ReplicatedVolumeAttachment: lifecycle"] = status("ReplicatedVolumeAttachment", ATTACHMENT, {"phase": "x"})
    return found


CASES = cases()
