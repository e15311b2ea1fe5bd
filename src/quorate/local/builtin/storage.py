"""Storage kinds: classes, volumes, claims, attachments and what CSI drivers publish."""

from __future__ import annotations

from quorate.local.builtin.shapes import (
    array,
    boolean,
    condition,
    free,
    integer,
    keyed,
    mapping,
    obj,
    quantity,
    reference,
    root,
    text,
    time,
)
from quorate.local.jsonvalue import JsonObject, as_object, dig, same, with_key
from quorate.local.kinds import Kind, Strategy
from quorate.local.status import FieldError, forbidden_field, invalid_value

_STORAGE_CLASS = root(
    "StorageClass describes how volumes are provisioned.",
    {
        "provisioner": text("The driver that provisions.", minLength=1),
        "parameters": mapping(text(), "Passed to the driver."),
        "reclaimPolicy": text(enum=("Delete", "Retain", "Recycle"), default="Delete"),
        "mountOptions": array(text()),
        "allowVolumeExpansion": boolean(),
        "volumeBindingMode": text(enum=("Immediate", "WaitForFirstConsumer"), default="Immediate"),
        "allowedTopologies": array(free()),
    },
    required=("provisioner",),
)


def _validate_storage_class(new: JsonObject, old: JsonObject | None) -> list[FieldError]:
    if old is None:
        return []
    errors = [
        invalid_value(key, new.get(key), "field is immutable")
        for key in ("parameters", "provisioner")
        if not same(new.get(key), old.get(key))
    ]
    if not same(new.get("reclaimPolicy"), old.get("reclaimPolicy")):
        errors.append(forbidden_field("reclaimPolicy", "updates to reclaimPolicy are forbidden."))
    if not same(new.get("volumeBindingMode"), old.get("volumeBindingMode")):
        errors.append(invalid_value("volumeBindingMode", new.get("volumeBindingMode"), "field is immutable"))
    return errors


_ATTACH_ERROR = obj({"time": time(), "message": text()})
_VOLUME_ATTACHMENT = root(
    "VolumeAttachment asks for a volume to be attached to a node.",
    {
        "spec": obj(
            {
                "attacher": text("The driver that attaches."),
                "nodeName": text("The node to attach to."),
                "source": obj({"persistentVolumeName": text(), "inlineVolumeSpec": free()}),
            },
            required=("attacher", "nodeName", "source"),
        ),
        "status": obj(
            {
                "attached": boolean("The volume is attached."),
                "attachmentMetadata": mapping(text()),
                "attachError": _ATTACH_ERROR,
                "detachError": _ATTACH_ERROR,
            },
            required=("attached",),
        ),
    },
    required=("spec",),
)


def _immutable_spec(new: JsonObject, old: JsonObject | None) -> list[FieldError]:
    if old is None or same(new.get("spec"), old.get("spec")):
        return []
    return [invalid_value("spec", new.get("spec"), "field is immutable")]


_CSI_NODE = root(
    "CSINode holds what CSI drivers know about a node.",
    {
        "spec": obj(
            {
                "drivers": keyed(
                    obj(
                        {
                            "name": text(),
                            "nodeID": text(),
                            "topologyKeys": array(text()),
                            "allocatable": obj({"count": integer()}),
                        },
                        required=("name", "nodeID"),
                    ),
                    "name",
                )
            },
            required=("drivers",),
        )
    },
    required=("spec",),
)

_CSI_DRIVER = root(
    "CSIDriver describes a CSI driver.",
    {
        "spec": obj(
            {
                "attachRequired": boolean(),
                "podInfoOnMount": boolean(),
                "volumeLifecycleModes": array(text()),
                "storageCapacity": boolean(),
                "fsGroupPolicy": text(),
                "tokenRequests": array(free()),
                "requiresRepublish": boolean(),
                "seLinuxMount": boolean(),
            },
            more=True,
        )
    },
    required=("spec",),
)

