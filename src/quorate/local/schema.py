"""Validation of objects against their schema, with the error texts of Kubernetes.

jsonschema-rs does the checking; `Validator` translates a structural schema for it and its errors back into field errors
(`spec.size in body must be of type integer: "string"`). On updates, errors in parts that did not change are tolerated
(ratcheting).
"""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Callable
from datetime import datetime
from ipaddress import ip_address, ip_network
from typing import cast
from uuid import UUID

import jsonschema_rs

from quorate.local.jsonvalue import Json, JsonObject, as_int, as_list, as_object, as_text
from quorate.local.status import ErrorType, FieldError, invalid_value, not_supported, required, too_long, too_many
from quorate.local.structural import Structure, unchanged_at

_KEPT = (
    "maximum", "exclusiveMaximum", "minimum", "exclusiveMinimum", "maxLength", "minLength", "pattern", "maxItems",
    "minItems", "uniqueItems", "multipleOf", "maxProperties", "minProperties", "required", "enum",
)  # fmt: skip
_INTEGER_RANGES: dict[str, tuple[int, int]] = {"int32": (-(2**31), 2**31 - 1), "int64": (-(2**63), 2**63 - 1)}


class Validator:
    """Checks objects of one kind; `metadata` is not its business."""

    def __init__(self, schema: JsonObject, structure: Structure) -> None:
        self._structure = structure
        self._validator = jsonschema_rs.Draft4Validator(
            _translate(schema, root=True), formats=dict(_FORMATS), validate_formats=True
        )

    def errors(self, obj: JsonObject, old: JsonObject | None = None, *, status_only: bool = False) -> list[FieldError]:
        """What is wrong with `obj`; `old` is the stored object on updates. Status updates speak of the status as the body."""
        if self._validator.is_valid(obj):
            return []
        found: list[FieldError] = []
        for error in self._validator.iter_errors(obj):
            path = list(error.instance_path)
            if old is not None and unchanged_at(obj, old, self._structure, path):
                continue
            found.append(_field_error(error, path, status_only=status_only))
        return found


def _translate(schema: JsonObject, *, root: bool = False) -> JsonObject:
    """The JSON schema (draft 4) that accepts what the structural schema accepts."""
    result: JsonObject = {key: schema[key] for key in _KEPT if key in schema}
    kind = as_text(schema.get("type"))
    types: list[Json] = [kind] if kind else []
    if schema.get("x-kubernetes-int-or-string") is True:
        types = ["integer", "string"]
    if types and schema.get("nullable") is True:
        types.append("null")
        if "enum" in result:
            result["enum"] = [*as_list(result["enum"]), None]
    if types:
        result["type"] = types[0] if len(types) == 1 else types
    properties = {key: _translate(as_object(value)) for key, value in as_object(schema.get("properties")).items()}
    if root:
        properties["metadata"] = {"type": "object"}
    if properties:
        result["properties"] = cast("JsonObject", properties)
    for key in ("additionalProperties", "items", "not"):
        below = schema.get(key)
        if isinstance(below, dict):
            result[key] = _translate(below)
    for key in ("allOf", "anyOf", "oneOf"):
        if key in schema:
            result[key] = [_translate(as_object(each)) for each in as_list(schema[key])]
    _translate_format(schema, result)
    return result


def _translate_format(schema: JsonObject, result: JsonObject) -> None:
    name = as_text(schema.get("format"))
    if name in _INTEGER_RANGES and schema.get("type") == "integer":
        low, high = _INTEGER_RANGES[name]
        result.setdefault("minimum", low)
        result.setdefault("maximum", high)
    elif name in _FORMATS:
        result["format"] = name


def printed_path(path: list[str | int]) -> str:
    """`["spec", "peers", 0, "name"]` as `spec.peers[0].name`."""
    text = ""
    for step in path:
        if isinstance(step, int):
            text += f"[{step}]"
        else:
            text += f".{step}" if text else step
    return text


