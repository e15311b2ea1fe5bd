"""Condition types and reasons of seeds 000, 001 and 002, row by row; every constant has a docstring line."""

from __future__ import annotations

import ast
import inspect
from types import ModuleType
from typing import cast

import pytest

from quorate.api import (
    common,
    datamesh_structures,
    drbd_resource,
    drbd_resource_operation,
    labels,
    lvm_logical_volume,
    lvm_volume_group,
    replicated_storage_class,
    replicated_storage_pool,
)
from quorate.api import replicated_volume as rv
from quorate.api import replicated_volume_attachment as rva
from quorate.api import replicated_volume_replica as rvr

SEEDS: list[tuple[str, ModuleType, str, tuple[str, ...]]] = [
    # seed, kind, condition type, reasons
    ("000", rv, "ConfigurationReady", ("Ready", "WaitingForStorageClass", "InvalidConfiguration")),
    (
        "000",
        rva,
        "Attached",
        (
            "Attached",
            "Attaching",
            "Detaching",
            "Detached",
            "Pending",
            "WaitingForReplica",
            "WaitingForReplicatedVolume",
            "NodeNotEligible",
            "ReplicatedVolumeDeleting",
            "VolumeAccessLocalityNotSatisfied",
        ),
    ),
    ("000", rva, "ReplicaReady", ("WaitingForReplica",)),
    ("000", rva, "Ready", ("Ready", "NotAttached", "ReplicaNotReady", "Deleting")),
    (
        "001",
        rvr,
        "Configured",
        (
            "Configured",
            "NodeNotEligible",
            "PendingBackingVolumeChange",
            "PendingJoin",
            "PendingLeave",
            "PendingRoleChange",
            "PendingScheduling",
            "StorageNotEligible",
            "WaitingForReplicatedVolume",
        ),
    ),
    (
        "001",
        rvr,
        "BackingVolumeReady",
        (
            "Ready",
            "NotApplicable",
            "NotReady",
            "PendingScheduling",
            "Provisioning",
            "ProvisioningFailed",
            "Reprovisioning",
            "ResizeFailed",
            "Resizing",
            "WaitingForReplicatedVolume",
        ),
    ),
    (
        "001",
        rvr,
        "DRBDConfigured",
        (
            "Configured",
            "AgentNotReady",
            "ConfigurationFailed",
            "NotApplicable",
            "PendingDatameshJoin",
            "PendingScheduling",
            "WaitingForBackingVolume",
            "ApplyingConfiguration",
            "WaitingForReplicatedVolume",
        ),
    ),
    (
        "001",
        rvr,
        "Attached",
        (
            "Attached",
            "DetachmentFailed",
            "AttachmentFailed",
            "IOSuspended",
            "AgentNotReady",
            "ApplyingConfiguration",
        ),
    ),
    (
        "001",
        rvr,
        "BackingVolumeUpToDate",
        (
            "UpToDate",
            "Absent",
            "Failed",
            "RequiresSynchronization",
            "Synchronizing",
            "Unknown",
            "AgentNotReady",
            "ApplyingConfiguration",
        ),
    ),
    (
        "001",
        rvr,
        "FullyConnected",
        (
            "FullyConnected",
            "ConnectedToAllPeers",
            "SoleMember",
            "NoPeers",
            "NotConnected",
            "PartiallyConnected",
            "AgentNotReady",
        ),
    ),
    (
        "001",
        rvr,
        "Ready",
        (
            "Ready",
            "QuorumViaPeers",
            "Deleting",
            "PendingDatameshJoin",
            "PendingScheduling",
            "QuorumLost",
            "AgentNotReady",
            "ApplyingConfiguration",
            "WaitingForReplicatedVolume",
        ),
    ),
    (
        "001",
        rvr,
        "SatisfyEligibleNodes",
        ("Satisfied", "NodeMismatch", "LVMVolumeGroupMismatch", "ThinPoolMismatch", "WaitingForReplicatedVolume"),
    ),
    (
        "002",
        rvr,
        "Scheduled",
        ("Scheduled", "SchedulingFailed", "ExtenderUnavailable", "WaitingForReplicatedVolume"),
    ),
]

