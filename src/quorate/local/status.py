"""Failures as Kubernetes tells them: `Status` objects, field errors and their exact wording.

Every refusal of the server is a `StatusError`; its `body` is what clients such as kubectl parse. The texts follow
`k8s.io/apimachinery/pkg/api/errors` and `pkg/util/validation/field`.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import Enum

from quorate.local.jsonvalue import Json, JsonObject


class ErrorType(Enum):
    """Field error types: (text, reason of the cause)."""

    NOT_FOUND = ("Not found", "FieldValueNotFound")
    REQUIRED = ("Required value", "FieldValueRequired")
    DUPLICATE = ("Duplicate value", "FieldValueDuplicate")
    INVALID = ("Invalid value", "FieldValueInvalid")
    NOT_SUPPORTED = ("Unsupported value", "FieldValueNotSupported")
    FORBIDDEN = ("Forbidden", "FieldValueForbidden")
    TOO_LONG = ("Too long", "FieldValueTooLong")
    TOO_MANY = ("Too many", "FieldValueTooMany")
    TYPE_INVALID = ("Invalid value", "FieldValueTypeInvalid")

    @property
    def text(self) -> str:
        return self.value[0]

    @property
    def reason(self) -> str:
        return self.value[1]


NO_PATH = "<nil>"
"""How the root of an object is named."""
_WITHOUT_VALUE = (ErrorType.REQUIRED, ErrorType.FORBIDDEN, ErrorType.TOO_LONG)


@dataclass(frozen=True)
class FieldError:
    """One thing wrong with one field."""

    type: ErrorType
    path: str
    value: Json = None
    detail: str = ""
    shows_value: bool = True
    """Rules about whole objects and lists do not print them."""

    @property
    def body(self) -> str:
        """The text without the path, as it stands in a cause."""
        text = self.type.text
        if self.shows_value and self.type not in _WITHOUT_VALUE:
            text = f"{text}: {_printed(self.value)}"
        return f"{text}: {self.detail}" if self.detail else text

    def __str__(self) -> str:
        return f"{self.path or NO_PATH}: {self.body}"


def _printed(value: Json) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def invalid_value(path: str, value: Json, detail: str) -> FieldError:
    return FieldError(ErrorType.INVALID, path, value, detail)


def required(path: str, detail: str = "") -> FieldError:
    return FieldError(ErrorType.REQUIRED, path, None, detail)


def forbidden_field(path: str, detail: str) -> FieldError:
    return FieldError(ErrorType.FORBIDDEN, path, None, detail)


def duplicate(path: str, value: Json) -> FieldError:
    return FieldError(ErrorType.DUPLICATE, path, value)


def not_supported(path: str, value: Json, supported: Sequence[Json]) -> FieldError:
    values = ", ".join(_printed(item) for item in supported)
    return FieldError(ErrorType.NOT_SUPPORTED, path, value, f"supported values: {values}")


def too_long(path: str, limit: int) -> FieldError:
    return FieldError(ErrorType.TOO_LONG, path, None, f"may not be more than {limit} bytes")


def too_many(path: str, actual: int, limit: int) -> FieldError:
    return FieldError(ErrorType.TOO_MANY, path, actual, f"must have at most {limit} items")


@dataclass(frozen=True)
class Cause:
    reason: str
    message: str
    field: str = ""


@dataclass(eq=False)
class StatusError(Exception):
    """A refused request: HTTP code, machine-readable reason and message."""

    code: int
    reason: str
    message: str
    name: str = ""
    group: str = ""
    kind: str = ""
    uid: str = ""
    causes: tuple[Cause, ...] = ()
    retry_after: int = 0
    continue_token: str = ""
    headers: dict[str, str] = field(default_factory=dict[str, str])
    bare_details: bool = False
    """Whether `details` is there although nothing stands in it."""

    def __str__(self) -> str:
        return f"{self.code} {self.reason}: {self.message}"

    @property
    def body(self) -> JsonObject:
        """The `Status` object."""
        details: JsonObject = {}
        for key, value in (("name", self.name), ("group", self.group), ("kind", self.kind), ("uid", self.uid)):
            if value:
                details[key] = value
        if self.causes:
            details["causes"] = [_cause(cause) for cause in self.causes]
        if self.retry_after:
            details["retryAfterSeconds"] = self.retry_after
        metadata: JsonObject = {"continue": self.continue_token} if self.continue_token else {}
        status: JsonObject = {
            "kind": "Status",
            "apiVersion": "v1",
            "metadata": metadata,
            "status": "Failure",
            "message": self.message,
            "code": self.code,
        }
        if self.reason:
            status["reason"] = self.reason
        if details or self.bare_details:
            status["details"] = details
        return status


def _cause(cause: Cause) -> JsonObject:
    body: JsonObject = {"reason": cause.reason, "message": cause.message}
    if cause.field:
        body["field"] = cause.field
    return body


def success(*, name: str, group: str, kind: str, uid: str) -> JsonObject:
    """The answer to a delete that removed the object."""
    details: JsonObject = {"name": name, "kind": kind, "uid": uid}
    if group:
        details["group"] = group
    return {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "details": details}


def qualified(resource: str, group: str) -> str:
    return f"{resource}.{group}" if group else resource


def not_found(group: str, resource: str, name: str) -> StatusError:
    message = f'{qualified(resource, group)} "{name}" not found'
    return StatusError(404, "NotFound", message, name=name, group=group, kind=resource)


def no_such_path() -> StatusError:
    return StatusError(404, "NotFound", "the server could not find the requested resource")


def already_exists(group: str, resource: str, name: str) -> StatusError:
    message = f'{qualified(resource, group)} "{name}" already exists'
    return StatusError(409, "AlreadyExists", message, name=name, group=group, kind=resource)


def conflict(group: str, resource: str, name: str, detail: str) -> StatusError:
    message = f'Operation cannot be fulfilled on {qualified(resource, group)} "{name}": {detail}'
    return StatusError(409, "Conflict", message, name=name, group=group, kind=resource)


MODIFIED = "the object has been modified; please apply your changes to the latest version and try again"


def invalid(group: str, kind: str, name: str, errors: Sequence[FieldError]) -> StatusError:
    texts = list(dict.fromkeys(str(error) for error in errors))
    listed = texts[0] if len(texts) == 1 else f"[{', '.join(texts)}]"
    message = f'{qualified(kind, group)} "{name}" is invalid: {listed}'
    causes = tuple(Cause(error.type.reason, error.body, error.path or NO_PATH) for error in errors)
    return StatusError(422, "Invalid", message, name=name, group=group, kind=kind, causes=causes)


def bad_request(message: str) -> StatusError:
    return StatusError(400, "BadRequest", message)


def forbidden(group: str, resource: str, name: str, detail: str, causes: tuple[Cause, ...] = ()) -> StatusError:
    message = f'{qualified(resource, group)} "{name}" is forbidden: {detail}'
    return StatusError(403, "Forbidden", message, name=name, group=group, kind=resource, causes=causes)


def unauthorized() -> StatusError:
    return StatusError(401, "Unauthorized", "Unauthorized", headers={"WWW-Authenticate": 'Bearer realm="quorate"'})


def method_not_allowed(allowed: str = "") -> StatusError:
    headers = {"Allow": allowed} if allowed else {}
    message = "the server does not allow this method on the requested resource"
    return StatusError(405, "MethodNotAllowed", message, headers=headers)


def too_large(limit: int) -> StatusError:
    return StatusError(413, "RequestEntityTooLarge", f"Request entity too large: limit is {limit}")


def unsupported_media_type(message: str) -> StatusError:
    return StatusError(415, "UnsupportedMediaType", message)


def not_acceptable(message: str) -> StatusError:
    return StatusError(406, "NotAcceptable", message)


def expired(message: str, continue_token: str = "") -> StatusError:
    return StatusError(410, "Expired", message, continue_token=continue_token)


def version_too_large(requested: int, current: int) -> StatusError:
    message = f"Timeout: Too large resource version: {requested}, current: {current}"
    cause = Cause("ResourceVersionTooLarge", "Too large resource version")
    return StatusError(504, "Timeout", message, causes=(cause,), retry_after=1)


def internal(message: str) -> StatusError:
    return StatusError(500, "InternalError", f"Internal error occurred: {message}")
