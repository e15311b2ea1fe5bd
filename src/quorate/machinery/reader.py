"""Reading objects without I/O: what `gather` functions get.

`Reader` is implemented by the caches; `FixedReader` answers from a given set of objects, with the same indexes and
the same order (namespace, name), so a test of a controller needs no cache.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import Protocol, TypeVar

from quorate.api.indexes import INDEXES, Index
from quorate.api.meta import Object

K = TypeVar("K", bound=Object)

ObjectKey = tuple[str, str]
"""Namespace (empty for cluster-wide kinds) and name."""


class Reader(Protocol):
    """A consistent view of all kinds while the caller does not await."""

    def get(self, kind: type[K], name: str, namespace: str = "") -> K | None:
        """The object, or None when there is none."""
        ...

    def list(self, kind: type[K]) -> tuple[K, ...]:
        """All objects of a kind in the order of namespace and name."""
        ...

    def by_index(self, kind: type[K], index: Index[K] | str, key: str) -> tuple[K, ...]:
        """The objects an index files under `key`, in the order of namespace and name."""
        ...


def key_of(obj: Object) -> ObjectKey:
    """The place of an object among those of its kind."""
    return (obj.metadata.namespace, obj.metadata.name)


def index_name(index: Index[K] | str) -> str:
    """The name of an index given as its declaration or by name."""
    return index if isinstance(index, str) else index.name


def indexes_by_kind(indexes: Iterable[Index[Object]] = INDEXES) -> Mapping[type[Object], Mapping[str, Index[Object]]]:
    """The declared indexes, by kind and name."""
    found: dict[type[Object], dict[str, Index[Object]]] = {}
    for index in indexes:
        found.setdefault(index.kind, {})[index.name] = index
    return MappingProxyType(found)


class FixedReader:
    """Answers from the given objects."""

    def __init__(self, objects: Iterable[Object] = (), *, indexes: Iterable[Index[Object]] = INDEXES) -> None:
        self._objects: dict[type[Object], dict[ObjectKey, Object]] = {}
        self._indexes = indexes_by_kind(indexes)
        for obj in objects:
            kind = self._objects.setdefault(type(obj), {})
            if key_of(obj) in kind:
                raise ValueError(f"{type(obj).__name__} {obj.metadata.name} is given twice")
            kind[key_of(obj)] = obj

    def get(self, kind: type[K], name: str, namespace: str = "") -> K | None:
        found = self._objects.get(kind, {}).get((namespace, name))
        return found if isinstance(found, kind) else None

    def list(self, kind: type[K]) -> tuple[K, ...]:
        found = self._objects.get(kind, {})
        return tuple(obj for _, obj in sorted(found.items(), key=lambda item: item[0]) if isinstance(obj, kind))

    def by_index(self, kind: type[K], index: Index[K] | str, key: str) -> tuple[K, ...]:
        declared = self._indexes.get(kind, {}).get(index_name(index))
        if declared is None:
            raise KeyError(f"{kind.__name__} has no index {index_name(index)}")
        return tuple(obj for obj in self.list(kind) if key in declared.keys(obj))
