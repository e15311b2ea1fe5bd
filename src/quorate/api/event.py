"""Event (built-in, core/v1): what happened to an object, for people."""

from __future__ import annotations

import msgspec

from quorate.api.meta import Object
from quorate.api.value import Value, always

NORMAL = "Normal"
"""Event type: as expected."""
WARNING = "Warning"
"""Event type: somebody should look."""
MESSAGE_LIMIT = 1024
"""Longest message the API server accepts."""


class ObjectReference(Value):
    """The object an event is about."""

    api_version: str = ""
    kind: str = ""
    namespace: str = ""
    name: str = ""
    uid: str = ""
    resource_version: str = ""


class EventSource(Value):
    """Who reports."""

    component: str = ""
    host: str = ""


class Event(Object):
    """Something that happened."""

    involved_object: ObjectReference = always(ObjectReference())
    reason: str = ""
    message: str = ""
    type: str = ""
    action: str = ""
    count: int = 0
    first_timestamp: str = ""
    last_timestamp: str = ""
    event_time: str = ""
    source: EventSource = EventSource()
    reporting_controller: str = msgspec.field(default="", name="reportingComponent")
    reporting_instance: str = ""
