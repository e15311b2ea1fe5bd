"""VolumeAttachment (built-in, storage.k8s.io/v1): Kubernetes' wish to attach a persistent volume to a node."""

from __future__ import annotations

from quorate.api.meta import Object
from quorate.api.value import EMPTY_MAP, FrozenMap, Value, always


class VolumeAttachmentSource(Value):
    """The volume."""

    persistent_volume_name: str = ""


class VolumeAttachmentSpec(Value):
    """What to attach where."""

    attacher: str
    node_name: str
    source: VolumeAttachmentSource = always(VolumeAttachmentSource())


class VolumeError(Value):
    """An error of attaching or detaching."""

    time: str = ""
    message: str = ""


class VolumeAttachmentStatus(Value):
    """Whether it is attached."""

    attached: bool = always(False)
    attachment_metadata: FrozenMap = EMPTY_MAP
    attach_error: VolumeError | None = None
    detach_error: VolumeError | None = None


class VolumeAttachment(Object):
    """The wish to attach a volume."""

    spec: VolumeAttachmentSpec
    status: VolumeAttachmentStatus = VolumeAttachmentStatus()
