"""JSON merge patch (RFC 7386) and JSON patch (RFC 6902) as pure functions on JSON values.

Neither changes its input; parts that a patch does not touch are shared with it.
"""

from __future__ import annotations

from quorate.local.jsonvalue import Json, JsonObject, as_text, encode, same
from quorate.local.status import StatusError, bad_request

_MAX_OPERATIONS = 10_000


def merge_patch(target: Json, patch: Json) -> Json:
    """RFC 7386: objects merge, null removes, everything else replaces."""
    if not isinstance(patch, dict):
        return patch
    result: JsonObject = dict(target) if isinstance(target, dict) else {}
    for key, value in patch.items():
        if value is None:
            result.pop(key, None)
        elif isinstance(value, dict):
            result[key] = merge_patch(result.get(key), value)
        else:
            result[key] = value
    return result


class PatchFailed(Exception):
    """An operation does not fit the object."""


def json_patch(target: Json, patch: Json) -> Json:
    """RFC 6902; raises `PatchFailed` when an operation cannot be applied and a bad request when the patch is none."""
    if not isinstance(patch, list):
        raise bad_request(
            "error decoding patch: json: cannot unmarshal object into Go value of type []handlers.jsonPatchOp"
        )
    if len(patch) > _MAX_OPERATIONS:
        text = f"The allowed maximum operations in a JSON patch is {_MAX_OPERATIONS}, got {len(patch)}"
        raise StatusError(413, "RequestEntityTooLarge", text)
    for operation in patch:
        if not isinstance(operation, dict):
            raise bad_request("a JSON patch is a list of objects")
        target = _apply(target, operation)
    return target


def _apply(target: Json, operation: JsonObject) -> Json:
    name = as_text(operation.get("op"))
    path = _pointer(operation.get("path"))
    match name:
        case "add":
            return _add(target, path, _value(operation))
        case "remove":
            return _remove(target, path)
        case "replace":
            _lookup(target, path)
            return _add(_remove(target, path), path, _value(operation)) if path else _value(operation)
        case "move":
            source = _pointer(operation.get("from"))
            moved = _lookup(target, source)
            return _add(_remove(target, source), path, moved)
        case "copy":
            return _add(target, path, _lookup(target, _pointer(operation.get("from"))))
        case "test":
            if not same(_lookup(target, path), _value(operation)):
                shown = as_text(operation.get("path"))
                raise PatchFailed(f"testing value {shown} failed: test failed")
            return target
        case _:
            raise PatchFailed(f"Unexpected kind: {name}")


def _value(operation: JsonObject) -> Json:
    if "value" not in operation:
        raise bad_request(f"missing value in JSON patch operation {encode(operation).decode()}")
    return operation["value"]


def _pointer(text: Json) -> tuple[str, ...]:
    if not isinstance(text, str) or (text and not text.startswith("/")):
        raise bad_request(f"invalid JSON pointer: {text!r}")
    return tuple(part.replace("~1", "/").replace("~0", "~") for part in text.split("/")[1:])


def _index(items: list[Json], step: str, *, inserting: bool) -> int:
    if step == "-" and inserting:
        return len(items)
    limit = len(items) + (1 if inserting else 0)
    if not step.isdecimal() or (len(step) > 1 and step[0] == "0") or int(step) >= limit:
        raise PatchFailed(f"invalid array index {step!r}")
    return int(step)


def _lookup(target: Json, path: tuple[str, ...]) -> Json:
    for step in path:
        if isinstance(target, dict) and step in target:
            target = target[step]
        elif isinstance(target, list):
            target = target[_index(target, step, inserting=False)]
        else:
            raise PatchFailed(f"missing path: /{'/'.join(path)}")
    return target


def _add(target: Json, path: tuple[str, ...], value: Json) -> Json:
    if not path:
        return value
    step, rest = path[0], path[1:]
    if isinstance(target, dict):
        if rest and step not in target:
            raise PatchFailed(f"add operation does not apply: doc is missing path: /{'/'.join(path)}")
        return {**target, step: _add(target[step], rest, value) if rest else value}
    if isinstance(target, list):
        index = _index(target, step, inserting=not rest)
        if rest:
            return [*target[:index], _add(target[index], rest, value), *target[index + 1 :]]
        return [*target[:index], value, *target[index:]]
    raise PatchFailed(f"add operation does not apply: doc is missing path: /{'/'.join(path)}")


def _remove(target: Json, path: tuple[str, ...]) -> Json:
    if not path:
        return None
    step, rest = path[0], path[1:]
    if isinstance(target, dict) and step in target:
        if rest:
            return {**target, step: _remove(target[step], rest)}
        return {key: value for key, value in target.items() if key != step}
    if isinstance(target, list):
        index = _index(target, step, inserting=False)
        if rest:
            return [*target[:index], _remove(target[index], rest), *target[index + 1 :]]
        return [*target[:index], *target[index + 1 :]]
    raise PatchFailed(f"remove operation does not apply: doc is missing path: /{'/'.join(path)}")


def patch_invalid() -> StatusError:
    """The answer to a patch that does not fit; Kubernetes does not say why."""
    return StatusError(
        422, "Invalid", "the server rejected our request due to an error in our request", bare_details=True
    )
