"""A controller as data: what it watches, how it gathers a snapshot, how it decides.

`for_`, `owns` and `watches` build the usual watches; predicates compose with `all_of`, `any_of` and `not_`. The
runtime that works a spec's queue is in `machinery/worker.py`.

A watch's `predicate(old, new)` says whether a change matters (None = absent) and its `keys(old, new, reader)` which
objects to reconcile. Both are pure. Keys are names; those of namespaced kinds are `namespace/name`.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass
from typing import Any, Generic, TypeAlias, TypeVar

from quorate.api.meta import Object
from quorate.machinery.effects import Answer, Answers, Decision, Request
from quorate.machinery.gauges import Gauges
from quorate.machinery.metrics import MetricSpec
from quorate.machinery.reader import Reader

K = TypeVar("K", bound=Object)
S = TypeVar("S")

Predicate: TypeAlias = Callable[[K | None, K | None], bool]
Keys: TypeAlias = Callable[[K | None, K | None, Reader], Iterable[str]]


@dataclass(frozen=True)
class Watch(Generic[K]):
    """Which changes of a kind concern which keys."""

    kind: type[K]
    predicate: Predicate[K]
    keys: Keys[K]
    settle: float = 0.0
    """Seconds to let further changes join in before the keys are worked on: for summaries of many objects."""


AnyWatch: TypeAlias = Watch[Any]
"""A watch of some kind: its callables take that kind only, so no type of objects describes them all."""


@dataclass(frozen=True)
class ControllerSpec(Generic[S]):
    """A controller; see the module docstring."""

    name: str
    watches: tuple[AnyWatch, ...]
    """The primary kind first; its objects are also worked on at every resync."""
    gather: Callable[[Reader, str], S]
    """One consistent snapshot for a key; does not await."""
    decide: Callable[[S, Answers, float], Decision]
    """Pure; the last argument is the time in epoch seconds."""
    answer: Callable[[Request], Awaitable[Answer]] | None = None
    """Performs what a decision asks for, except `Entropy`."""
    concurrency: int = 10
    timeout: float = 120.0
    """Seconds one reconcile may take, its requests included."""
    reads: tuple[type[Object], ...] = ()
    """Kinds that `gather` reads without watching them."""
    metrics: tuple[MetricSpec, ...] = ()
    """Metrics that `Observe` effects of this controller name, besides those of `lifecycle_metrics`."""
    gauges: tuple[Gauges, ...] = ()
    """What is computed from the caches at every scrape."""


AnySpec: TypeAlias = ControllerSpec[Any]
"""A controller with some type of snapshot."""


def object_key(obj: Object) -> str:
    """The queue key of an object: its name, `namespace/name` for namespaced kinds."""
    meta = obj.metadata
    return f"{meta.namespace}/{meta.name}" if meta.namespace else meta.name


def anything(old: Object | None, new: Object | None) -> bool:
    """Every change."""
    del old, new
    return True


def appeared_or_went(old: Object | None, new: Object | None) -> bool:
    """Created or deleted."""
    return old is None or new is None


def generation_changed(old: Object | None, new: Object | None) -> bool:
    """Created, deleted, the spec changed, or deletion began."""
    if old is None or new is None:
        return True
    return (old.metadata.generation, old.metadata.deleting) != (new.metadata.generation, new.metadata.deleting)


def labels_changed(old: Object | None, new: Object | None) -> bool:
    """Created, deleted, or a label changed."""
    return old is None or new is None or old.metadata.labels != new.metadata.labels


def changed(facts: Callable[[K], object]) -> Predicate[K]:
    """Created, deleted, or `facts(obj)` differs."""

    def predicate(old: K | None, new: K | None) -> bool:
        if old is None or new is None:
            return True
        return facts(old) != facts(new)

    return predicate


def all_of(*predicates: Predicate[K]) -> Predicate[K]:
    """Every predicate passes the change."""
    return lambda old, new: all(predicate(old, new) for predicate in predicates)


def any_of(*predicates: Predicate[K]) -> Predicate[K]:
    """Some predicate passes the change."""
    return lambda old, new: any(predicate(old, new) for predicate in predicates)


def not_(predicate: Predicate[K]) -> Predicate[K]:
    """The predicate does not pass the change."""
    return lambda old, new: not predicate(old, new)


def _same_object(old: Object | None, new: Object | None, reader: Reader) -> Iterable[str]:
    del reader
    found = new if new is not None else old
    return (object_key(found),) if found is not None else ()


def for_(kind: type[K], predicate: Predicate[K] = anything) -> Watch[K]:
    """The primary kind: an object is its own key."""
    return Watch(kind, predicate, _same_object)


def owns(kind: type[K], owner: type[Object], predicate: Predicate[K] = anything) -> Watch[K]:
    """Children: the key is the managing owner of type `owner`, before and after the change."""

    def keys(old: K | None, new: K | None, reader: Reader) -> Iterable[str]:
        del reader
        found: dict[str, None] = {}
        for obj in (old, new):
            if obj is None:
                continue
            for reference in obj.metadata.owner_references:
                if reference.controller and reference.kind == owner.__name__:
                    namespace = obj.metadata.namespace
                    found[f"{namespace}/{reference.name}" if namespace else reference.name] = None
        return found

    return Watch(kind, predicate, keys)


def watches(kind: type[K], keys: Keys[K], predicate: Predicate[K] = anything) -> Watch[K]:
    """Any other kind, with its own mapping to keys."""
    return Watch(kind, predicate, keys)
