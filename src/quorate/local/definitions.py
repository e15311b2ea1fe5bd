"""CustomResourceDefinitions: their own kind, their validation, and the kinds they define.

A CRD becomes served in the write that stores it. Its conditions `NamesAccepted` and `Established` are true from the
start: there is nobody else to compete with for the names.
"""

from __future__ import annotations

import re

from quorate.local.builtin.shapes import array, boolean, condition, free, integer, keyed, obj, root, text
from quorate.local.cel import RuleSet
from quorate.local.jsonvalue import (
    Json,
    JsonObject,
    as_int,
    as_list,
    as_object,
    as_text,
    dig,
    objects,
    same,
    texts,
    with_key,
)
from quorate.local.kinds import Column, Kind, Strategy
from quorate.local.ports import timestamp
from quorate.local.status import FieldError, invalid_value, required
from quorate.local.structural import compile_structure

GROUP = "apiextensions.k8s.io"
TABLE = "apiextensions.k8s.io/customresourcedefinitions"
CLEANUP = "customresourcecleanup.apiextensions.k8s.io"

_NAMES = obj(
    {
        "plural": text(),
        "singular": text(),
        "kind": text(),
        "listKind": text(),
        "shortNames": array(text()),
        "categories": array(text()),
    },
    required=("plural", "kind"),
)
_COLUMN = obj(
    {
        "name": text(),
        "type": text(),
        "jsonPath": text(),
        "description": text(),
        "format": text(),
        "priority": integer(),
    },
    required=("name", "type", "jsonPath"),
)
_VERSION = obj(
    {
        "name": text(),
        "served": boolean(),
        "storage": boolean(),
        "deprecated": boolean(),
        "deprecationWarning": text(),
        "schema": obj({"openAPIV3Schema": free()}),
        "subresources": obj({"status": free(), "scale": free()}),
        "additionalPrinterColumns": array(_COLUMN),
        "selectableFields": array(obj({"jsonPath": text()}, required=("jsonPath",))),
    },
    required=("name", "served", "storage"),
)
_SCHEMA = root(
    "CustomResourceDefinition describes a kind that the server serves.",
    {
        "spec": obj(
            {
                "group": text(),
                "names": _NAMES,
                "scope": text(enum=("Cluster", "Namespaced")),
                "versions": array(_VERSION, minItems=1),
                "conversion": free(),
                "preserveUnknownFields": boolean(),
            },
            required=("group", "names", "scope", "versions"),
        ),
        "status": obj(
            {"conditions": keyed(condition(), "type"), "acceptedNames": free(), "storedVersions": array(text())}
        ),
    },
    required=("spec",),
)


def kinds_of(crd: JsonObject) -> list[Kind]:
    """The kinds a CRD defines: one per served version."""
    spec = as_object(crd.get("spec"))
    return [_kind(spec, version) for version in objects(spec.get("versions")) if version.get("served") is True]


def _kind(spec: JsonObject, version: JsonObject) -> Kind:
    names = as_object(spec.get("names"))
    schema = as_object(dig(version, "schema", "openAPIV3Schema"))
    has_status = dig(version, "subresources", "status") is not None
    selectable = [as_text(each.get("jsonPath")) for each in objects(version.get("selectableFields"))]
    kind = as_text(names.get("kind"))
    age = Column("Age", "date", path=".metadata.creationTimestamp")
    columns = tuple(_column(each) for each in objects(version.get("additionalPrinterColumns"))) or (age,)
    return Kind(
        group=as_text(spec.get("group")),
        version=as_text(version.get("name")),
        kind=kind,
        plural=as_text(names.get("plural")),
        namespaced=spec.get("scope") == "Namespaced",
        schema=schema,
        singular=as_text(names.get("singular")) or kind.lower(),
        short_names=tuple(texts(names.get("shortNames"))),
        categories=tuple(texts(names.get("categories"))),
        columns=columns,
        has_status=has_status,
        custom=True,
        field_labels={path.removeprefix("."): tuple(path.removeprefix(".").split(".")) for path in selectable},
        strategy=Strategy(generation=True, metadata_with_status=False, unconditional_update=False),
    )


def _column(column: JsonObject) -> Column:
    return Column(
        name=as_text(column.get("name")),
        type=as_text(column.get("type")),
        description=as_text(column.get("description")),
        format=as_text(column.get("format")),
        priority=as_int(column.get("priority")),
        path=as_text(column.get("jsonPath")),
    )


def _complete(crd: JsonObject) -> JsonObject:
    """The CRD with the names Kubernetes derives."""
    spec = as_object(crd.get("spec"))
    names = as_object(spec.get("names"))
    kind = as_text(names.get("kind"))
    full: JsonObject = {"listKind": f"{kind}List", "singular": kind.lower(), **names}
    conversion: JsonObject = {"strategy": "None"}
    return {**crd, "spec": {"conversion": conversion, **spec, "names": full}}


