"""Which versions one decision may build on: those it was decided from, continued by its own writes.

A decision computes all its effects from one snapshot. When it writes an object twice, the second write finds the
version the first one produced. That is not somebody else's change, so the lock moves along; every other difference is
a conflict.
"""

from __future__ import annotations

from typing import TypeAlias

from quorate.api.meta import Object, ObjectRef
from quorate.machinery.reader import ObjectKey, key_of

Place: TypeAlias = tuple[str, ObjectKey]
"""Kind, and namespace and name."""


def place(obj: Object) -> Place:
    """Where an object lives, whatever its incarnation."""
    return (type(obj).__name__, key_of(obj))


class Chain:
    """What the current decision already wrote."""

    def __init__(self) -> None:
        self._versions: dict[Place, tuple[str, str, str]] = {}
        """Uid, the version before our first write and the version after our last."""

    def advance(self, before: Object, after: Object) -> None:
        """Our write turned `before` into `after`, and nobody wrote in between."""
        known = self._versions.get(place(before))
        original = known[1] if known else before.metadata.resource_version
        self._versions[place(before)] = (after.metadata.uid, original, after.metadata.resource_version)

    def version(self, obj: Object) -> str:
        """The version to lock: ours when `obj` is the one we continued from, else its own."""
        known = self._versions.get(place(obj))
        if known is None or known[1] != obj.metadata.resource_version:
            return obj.metadata.resource_version
        return known[2]

    def uid(self, obj: Object) -> str:
        """The uid of `obj`, known from our own create when it was made in this decision."""
        known = self._versions.get(place(obj))
        return obj.metadata.uid or (known[0] if known else "")

    def expected(self, ref: ObjectRef) -> str:
        """The version a live read must find."""
        known = self._versions.get((ref.kind, (ref.namespace, ref.name)))
        return known[2] if known is not None and known[1] == ref.resource_version else ref.resource_version
