"""What the API server's own log says about who did what."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import msgspec

WRITES = ("create", "update", "patch", "delete", "deletecollection")
SERVICE_ACCOUNT = "system:serviceaccount:"


CREDENTIAL = "authentication.kubernetes.io/credential-id"


class _User(msgspec.Struct, rename="camel"):
    username: str = ""
    extra: dict[str, list[str]] = msgspec.field(default_factory=dict[str, list[str]])


class _Object(msgspec.Struct, rename="camel"):
    resource: str = ""
    subresource: str = ""
    namespace: str = ""
    name: str = ""


class _Answer(msgspec.Struct):
    code: int = 0


class _Line(msgspec.Struct, rename="camel"):
    stage: str
    verb: str
    user: _User
    object_ref: _Object | None = None
    response_status: _Answer | None = None
    request_received_timestamp: str = ""
    request_uri: str = msgspec.field(default="", name="requestURI")


@dataclass(frozen=True)
class Entry:
    """One answered request."""

    user: str
    """`namespace:name` of a service account, else the user's name."""
    credential: str
    """Which token it was: tells processes of one account apart."""
    verb: str
    resource: str
    """Plural, with `/status` and the like."""
    namespace: str
    name: str
    code: int
    received: str
    """RFC 3339 with microseconds: sorts as text."""
    uri: str

    @property
    def wrote(self) -> bool:
        """Whether this changed something."""
        return self.verb in WRITES and self.code < 300 and "dryRun" not in self.uri


class Audit:
    """The log from now on."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._from = path.stat().st_size if path.exists() else 0

    def entries(self, user: str = "") -> tuple[Entry, ...]:
        """Everything answered since, in the order of arrival; of one user if named."""
        found = [entry for entry in self._read() if not user or entry.user == user]
        return tuple(sorted(found, key=lambda entry: entry.received))

    def writes(self, user: str) -> tuple[Entry, ...]:
        """What a user changed."""
        return tuple(entry for entry in self.entries(user) if entry.wrote)

    def refused(self, user: str) -> tuple[Entry, ...]:
        """What a user was not allowed to do."""
        return tuple(entry for entry in self.entries(user) if entry.code == 403)

    def _read(self) -> Iterator[Entry]:
        decoder = msgspec.json.Decoder(_Line)
        with self._path.open("rb") as log:
            log.seek(self._from)
            for text in log:
                line = decoder.decode(text)
                if line.stage in ("ResponseComplete", "ResponseStarted", "Panic"):
                    yield _entry(line)


def _entry(line: _Line) -> Entry:
    about = line.object_ref or _Object()
    return Entry(
        user=line.user.username.removeprefix(SERVICE_ACCOUNT),
        credential=next(iter(line.user.extra.get(CREDENTIAL, ())), ""),
        verb=line.verb,
        resource=f"{about.resource}/{about.subresource}" if about.subresource else about.resource,
        namespace=about.namespace,
        name=about.name,
        code=line.response_status.code if line.response_status else 0,
        received=line.request_received_timestamp,
        uri=line.request_uri,
    )
