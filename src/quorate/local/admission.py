"""What an object goes through before it is stored: decoding checks, pruning, defaults, preparation, validation.

Pure: nothing here reads the store. `admit_create` and `admit_update` give the object to store, or raise the refusal.
"""

from __future__ import annotations

from dataclasses import dataclass

from quorate.local import metadata as meta
from quorate.local.jsonvalue import Json, JsonObject, as_int, as_object, as_text, same, with_key
from quorate.local.kinds import Kind
from quorate.local.status import (
    MODIFIED,
    ErrorType,
    FieldError,
    StatusError,
    bad_request,
    conflict,
    invalid,
    invalid_value,
)
from quorate.local.structural import apply_defaults, drop_nulls, duplicates, prune

STRICT = "Strict"
WARN = "Warn"
IGNORE = "Ignore"


@dataclass(frozen=True)
class Admitted:
    """An object that may be stored, and the warnings its author gets."""

    obj: JsonObject
    warnings: tuple[str, ...] = ()


@dataclass(frozen=True)
class Stamp:
    """What the server adds to a new object."""

    uid: str
    now: float
    timestamp: str


def decoded(kind: Kind, body: Json) -> JsonObject:
    """The body as an object of `kind`; raises a bad request when it cannot be one."""
    if not isinstance(body, dict):
        raise bad_request("the object provided is unrecognized (must be of type Object)")
    api_version, name = body.get("apiVersion"), body.get("kind")
    if not api_version or not name:
        missing = "kind" if not name else "apiVersion"
        text = f"Object '{missing.capitalize() if missing == 'kind' else missing}' is missing in the request body"
        raise bad_request(text)
    if api_version != kind.api_version:
        about = "does not match the expected API version"
        raise bad_request(f"the API version in the data ({api_version}) {about} ({kind.api_version})")
    if name != kind.kind:
        wanted = f"{kind.api_version}, Kind={kind.kind}"
        raise bad_request(f"{name} in version {api_version!r} cannot be handled as a {kind.kind}: expected {wanted}")
    problem = meta.validate_types(body.get("metadata", {}))
    if problem:
        raise bad_request(f"{_handled(kind)}: json: cannot unmarshal {problem}: wrong type")
    return body


def _handled(kind: Kind) -> str:
    return f'{kind.kind} in version "{kind.version}" cannot be handled as a {kind.kind}'


def cleaned(kind: Kind, obj: JsonObject, field_validation: str) -> Admitted:
    """The object without unknown fields and with defaults; strict callers are refused instead of pruned."""
    unknown: list[str] = []
    body = {key: value for key, value in obj.items() if key not in ("metadata", "apiVersion", "kind")}
    pruned = prune(body, kind.structure, "", unknown)
    metadata = as_object(obj.get("metadata"))
    unknown += [f"metadata.{key}" for key in metadata if key not in meta.KNOWN_FIELDS and key != "managedFields"]
    if unknown and field_validation == STRICT:
        listed = ", ".join(f'unknown field "{path}"' for path in unknown)
        raise bad_request(f"{_handled(kind)}: strict decoding error: {listed}")
    warnings = tuple(f'unknown field "{path}"' for path in unknown) if field_validation == WARN else ()
    complete = as_object(apply_defaults(drop_nulls(pruned, kind.structure), kind.structure))
    ordered: JsonObject = {"apiVersion": kind.api_version, "kind": kind.kind, "metadata": metadata, **complete}
    return Admitted(ordered, warnings)


def admit_create(kind: Kind, obj: JsonObject, stamp: Stamp, field_validation: str) -> Admitted:
    """A new object; its name and namespace are settled already."""
    clean = cleaned(kind, obj, field_validation)
    given = as_object(clean.obj.get("metadata"))
    kept = ("name", "generateName", "namespace", "labels", "annotations", "ownerReferences", "finalizers")
    metadata: JsonObject = {key: given[key] for key in kept if given.get(key)}
    metadata["uid"] = stamp.uid
    metadata["creationTimestamp"] = stamp.timestamp
    if kind.strategy.generation:
        metadata["generation"] = 1
    obj = {**clean.obj, "metadata": metadata}
    if kind.has_status and not kind.strategy.status_on_create:
        obj = with_key(obj, "status", None)
    obj = kind.strategy.prepare(obj, stamp.now)
    _refuse_invalid(kind, obj, None)
    return Admitted(obj, clean.warnings)


