"""Structural schemas: pruning of unknown fields, defaulting, uniqueness of sets and maps, and old-to-new correlation.

`Structure` is the OpenAPI v3 schema of a CRD as a tree. All walkers are pure: they return the value itself when nothing
changes and share unchanged parts otherwise, so stored objects are never touched.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from quorate.local.jsonvalue import Json, JsonObject, as_list, as_object, as_text, dig, encode, objects, same, texts
from quorate.local.status import FieldError, duplicate


@dataclass(frozen=True)
class Rule:
    """One entry of `x-kubernetes-validations`."""

    rule: str
    message: str = ""
    message_expression: str = ""
    reason: str = ""
    field_path: str = ""
    optional_old_self: bool = False
    uses_old_self: bool = False


@dataclass(frozen=True, eq=False)
class Structure:
    """One node of a structural schema."""

    type: str
    properties: Mapping[str, Structure] = field(default_factory=dict[str, "Structure"])
    additional: Structure | None = None
    items: Structure | None = None
    any_keys: bool = False
    """Keys beyond `properties` are kept: `additionalProperties: true` or preserved unknown fields."""
    embedded: bool = False
    int_or_string: bool = False
    nullable: bool = False
    default: Json = None
    has_default: bool = False
    list_type: str = ""
    list_keys: tuple[str, ...] = ()
    merge_key: str = ""
    """`x-kubernetes-patch-merge-key`, for strategic merge patches of built-in kinds."""
    merge_strategies: tuple[str, ...] = ()
    rules: tuple[Rule, ...] = ()
    defaults_below: bool = False
    defaulting: tuple[tuple[str, Structure], ...] = ()
    """The properties that have defaults, or have some below."""
    rules_below: bool = False
    lists_below: bool = False
    transitions: bool = False
    """Rules with `oldSelf` stand here or below."""
    awkward_names: bool = False
    """Here or below are property names that CEL expressions cannot write as they are."""

    def child(self, key: str) -> Structure | None:
        return self.properties.get(key, self.additional)


RESERVED = frozenset(
    [
        "true",
        "false",
        "null",
        "in",
        "as",
        "break",
        "const",
        "continue",
        "else",
        "for",
        "function",
        "if",
        "import",
        "let",
        "loop",
        "package",
        "namespace",
        "return",
        "var",
        "void",
        "while",
    ]
)
"""Words of CEL that cannot be field names."""


def is_awkward(name: str) -> bool:
    """Whether CEL expressions cannot write a property name as it is."""
    return name in RESERVED or "__" in name or re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", name) is None


def compile_structure(schema: JsonObject) -> Structure:
    """The tree of an OpenAPI v3 schema as CRDs carry it."""
    properties = {
        key: compile_structure(as_object(value)) for key, value in as_object(schema.get("properties")).items()
    }
    additional_schema = schema.get("additionalProperties")
    additional = compile_structure(additional_schema) if isinstance(additional_schema, dict) else None
    item_schema = schema.get("items")
    items = compile_structure(item_schema) if isinstance(item_schema, dict) else None
    children = [*properties.values(), *(node for node in (additional, items) if node is not None)]
    rules = tuple(_rule(rule) for rule in objects(schema.get("x-kubernetes-validations")))
    list_type = as_text(schema.get("x-kubernetes-list-type"))
    return Structure(
        type=as_text(schema.get("type")),
        properties=properties,
        additional=additional,
        items=items,
        any_keys=additional_schema is True or schema.get("x-kubernetes-preserve-unknown-fields") is True,
        embedded=schema.get("x-kubernetes-embedded-resource") is True,
        int_or_string=schema.get("x-kubernetes-int-or-string") is True,
        nullable=schema.get("nullable") is True,
        default=schema.get("default"),
        has_default=schema.get("default") is not None,
        list_type=list_type,
        list_keys=tuple(texts(schema.get("x-kubernetes-list-map-keys"))),
        merge_key=as_text(schema.get("x-kubernetes-patch-merge-key")),
        merge_strategies=tuple(as_text(schema.get("x-kubernetes-patch-strategy")).split(",")),
        rules=rules,
        defaults_below=any(child.has_default or child.defaults_below for child in children),
        defaulting=tuple(
            (key, child) for key, child in properties.items() if child.has_default or child.defaults_below
        ),
        rules_below=any(child.rules or child.rules_below for child in children),
        lists_below=list_type in ("set", "map") or any(child.lists_below for child in children),
        transitions=any(rule.uses_old_self for rule in rules) or any(child.transitions for child in children),
        awkward_names=any(map(is_awkward, properties)) or any(child.awkward_names for child in children),
    )


def _rule(rule: JsonObject) -> Rule:
    text = as_text(rule.get("rule")).strip()
    return Rule(
        rule=text,
        message=as_text(rule.get("message")).strip(),
        message_expression=as_text(rule.get("messageExpression")).strip(),
        reason=as_text(rule.get("reason")),
        field_path=as_text(rule.get("fieldPath")),
        optional_old_self=rule.get("optionalOldSelf") is True,
        uses_old_self=re.search(r"\boldSelf\b", text) is not None,
    )


_EMBEDDED_KEYS = ("apiVersion", "kind", "metadata")


def prune(value: Json, structure: Structure, path: str = "", unknown: list[str] | None = None) -> Json:
    """`value` without the fields the schema does not know; their paths are appended to `unknown`."""
    if isinstance(value, dict):
        return _prune_object(value, structure, path, unknown)
    if isinstance(value, list) and structure.items is not None:
        item = structure.items
        pruned = [prune(each, item, f"{path}[{index}]", unknown) for index, each in enumerate(value)]
        return value if all(a is b for a, b in zip(pruned, value, strict=True)) else pruned
    return value


def drop_nulls(value: Json, structure: Structure) -> Json:
    """The value without nulls where the schema allows none and has no default; the value itself when nothing goes."""
    if isinstance(value, dict):
        changed: JsonObject | None = None
        for key, each in value.items():
            child = structure.child(key)
            if child is None:
                continue
            if each is None and key in structure.properties and not (child.nullable or child.has_default):
                changed = dict(value) if changed is None else changed
                del changed[key]
                continue
            below = drop_nulls(each, child)
            if below is not each:
                changed = dict(value) if changed is None else changed
                changed[key] = below
        return value if changed is None else changed
    if isinstance(value, list) and structure.items is not None:
        items = [drop_nulls(each, structure.items) for each in value]
        return value if all(a is b for a, b in zip(items, value, strict=True)) else items
    return value


def _prune_object(value: JsonObject, structure: Structure, path: str, unknown: list[str] | None) -> JsonObject:
    changed: JsonObject | None = None
    for key, each in value.items():
        child = structure.child(key)
        below = f"{path}.{key}" if path else key
        if child is not None:
            kept = prune(each, child, below, unknown)
            if kept is not each:
                changed = dict(value) if changed is None else changed
                changed[key] = kept
        elif not structure.any_keys and not (structure.embedded and key in _EMBEDDED_KEYS):
            changed = dict(value) if changed is None else changed
            del changed[key]
            if unknown is not None:
                unknown.append(below)
    return value if changed is None else changed


def apply_defaults(value: Json, structure: Structure) -> Json:
    """`value` with missing defaults filled in; a null that is not allowed gives way to the default."""
    if not structure.defaults_below:
        return value
    if isinstance(value, dict):
        return _default_object(value, structure)
    if isinstance(value, list) and structure.items is not None:
        item = structure.items
        filled = [_default_value(each, item) for each in value]
        return value if all(a is b for a, b in zip(filled, value, strict=True)) else filled
    return value


def _default_value(value: Json, structure: Structure) -> Json:
    if value is None and structure.has_default and not structure.nullable:
        return apply_defaults(structure.default, structure)
    return apply_defaults(value, structure)


def _default_object(value: JsonObject, structure: Structure) -> JsonObject:
    changed: JsonObject | None = None
    for key, child in structure.defaulting:
        before = value.get(key)
        if key in value:
            after = _default_value(before, child)
        elif child.has_default:
            after = apply_defaults(child.default, child)
        else:
            continue
        if key not in value or after is not before:
            changed = dict(value) if changed is None else changed
            changed[key] = after
    if structure.additional is not None:
        for key, before in value.items():
            if key in structure.properties:
                continue
            after = _default_value(before, structure.additional)
            if after is not before:
                changed = dict(value) if changed is None else changed
                changed[key] = after
    return value if changed is None else changed


def duplicates(value: Json, structure: Structure, path: str = "") -> Iterator[FieldError]:
    """Items that occur twice in lists of type set or map."""
    if not structure.lists_below:
        return
    if isinstance(value, dict):
        for key, each in value.items():
            child = structure.child(key)
            if child is not None:
                yield from duplicates(each, child, f"{path}.{key}" if path else key)
    elif isinstance(value, list):
        if structure.list_type in ("set", "map"):
            yield from _list_duplicates(value, structure, path)
        if structure.items is not None:
            for index, each in enumerate(value):
                yield from duplicates(each, structure.items, f"{path}[{index}]")


def _list_duplicates(value: list[Json], structure: Structure, path: str) -> Iterator[FieldError]:
    seen: set[bytes] = set()
    for index, each in enumerate(value):
        shown: Json = each
        if structure.list_type == "map":
            shown = map_key(as_object(each), structure)
        key = encode(shown)
        if key in seen:
            yield duplicate(f"{path}[{index}]", shown)
        seen.add(key)


def map_key(item: JsonObject, structure: Structure) -> JsonObject:
    """The identity of an item in a list of type map (defaults of absent keys count)."""
    key: JsonObject = {}
    for name in structure.list_keys:
        value = item.get(name)
        child = structure.items.properties.get(name) if structure.items is not None else None
        if value is None and child is not None and child.has_default:
            value = child.default
        if value is not None:
            key[name] = value
    return key


class Missing:
    """There is no comparable old value."""


MISSING = Missing()


def correlate_item(item: Json, old: list[Json], structure: Structure) -> Json | Missing:
    """The old counterpart of a list item: only lists of type map can be compared item by item."""
    if structure.list_type != "map":
        return MISSING
    key = map_key(as_object(item), structure)
    for candidate in objects(old):
        if same(map_key(candidate, structure), key):
            return candidate
    return MISSING


def unchanged_at(new: Json, old: Json, structure: Structure, path: list[str | int]) -> bool:
    """Whether some part of `new` on the way to `path` equals its old counterpart, so that its errors are tolerated.

    This is Kubernetes' validation ratcheting: an object that became invalid by a schema change stays writable as long as
    the offending part is not touched.
    """
    node: Structure | None = structure
    for step in [*path, None]:
        if same(new, old):
            return True
        if step is None or node is None:
            return False
        if isinstance(step, int):
            items, before = as_list(new), as_list(old)
            if step >= len(items):
                return False
            new, found, node = items[step], correlate_item(items[step], before, node), node.items
            if isinstance(found, Missing):
                return False
            old = found
        else:
            if not isinstance(new, dict) or not isinstance(old, dict) or step not in new or step not in old:
                return False
            new, old, node = dig(new, step), dig(old, step), node.child(step)
    return False
