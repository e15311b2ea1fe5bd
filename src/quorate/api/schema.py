"""What a field's schema demands beyond its type: written next to the field as `Annotated[type, Schema(...)]`.

The metadata is *not* enforced when decoding: the API server has validated what it stores, and a value written under
another version's rules must not make an object unmanaged (rule 7). It is the only source of the generated CRDs.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

Json: TypeAlias = "str | int | float | bool | list[Json] | dict[str, Json] | None"
"""A JSON value."""


@dataclass(frozen=True)
class Rule:
    """One CEL rule (`x-kubernetes-validations`)."""

    rule: str
    message: str


IMMUTABLE = Rule("self == oldSelf", "Value is immutable.")
UNIQUE = Rule("self.all(x, self.exists_one(y, x == y))", "Items must be unique.")


def unique_by(key: str) -> Rule:
    """Items of an atomic list differ in `key` (atomic lists cannot be `map` lists)."""
    return Rule(f"self.all(x, self.exists_one(y, x.{key} == y.{key}))", f"{key} must be unique.")


@dataclass(frozen=True)
class Schema:
    """Constraints of one field; None = not stated."""

    min_length: int | None = None
    max_length: int | None = None
    pattern: str | None = None
    format: str | None = None
    minimum: int | None = None
    maximum: int | None = None
    min_items: int | None = None
    max_items: int | None = None
    item: Schema | None = None
    """Constraints of the items of a list."""
    enum: tuple[str, ...] = ()
    list_type: str | None = None
    """`atomic`, `set` or `map`."""
    list_keys: tuple[str, ...] = ()
    default: Json = None
    """Filled in by the API server; JSON form."""
    required: bool | None = None
    """None: required exactly when the Python field has no default."""
    rules: tuple[Rule, ...] = ()
    int_or_string: bool = False


@dataclass(frozen=True)
class Column:
    """One printer column; `wide` ones appear with `-o wide` only."""

    name: str
    path: str
    type: str = "string"
    wide: bool = False
    description: str = ""


@dataclass(frozen=True)
class Crd:
    """What a CustomResourceDefinition says about a kind beyond its fields."""

    columns: tuple[Column, ...]
    selectable_fields: tuple[str, ...] = ()
    rules: tuple[Rule, ...] = ()
    """Rules on the root of the object (`self.metadata.name`, cross-field rules)."""
    labels: tuple[tuple[str, str], ...] = ()
    categories: tuple[str, ...] = ("quorate",)
    spec_map_type: str | None = None
    """`atomic`: server-side apply replaces the whole spec."""


def condition_column(name: str, type_: str, *, wide: bool = False, field: str = "status") -> Column:
    """A printer column that shows one field of one condition."""
    return Column(name, f".status.conditions[?(@.type=='{type_}')].{field}", wide=wide)


AGE = Column("Age", ".metadata.creationTimestamp", type="date")
