"""PersistentVolumeClaim (built-in): as far as the system reads it."""

from __future__ import annotations

from quorate.api.meta import Condition, Object
from quorate.api.value import EMPTY_MAP, FrozenMap, Value


class ResourceRequirements(Value):
    """What a claim asks for; values are quantities."""

    requests: FrozenMap = EMPTY_MAP


class PersistentVolumeClaimSpec(Value):
    """Spec of a claim."""

    access_modes: tuple[str, ...] = ()
    resources: ResourceRequirements = ResourceRequirements()
    storage_class_name: str | None = None
    volume_name: str = ""
    volume_mode: str = ""


class PersistentVolumeClaimStatus(Value):
    """Status of a claim."""

    phase: str = ""
    capacity: FrozenMap = EMPTY_MAP
    conditions: tuple[Condition, ...] = ()


class PersistentVolumeClaim(Object):
    """A claim."""

    spec: PersistentVolumeClaimSpec = PersistentVolumeClaimSpec()
    status: PersistentVolumeClaimStatus = PersistentVolumeClaimStatus()
