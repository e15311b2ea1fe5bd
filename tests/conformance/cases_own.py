"""Every rule of our own CRDs, with objects that are accepted and objects that are refused (the data of tests/api)."""

from __future__ import annotations

from typing import cast

from quorate.api.resources import by_kind
from quorate.local.jsonvalue import Json, JsonObject
from tests.api import test_rules as data
from tests.api.test_rules import ATTACHMENT, CLASS, DRBDR, REPLICA, Document, changed, merged
from tests.conformance.session import Case, Session

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
    found["DRBDResource: device UUID"] = status(
        "DRBDResource", DRBDR, {"deviceUUID": "0123456789ABCDEF"}, {"deviceUUID": "FFFFFFFFFFFFFFFF"}
    )
    found["ReplicatedVolume: first status"] = status(
        "ReplicatedVolume", data.VOLUME, {}, {"datameshRevision": 1}, {"datameshRevision": 1, "datamesh": {}}
    )
    found["ReplicatedVolumeAttachment: lifecycle"] = status("ReplicatedVolumeAttachment", ATTACHMENT, {"phase": "x"})
    return found


CASES = cases()
