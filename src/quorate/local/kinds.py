"""What the server knows about a served kind, and the catalog of all of them.

A `Kind` is one version of one resource. Custom kinds come from CustomResourceDefinition objects, built-in ones from
`quorate.local.builtin`; afterwards nothing asks which one it is except through `Strategy`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property, lru_cache

from quorate.local.cel import RuleSet
from quorate.local.jsonvalue import Json, JsonObject, as_object, decode, encode
from quorate.local.metadata import NameCheck, subdomain_name
from quorate.local.schema import Validator
from quorate.local.status import FieldError
from quorate.local.structural import Structure, compile_structure

Cells = Callable[[JsonObject, float], list[Json]]
"""(object, now) -> the cells of its table row."""


@dataclass(frozen=True)
class Column:
    """A printer column."""

    name: str
    type: str = "string"
    description: str = ""
    format: str = ""
    priority: int = 0
    path: str = ""
    """JSONPath of a CRD column; built-in kinds compute their cells."""


def _same_object(obj: JsonObject, now: float) -> JsonObject:
    del now
    return obj


def _new_object(new: JsonObject, old: JsonObject, now: float) -> JsonObject:
    del old, now
    return new


def _never(obj: JsonObject) -> bool:
    del obj
    return False


def _no_errors(new: JsonObject, old: JsonObject | None) -> list[FieldError]:
    del new, old
    return []


def _identity(obj: JsonObject) -> JsonObject:
    return obj


@dataclass(frozen=True)
class Strategy:
    """Where kinds differ in how they are written."""

    generation: bool = False
    """`metadata.generation` counts changes of the object outside metadata and status."""
    status_on_create: bool = False
    """A status sent with create is stored (nodes register with theirs)."""
    metadata_with_status: bool = True
    """The status endpoint may change metadata, too (built-in kinds; never custom ones)."""
    unconditional_update: bool = True
    """PUT without a resourceVersion overwrites."""
    create_on_update: bool = False
    """PUT of a name that does not exist creates it."""
    graceful: bool = False
    """Deletion waits for a grace period (pods)."""
    check_name: NameCheck = subdomain_name
    prepare: Callable[[JsonObject, float], JsonObject] = _same_object
    """Fills in what Kubernetes fills in on create beyond schema defaults."""
    prepare_update: Callable[[JsonObject, JsonObject, float], JsonObject] = _new_object
    """Keeps what an update must not lose: (new, old, now)."""
    validate: Callable[[JsonObject, JsonObject | None], list[FieldError]] = _no_errors
    """Checks beyond the schema: (new, old or None on create)."""
    held: Callable[[JsonObject], bool] = _never
    """Whether something besides `metadata.finalizers` keeps a deleted object (namespaces)."""
    mark_deleted: Callable[[JsonObject], JsonObject] = _identity
    """What else changes when deletion begins (the phase of a namespace)."""


@dataclass(frozen=True)
class Conversion:
    """How a served version differs from the stored form."""

    to_storage: Callable[[JsonObject], JsonObject] = _identity
    from_storage: Callable[[JsonObject], JsonObject] = _identity


@dataclass(frozen=True)
class Compiled:
    """What is made of a schema once and used for every object."""

    structure: Structure
    validator: Validator
    rules: RuleSet


@lru_cache(maxsize=256)
def _compile(schema: bytes) -> Compiled:
    """Shared by equal schemas: a simulation starts the same server many times."""
    decoded = as_object(decode(schema))
    structure = compile_structure(decoded)
    return Compiled(structure, Validator(decoded, structure), RuleSet(structure))


@dataclass(frozen=True, eq=False)
class Kind:
    """One served version of one resource."""

    group: str
    version: str
    kind: str
    plural: str
    namespaced: bool
    schema: JsonObject
    singular: str = ""
    short_names: tuple[str, ...] = ()
    categories: tuple[str, ...] = ()
    columns: tuple[Column, ...] = ()
    has_status: bool = False
    custom: bool = False
    field_labels: Mapping[str, tuple[str, ...]] = field(default_factory=dict[str, tuple[str, ...]])
    """Supported field selectors beyond name and namespace: label -> path."""
    strategy: Strategy = Strategy()
    conversion: Conversion | None = None
    table: str = ""
    """The name of the shared storage."""
    verbs: tuple[str, ...] = (
        "create", "delete", "deletecollection", "get", "list", "patch", "update", "watch",
    )  # fmt: skip

    @property
    def api_version(self) -> str:
        return f"{self.group}/{self.version}" if self.group else self.version

    @property
    def list_kind(self) -> str:
        return f"{self.kind}List"

    @property
    def storage(self) -> str:
        return self.table or (f"{self.group}/{self.plural}" if self.group else self.plural)

    @cached_property
    def _compiled(self) -> Compiled:
        return _compile(encode(self.schema))

    @property
    def structure(self) -> Structure:
        return self._compiled.structure

    @property
    def validator(self) -> Validator:
        return self._compiled.validator

    @property
    def rules(self) -> RuleSet:
        return self._compiled.rules


class Catalog:
    """All served kinds."""

    def __init__(self) -> None:
        self._kinds: dict[tuple[str, str, str], Kind] = {}
        self.revision = 0
        """Grows with every change; discovery and OpenAPI documents are cached by it."""

    def add(self, kind: Kind) -> None:
        self._kinds[kind.group, kind.version, kind.plural] = kind
        self.revision += 1

    def remove(self, group: str, plural: str) -> None:
        for key in [key for key in self._kinds if key[0] == group and key[2] == plural]:
            del self._kinds[key]
        self.revision += 1

    def find(self, group: str, version: str, plural: str) -> Kind | None:
        return self._kinds.get((group, version, plural))

    def by_kind(self, api_version: str, kind: str) -> Kind | None:
        for candidate in self._kinds.values():
            if candidate.kind == kind and candidate.api_version == api_version:
                return candidate
        return None

    def by_group_kind(self, group: str, kind: str) -> Kind | None:
        """Any version: all share storage."""
        for candidate in self._kinds.values():
            if candidate.kind == kind and candidate.group == group:
                return candidate
        return None

    def by_storage(self, table: str) -> Kind | None:
        """The kind in whose form objects of a table are stored."""
        for candidate in self._kinds.values():
            if candidate.storage == table and candidate.conversion is None:
                return candidate
        return None

    def all(self) -> list[Kind]:
        return [self._kinds[key] for key in sorted(self._kinds)]

    def group_versions(self) -> list[tuple[str, str]]:
        return sorted({(kind.group, kind.version) for kind in self._kinds.values()})

    def has_group_version(self, group: str, version: str) -> bool:
        return any(kind.group == group and kind.version == version for kind in self._kinds.values())
