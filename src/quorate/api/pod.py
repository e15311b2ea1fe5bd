"""Pod (built-in): read for the readiness of the node agents and for the users of a volume."""

from __future__ import annotations

import msgspec

from quorate.api.meta import Condition, Object
from quorate.api.value import Value


class ReadyCondition:
    """Condition `Ready` of a pod."""

    TYPE = "Ready"
    """Condition type."""


class PersistentVolumeClaimVolumeSource(Value):
    """A volume that is a claim."""

    claim_name: str
    read_only: bool = False


class PodVolume(Value):
    """A volume of a pod."""

    name: str
    persistent_volume_claim: PersistentVolumeClaimVolumeSource | None = None


class Container(Value):
    """A container, as far as used."""

    name: str
    """Name within the pod."""
    image: str = ""
    """Image it runs."""


class PodSpec(Value):
    """Spec of a pod."""

    node_name: str = ""
    containers: tuple[Container, ...] = ()
    """Containers; the API server wants at least one."""
    volumes: tuple[PodVolume, ...] = ()


class PodStatus(Value):
    """Status of a pod."""

    phase: str = ""
    pod_ip: str = msgspec.field(default="", name="podIP")
    host_ip: str = msgspec.field(default="", name="hostIP")
    conditions: tuple[Condition, ...] = ()


class Pod(Object):
    """A pod."""

    spec: PodSpec = PodSpec()
    status: PodStatus = PodStatus()
