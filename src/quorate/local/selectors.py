"""Label and field selectors, parsed from query parameters.

Syntax and errors follow `k8s.io/apimachinery/pkg/labels` and `pkg/fields`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from quorate.local.jsonvalue import Json, JsonObject, as_object, dig
from quorate.local.status import StatusError, bad_request

Predicate = Callable[[JsonObject], bool]


@dataclass(frozen=True)
class Requirement:
    """One condition on one label."""

    key: str
    operator: str
    values: tuple[str, ...] = ()

    def matches(self, labels: Mapping[str, Json]) -> bool:
        value = labels.get(self.key)
        match self.operator:
            case "in":
                return value in self.values
            case "notin":
                return value is None or value not in self.values
            case "exists":
                return value is not None
            case "!":
                return value is None
            case ">" | "<":
                return _compared(value, self.operator, self.values[0])
            case _:
                raise AssertionError(self.operator)


def _compared(value: Json, operator: str, limit: str) -> bool:
    try:
        actual, bound = int(str(value)), int(limit)
    except ValueError:
        return False
    return actual > bound if operator == ">" else actual < bound


_TOKEN = re.compile(r"\s*(==|!=|[=!<>(),]|[A-Za-z0-9_./\-]+)\s*")


def parse_labels(text: str) -> tuple[Requirement, ...]:
    """`a=b,c in (d,e),!f` as requirements that must all hold; raises a bad request."""
    tokens = _tokens(text)
    requirements: list[Requirement] = []
    position = 0
    while position < len(tokens):
        requirement, position = _requirement(tokens, position, text)
        requirements.append(requirement)
        if position < len(tokens):
            if tokens[position] != "," or position + 1 == len(tokens):
                raise _unparsable(text)
            position += 1
    return tuple(requirements)


def _tokens(text: str) -> list[str]:
    tokens: list[str] = []
    position = 0
    while position < len(text.rstrip()):
        match = _TOKEN.match(text, position)
        if match is None:
            raise _unparsable(text)
        tokens.append(match.group(1))
        position = match.end()
    return tokens


def _unparsable(text: str) -> StatusError:
    return bad_request(f'unable to parse requirement: invalid label selector "{text}"')


def _is_word(token: str) -> bool:
    return re.fullmatch(r"[A-Za-z0-9_./\-]+", token) is not None


def _requirement(tokens: list[str], position: int, text: str) -> tuple[Requirement, int]:
    def token(offset: int) -> str:
        return tokens[position + offset] if position + offset < len(tokens) else ""

    if token(0) == "!" and _is_word(token(1)):
        return Requirement(token(1), "!"), position + 2
    key, operator = token(0), token(1)
    if not _is_word(key):
        raise _unparsable(text)
    if operator in ("", ","):
        return Requirement(key, "exists"), position + 1
    if operator in ("=", "==", "!=", ">", "<"):
        value = token(2) if _is_word(token(2)) else ""
        name = {"=": "in", "==": "in", "!=": "notin"}.get(operator, operator)
        return Requirement(key, name, (value,)), position + (3 if value else 2)
    if operator in ("in", "notin") and token(2) == "(":
        try:
            end = tokens.index(")", position)
        except ValueError:
            raise _unparsable(text) from None
        values = tuple(each for each in tokens[position + 3 : end] if each != ",")
        return Requirement(key, operator, values), end + 1
    raise _unparsable(text)


@dataclass(frozen=True)
class FieldRequirement:
    """One condition on one field: equal, or not."""

    label: str
    value: str
    equal: bool


def parse_fields(text: str) -> tuple[FieldRequirement, ...]:
    """`spec.nodeName=a,status.phase!=b`; raises a bad request."""
    requirements: list[FieldRequirement] = []
    for part in re.split(r"(?<!\\),", text):
        if not part:
            continue
        match = re.match(r"((?:[^=!\\]|\\.)+?)\s*(==|!=|=)(.*)", part)
        if match is None:
            raise bad_request(f"invalid selector: {text!r}; can't understand {part!r}")
        label, operator, value = match.groups()
        value = re.sub(r"\\([\\,=])", r"\1", value)
        requirements.append(FieldRequirement(label.strip(), value, operator != "!="))
    return tuple(requirements)


def field_text(obj: JsonObject, path: tuple[str, ...]) -> str:
    """The value of a selectable field as selectors compare it; absent is empty, absent booleans count as false."""
    value = dig(obj, *path)
    if isinstance(value, bool):
        return "true" if value else "false"
    if value is None:
        return "false" if path[-1] in _BOOLEAN_FIELDS else ""
    return str(value)


_BOOLEAN_FIELDS = ("unschedulable", "hostNetwork")


@dataclass(frozen=True)
class Selection:
    """Which objects of a list or watch the caller wants."""

    namespace: str = ""
    labels: tuple[Requirement, ...] = ()
    fields: tuple[tuple[tuple[str, ...], str, bool], ...] = ()

    @property
    def everything(self) -> bool:
        return not (self.namespace or self.labels or self.fields)

    @property
    def single_name(self) -> str:
        """The only name that can match, when the selection pins one."""
        for path, value, equal in self.fields:
            if path == ("metadata", "name") and equal:
                return value
        return ""

    def matches(self, obj: JsonObject) -> bool:
        metadata = as_object(obj.get("metadata"))
        if self.namespace and metadata.get("namespace") != self.namespace:
            return False
        if self.labels:
            labels = as_object(metadata.get("labels"))
            if not all(requirement.matches(labels) for requirement in self.labels):
                return False
        return all((field_text(obj, path) == value) is equal for path, value, equal in self.fields)


_COMMON_FIELDS: dict[str, tuple[str, ...]] = {
    "metadata.name": ("metadata", "name"),
    "metadata.namespace": ("metadata", "namespace"),
}


def selection(
    namespace: str, label_selector: str, field_selector: str, supported: Mapping[str, tuple[str, ...]]
) -> Selection:
    """The selection of a request; raises a bad request for labels that cannot be parsed and fields that cannot be selected."""
    fields: list[tuple[tuple[str, ...], str, bool]] = []
    for requirement in parse_fields(field_selector):
        path = _COMMON_FIELDS.get(requirement.label) or supported.get(requirement.label)
        if path is None:
            raise bad_request(f"field label not supported: {requirement.label}")
        fields.append((path, requirement.value, requirement.equal))
    return Selection(namespace, parse_labels(label_selector), tuple(fields))