def admit_update(
    kind: Kind, obj: JsonObject, old: JsonObject, *, status_only: bool, now: float, field_validation: str
) -> Admitted:
    """The next state of a stored object; `old` itself when nothing changes."""
    clean = cleaned(kind, obj, field_validation)
    before = as_object(old.get("metadata"))
    metadata = meta.carry_over(as_object(clean.obj.get("metadata")), before)
    metadata["resourceVersion"] = before["resourceVersion"]
    new: JsonObject = {**clean.obj, "metadata": metadata}
    if status_only:
        kept = metadata if kind.strategy.metadata_with_status else before
        new = with_key({**old, "metadata": kept}, "status", new.get("status"))
    else:
        if kind.has_status:
            new = with_key(new, "status", old.get("status"))
        new = kind.strategy.prepare_update(new, old, now)
        if kind.strategy.generation and _spec_changed(kind, new, old):
            changed = {**as_object(new.get("metadata")), "generation": as_int(before.get("generation")) + 1}
            new = {**new, "metadata": changed}
    if same(new, old):
        return Admitted(old, clean.warnings)
    _refuse_invalid(kind, new, old, status_only=status_only)
    return Admitted(new, clean.warnings)


def _spec_changed(kind: Kind, new: JsonObject, old: JsonObject) -> bool:
    apart = ("metadata", "status") if kind.has_status else ("metadata",)
    left = {key: value for key, value in new.items() if key not in apart}
    right = {key: value for key, value in old.items() if key not in apart}
    return not same(left, right)


_BLOCKING = (
    ErrorType.REQUIRED, ErrorType.TOO_LONG, ErrorType.TOO_MANY, ErrorType.TYPE_INVALID, ErrorType.NOT_SUPPORTED
)  # fmt: skip
_NOT_CHECKED = (
    "some validation rules were not checked because the object was invalid; correct the existing errors to complete "
    "validation"
)


def _refuse_invalid(kind: Kind, new: JsonObject, old: JsonObject | None, *, status_only: bool = False) -> None:
    metadata = as_object(new.get("metadata"))
    errors = meta.validate(metadata, kind.strategy.check_name)
    if old is not None:
        errors += meta.validate_update(metadata, as_object(old.get("metadata")))
    errors += kind.validator.errors(new, old, status_only=status_only)
    errors += _new_duplicates(kind, new, old)
    errors += kind.strategy.validate(new, old)
    if any(error.type in _BLOCKING for error in errors):
        if kind.structure.rules or kind.structure.rules_below:
            errors.append(invalid_value("<nil>", None, _NOT_CHECKED))
    else:
        errors += kind.rules.errors(new, old)
    if errors:
        raise invalid(kind.group, kind.kind, as_text(metadata.get("name")), errors)


def _new_duplicates(kind: Kind, new: JsonObject, old: JsonObject | None) -> list[FieldError]:
    """Duplicates in sets and maps; those of an object that had some already are tolerated (ratcheting)."""
    found = list(duplicates(new, kind.structure))
    if found and old is not None and list(duplicates(old, kind.structure)):
        return []
    return found


def check_locks(kind: Kind, new: JsonObject, old: JsonObject, name: str, *, replace: bool) -> None:
    """Optimistic locking: refuses an update that names another version or another incarnation of the object."""
    wanted, current = as_object(new.get("metadata")), as_object(old.get("metadata"))
    uid = as_text(wanted.get("uid"))
    if replace and uid and uid != current.get("uid"):
        text = f"Precondition failed: UID in precondition: {uid}, UID in object meta: {current.get('uid')}"
        raise conflict(kind.group, kind.plural, name, text)
    version = as_text(wanted.get("resourceVersion"))
    if version in ("", "0"):
        if replace and not kind.strategy.unconditional_update:
            error = invalid_value("metadata.resourceVersion", 0, "must be specified for an update")
            raise invalid(kind.group, kind.plural, name, [error])
    elif version != current.get("resourceVersion"):
        raise conflict(kind.group, kind.plural, name, MODIFIED)


def check_identity(obj: JsonObject, namespace: str, name: str) -> None:
    """Refuses a body that speaks of another object than the URL."""
    metadata = as_object(obj.get("metadata"))
    given = as_text(metadata.get("name"))
    if given and given != name:
        raise bad_request(f"the name of the object ({given}) does not match the name on the URL ({name})")
    check_namespace(obj, namespace)


def check_namespace(obj: JsonObject, namespace: str) -> None:
    given = as_text(as_object(obj.get("metadata")).get("namespace"))
    if given and given != namespace:
        raise _wrong_namespace()


def _wrong_namespace() -> StatusError:
    return bad_request("the namespace of the provided object does not match the namespace sent on the request")
