"""Rules for `metadata` that hold for every kind: names, labels, finalizers, owner references, what an update may
change.

The texts follow `k8s.io/apimachinery/pkg/api/validation`.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from quorate.local.jsonvalue import Json, JsonObject, as_object, as_text, objects, same, texts
from quorate.local.status import FieldError, forbidden_field, invalid_value, required, too_long

KNOWN_FIELDS = (
    "name", "generateName", "namespace", "selfLink", "uid", "resourceVersion", "generation", "creationTimestamp",
    "deletionTimestamp", "deletionGracePeriodSeconds", "labels", "annotations", "ownerReferences", "finalizers",
)  # fmt: skip
"""`managedFields` is missing on purpose: there is no server-side apply, so nobody owns fields."""

ANNOTATIONS_LIMIT = 256 * 1024

_SUBDOMAIN = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*")
_LABEL = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?")
_QUALIFIED = re.compile(r"([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]")
_LABEL_VALUE = re.compile(r"(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?")

_SUBDOMAIN_TEXT = (
    "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end "
    "with an alphanumeric character (e.g. 'example.com', regex used for validation is "
    "'[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')"
)
_LABEL_TEXT = (
    "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end with an "
    "alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?')"
)
_QUALIFIED_TEXT = (
    "name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric "
    "character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is "
    "'([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')"
)
_LABEL_VALUE_TEXT = (
    "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start and end "
    "with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for validation is "
    "'(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')"
)

NameCheck = Callable[[str], list[str]]


def subdomain_name(name: str) -> list[str]:
    """Problems with a name of most kinds."""
    problems = ["must be no more than 253 characters"] if len(name) > 253 else []
    return problems if _SUBDOMAIN.fullmatch(name) else [*problems, _SUBDOMAIN_TEXT]


def label_name(name: str) -> list[str]:
    """Problems with a name that must be a single DNS label (namespaces)."""
    problems = ["must be no more than 63 characters"] if len(name) > 63 else []
    return problems if _LABEL.fullmatch(name) else [*problems, _LABEL_TEXT]


def qualified_name(text: str) -> list[str]:
    """Problems with a label key or finalizer: an optional DNS prefix, a slash, a name."""
    prefix, slash, name = text.rpartition("/")
    problems: list[str] = []
    if slash:
        if not prefix:
            problems.append("prefix part must be non-empty")
        elif not _SUBDOMAIN.fullmatch(prefix):
            problems.append(f"prefix part {_SUBDOMAIN_TEXT}")
    if not name:
        problems.append("name part must be non-empty")
    elif len(name) > 63:
        problems.append("name part must be no more than 63 bytes")
    if not _QUALIFIED.fullmatch(name):
        problems.append(_QUALIFIED_TEXT)
    return problems


def label_value(text: str) -> list[str]:
    problems = ["must be no more than 63 bytes"] if len(text) > 63 else []
    return problems if _LABEL_VALUE.fullmatch(text) else [*problems, _LABEL_VALUE_TEXT]


def validate(metadata: JsonObject, check_name: NameCheck) -> list[FieldError]:
    """What is wrong with the metadata of an object that is about to be stored."""
    errors: list[FieldError] = []
    name = as_text(metadata.get("name"))
    base = as_text(metadata.get("generateName"))
    if base:
        # The base may end in a dash, which a name may not.
        problems = check_name(base[:-1] + "a" if base.endswith("-") else base)
        errors += [invalid_value("metadata.generateName", base, problem) for problem in problems]
    if not name:
        errors.append(required("metadata.name", "name or generateName is required"))
    else:
        errors += [invalid_value("metadata.name", name, problem) for problem in check_name(name)]
    errors += _validate_labels(metadata.get("labels"))
    errors += _validate_annotations(metadata.get("annotations"))
    for finalizer in texts(metadata.get("finalizers")):
        errors += [invalid_value("metadata.finalizers", finalizer, problem) for problem in qualified_name(finalizer)]
    return errors + _validate_owners(metadata.get("ownerReferences"))


def validate_types(metadata: Json) -> str:
    """The first field whose JSON type cannot be metadata (what decoding into ObjectMeta refuses), or ''."""
    if not isinstance(metadata, dict):
        return "metadata"
    for key in (
        "name",
        "generateName",
        "namespace",
        "uid",
        "resourceVersion",
        "creationTimestamp",
        "deletionTimestamp",
    ):
        if not isinstance(metadata.get(key), str | None):
            return f"metadata.{key}"
    for key in ("labels", "annotations"):
        value = metadata.get(key)
        if value is not None and not (
            isinstance(value, dict) and all(isinstance(each, str) for each in value.values())
        ):
            return f"metadata.{key}"
    finalizers = metadata.get("finalizers")
    if finalizers is not None and not (isinstance(finalizers, list) and all(isinstance(e, str) for e in finalizers)):
        return "metadata.finalizers"
    owners = metadata.get("ownerReferences")
    if owners is not None and not (isinstance(owners, list) and all(isinstance(each, dict) for each in owners)):
        return "metadata.ownerReferences"
    return ""


def _validate_labels(labels: Json) -> list[FieldError]:
    errors: list[FieldError] = []
    for key, value in as_object(labels).items():
        errors += [invalid_value("metadata.labels", key, problem) for problem in qualified_name(key)]
        errors += [invalid_value("metadata.labels", value, problem) for problem in label_value(as_text(value))]
    return errors


def _validate_annotations(annotations: Json) -> list[FieldError]:
    errors: list[FieldError] = []
    size = 0
    for key, value in as_object(annotations).items():
        errors += [invalid_value("metadata.annotations", key, problem) for problem in qualified_name(key.lower())]
        size += len(key.encode()) + len(as_text(value).encode())
    if size > ANNOTATIONS_LIMIT:
        errors.append(too_long("metadata.annotations", ANNOTATIONS_LIMIT))
    return errors


def _validate_owners(owners: Json) -> list[FieldError]:
    errors: list[FieldError] = []
    controllers: list[str] = []
    path = "metadata.ownerReferences"
    for owner in objects(owners):
        for key, text in (("apiVersion", "version must not be empty"), ("kind", "must not be empty")):
            if not as_text(owner.get(key)):
                errors.append(invalid_value(f"{path}.{key}", as_text(owner.get(key)), text))
        missing = [key for key in ("name", "uid") if not as_text(owner.get(key))]
        errors += [invalid_value(f"{path}.{key}", "", "must not be empty") for key in missing]
        if owner.get("controller") is True:
            controllers.append(f"{owner.get('kind')}/{owner.get('name')}")
    if len(controllers) > 1:
        text = "Only one reference can have Controller set to true. Found {} in references for {}"
        listed = " and ".join(controllers[:2])
        errors.append(invalid_value("metadata.ownerReferences", owners, text.format('"true"', listed)))
    return errors


_IMMUTABLE = ("name", "namespace", "uid", "deletionTimestamp", "deletionGracePeriodSeconds")


def carry_over(new: JsonObject, old: JsonObject) -> JsonObject:
    """The metadata of an update with what only the server sets taken from the stored object where it was left out."""
    carried: JsonObject = {key: value for key, value in new.items() if key in KNOWN_FIELDS and value is not None}
    for key in ("uid", "creationTimestamp", "deletionTimestamp", "deletionGracePeriodSeconds", "namespace", "name"):
        if key in old:
            carried.setdefault(key, old[key])
    carried.pop("selfLink", None)
    for key in ("generation", "generateName", "creationTimestamp"):
        if key in old:
            carried[key] = old[key]
        else:
            carried.pop(key, None)
    return {key: value for key, value in carried.items() if value not in ({}, [])}


def validate_update(new: JsonObject, old: JsonObject) -> list[FieldError]:
    """What an update must not do to metadata."""
    errors = [
        invalid_value(f"metadata.{key}", new.get(key), "field is immutable")
        for key in _IMMUTABLE
        if not same(new.get(key), old.get(key))
    ]
    if "deletionTimestamp" in old:
        before = texts(old.get("finalizers"))
        added = [finalizer for finalizer in texts(new.get("finalizers")) if finalizer not in before]
        if added:
            listed = ", ".join(f'"{finalizer}"' for finalizer in added)
            text = "no new finalizers can be added if the object is being deleted, found new finalizers []string{%s}"
            errors.append(forbidden_field("metadata.finalizers", text % listed))
    return errors
