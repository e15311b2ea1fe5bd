"""Immutable values: the base of every API type.

Guarantees:

* A `Value` is frozen, hashable and comparable; changing one (`replace`) builds a new value that shares the rest.
* Values are invisible to the garbage collector (`gc=False`), which is safe because frozen values form no cycles.
* What stands on the wire is decided per field, by how its default is written:

  - a plain default (`""`, `0`, `False`, `None`, `()`, `EMPTY_MAP`, a default struct) is *omitted* while the field has
    it, so "absent" and "the default" are the same thing. `""` is never sent: optional text that is empty is removed;
  - `always(default)` is *emitted* even when it equals the default: fields the schema requires (`datameshRevision`), and
    fields whose server default is another value than ours (`peers[].allowRemoteRead`);
  - a field without default is required here and on the wire.

* A struct-valued field with a plain default (`status`) is absent on the wire exactly while it *is* that instance. So
  the first status write contains the whole status, required zero values included (pitfall 1 of facts/api 8).
* Unknown fields are ignored when decoding and survive our writes, because only differences are sent
  (`wire.merge_patch`). The one exception are items of atomic lists, which Kubernetes replaces as a whole.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TypeVar, dataclass_transform

import msgspec

T = TypeVar("T")
V = TypeVar("V", bound="Value")


# Subclasses inherit these options at run time; the decorator tells the type checker so.
@dataclass_transform(frozen_default=True, kw_only_default=True, eq_default=True, field_specifiers=(msgspec.field,))
class Value(msgspec.Struct, frozen=True, kw_only=True, gc=False, rename="camel", omit_defaults=True):
    """Base of all API values. Field names are the snake case of the wire names; acronyms carry an explicit name."""


def always(default: T, name: str | None = None) -> T:
    """A default that is emitted on the wire even when the field has it (msgspec never omits a computed default)."""
    return msgspec.field(default_factory=lambda: default, name=name)


def replace(value: V, **changes: object) -> V:
    """A copy of `value` with some fields changed; everything else is shared."""
    return msgspec.structs.replace(value, **changes)


class FrozenMap(Mapping[str, str]):
    """An immutable, hashable text map: labels, annotations, parameters, string data."""

    __slots__ = ("_entries", "_hash")

    def __init__(self, entries: Mapping[str, str] | None = None) -> None:
        self._entries: dict[str, str] = dict(entries) if entries else {}
        self._hash: int | None = None

    def __getitem__(self, key: str) -> str:
        return self._entries[key]

    def __iter__(self) -> Iterator[str]:
        return iter(self._entries)

    def __len__(self) -> int:
        return len(self._entries)

    def __contains__(self, key: object) -> bool:
        return key in self._entries

    def __eq__(self, other: object) -> bool:
        if isinstance(other, FrozenMap):
            return self._entries == other._entries
        return self._entries == other

    def __hash__(self) -> int:
        if self._hash is None:
            self._hash = hash(frozenset(self._entries.items()))
        return self._hash

    def __repr__(self) -> str:
        return f"FrozenMap({self._entries!r})"

    def __copy__(self) -> FrozenMap:
        return self

    def __deepcopy__(self, memo: dict[int, object]) -> FrozenMap:
        return self

    def __reduce__(self) -> tuple[type[FrozenMap], tuple[dict[str, str]]]:
        return FrozenMap, (dict(self._entries),)

    def with_entries(self, entries: Mapping[str, str]) -> FrozenMap:
        """A map with these entries added or replaced; itself when nothing changes."""
        if all(self._entries.get(key) == value for key, value in entries.items()):
            return self
        return FrozenMap({**self._entries, **entries})

    def with_entry(self, key: str, value: str) -> FrozenMap:
        """A map with one entry added or replaced; itself when nothing changes."""
        return self.with_entries({key: value})

    def with_(self, **entries: str) -> FrozenMap:
        """A map with these entries added or replaced (keys that are Python names; see `with_entry` for others)."""
        return self.with_entries(entries)

    def without(self, *keys: str) -> FrozenMap:
        """A map without these keys; itself when none is present."""
        if not any(key in self._entries for key in keys):
            return self
        return FrozenMap({key: value for key, value in self._entries.items() if key not in keys})

    def as_dict(self) -> dict[str, str]:
        """A mutable copy for an encoder."""
        return dict(self._entries)


EMPTY_MAP = FrozenMap()


class SharedSecret:
    """A secret text whose every text form is redacted (rule 9): logs, exceptions, recordings and f-strings show `***`.

    `reveal` is the only way to the text. It is called where the secret must leave the process: the wire encoder and the
    command line builder of the agent.
    """

    __slots__ = ("_text",)

    def __init__(self, text: str) -> None:
        self._text = text

    def reveal(self) -> str:
        """The secret itself. Never put the result into a message."""
        return self._text

    def __eq__(self, other: object) -> bool:
        return isinstance(other, SharedSecret) and self._text == other._text

    def __hash__(self) -> int:
        return hash(self._text)

    def __bool__(self) -> bool:
        return bool(self._text)

    def __repr__(self) -> str:
        return "SharedSecret(***)"

    def __str__(self) -> str:
        return "***"

    def __format__(self, spec: str) -> str:
        return "***"

    def __reduce__(self) -> tuple[type[SharedSecret], tuple[str]]:
        return SharedSecret, (self._text,)
