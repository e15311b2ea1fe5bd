"""A state change of one resource: a journal over the model's objects.

Guarantees: every field is written through `put`, which keeps the value before the change; `old` answers it;
`undo` restores everything. A refused change therefore leaves no trace, and what happened can be listed once, in
the order of the first touch, for the event stream and for the reactions.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator
from contextlib import contextmanager
from typing import Final

from quorate.simulator.errors import Refusal
from quorate.simulator.model import Connection, PeerVolume, Resource, Volume
from quorate.simulator.states import Disk, Link, Replication, Role

Target = Resource | Volume | Connection | PeerVolume
State = Role | Disk | Link | Replication | bool


class Change:
    """One attempt to change a resource. `forced` changes are facts (a loss, an error) and cannot be refused."""

    __slots__ = ("_before", "forced", "keeps_quorum", "resource", "tag")

    def __init__(self, resource: Resource, tag: str, *, forced: bool = False, keeps_quorum: bool = False) -> None:
        self.resource: Final = resource
        self.tag: Final = tag
        self.forced: Final = forced
        self.keeps_quorum: Final = keeps_quorum  # votes are not weighed anew
        self._before: dict[tuple[int, str], tuple[Target, State]] = {}

    def put(self, target: Target, name: str, value: State) -> None:
        now: State = getattr(target, name)
        if now == value:
            return
        self._before.setdefault((id(target), name), (target, now))
        setattr(target, name, value)

    def old(self, target: Target, name: str) -> State:
        """The value before this change."""
        entry = self._before.get((id(target), name))
        return entry[1] if entry is not None else getattr(target, name)

    def old_disk(self, target: Volume | PeerVolume) -> Disk:
        value = self.old(target, "disk")
        assert isinstance(value, Disk)
        return value

    def old_replication(self, peer: PeerVolume) -> Replication:
        value = self.old(peer, "replication")
        assert isinstance(value, Replication)
        return value

    def old_link(self, connection: Connection) -> Link:
        value = self.old(connection, "link")
        assert isinstance(value, Link)
        return value

    def old_role(self, target: Resource) -> Role:
        value = self.old(target, "role")
        assert isinstance(value, Role)
        return value

    def old_peer_role(self, connection: Connection) -> Role:
        value = self.old(connection, "peer_role")
        assert isinstance(value, Role)
        return value

    def differences(self) -> Iterator[tuple[Target, str, State, State]]:
        """(object, field, before, now) for every field that ends up different."""
        for (_, name), (target, before) in self._before.items():
            now: State = getattr(target, name)
            if now != before:
                yield target, name, before, now

    @property
    def effective(self) -> bool:
        return any(True for _ in self.differences())

    def undo(self) -> None:
        for (_, name), (target, before) in self._before.items():
            setattr(target, name, before)
        self._before.clear()


@contextmanager
def attempt(*changes: Change) -> Generator[None, None, None]:
    """Several nodes change together: if one of them refuses, none keeps anything of it."""
    try:
        yield
    except Refusal:
        for change in changes:
            change.undo()
        raise
