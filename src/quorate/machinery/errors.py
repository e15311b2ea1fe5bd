"""Typed errors of the API, made from the Status objects a server answers with.

One class per reason that callers treat differently; `outcome_unknown` says whether the request may have taken effect
although it failed (rule 2 of the design: such a failure is followed by one live read before the key is worked on
again).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import msgspec


@dataclass(frozen=True)
class Cause:
    """One entry of `status.details.causes`."""

    field: str
    reason: str
    message: str


class ApiError(Exception):
    """A request failed; the base class is used for reasons nobody treats specially."""

    outcome_unknown: ClassVar[bool] = False

    def __init__(
        self, code: int, reason: str, message: str, causes: tuple[Cause, ...] = (), retry_after: float | None = None
    ) -> None:
        super().__init__(message)
        self.code = code
        self.reason = reason
        self.message = message
        self.causes = causes
        self.retry_after = retry_after

    def __str__(self) -> str:
        return f"{self.reason} ({self.code}): {self.message}"


class NotFound(ApiError):
    """The object, or the kind, does not exist."""


class AlreadyExists(ApiError):
    """An object of this name exists."""


class Conflict(ApiError):
    """The resource version or a precondition did not match."""


class Invalid(ApiError):
    """The object was refused by validation, or the request is malformed."""


class Expired(ApiError):
    """The resource version or continue token is too old (410)."""


class Forbidden(ApiError):
    """Not allowed, or not authenticated."""


class TooManyRequests(ApiError):
    """The server asks to slow down; nothing was done."""


class Unavailable(ApiError):
    """The server failed or the connection broke; the request may have taken effect."""

    outcome_unknown = True


class Timeout(ApiError):
    """No answer in time; the request may have taken effect."""

    outcome_unknown = True


_BY_REASON: dict[str, type[ApiError]] = {
    "NotFound": NotFound,
    "AlreadyExists": AlreadyExists,
    "Conflict": Conflict,
    "Invalid": Invalid,
    "BadRequest": Invalid,
    "Expired": Expired,
    "Gone": Expired,
    "Forbidden": Forbidden,
    "Unauthorized": Forbidden,
    "TooManyRequests": TooManyRequests,
    "InternalError": Unavailable,
    "ServiceUnavailable": Unavailable,
    "ServerTimeout": Timeout,
    "Timeout": Timeout,
}

_BY_CODE: dict[int, tuple[str, type[ApiError]]] = {
    400: ("BadRequest", Invalid),
    401: ("Unauthorized", Forbidden),
    403: ("Forbidden", Forbidden),
    404: ("NotFound", NotFound),
    409: ("Conflict", Conflict),
    410: ("Expired", Expired),
    422: ("Invalid", Invalid),
    429: ("TooManyRequests", TooManyRequests),
    504: ("Timeout", Timeout),
}


class _WireCause(msgspec.Struct):
    field: str = ""
    reason: str = ""
    message: str = ""


class _WireDetails(msgspec.Struct, rename="camel"):
    causes: list[_WireCause] = []
    retry_after_seconds: int = 0


class _WireStatus(msgspec.Struct):
    kind: str = ""
    code: int = 0
    reason: str = ""
    message: str = ""
    details: _WireDetails | None = None


def from_status(code: int, body: bytes) -> ApiError:
    """The typed error of a non-2xx answer; a body that is no Status object still gives the class of its code."""
    try:
        status = msgspec.json.decode(body, type=_WireStatus)
    except msgspec.DecodeError:
        status = _WireStatus(message=body[:200].decode("utf-8", "replace"))
    code = status.code or code
    default_reason, default_class = _BY_CODE.get(
        code, ("InternalError", Unavailable) if code >= 500 else ("Unknown", ApiError)
    )
    reason = status.reason or default_reason
    details = status.details or _WireDetails()
    causes = tuple(Cause(cause.field, cause.reason, cause.message) for cause in details.causes)
    error_class = _BY_REASON.get(reason, default_class)
    retry_after = float(details.retry_after_seconds) if details.retry_after_seconds else None
    return error_class(code, reason, status.message or reason, causes, retry_after)


def timeout(message: str) -> Timeout:
    """No answer in time."""
    return Timeout(504, "Timeout", message)


def unavailable(message: str) -> Unavailable:
    """The connection broke before the answer was complete."""
    return Unavailable(503, "ServiceUnavailable", message)
