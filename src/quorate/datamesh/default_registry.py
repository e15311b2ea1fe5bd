"""The registry of production: every plan family, in the order of the design."""

from __future__ import annotations

from quorate.datamesh.plans import (
    access,
    attachment,
    backing_volume,
    change_type,
    diskful,
    force_remove,
    multiattach,
    network,
    quorum,
    resize,
    tie_breaker,
)
from quorate.datamesh.registry import registry_of
from quorate.datamesh.rules import DEFAULT_RULES

DEFAULT_REGISTRY = registry_of(
    (
        *access.PLANS,
        *tie_breaker.PLANS,
        *diskful.PLANS,
        *change_type.PLANS,
        *backing_volume.PLANS,
        *force_remove.PLANS,
        *attachment.PLANS,
        *multiattach.PLANS,
        *quorum.PLANS,
        *network.PLANS,
        *resize.PLANS,
    ),
    DEFAULT_RULES,
)