def type_name(value: Json) -> str:
    """The JSON type of a value, as error texts name it."""
    match value:
        case None:
            return "null"
        case bool():
            return "boolean"
        case int():
            return "integer"
        case float():
            return "number"
        case str():
            return "string"
        case list():
            return "array"
        case dict():
            return "object"


_COMPARISONS = {
    "minLength": "should be at least {} chars long",
    "pattern": "should match '{}'",
    "maximum": "should be less than or equal to {}",
    "minimum": "should be greater than or equal to {}",
    "exclusiveMaximum": "should be less than {}",
    "exclusiveMinimum": "should be greater than {}",
    "multipleOf": "should be a multiple of {}",
    "minProperties": "should have at least {} properties",
    "maxProperties": "should have at most {} properties",
}


def _field_error(error: jsonschema_rs.ValidationError, steps: list[str | int], *, status_only: bool) -> FieldError:
    path = printed_path(steps)
    value = cast("Json", error.instance)
    keyword = error.kind.name
    limit = cast("Json", error.kind.value)
    body = f"{path.removeprefix('status.') if status_only else path} in body" if path else "body"
    if keyword == "required":
        return required(f"{path}.{limit}" if path else str(limit))
    if keyword == "enum":
        return not_supported(path, value, [each for each in as_list(limit) if each is not None])
    if keyword == "type":
        wanted = error.kind.value
        names = wanted if isinstance(wanted, str) else ",".join(str(each) for each in cast("list[str]", wanted))
        actual = type_name(value)
        detail = f'{body} must be of type {names.replace(",null", "")}: "{actual}"'
        return FieldError(ErrorType.TYPE_INVALID, path, actual, detail)
    if keyword == "maxLength":
        return too_long(path, as_int(limit))
    if keyword == "maxItems":
        return too_many(path, len(as_list(value)), as_int(limit))
    if keyword == "minItems":
        return invalid_value(path, len(as_list(value)), f"{body} should have at least {limit} items")
    if keyword == "format":
        return FieldError(ErrorType.TYPE_INVALID, path, value, f"{body} must be of type {limit}: {_quoted(value)}")
    if keyword == "uniqueItems":
        return invalid_value(path, value, f"{body} shouldn't contain duplicates")
    if keyword in _COMPARISONS:
        return invalid_value(path, value, f"{body} {_COMPARISONS[keyword].format(limit)}")
    choices = {
        "anyOf": "must validate at least one schema (anyOf)",
        "oneOf": "must validate one and only one schema (oneOf)",
        "not": "must not validate the schema (not)",
    }
    detail = choices.get(keyword, error.message)
    return invalid_value(path, value, f'"{path}" {detail}' if keyword in choices else f"{body} {detail}")


def _quoted(value: Json) -> str:
    return f'"{value}"' if isinstance(value, str) else str(value)


def _date_time(text: str) -> bool:
    if re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d)", text) is None:
        return False
    return _parses(lambda: datetime.fromisoformat(re.sub(r"\.\d+", "", text).replace("Z", "+00:00")))


def _parses(attempt: Callable[[], object]) -> bool:
    try:
        attempt()
    except (ValueError, binascii.Error):
        return False
    return True


def _go_duration(text: str) -> bool:
    return re.fullmatch(r"[+-]?(0|((\d+(\.\d*)?|\.\d+)(ns|us|µs|μs|ms|s|m|h))+)", text) is not None


_FORMATS: dict[str, Callable[[str], bool]] = {
    "date-time": _date_time,
    "date": lambda text: _parses(lambda: datetime.strptime(text, "%Y-%m-%d")),
    "duration": _go_duration,
    "ipv4": lambda text: _parses(lambda: ip_address(text)) and ":" not in text,
    "ipv6": lambda text: _parses(lambda: ip_address(text)) and ":" in text,
    "cidr": lambda text: "/" in text and _parses(lambda: ip_network(text, strict=False)),
    "uuid": lambda text: _parses(lambda: UUID(text)),
    "byte": lambda text: _parses(lambda: base64.b64decode(text, validate=True)),
}
