"""Manifests to try on a local cluster: a class that fits its volume groups, a volume, an attachment, a claim.

`docs/examples` holds them for the default shape; `quorate up` writes them for the shape it runs.
"""

from __future__ import annotations

from pathlib import Path

import yaml

from quorate.api.resources import GROUP
from quorate.local.jsonvalue import JsonObject
from quorate.local.shape import THIN_POOL, Shape

API_VERSION = f"{GROUP}/v1alpha1"
CLASS = "fast"
VOLUME = "first"


def manifests(shape: Shape) -> dict[str, str]:
    """File names and YAML texts."""
    return {
        "storage-class.yaml": _text(
            "Volumes of this class survive the loss of any one node, and of any one disk, without losing a write.",
            storage_class(shape),
        ),
        "volume.yaml": _text("A replicated volume; the class decides how many copies it has and where.", volume()),
        "attachment.yaml": _text("Makes the volume a block device on a node.", attachment(shape)),
    }


def storage_class(shape: Shape) -> JsonObject:
    """A class over every volume group of the cluster that keeps its promise on it."""
    pool: JsonObject = {"thinPoolName": THIN_POOL} if shape.thin else {}
    ftt, gmdr = (1, 1) if shape.nodes >= 3 else (0, 0)
    names = [shape.group_object_name(group, node) for node in shape.node_names() for group in shape.groups]
    return {
        **_head("ReplicatedStorageClass", CLASS),
        "spec": {
            "reclaimPolicy": "Delete",
            "topology": "Ignored",
            "volumeAccess": "PreferablyLocal",
            "failuresToTolerate": ftt,
            "guaranteedMinimumDataRedundancy": gmdr,
            "storage": {
                "type": "LVMThin" if shape.thin else "LVM",
                "lvmVolumeGroups": [{"name": name, **pool} for name in names],
            },
        },
    }


def volume() -> JsonObject:
    """A volume of that class."""
    return {
        **_head("ReplicatedVolume", VOLUME),
        "spec": {"size": "1Gi", "replicatedStorageClassName": CLASS, "maxAttachments": 1},
    }


def attachment(shape: Shape) -> JsonObject:
    """The wish to use it on the first node."""
    node = shape.node_names()[0] if shape.nodes else "node-1"
    return {
        **_head("ReplicatedVolumeAttachment", f"{VOLUME}-on-{node}"),
        "spec": {"replicatedVolumeName": VOLUME, "nodeName": node},
    }


def write_examples(directory: Path, shape: Shape) -> Path:
    """Write the manifests; the answer is where they are."""
    target = directory / "examples"
    target.mkdir(exist_ok=True)
    for name, text in manifests(shape).items():
        (target / name).write_text(text, encoding="utf-8")
    return target


def _head(kind: str, name: str) -> JsonObject:
    return {"apiVersion": API_VERSION, "kind": kind, "metadata": {"name": name}}


def _text(comment: str, manifest: JsonObject) -> str:
    return f"# {comment}\n{yaml.safe_dump(manifest, sort_keys=False)}"
