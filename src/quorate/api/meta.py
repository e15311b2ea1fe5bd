"""Object metadata and the small shared shapes: owner references, conditions, label selectors, references.

`managedFields` is not modelled on purpose: it is dropped when decoding and never written.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, ClassVar

from quorate.api.schema import Rule, Schema
from quorate.api.value import EMPTY_MAP, FrozenMap, Value, always


class OwnerReference(Value):
    """Who owns an object; `controller` marks the managing owner."""

    api_version: str
    kind: str
    name: str
    uid: str
    controller: bool | None = None
    block_owner_deletion: bool | None = None


class ObjectMeta(Value):
    """Metadata of every object."""

    name: str = ""
    generate_name: str = ""
    namespace: str = ""
    uid: str = ""
    resource_version: str = ""
    generation: int = 0
    creation_timestamp: str = ""
    deletion_timestamp: str = ""
    """Set once the object is being deleted; empty = not deleting."""
    labels: FrozenMap = EMPTY_MAP
    annotations: FrozenMap = EMPTY_MAP
    finalizers: tuple[str, ...] = ()
    owner_references: tuple[OwnerReference, ...] = ()

    @property
    def deleting(self) -> bool:
        """Whether deletion was requested."""
        return bool(self.deletion_timestamp)


class ObjectRef(Value):
    """Names one incarnation of an object; used as a precondition (rule 3)."""

    kind: str
    name: str
    namespace: str = ""
    uid: str = ""
    resource_version: str = ""


class Condition(Value):
    """A standard Kubernetes condition. Written through `quorate.api.conditions` only."""

    type: Annotated[
        str,
        Schema(
            max_length=316,
            pattern=r"^([a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*/)?(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])$",
        ),
    ]
    """Type of the condition in CamelCase."""
    status: Annotated[str, Schema(enum=("True", "False", "Unknown"))]
    """True, False or Unknown."""
    reason: Annotated[
        str,
        Schema(required=True, min_length=1, max_length=1024, pattern=r"^[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?$"),
    ] = always("")
    """Machine-readable reason of the last change in CamelCase."""
    message: Annotated[str, Schema(required=True, max_length=32768)] = always("")
    """Human-readable details; may be empty."""
    observed_generation: Annotated[int, Schema(minimum=0, format="int64")] = 0
    """Generation of the object that the condition was computed from."""
    last_transition_time: Annotated[str, Schema(required=True, format="date-time")] = always("")
    """When the status last changed."""


Conditions = Annotated[tuple[Condition, ...], Schema(list_type="map", list_keys=("type",))]
"""The conditions of a status."""


class LabelSelectorRequirement(Value):
    """One expression of a label selector."""

    key: Annotated[str, Schema(max_length=317)]
    """Label key the expression applies to."""
    operator: Annotated[str, Schema(max_length=12)]
    """In, NotIn, Exists or DoesNotExist."""
    values: Annotated[tuple[str, ...], Schema(list_type="atomic", max_items=64, item=Schema(max_length=63))] = ()
    """Values of In and NotIn."""

    def matches(self, labels: Mapping[str, str]) -> bool:
        """Whether the labels satisfy this expression; an unknown operator matches nothing."""
        match self.operator:
            case "In":
                return labels.get(self.key) in self.values
            case "NotIn":
                return labels.get(self.key) not in self.values
            case "Exists":
                return self.key in labels
            case "DoesNotExist":
                return self.key not in labels
            case _:
                return False


class LabelSelector(Value):
    """A label selector; an empty one matches everything."""

    match_labels: Annotated[FrozenMap, Schema(max_items=64, item=Schema(max_length=63))] = EMPTY_MAP
    """Labels that must have exactly these values."""
    match_expressions: Annotated[tuple[LabelSelectorRequirement, ...], Schema(list_type="atomic", max_items=32)] = ()
    """Expressions that must all hold."""

    RULES: ClassVar[tuple[Rule, ...]] = (
        Rule(
            "!has(self.matchExpressions) || "
            "self.matchExpressions.all(e, e.operator in ['In', 'NotIn', 'Exists', 'DoesNotExist'])",
            "matchExpressions[].operator must be one of: In, NotIn, Exists, DoesNotExist",
        ),
        Rule(
            "!has(self.matchExpressions) || self.matchExpressions.all(e, "
            "!(e.operator in ['Exists', 'DoesNotExist']) || !has(e.values) || size(e.values) == 0)",
            "matchExpressions[].values must be empty for Exists and DoesNotExist",
        ),
        Rule(
            "!has(self.matchExpressions) || self.matchExpressions.all(e, "
            "!(e.operator in ['In', 'NotIn']) || (has(e.values) && size(e.values) > 0))",
            "matchExpressions[].values must not be empty for In and NotIn",
        ),
    )

    def matches(self, labels: Mapping[str, str]) -> bool:
        """Whether the labels satisfy the selector."""
        return all(labels.get(key) == value for key, value in self.match_labels.items()) and all(
            requirement.matches(labels) for requirement in self.match_expressions
        )


class Object(Value):
    """Base of all kinds: an object has metadata; its kind and version come from `quorate.api.resources`."""

    metadata: ObjectMeta