_PERSISTENT_VOLUME = root(
    "PersistentVolume is a piece of storage in the cluster.",
    {
        "spec": obj(
            {
                "capacity": mapping(quantity()),
                "accessModes": array(text()),
                "claimRef": reference("The claim that uses the volume."),
                "persistentVolumeReclaimPolicy": text(enum=("Retain", "Delete", "Recycle"), default="Retain"),
                "storageClassName": text(),
                "mountOptions": array(text()),
                "volumeMode": text(enum=("Filesystem", "Block"), default="Filesystem"),
                "nodeAffinity": free(),
                "csi": obj({"driver": text(), "volumeHandle": text()}, required=("driver", "volumeHandle"), more=True),
            },
            more=True,
        ),
        "status": obj({"phase": text(), "message": text(), "reason": text(), "lastPhaseTransitionTime": time()}),
    },
    required=("spec",),
)

_CLAIM = root(
    "PersistentVolumeClaim asks for storage.",
    {
        "spec": obj(
            {
                "accessModes": array(text()),
                "selector": free(),
                "resources": obj({"requests": mapping(quantity()), "limits": mapping(quantity())}),
                "volumeName": text("The volume bound to the claim."),
                "storageClassName": text(),
                "volumeMode": text(enum=("Filesystem", "Block"), default="Filesystem"),
                "dataSource": free(),
                "dataSourceRef": free(),
                "volumeAttributesClassName": text(),
            }
        ),
        "status": obj(
            {
                "phase": text(),
                "accessModes": array(text()),
                "capacity": mapping(quantity()),
                "conditions": keyed(condition(lastProbeTime=time()), "type"),
            },
            more=True,
        ),
    },
    required=("spec",),
)


def _pending(obj_: JsonObject, now: float) -> JsonObject:
    del now
    return with_key(obj_, "status", {"phase": "Pending"})


def _validate_claim(new: JsonObject, old: JsonObject | None) -> list[FieldError]:
    """After creation only the requested size changes; an unset volume name may be set."""
    if old is None:
        return []
    fixed = ("accessModes", "selector", "storageClassName", "volumeMode")
    spec, before = as_object(new.get("spec")), as_object(old.get("spec"))
    renamed = dig(before, "volumeName") not in (None, "") and not same(spec.get("volumeName"), before.get("volumeName"))
    if renamed or any(not same(spec.get(key), before.get(key)) for key in fixed):
        text_ = (
            "spec is immutable after creation except resources.requests and volumeAttributesClassName for bound claims"
        )
        return [forbidden_field("spec", text_)]
    return []


STORAGE: tuple[Kind, ...] = (
    Kind(
        "storage.k8s.io", "v1", "StorageClass", "storageclasses", False, _STORAGE_CLASS,
        singular="storageclass", short_names=("sc",), strategy=Strategy(validate=_validate_storage_class),
    ),
    Kind(
        "storage.k8s.io", "v1", "VolumeAttachment", "volumeattachments", False, _VOLUME_ATTACHMENT,
        singular="volumeattachment", has_status=True,
        strategy=Strategy(
            prepare=lambda obj_, now: with_key(obj_, "status", {"attached": False}),
            validate=_immutable_spec,
            unconditional_update=False,
        ),
    ),
    Kind(
        "storage.k8s.io", "v1", "CSINode", "csinodes", False, _CSI_NODE,
        singular="csinode", strategy=Strategy(unconditional_update=False),
    ),
    Kind(
        "storage.k8s.io", "v1", "CSIDriver", "csidrivers", False, _CSI_DRIVER,
        singular="csidriver", strategy=Strategy(unconditional_update=False),
    ),
    Kind(
        "", "v1", "PersistentVolume", "persistentvolumes", False, _PERSISTENT_VOLUME,
        singular="persistentvolume", short_names=("pv",), has_status=True, strategy=Strategy(prepare=_pending),
    ),
    Kind(
        "", "v1", "PersistentVolumeClaim", "persistentvolumeclaims", True, _CLAIM,
        singular="persistentvolumeclaim", short_names=("pvc",), has_status=True,
        strategy=Strategy(prepare=_pending, validate=_validate_claim),
    ),
)  # fmt: skip