MODULES = [
    common,
    datamesh_structures,
    drbd_resource,
    drbd_resource_operation,
    lvm_logical_volume,
    lvm_volume_group,
    replicated_storage_class,
    replicated_storage_pool,
    rv,
    rva,
    rvr,
]


@pytest.mark.parametrize(("seed", "module", "type_", "reasons"), SEEDS, ids=lambda value: str(value)[:40])
def test_seed_condition_exists(seed: str, module: ModuleType, type_: str, reasons: tuple[str, ...]) -> None:
    condition = cast("type[object]", getattr(module, f"{type_}Condition"))
    constants: dict[str, object] = dict(vars(condition))
    assert constants.pop("TYPE") == type_
    assert condition.__doc__
    known = {value for name, value in constants.items() if name.isupper()}
    assert set(reasons) <= known, f"seed {seed}"


@pytest.mark.parametrize("module", MODULES, ids=lambda module: module.__name__)
def test_every_constant_of_a_vocabulary_has_a_docstring_line(module: ModuleType) -> None:
    missing: list[str] = []
    for definition in ast.parse(inspect.getsource(module)).body:
        if isinstance(definition, ast.ClassDef) and not definition.bases:
            missing += [f"{definition.name}.{name}" for name in _undocumented(definition.body)]
    assert missing == []


def test_every_metadata_key_has_a_docstring_line() -> None:
    assert _undocumented(ast.parse(inspect.getsource(labels)).body, but=("PREFIX",)) == []


def _undocumented(body: list[ast.stmt], but: tuple[str, ...] = ()) -> list[str]:
    """Text constants without a string right below them."""
    missing: list[str] = []
    for index, statement in enumerate(body):
        if not (isinstance(statement, ast.Assign) and isinstance(statement.targets[0], ast.Name)):
            continue
        name = statement.targets[0].id
        if not isinstance(statement.value, ast.Constant | ast.JoinedStr) or name in but:
            continue
        following = body[index + 1] if index + 1 < len(body) else None
        documented = (
            isinstance(following, ast.Expr)
            and isinstance(following.value, ast.Constant)
            and isinstance(following.value.value, str)
        )
        if not documented:
            missing.append(name)
    return missing


def test_metadata_keys_are_those_of_the_original_api() -> None:
    assert labels.FINALIZER_VOLUME == "sds-replicated-volume.deckhouse.io/rv-controller"
    assert labels.FINALIZER_REPLICA == "sds-replicated-volume.deckhouse.io/rvr-controller"
    assert labels.FINALIZER_STORAGE_CLASS == "sds-replicated-volume.deckhouse.io/rsc-controller"
    assert labels.FINALIZER_AGENT == "sds-replicated-volume.deckhouse.io/agent"
    assert labels.FINALIZER_CSI == "sds-replicated-volume.deckhouse.io/csi-controller"
    assert labels.LABEL_STORAGE_CLASS == "sds-replicated-volume.deckhouse.io/replicated-storage-class"
    assert labels.LABEL_VOLUME == "sds-replicated-volume.deckhouse.io/replicated-volume"
    assert labels.LABEL_LVM_VOLUME_GROUP == "sds-replicated-volume.deckhouse.io/lvm-volume-group"
    assert labels.LABEL_NODE == "storage.deckhouse.io/sds-replicated-volume-node"
    assert labels.ANNOTATION_UNSCHEDULABLE == "sds-replicated-volume.deckhouse.io/unschedulable"
    assert labels.ANNOTATION_RESERVATION_ID == "sds-replicated-volume.deckhouse.io/scheduling-reservation-id"
    assert labels.ANNOTATION_FENCED == "sds-replicated-volume.deckhouse.io/fenced"
