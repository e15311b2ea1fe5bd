"""The table of kinds: group, version, names and type of everything the system touches."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Generic, TypeAlias, TypeVar

from quorate.api import (
    drbd_resource,
    drbd_resource_operation,
    lvm_logical_volume,
    lvm_volume_group,
    replicated_storage_class,
    replicated_storage_pool,
    replicated_volume,
    replicated_volume_attachment,
    replicated_volume_replica,
)
from quorate.api.drbd_resource import DRBDResource
from quorate.api.drbd_resource_operation import DRBDResourceOperation
from quorate.api.event import Event
from quorate.api.lease import Lease
from quorate.api.lvm_logical_volume import LVMLogicalVolume
from quorate.api.lvm_volume_group import LVMVolumeGroup
from quorate.api.meta import Object, ObjectRef, OwnerReference
from quorate.api.namespace import Namespace
from quorate.api.node import Node
from quorate.api.persistent_volume import PersistentVolume
from quorate.api.persistent_volume_claim import PersistentVolumeClaim
from quorate.api.pod import Pod
from quorate.api.replicated_storage_class import ReplicatedStorageClass
from quorate.api.replicated_storage_pool import ReplicatedStoragePool
from quorate.api.replicated_volume import ReplicatedVolume
from quorate.api.replicated_volume_attachment import ReplicatedVolumeAttachment
from quorate.api.replicated_volume_replica import ReplicatedVolumeReplica
from quorate.api.schema import Crd
from quorate.api.secret import Secret
from quorate.api.storage_class import StorageClass
from quorate.api.volume_attachment import VolumeAttachment

GROUP = "storage.deckhouse.io"
VERSION = "v1alpha1"

AnyObject: TypeAlias = (
    ReplicatedStorageClass
    | ReplicatedStoragePool
    | ReplicatedVolume
    | ReplicatedVolumeReplica
    | ReplicatedVolumeAttachment
    | DRBDResource
    | DRBDResourceOperation
    | LVMLogicalVolume
    | LVMVolumeGroup
    | Node
    | Pod
    | Namespace
    | Event
    | Lease
    | Secret
    | StorageClass
    | VolumeAttachment
    | PersistentVolume
    | PersistentVolumeClaim
)
"""An object of any kind."""

K = TypeVar("K", bound=Object)
"""A kind."""


@dataclass(frozen=True)
class Resource(Generic[K]):
    """How a kind is called on the wire."""

    group: str
    """Empty for the core group."""
    version: str
    kind: str
    plural: str
    singular: str
    short_names: tuple[str, ...]
    namespaced: bool
    type: type[K]
    status_subresource: bool = True
    """Whether the status is written separately."""
    crd: Crd | None = None
    """Set for the kinds whose CRD we ship."""

    @property
    def api_version(self) -> str:
        """`group/version`, or `version` in the core group."""
        return f"{self.group}/{self.version}" if self.group else self.version

    @property
    def root(self) -> str:
        """First part of the request path."""
        return f"/apis/{self.group}/{self.version}" if self.group else f"/api/{self.version}"

    def path(self, name: str = "", namespace: str = "", subresource: str = "") -> str:
        """Request path of the collection, of one object, or of its subresource."""
        parts = [self.root]
        if self.namespaced and namespace:
            parts += ["namespaces", namespace]
        parts.append(self.plural)
        if name:
            parts.append(name)
        if subresource:
            parts.append(subresource)
        return "/".join(parts)


def _own(kind: type[K], plural: str, short_name: str, crd: Crd) -> Resource[K]:
    name = kind.__name__
    return Resource(GROUP, VERSION, name, plural, name.lower(), (short_name,), False, kind, crd=crd)


def _core(kind: type[K], plural: str, short_names: tuple[str, ...], *, namespaced: bool, status: bool) -> Resource[K]:
    name = kind.__name__
    return Resource("", "v1", name, plural, name.lower(), short_names, namespaced, kind, status)


OWN: tuple[Resource[Object], ...] = (
    _own(ReplicatedStorageClass, "replicatedstorageclasses", "rsc", replicated_storage_class.CRD),
    _own(ReplicatedStoragePool, "replicatedstoragepools", "rsp", replicated_storage_pool.CRD),
    _own(ReplicatedVolume, "replicatedvolumes", "rv", replicated_volume.CRD),
    _own(ReplicatedVolumeReplica, "replicatedvolumereplicas", "rvr", replicated_volume_replica.CRD),
    _own(ReplicatedVolumeAttachment, "replicatedvolumeattachments", "rva", replicated_volume_attachment.CRD),
    _own(DRBDResource, "drbdresources", "drbdr", drbd_resource.CRD),
    _own(DRBDResourceOperation, "drbdresourceoperations", "drbdrop", drbd_resource_operation.CRD),
    _own(LVMLogicalVolume, "lvmlogicalvolumes", "llv", lvm_logical_volume.CRD),
    _own(LVMVolumeGroup, "lvmvolumegroups", "lvg", lvm_volume_group.CRD),
)  # pyright: ignore[reportAssignmentType]
"""Kinds that are custom resources."""

BUILT_IN: tuple[Resource[Object], ...] = (
    _core(Node, "nodes", ("no",), namespaced=False, status=True),
    _core(Pod, "pods", ("po",), namespaced=True, status=True),
    _core(Namespace, "namespaces", ("ns",), namespaced=False, status=True),
    _core(Event, "events", ("ev",), namespaced=True, status=False),
    _core(Secret, "secrets", (), namespaced=True, status=False),
    _core(PersistentVolume, "persistentvolumes", ("pv",), namespaced=False, status=True),
    _core(PersistentVolumeClaim, "persistentvolumeclaims", ("pvc",), namespaced=True, status=True),
    Resource("coordination.k8s.io", "v1", "Lease", "leases", "lease", (), True, Lease, False),
    Resource(
        "storage.k8s.io", "v1", "StorageClass", "storageclasses", "storageclass", ("sc",), False, StorageClass, False
    ),
    Resource(
        "storage.k8s.io", "v1", "VolumeAttachment", "volumeattachments", "volumeattachment", (), False, VolumeAttachment
    ),
)  # pyright: ignore[reportAssignmentType]
"""Kinds of Kubernetes itself."""

ALL: tuple[Resource[Object], ...] = OWN + BUILT_IN
"""All kinds, custom resources first."""

_BY_KIND: dict[str, Resource[Object]] = {resource.kind: resource for resource in ALL}
_BY_TYPE: dict[type[Object], Resource[Object]] = {resource.type: resource for resource in ALL}


def by_kind(kind: str) -> Resource[Object]:
    """The resource of a kind's name; KeyError when we do not know it."""
    return _BY_KIND[kind]


def resource_of(what: type[K] | K) -> Resource[K]:
    """The resource of a type or an object."""
    kind: type[Object] = what if isinstance(what, type) else type(what)
    return _BY_TYPE[kind]  # pyright: ignore[reportReturnType]


def ref_of(obj: Object) -> ObjectRef:
    """Names this incarnation and version of an object, for preconditions (rule 3)."""
    meta = obj.metadata
    return ObjectRef(
        kind=type(obj).__name__,
        name=meta.name,
        namespace=meta.namespace,
        uid=meta.uid,
        resource_version=meta.resource_version,
    )


def controller_reference(owner: Object) -> OwnerReference:
    """An owner reference that marks `owner` as the managing controller."""
    resource = resource_of(type(owner))
    return OwnerReference(
        api_version=resource.api_version,
        kind=resource.kind,
        name=owner.metadata.name,
        uid=owner.metadata.uid,
        controller=True,
        block_owner_deletion=True,
    )


def controller_of(obj: Object) -> OwnerReference | None:
    """The managing owner of an object, if any."""
    return next((owner for owner in obj.metadata.owner_references if owner.controller), None)
