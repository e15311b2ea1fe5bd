"""StorageClass (built-in, storage.k8s.io/v1): what a ReplicatedStorageClass is offered to Kubernetes as."""

from __future__ import annotations

from quorate.api.meta import Object
from quorate.api.value import EMPTY_MAP, FrozenMap

PROVISIONER = "replicated.csi.storage.deckhouse.io"
"""The CSI driver's name."""
PARAMETER_CLASS_NAME = f"{PROVISIONER}/replicatedStorageClassName"
"""Parameter: name of the ReplicatedStorageClass."""
PARAMETER_BINDING_MODE = f"{PROVISIONER}/volume-binding-mode"
"""Parameter: the binding mode."""
DEFAULT_CLASS_ANNOTATION = "storageclass.kubernetes.io/is-default-class"
"""Annotation by which users mark the default class."""
IMMEDIATE = "Immediate"
"""Binding mode: volumes are made at once."""
WAIT_FOR_FIRST_CONSUMER = "WaitForFirstConsumer"
"""Binding mode: volumes are made when a pod is scheduled."""


class StorageClass(Object):
    """A storage class."""

    provisioner: str
    parameters: FrozenMap = EMPTY_MAP
    reclaim_policy: str = ""
    volume_binding_mode: str = ""
    allow_volume_expansion: bool | None = None
    mount_options: tuple[str, ...] = ()
