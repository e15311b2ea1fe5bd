"""The columns `kubectl get` shows for built-in kinds, as Kubernetes prints them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from quorate.local.durations import age
from quorate.local.jsonvalue import Json, JsonObject, as_int, as_list, as_object, as_text, dig, objects, texts
from quorate.local.kinds import Cells, Column

_NONE = "<none>"
_UNKNOWN = "<unknown>"


@dataclass(frozen=True)
class BuiltinTable:
    """Columns and their cells; most tables begin with the name."""

    columns: tuple[Column, ...]
    cells: Cells
    named: bool = True


def _columns(*names: str, wide: tuple[str, ...] = ()) -> tuple[Column, ...]:
    return tuple(Column(name) for name in names) + tuple(Column(name, priority=1) for name in wide)


def _created(obj: JsonObject, now: float) -> str:
    return age(as_text(dig(obj, "metadata", "creationTimestamp")), now)


def _text(obj: JsonObject, *path: str, default: str = "") -> str:
    value = dig(obj, *path)
    if isinstance(value, bool):
        return "true" if value else "false"
    return default if value is None or value == "" else str(value)


def _node(node: JsonObject, now: float) -> list[Json]:
    state = [
        ("" if condition.get("status") == "True" else "Not") + "Ready"
        for condition in objects(dig(node, "status", "conditions"))
        if condition.get("type") == "Ready"
    ]
    if dig(node, "spec", "unschedulable") is True:
        state = [*(state or ["Unknown"]), "SchedulingDisabled"]
    prefix = "node-role.kubernetes.io/"
    labels = as_object(dig(node, "metadata", "labels"))
    roles = sorted(label.removeprefix(prefix) for label in labels if label.startswith(prefix))
    addresses = {
        as_text(each.get("type")): as_text(each.get("address")) for each in objects(dig(node, "status", "addresses"))
    }
    info = as_object(dig(node, "status", "nodeInfo"))
    return [
        ",".join(state) or "Unknown",
        ",".join(roles) or _NONE,
        _created(node, now),
        _text(info, "kubeletVersion"),
        addresses.get("InternalIP", _NONE),
        addresses.get("ExternalIP", _NONE),
        _text(info, "osImage", default=_UNKNOWN),
        _text(info, "kernelVersion", default=_UNKNOWN),
        _text(info, "containerRuntimeVersion", default=_UNKNOWN),
    ]


def _pod(pod: JsonObject, now: float) -> list[Json]:
    statuses = objects(dig(pod, "status", "containerStatuses"))
    ready = sum(status.get("ready") is True for status in statuses)
    restarts = sum(as_int(status.get("restartCount")) for status in statuses)
    total = len(as_list(dig(pod, "spec", "containers")))
    phase = _text(pod, "status", "reason") or _text(pod, "status", "phase")
    if dig(pod, "metadata", "deletionTimestamp") is not None:
        phase = "Terminating"
    return [
        f"{ready}/{total}",
        phase,
        restarts,
        _created(pod, now),
        _text(pod, "status", "podIP", default=_NONE),
        _text(pod, "spec", "nodeName", default=_NONE),
        _text(pod, "status", "nominatedNodeName", default=_NONE),
    ]


def _event(event: JsonObject, now: float) -> list[Json]:
    first = _text(event, "firstTimestamp") or _text(event, "eventTime")
    last = _text(event, "series", "lastObservedTime") or _text(event, "lastTimestamp") or first
    involved = as_object(event.get("involvedObject")) or as_object(event.get("regarding"))
    count = (
        as_int(dig(event, "series", "count")) or as_int(event.get("count")) or as_int(event.get("deprecatedCount"), 1)
    )
    source = _text(event, "source", "component") or _text(event, "reportingComponent")
    last = last or _text(event, "deprecatedLastTimestamp")
    return [
        age(last, now),
        _text(event, "type"),
        _text(event, "reason"),
        f"{_text(involved, 'kind').lower()}/{_text(involved, 'name')}",
        _text(involved, "fieldPath"),
        source or _text(event, "reportingController"),
        (_text(event, "message") or _text(event, "note")).strip(),
        age(first, now),
        count,
        _text(event, "metadata", "name"),
    ]


def _storage_class(cls: JsonObject, now: float) -> list[Json]:
    return [
        _text(cls, "provisioner"),
        _text(cls, "reclaimPolicy", default="Delete"),
        _text(cls, "volumeBindingMode", default="Immediate"),
        cls.get("allowVolumeExpansion") is True,
        _created(cls, now),
    ]


_ACCESS_MODES = {
    "ReadWriteOnce": "RWO",
    "ReadOnlyMany": "ROX",
    "ReadWriteMany": "RWX",
    "ReadWriteOncePod": "RWOP",
}


def _modes(value: Json) -> str:
    return ",".join(_ACCESS_MODES.get(mode, mode) for mode in texts(value))


def _volume(volume: JsonObject, now: float) -> list[Json]:
    claim = as_object(dig(volume, "spec", "claimRef"))
    phase = _text(volume, "status", "phase")
    return [
        _text(volume, "spec", "capacity", "storage"),
        _modes(dig(volume, "spec", "accessModes")),
        _text(volume, "spec", "persistentVolumeReclaimPolicy"),
        "Terminating" if dig(volume, "metadata", "deletionTimestamp") is not None else phase,
        f"{_text(claim, 'namespace')}/{_text(claim, 'name')}" if claim else "",
        _text(volume, "spec", "storageClassName"),
        _text(volume, "status", "reason"),
        _created(volume, now),
        _text(volume, "spec", "volumeMode", default=_UNKNOWN),
    ]


def _claim(claim: JsonObject, now: float) -> list[Json]:
    phase = _text(claim, "status", "phase")
    bound = bool(dig(claim, "spec", "volumeName"))
    return [
        "Terminating" if dig(claim, "metadata", "deletionTimestamp") is not None else phase,
        _text(claim, "spec", "volumeName"),
        _text(claim, "status", "capacity", "storage") if bound else "",
        _modes(dig(claim, "status", "accessModes")) if bound else "",
        _text(claim, "spec", "storageClassName"),
        _created(claim, now),
        _text(claim, "spec", "volumeMode", default=_UNKNOWN),
    ]


def _size(*names: str) -> Callable[[JsonObject], int]:
    return lambda obj: sum(len(as_object(obj.get(name))) for name in names)


_secret_size = _size("data")
_config_size = _size("data", "binaryData")

BUILTIN_TABLES: dict[tuple[str, str], BuiltinTable] = {
    ("", "Node"): BuiltinTable(
        _columns(
            "Status", "Roles", "Age", "Version",
            wide=("Internal-IP", "External-IP", "OS-Image", "Kernel-Version", "Container-Runtime"),
        ),
        _node,
    ),
    ("", "Pod"): BuiltinTable(
        _columns("Ready", "Status", "Restarts", "Age", wide=("IP", "Node", "Nominated Node")), _pod
    ),
    ("", "Namespace"): BuiltinTable(
        _columns("Status", "Age"), lambda obj, now: [_text(obj, "status", "phase"), _created(obj, now)]
    ),
    ("", "Secret"): BuiltinTable(
        _columns("Type", "Data", "Age"), lambda obj, now: [_text(obj, "type"), _secret_size(obj), _created(obj, now)]
    ),
    ("", "ConfigMap"): BuiltinTable(
        _columns("Data", "Age"), lambda obj, now: [_config_size(obj), _created(obj, now)]
    ),
    ("", "ServiceAccount"): BuiltinTable(
        _columns("Secrets", "Age"), lambda obj, now: [len(as_list(obj.get("secrets"))), _created(obj, now)]
    ),
    ("coordination.k8s.io", "Lease"): BuiltinTable(
        _columns("Holder", "Age"), lambda obj, now: [_text(obj, "spec", "holderIdentity"), _created(obj, now)]
    ),
    ("storage.k8s.io", "StorageClass"): BuiltinTable(
        _columns("Provisioner", "ReclaimPolicy", "VolumeBindingMode", "AllowVolumeExpansion", "Age"), _storage_class
    ),
    ("storage.k8s.io", "VolumeAttachment"): BuiltinTable(
        _columns("Attacher", "PV", "Node", "Attached", "Age"),
        lambda obj, now: [
            _text(obj, "spec", "attacher"),
            _text(obj, "spec", "source", "persistentVolumeName"),
            _text(obj, "spec", "nodeName"),
            _text(obj, "status", "attached", default="false"),
            _created(obj, now),
        ],
    ),
    ("storage.k8s.io", "CSINode"): BuiltinTable(
        _columns("Drivers", "Age"), lambda obj, now: [len(as_list(dig(obj, "spec", "drivers"))), _created(obj, now)]
    ),
    ("storage.k8s.io", "CSIDriver"): BuiltinTable(
        _columns("AttachRequired", "PodInfoOnMount", "StorageCapacity", "Modes", "Age"),
        lambda obj, now: [
            _text(obj, "spec", "attachRequired", default="true"),
            _text(obj, "spec", "podInfoOnMount", default="false"),
            _text(obj, "spec", "storageCapacity", default="false"),
            ",".join(texts(dig(obj, "spec", "volumeLifecycleModes")) or ["Persistent"]),
            _created(obj, now),
        ],
    ),
    ("", "PersistentVolume"): BuiltinTable(
        _columns(
            "Capacity", "Access Modes", "Reclaim Policy", "Status", "Claim", "StorageClass", "Reason", "Age",
            wide=("VolumeMode",),
        ),
        _volume,
    ),
    ("", "PersistentVolumeClaim"): BuiltinTable(
        _columns("Status", "Volume", "Capacity", "Access Modes", "StorageClass", "Age", wide=("VolumeMode",)), _claim
    ),
    ("apiextensions.k8s.io", "CustomResourceDefinition"): BuiltinTable(
        _columns("Created At"), lambda obj, now: [_text(obj, "metadata", "creationTimestamp")]
    ),
    **{
        (group, "Event"): BuiltinTable(
            (
                *_columns("Last Seen", "Type", "Reason", "Object", wide=("Subobject", "Source")),
                *_columns("Message", wide=("First Seen", "Count", "Name")),
            ),
            _event,
            named=False,
        )
        for group in ("", "events.k8s.io")
    },
}  # fmt: skip