def _accepted(crd: JsonObject, now: float) -> JsonObject:
    moment = timestamp(now)
    conditions: list[Json] = [
        {
            "type": "NamesAccepted",
            "status": "True",
            "reason": "NoConflicts",
            "message": "no conflicts found",
            "lastTransitionTime": moment,
        },
        {
            "type": "Established",
            "status": "True",
            "reason": "InitialNamesAccepted",
            "message": "the initial names have been accepted",
            "lastTransitionTime": moment,
        },
    ]
    stored = [as_text(v.get("name")) for v in objects(dig(crd, "spec", "versions")) if v.get("storage") is True]
    return {
        "conditions": conditions,
        "acceptedNames": dig(crd, "spec", "names"),
        "storedVersions": list[Json](stored),
    }


def _prepare(crd: JsonObject, now: float) -> JsonObject:
    complete = _complete(crd)
    metadata = as_object(complete.get("metadata"))
    finalizers = [*texts(metadata.get("finalizers")), CLEANUP]
    return {
        **complete,
        "metadata": {**metadata, "finalizers": list[Json](dict.fromkeys(finalizers))},
        "status": _accepted(complete, now),
    }


def _prepare_update(new: JsonObject, old: JsonObject, now: float) -> JsonObject:
    del now
    complete = _complete(new)
    status = as_object(old.get("status"))
    return with_key(complete, "status", {**status, "acceptedNames": dig(complete, "spec", "names")})


def _validate(new: JsonObject, old: JsonObject | None) -> list[FieldError]:
    spec = as_object(new.get("spec"))
    group, plural = as_text(spec.get("group")), as_text(dig(spec, "names", "plural"))
    errors: list[FieldError] = []
    name = as_text(dig(new, "metadata", "name"))
    if name != f"{plural}.{group}":
        errors.append(invalid_value("metadata.name", name, 'must be spec.names.plural+"."+spec.group'))
    versions = objects(spec.get("versions"))
    if sum(version.get("storage") is True for version in versions) != 1:
        text_ = "must have exactly one version marked as storage version"
        errors.append(invalid_value("spec.versions", [as_text(v.get("name")) for v in versions], text_))
    for index, version in enumerate(versions):
        errors += _validate_version(version, f"spec.versions[{index}]")
    if old is not None:
        fixed = (("group",), ("scope",), ("names", "kind"), ("names", "plural"))
        errors += [
            invalid_value("spec." + ".".join(path), dig(spec, *path), "field is immutable")
            for path in fixed
            if not same(dig(spec, *path), dig(old, "spec", *path))
        ]
    return errors


def _validate_version(version: JsonObject, path: str) -> list[FieldError]:
    schema = dig(version, "schema", "openAPIV3Schema")
    where = f"{path}.schema.openAPIV3Schema"
    if not isinstance(schema, dict):
        return [required(where, "schemas are required")]
    errors: list[FieldError] = []
    if schema.get("type") != "object":
        errors.append(invalid_value(f"{where}.type", schema.get("type"), "must be object at the root"))
    _check_structural(schema, where, errors)
    broken = RuleSet(compile_structure(schema)).compile_errors()
    return errors + [FieldError(each.type, f"{path}.schema.{each.path}", each.value, each.detail) for each in broken]


def _check_structural(schema: JsonObject, path: str, errors: list[FieldError]) -> None:
    """What makes a schema structural, as far as the walkers rely on it."""
    untyped = (
        schema.get("x-kubernetes-int-or-string") is True or schema.get("x-kubernetes-preserve-unknown-fields") is True
    )
    if not schema.get("type") and not untyped:
        errors.append(required(f"{path}.type", "must not be empty for specified object fields"))
    pattern = schema.get("pattern")
    if isinstance(pattern, str) and not _compiles(pattern):
        errors.append(invalid_value(f"{path}.pattern", pattern, "must be a valid regular expression"))
    keys = texts(schema.get("x-kubernetes-list-map-keys"))
    if schema.get("x-kubernetes-list-type") == "map" and not keys:
        errors.append(
            required(f"{path}.x-kubernetes-list-map-keys", "must not be empty if x-kubernetes-list-type is map")
        )
    for key, value in as_object(schema.get("properties")).items():
        if path.endswith("openAPIV3Schema") and key == "metadata":
            continue
        _check_structural(as_object(value), f"{path}.properties[{key}]", errors)
    for key in ("items", "additionalProperties"):
        below = schema.get(key)
        if isinstance(below, dict):
            _check_structural(below, f"{path}.{key}", errors)
    if isinstance(schema.get("items"), list) and as_list(schema.get("items")):
        errors.append(invalid_value(f"{path}.items", "array", "items must be a schema object and not an array"))


def _compiles(pattern: str) -> bool:
    try:
        re.compile(pattern)
    except re.error:
        return False
    return True


DEFINITION = Kind(
    GROUP, "v1", "CustomResourceDefinition", "customresourcedefinitions", False, _SCHEMA,
    singular="customresourcedefinition", short_names=("crd", "crds"), categories=("api-extensions",), has_status=True,
    strategy=Strategy(
        generation=True,
        unconditional_update=False,
        prepare=_prepare,
        prepare_update=_prepare_update,
        validate=_validate,
    ),
)  # fmt: skip
