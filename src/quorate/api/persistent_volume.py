"""PersistentVolume (built-in): as far as the system reads it."""

from __future__ import annotations

from quorate.api.event import ObjectReference
from quorate.api.meta import Object
from quorate.api.value import EMPTY_MAP, FrozenMap, Value


class CSIPersistentVolumeSource(Value):
    """A volume of a CSI driver."""

    driver: str
    volume_handle: str
    fs_type: str = ""
    read_only: bool = False
    volume_attributes: FrozenMap = EMPTY_MAP


class PersistentVolumeSpec(Value):
    """Spec of a persistent volume."""

    capacity: FrozenMap = EMPTY_MAP
    access_modes: tuple[str, ...] = ()
    persistent_volume_reclaim_policy: str = ""
    storage_class_name: str = ""
    volume_mode: str = ""
    claim_ref: ObjectReference | None = None
    csi: CSIPersistentVolumeSource | None = None


class PersistentVolumeStatus(Value):
    """Status of a persistent volume."""

    phase: str = ""


class PersistentVolume(Object):
    """A persistent volume."""

    spec: PersistentVolumeSpec = PersistentVolumeSpec()
    status: PersistentVolumeStatus = PersistentVolumeStatus()
