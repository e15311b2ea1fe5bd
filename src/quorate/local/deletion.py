"""Deleting objects: preconditions, finalizers, grace periods and propagation policies.

An object without anything that holds it goes at once; otherwise it gets a `deletionTimestamp` and stays until its
last finalizer is removed. `Orphan` and `Foreground` are finalizers that the garbage collector works off.
"""

from __future__ import annotations

from dataclasses import dataclass

from quorate.local.jsonvalue import Json, JsonObject, as_int, as_object, as_text, dig, texts, with_metadata
from quorate.local.kinds import Kind
from quorate.local.ports import timestamp
from quorate.local.registry import Outcome, Registry, Target, served
from quorate.local.selectors import Selection
from quorate.local.status import (
    FieldError,
    bad_request,
    conflict,
    invalid,
    invalid_value,
    not_supported,
    success,
)
from quorate.local.store import Stored

ORPHAN = "orphan"
FOREGROUND = "foregroundDeletion"
_POLICIES = ("Foreground", "Background", "Orphan")
_DEFAULT_POD_GRACE = 30


@dataclass(frozen=True)
class DeleteOptions:
    """`meta/v1 DeleteOptions`, as far as they have an effect."""

    uid: str = ""
    resource_version: str = ""
    grace_period: int | None = None
    propagation: str = ""
    dry_run: bool = False


def parse_options(body: Json, query: dict[str, str]) -> DeleteOptions:
    """The options from the body or, without one, from the query; raises the refusal."""
    given: JsonObject = {}
    if body is not None:
        if not isinstance(body, dict) or body.get("kind", "DeleteOptions") != "DeleteOptions":
            raise bad_request("the body of a delete request must be DeleteOptions")
        given = body
    grace: Json = given.get("gracePeriodSeconds")
    if grace is None and query.get("gracePeriodSeconds", "").lstrip("-").isdecimal():
        grace = int(query["gracePeriodSeconds"])
    policy = as_text(given.get("propagationPolicy")) or query.get("propagationPolicy", "")
    orphan = given.get("orphanDependents")
    dry_run = query.get("dryRun") or next(iter(texts(given.get("dryRun"))), "")
    _refuse(_option_errors(grace, policy, orphan, dry_run))
    if isinstance(orphan, bool):
        policy = "Orphan" if orphan else "Background"
    preconditions = as_object(given.get("preconditions"))
    uid, version = as_text(preconditions.get("uid")), as_text(preconditions.get("resourceVersion"))
    return DeleteOptions(uid, version, grace if isinstance(grace, int) else None, policy, bool(dry_run))


def _option_errors(grace: Json, policy: str, orphan: Json, dry_run: str) -> list[FieldError]:
    errors: list[FieldError] = []
    if dry_run not in ("", "All"):
        errors.append(not_supported("dryRun", [dry_run], ["All"]))
    if policy and policy not in _POLICIES:
        errors.append(not_supported("propagationPolicy", policy, [*_POLICIES, "nil"]))
    if policy and isinstance(orphan, bool):
        text = "orphanDependents and deletionPropagation cannot be both set"
        errors.append(invalid_value("propagationPolicy", policy, text))
    return errors


def _refuse(errors: list[FieldError]) -> None:
    if errors:
        raise invalid("meta.k8s.io", "DeleteOptions", "", errors)


class Deletions:
    """The delete half of the registry."""

    def __init__(self, registry: Registry) -> None:
        self._registry = registry
        self._store = registry.store

    def delete(self, target: Target, options: DeleteOptions) -> Outcome:
        """Delete one object; the outcome is a `Status` when it is gone, the object itself while something holds it."""
        stored = self._registry.stored(target)
        self._check_preconditions(target, stored, options)
        kind, obj = target.kind, stored.obj
        finalizers = _finalizers(obj, options.propagation)
        metadata = as_object(obj.get("metadata"))
        grace = self._grace(kind, obj, options)
        held = bool(finalizers) or kind.strategy.held(obj)
        if not held and grace == 0:
            removed = obj if options.dry_run else self._store.remove(kind.storage, target.key).obj
            gone = success(
                name=target.name, group=kind.group, kind=kind.plural, uid=as_text(dig(removed, "metadata", "uid"))
            )
            return Outcome(gone, 0 if options.dry_run else self._store.version)
        changed = with_metadata(obj, finalizers=list[Json](finalizers) or None)
        if "deletionTimestamp" not in metadata:
            changed = kind.strategy.mark_deleted(self._marked(changed, grace))
        elif grace < as_int(metadata.get("deletionGracePeriodSeconds")):
            until = timestamp(self._registry.clock.now() + grace)
            changed = with_metadata(changed, deletionTimestamp=until, deletionGracePeriodSeconds=grace)
        if changed == obj or options.dry_run:
            return Outcome(served(kind, changed), 0 if options.dry_run else stored.version)
        after = self._store.put(kind.storage, target.key, changed)
        return Outcome(served(kind, after.obj), after.version)

    def _marked(self, obj: JsonObject, grace: int) -> JsonObject:
        """The beginning of a deletion: it changes what is wanted, so it counts as a generation."""
        generation = as_int(dig(obj, "metadata", "generation"))
        until = timestamp(self._registry.clock.now() + grace)
        marked = with_metadata(obj, deletionTimestamp=until, deletionGracePeriodSeconds=grace)
        return with_metadata(marked, generation=generation + 1) if generation else marked

    def _grace(self, kind: Kind, obj: JsonObject, options: DeleteOptions) -> int:
        if not kind.strategy.graceful:
            return 0
        # A pod nobody runs, or that has ended, needs no time to stop.
        if not dig(obj, "spec", "nodeName") or dig(obj, "status", "phase") in ("Succeeded", "Failed"):
            return 0
        if options.grace_period is not None:
            return options.grace_period
        return as_int(dig(obj, "spec", "terminationGracePeriodSeconds"), _DEFAULT_POD_GRACE)

    def _check_preconditions(self, target: Target, stored: Stored, options: DeleteOptions) -> None:
        metadata = as_object(stored.obj.get("metadata"))
        kind = target.kind
        if options.uid and options.uid != metadata.get("uid"):
            text = (
                f"the UID in the precondition ({options.uid}) does not match the UID in record ({metadata.get('uid')}). "
                "The object might have been deleted and then recreated"
            )
            raise conflict(kind.group, kind.kind, target.name, text)
        current = metadata.get("resourceVersion")
        if options.resource_version and options.resource_version != current:
            text = (
                f"the ResourceVersion in the precondition ({options.resource_version}) does not match the "
                f"ResourceVersion in record ({current}). The object might have been modified"
            )
            raise conflict(kind.group, kind.kind, target.name, text)

    def delete_collection(self, kind: Kind, selection: Selection, options: DeleteOptions) -> list[JsonObject]:
        """Delete everything selected; returns what was there."""
        found = [
            (key, stored)
            for key, stored in self._store.all(kind.storage)
            if selection.matches(served(kind, stored.obj))
        ]
        for key, _ in found:
            self.delete(Target(kind, key[0], key[1]), options)
        return [served(kind, stored.obj) for _, stored in found]


def _finalizers(obj: JsonObject, propagation: str) -> list[str]:
    """The finalizers of an object that is deleted with a propagation policy."""
    current = texts(dig(obj, "metadata", "finalizers"))
    wanted = {"Orphan": ORPHAN, "Foreground": FOREGROUND}.get(propagation)
    if not propagation:
        return current
    kept = [finalizer for finalizer in current if finalizer not in (ORPHAN, FOREGROUND)]
    return [*kept, wanted] if wanted is not None else kept
