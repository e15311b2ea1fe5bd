"""What a `Patch` effect sends: pure functions from values to a JSON merge patch.

* a *decision* sends the difference of its half with the resource version it was decided from;
* a *report* is rebased onto the newest object: conditions per type, finalizers and owner references per entry, every
  other field as a whole; what the newest object already says is not sent (rule 5);
* an *unlocked* patch may contain map keys and scalars only, because a list would overwrite what others wrote.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar, cast

from quorate.api import wire
from quorate.api.meta import Object
from quorate.api.schema import Json
from quorate.api.value import Value
from quorate.machinery.effects import Half

K = TypeVar("K", bound=Object)
JsonObject = dict[str, Json]


def half_patch(before: K, after: K, half: Half) -> JsonObject:
    """The difference of one half; empty when it does not change."""
    patch = wire.merge_patch(before, after)
    match half:
        case Half.STATUS:
            return {"status": patch["status"]} if "status" in patch else {}
        case Half.MAIN:
            return {key: value for key, value in patch.items() if key != "status"}


def locked(patch: JsonObject, resource_version: str, uid: str = "") -> JsonObject:
    """The patch with its lock: the server refuses it when the object is another version, or another incarnation."""
    lock: JsonObject = {"resourceVersion": resource_version, **({"uid": uid} if uid else {})}
    return {**patch, "metadata": {**_object(patch.get("metadata")), **lock}}


def removed_finalizers(before: Object, after: Object) -> tuple[str, ...]:
    """Finalizers that a patch takes away."""
    return tuple(name for name in before.metadata.finalizers if name not in after.metadata.finalizers)


def contains_list(patch: Json) -> bool:
    """Whether a merge patch replaces a whole list."""
    if isinstance(patch, dict):
        return any(contains_list(value) for value in patch.values())
    return isinstance(patch, list)


def rebase(before: K, after: K, newest: K, half: Half) -> JsonObject:
    """The report `before` → `after`, as a patch of `newest`; empty when `newest` says it already."""
    patch = half_patch(before, after, half)
    if not patch:
        return patch
    old, new, base = (wire.to_builtins(obj) for obj in (before, after, newest))
    if half is Half.STATUS and "status" in base:
        # The first status write contains the whole status with its required zero values. When somebody else made that
        # write meanwhile, those zeros are not ours to send.
        changed: Json = wire.merge_patch(_status(before), _status(after))
        patch["status"] = changed
    _rebase_list(patch, ("status", "conditions"), old, new, base, "type")
    _rebase_list(patch, ("metadata", "finalizers"), old, new, base, "")
    _rebase_list(patch, ("metadata", "ownerReferences"), old, new, base, "uid")
    return _without_known(patch, base)


def _status(obj: Object) -> Value:
    return cast("Value", getattr(obj, "status"))  # noqa: B009 (not every kind has one; this half is only sent for those)


def _object(value: Json) -> JsonObject:
    return value if isinstance(value, dict) else {}


def _items(obj: JsonObject, path: tuple[str, str]) -> list[Json]:
    found = _object(obj.get(path[0])).get(path[1])
    return found if isinstance(found, list) else []


def _rebase_list(
    patch: JsonObject, path: tuple[str, str], old: JsonObject, new: JsonObject, base: JsonObject, identity: str
) -> None:
    """Replace the whole list in `patch` by the newest list with only the entries that differ between old and new."""
    half = _object(patch.get(path[0]))
    if path[1] not in half:
        return

    def name(item: Json) -> Json:
        return _object(item).get(identity) if identity else item

    rebased = _rebased(_items(old, path), _items(new, path), _items(base, path), name)
    half[path[1]] = cast("Json", rebased) if rebased else None


def _rebased(old: list[Json], new: list[Json], base: list[Json], name: Callable[[Json], Json]) -> list[Json]:
    before = {name(item): item for item in old if isinstance(name(item), str)}
    after = {name(item): item for item in new if isinstance(name(item), str)}
    ours = {key: item for key, item in after.items() if before.get(key) != item}
    removed = [key for key in before if key not in after]
    result: list[Json] = []
    for item in base:
        key = name(item)
        if key in ours:
            result.append(_keep_transition_time(item, ours.pop(key)))
        elif key not in removed:
            result.append(item)
    return [*result, *ours.values()]


def _keep_transition_time(present: Json, ours: Json) -> Json:
    """A condition whose status the newest object already has did not change again."""
    if not isinstance(present, dict) or not isinstance(ours, dict) or "lastTransitionTime" not in present:
        return ours
    if present.get("status") != ours.get("status"):
        return ours
    return {**ours, "lastTransitionTime": present["lastTransitionTime"]}


def _without_known(patch: JsonObject, base: JsonObject) -> JsonObject:
    result: JsonObject = {}
    for key, value in patch.items():
        present = base.get(key)
        if isinstance(value, dict) and isinstance(present, dict):
            part = _without_known(value, present)
            if part:
                result[key] = part
        elif value != present:
            result[key] = value
    return result
