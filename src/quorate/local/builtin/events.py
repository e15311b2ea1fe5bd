"""Events in both their versions (`core/v1`, `events.k8s.io/v1`) over one storage, and leases."""

from __future__ import annotations

from collections.abc import Mapping

from quorate.local.builtin.shapes import free, integer, obj, reference, root, text, time
from quorate.local.jsonvalue import JsonObject
from quorate.local.kinds import Conversion, Kind, Strategy

_SERIES = obj({"count": integer(), "lastObservedTime": time()})

_CORE_EVENT = root(
    "Event is a report of something that happened.",
    {
        "involvedObject": reference("The object this event is about."),
        "reason": text("A word for programs."),
        "message": text("A sentence for people."),
        "source": obj({"component": text(), "host": text()}),
        "firstTimestamp": time(),
        "lastTimestamp": time(),
        "count": integer(),
        "type": text("Normal or Warning."),
        "eventTime": time(),
        "series": _SERIES,
        "action": text(),
        "related": reference(),
        "reportingComponent": text(),
        "reportingInstance": text(),
    },
    required=("involvedObject",),
)

_EVENT = root(
    "Event is a report of something that happened.",
    {
        "eventTime": time("When it happened first."),
        "series": _SERIES,
        "reportingController": text(),
        "reportingInstance": text(),
        "action": text(),
        "reason": text(),
        "regarding": reference("The object this event is about."),
        "related": reference(),
        "note": text("A sentence for people."),
        "type": text(),
        "deprecatedSource": free(),
        "deprecatedFirstTimestamp": time(),
        "deprecatedLastTimestamp": time(),
        "deprecatedCount": integer(),
    },
)

_CORE_TO_NEW = {
    "involvedObject": "regarding",
    "message": "note",
    "source": "deprecatedSource",
    "firstTimestamp": "deprecatedFirstTimestamp",
    "lastTimestamp": "deprecatedLastTimestamp",
    "count": "deprecatedCount",
    "reportingComponent": "reportingController",
}
_NEW_TO_CORE = {new: old for old, new in _CORE_TO_NEW.items()}


def _renamed(event: JsonObject, names: Mapping[str, str], api_version: str) -> JsonObject:
    renamed: JsonObject = {names.get(key, key): value for key, value in event.items()}
    renamed["apiVersion"] = api_version
    return renamed


_FIELDS = {
    "involvedObject.kind": ("involvedObject", "kind"),
    "involvedObject.namespace": ("involvedObject", "namespace"),
    "involvedObject.name": ("involvedObject", "name"),
    "involvedObject.uid": ("involvedObject", "uid"),
    "involvedObject.apiVersion": ("involvedObject", "apiVersion"),
    "involvedObject.resourceVersion": ("involvedObject", "resourceVersion"),
    "involvedObject.fieldPath": ("involvedObject", "fieldPath"),
    "reason": ("reason",),
    "reportingComponent": ("reportingComponent",),
    "source": ("source", "component"),
    "type": ("type",),
}
_NEW_FIELDS = {
    "reason": ("reason",),
    "type": ("type",),
    "reportingController": ("reportingController",),
    **{f"regarding.{name}": ("regarding", name) for name in ("kind", "namespace", "name", "uid", "apiVersion")},
}

_LEASE = root(
    "Lease is a lock that must be renewed.",
    {
        "spec": obj(
            {
                "holderIdentity": text("Who holds the lease."),
                "leaseDurationSeconds": integer("How long it lasts without renewal.", minimum=1),
                "acquireTime": time("When the holder got it."),
                "renewTime": time("When the holder renewed it last."),
                "leaseTransitions": integer("How often the holder changed.", minimum=0),
                "strategy": text(),
                "preferredHolder": text(),
            }
        )
    },
)

EVENTS: tuple[Kind, ...] = (
    Kind(
        "", "v1", "Event", "events", True, _CORE_EVENT,
        singular="event", short_names=("ev",), field_labels=_FIELDS, table="events",
        strategy=Strategy(create_on_update=True),
    ),
    Kind(
        "events.k8s.io", "v1", "Event", "events", True, _EVENT,
        singular="event", short_names=("ev",), field_labels=_NEW_FIELDS, table="events",
        strategy=Strategy(create_on_update=True),
        conversion=Conversion(
            to_storage=lambda event: _renamed(event, _NEW_TO_CORE, "v1"),
            from_storage=lambda event: _renamed(event, _CORE_TO_NEW, "events.k8s.io/v1"),
        ),
    ),
    Kind(
        "coordination.k8s.io", "v1", "Lease", "leases", True, _LEASE,
        singular="lease", strategy=Strategy(create_on_update=True, unconditional_update=False),
    ),
)  # fmt: skip
