"""Typed errors from Status objects."""

from __future__ import annotations

import msgspec
import pytest

from quorate.machinery import errors


def status(code: int, reason: str, **details: object) -> bytes:
    body = {"kind": "Status", "code": code, "reason": reason, "message": "why", "details": details}
    return msgspec.json.encode(body)


@pytest.mark.parametrize(
    ("code", "reason", "kind", "unknown"),
    [
        (404, "NotFound", errors.NotFound, False),
        (409, "AlreadyExists", errors.AlreadyExists, False),
        (409, "Conflict", errors.Conflict, False),
        (422, "Invalid", errors.Invalid, False),
        (400, "BadRequest", errors.Invalid, False),
        (410, "Expired", errors.Expired, False),
        (410, "Gone", errors.Expired, False),
        (403, "Forbidden", errors.Forbidden, False),
        (401, "Unauthorized", errors.Forbidden, False),
        (429, "TooManyRequests", errors.TooManyRequests, False),
        (500, "InternalError", errors.Unavailable, True),
        (503, "ServiceUnavailable", errors.Unavailable, True),
        (504, "Timeout", errors.Timeout, True),
        (500, "ServerTimeout", errors.Timeout, True),
        (405, "MethodNotAllowed", errors.ApiError, False),
    ],
)
def test_every_reason_has_its_class(code: int, reason: str, kind: type[errors.ApiError], unknown: bool) -> None:
    error = errors.from_status(code, status(code, reason))
    assert type(error) is kind
    assert error.outcome_unknown is unknown
    assert (error.code, error.reason, error.message) == (code, reason, "why")


def test_causes_and_retry_after_are_kept() -> None:
    cause = {"field": "spec.size", "reason": "FieldValueInvalid", "message": "too small"}
    error = errors.from_status(422, status(422, "Invalid", causes=[cause], retryAfterSeconds=3))
    assert error.causes == (errors.Cause("spec.size", "FieldValueInvalid", "too small"),)
    assert error.retry_after == 3.0


@pytest.mark.parametrize(("code", "kind"), [(404, errors.NotFound), (502, errors.Unavailable), (418, errors.ApiError)])
def test_a_body_that_is_no_status_gives_the_class_of_its_code(code: int, kind: type[errors.ApiError]) -> None:
    error = errors.from_status(code, b"<html>proxy says no</html>")
    assert type(error) is kind
    assert "proxy says no" in error.message
