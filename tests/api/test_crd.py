from __future__ import annotations

from pathlib import Path
from typing import cast

import pytest
import yaml
from click.testing import CliRunner

from quorate.api.crd import all_crds, crd, file_name, to_yaml
from quorate.api.resources import ALL, OWN, by_kind
from quorate.api.schema import Json
from quorate.cli.main import main

DEPLOYED = Path(__file__).parents[2] / "deploy" / "crds"

COLUMNS = {
    "ReplicatedStorageClass": "Phase FTT GMDR Volumes Age | Topology VolumeAccess StoragePool Message",
    "ReplicatedStoragePool": "Type Phase Age | Message",
    "ReplicatedVolume": "IOReady Quorum Scheduled Configured Size Age "
    "| MembershipLayout ConfigurationReady SatisfyEligibleNodes StorageClass",
    "ReplicatedVolumeReplica": "Node Type Phase Attached DataUpToDate Age | Configured Message",
    "ReplicatedVolumeAttachment": "Volume Node Phase ReplicaReady Age | Message",
    "DRBDResource": "Node State Configured Role Type DiskState Quorum Age | Message",
    "DRBDResourceOperation": "Node Resource Type Phase Age | ",
}
SELECTABLE = {
    "ReplicatedStorageClass": [".status.phase"],
    "ReplicatedStoragePool": [".status.phase"],
    "ReplicatedVolume": [],
    "ReplicatedVolumeReplica": [".spec.nodeName", ".spec.replicatedVolumeName", ".status.phase"],
    "ReplicatedVolumeAttachment": [".spec.nodeName", ".spec.replicatedVolumeName", ".status.phase"],
    "DRBDResource": [".spec.nodeName"],
    "DRBDResourceOperation": [".spec.nodeName", ".spec.drbdResourceName", ".status.phase"],
    "LVMLogicalVolume": [],
    "LVMVolumeGroup": [],
}
NAMES = {
    "ReplicatedStorageClass": ("replicatedstorageclasses", "rsc"),
    "ReplicatedStoragePool": ("replicatedstoragepools", "rsp"),
    "ReplicatedVolume": ("replicatedvolumes", "rv"),
    "ReplicatedVolumeReplica": ("replicatedvolumereplicas", "rvr"),
    "ReplicatedVolumeAttachment": ("replicatedvolumeattachments", "rva"),
    "DRBDResource": ("drbdresources", "drbdr"),
    "DRBDResourceOperation": ("drbdresourceoperations", "drbdrop"),
    "LVMLogicalVolume": ("lvmlogicalvolumes", "llv"),
    "LVMVolumeGroup": ("lvmvolumegroups", "lvg"),
}


def at(value: Json, *path: str | int) -> Json:
    """What stands at a path of keys and list positions."""
    for part in path:
        match value, part:
            case dict(), str(key):
                value = value[key]
            case list(), int(position):
                value = value[position]
            case _:
                raise KeyError(part)
    return value


def version(kind: str) -> dict[str, Json]:
    return cast("dict[str, Json]", at(cast("Json", crd(by_kind(kind))), "spec", "versions", 0))


def field(kind: str, path: str) -> dict[str, Json]:
    """Schema of a field: `spec.peers[].nodeID`."""
    schema = cast("dict[str, Json]", at(version(kind), "schema", "openAPIV3Schema"))
    for part in path.split("."):
        name = part.removesuffix("[]")
        schema = cast("dict[str, Json]", at(schema, "properties", name))
        if part.endswith("[]"):
            schema = cast("dict[str, Json]", schema["items"])
    return schema


def test_the_deployed_files_are_the_generated_ones() -> None:
    generated = {file_name(definition): to_yaml(definition) for definition in all_crds()}
    deployed = {path.name: path.read_text(encoding="utf-8") for path in DEPLOYED.glob("*.yaml")}
    assert deployed == generated, "run `quorate crds --write deploy/crds`"


def test_generation_is_stable() -> None:
    assert [to_yaml(definition) for definition in all_crds()] == [to_yaml(definition) for definition in all_crds()]


@pytest.mark.parametrize("kind", NAMES)
def test_names_scope_and_subresource(kind: str) -> None:
    plural, short = NAMES[kind]
    definition = cast("Json", crd(by_kind(kind)))
    assert at(definition, "metadata", "name") == f"{plural}.storage.deckhouse.io"
    assert at(definition, "metadata", "labels", "module") == "sds-replicated-volume"
    assert at(definition, "spec", "scope") == "Cluster"
    assert at(definition, "spec", "names") == {
        "kind": kind,
        "listKind": f"{kind}List",
        "plural": plural,
        "singular": kind.lower(),
        "shortNames": [short],
        "categories": ["quorate"],
    }
    only = version(kind)
    assert (only["name"], only["served"], only["storage"]) == ("v1alpha1", True, True)
    assert only["subresources"] == {"status": {}}
    selectable = cast("list[dict[str, str]]", only.get("selectableFields", []))
    assert [entry["jsonPath"] for entry in selectable] == SELECTABLE[kind]


def test_class_and_pool_are_marked_as_cluster_configuration() -> None:
    for kind in ("ReplicatedStorageClass", "ReplicatedStoragePool"):
        labels = cast("dict[str, str]", at(cast("Json", crd(by_kind(kind))), "metadata", "labels"))
        assert labels["heritage"] == "deckhouse"
        assert labels["backup.deckhouse.io/cluster-config"] == "true"


@pytest.mark.parametrize("kind", COLUMNS)
def test_printer_columns(kind: str) -> None:
    narrow, _, wide = COLUMNS[kind].partition("|")
    columns = cast("list[dict[str, Json]]", version(kind)["additionalPrinterColumns"])
    assert [column["name"] for column in columns if not column.get("priority")] == narrow.split()
    assert [column["name"] for column in columns if column.get("priority")] == wide.split()


def test_every_field_is_described() -> None:
    missing: list[str] = []

    def walk(schema: dict[str, Json], path: str) -> None:
        for name, value in cast("dict[str, dict[str, Json]]", schema.get("properties", {})).items():
            if not value.get("description") and name != "metadata":
                missing.append(f"{path}.{name}")
            walk(cast("dict[str, Json]", value.get("items", value)), f"{path}.{name}")

    for resource in OWN:
        walk(cast("dict[str, Json]", at(version(resource.kind), "schema", "openAPIV3Schema")), resource.kind)
    assert missing == []


def test_every_list_states_how_it_is_merged() -> None:
    missing: list[str] = []

    def walk(schema: dict[str, Json], path: str) -> None:
        if schema.get("type") == "array":
            if "x-kubernetes-list-type" not in schema:
                missing.append(path)
            walk(cast("dict[str, Json]", schema["items"]), f"{path}[]")
        for name, value in cast("dict[str, dict[str, Json]]", schema.get("properties", {})).items():
            walk(value, f"{path}.{name}")

    for resource in OWN:
        walk(cast("dict[str, Json]", at(version(resource.kind), "schema", "openAPIV3Schema")), resource.kind)
    assert missing == []


REPLICATIONS = ("None", "Availability", "Consistency", "ConsistencyAndAvailability")
MAX_PARALLEL: dict[str, Json] = {"minimum": 1, "maximum": 200, "default": 5}
LIMITS: list[tuple[str, str, dict[str, Json]]] = [
    ("ReplicatedStorageClass", "spec.storage.lvmVolumeGroups[].name", {"minLength": 1, "maxLength": 253}),
    ("ReplicatedStorageClass", "spec.storage.lvmVolumeGroups[].thinPoolName", {"minLength": 1, "maxLength": 128}),
    ("ReplicatedStorageClass", "spec.replication", {"enum": [*REPLICATIONS]}),
    ("ReplicatedStorageClass", "spec.volumeAccess", {"default": "PreferablyLocal"}),
    ("ReplicatedStorageClass", "spec.failuresToTolerate", {"type": "integer", "minimum": 0, "maximum": 2}),
    ("ReplicatedStorageClass", "spec.zones", {"maxItems": 10, "x-kubernetes-list-type": "set"}),
    ("ReplicatedStorageClass", "spec.configurationRolloutStrategy.rollingUpdate.maxParallel", MAX_PARALLEL),
    ("ReplicatedStorageClass", "spec.eligibleNodesConflictResolutionStrategy.rollingRepair.maxParallel", MAX_PARALLEL),
    ("ReplicatedStorageClass", "spec.eligibleNodesPolicy.notReadyGracePeriod", {"default": "10m"}),
    ("ReplicatedStorageClass", "status.volumes", {"default": {}}),
    ("ReplicatedStoragePool", "spec", {"x-kubernetes-map-type": "atomic"}),
    ("ReplicatedStoragePool", "spec.systemNetworkNames", {"default": ["Internal"], "minItems": 1, "maxItems": 1}),
    ("ReplicatedStoragePool", "status.eligibleNodes", {"maxItems": 1000, "x-kubernetes-list-type": "atomic"}),
    ("ReplicatedStoragePool", "status.eligibleNodes[].lvmVolumeGroups", {"maxItems": 50}),
    ("ReplicatedStoragePool", "status.usedBy.replicatedStorageClassNames", {"maxItems": 100}),
    ("ReplicatedVolume", "spec.configurationMode", {"default": "Auto", "enum": ["Auto", "Manual"]}),
    ("ReplicatedVolume", "spec.maxAttachments", {"default": 1, "minimum": 1, "maximum": 32}),
    ("ReplicatedVolume", "spec.size", {"x-kubernetes-int-or-string": True}),
    ("ReplicatedVolume", "status.datamesh.members", {"maxItems": 32, "default": [], "x-kubernetes-list-type": "atomic"}),
    ("ReplicatedVolume", "status.datamesh.members[].name", {"minLength": 1, "maxLength": 140}),
    ("ReplicatedVolume", "status.datamesh.members[].addresses", {"minItems": 1, "maxItems": 10}),
    ("ReplicatedVolume", "status.datamesh.members[].attached", {"default": False}),
    ("ReplicatedVolume", "status.datamesh.quorum", {"default": 0, "minimum": 0, "maximum": 13}),
    ("ReplicatedVolume", "status.datamesh.quorumMinimumRedundancy", {"default": 0, "minimum": 0, "maximum": 8}),
    ("ReplicatedVolume", "status.datamesh.sharedSecret", {"type": "string", "maxLength": 256}),
    ("ReplicatedVolume", "status.datameshTransitions[].steps", {"minItems": 1, "maxItems": 8}),
    ("ReplicatedVolume", "status.datameshTransitions[].steps[].status", {"default": "Pending"}),
    ("ReplicatedVolume", "status.datameshTransitions[].steps[].message", {"maxLength": 512}),
    ("ReplicatedVolume", "status.datameshReplicaRequests", {"maxItems": 32}),
    ("ReplicatedVolumeReplica", "spec.replicatedVolumeName", {"minLength": 1, "maxLength": 120}),
    ("ReplicatedVolumeReplica", "spec.nodeName", {"minLength": 1, "maxLength": 253}),
    ("ReplicatedVolumeReplica", "status.message", {"maxLength": 512}),
    ("ReplicatedVolumeReplica", "status.peers", {"maxItems": 31}),
    ("ReplicatedVolumeReplica", "status.addresses[].address.port", {"minimum": 1025, "maximum": 65535}),
    ("ReplicatedVolumeAttachment", "spec.replicatedVolumeName", {"minLength": 1, "maxLength": 127}),
    ("ReplicatedVolumeAttachment", "status.devicePath", {"maxLength": 256}),
    ("DRBDResource", "spec.peers[].allowRemoteRead", {"default": True}),
    ("DRBDResource", "spec.peers[].protocol", {"default": "C", "enum": ["A", "B", "C"]}),
    ("DRBDResource", "spec.peers", {"maxItems": 31, "x-kubernetes-list-map-keys": ["name"]}),
    ("DRBDResource", "spec.nodeID", {"minimum": 0, "maximum": 31}),
    ("DRBDResource", "spec.quorum", {"minimum": 0, "maximum": 32}),
    ("DRBDResource", "spec.type", {"default": "Diskful"}),
    ("DRBDResource", "spec.lvmLogicalVolumeName", {"minLength": 1, "maxLength": 128}),
    ("DRBDResource", "spec.maintenance", {"enum": ["NoResourceReconciliation"]}),
    ("DRBDResource", "status.deviceUUID", {"pattern": "^([0-9A-F]{16})?$"}),
    ("DRBDResourceOperation", "status.message", {"maxLength": 1024}),
    ("LVMLogicalVolume", "spec.type", {"enum": ["Thick", "Thin"]}),
    ("LVMVolumeGroup", "spec.thinPools[].allocationLimit", {"default": "150%"}),
]  # fmt: skip


@pytest.mark.parametrize(("kind", "path", "expected"), LIMITS, ids=[f"{kind}.{path}" for kind, path, _ in LIMITS])
def test_limits_defaults_and_enums(kind: str, path: str, expected: dict[str, Json]) -> None:
    schema = field(kind, path)
    assert {key: schema.get(key) for key in expected} == expected


REQUIRED = {
    ("ReplicatedStorageClass", "spec"): {"reclaimPolicy", "topology"},
    ("ReplicatedStoragePool", "spec"): {"type", "lvmVolumeGroups"},
    ("ReplicatedStoragePool", "status.eligibleNodes[]"): {"nodeName", "unschedulable", "nodeReady", "agentReady"},
    ("ReplicatedVolume", "spec"): {"size"},
    ("ReplicatedVolume", "status"): {"datameshRevision", "datamesh", "baselineGuaranteedMinimumDataRedundancy"},
    ("ReplicatedVolume", "status.datamesh"): {
        "systemNetworkNames",
        "size",
        "members",
        "quorum",
        "quorumMinimumRedundancy",
    },
    ("ReplicatedVolume", "status.datamesh.members[]"): {"name", "type", "nodeName", "addresses", "attached"},
    ("ReplicatedVolume", "status.datameshTransitions[]"): {"type", "group", "steps"},
    ("ReplicatedVolume", "status.datameshReplicaRequests[]"): {"name", "request", "firstObservedAt"},
    ("ReplicatedVolumeReplica", "spec"): {"replicatedVolumeName", "type"},
    ("ReplicatedVolumeReplica", "status.attachment"): {"devicePath", "ioSuspended", "inUse"},
    ("ReplicatedVolumeAttachment", "spec"): {"replicatedVolumeName", "nodeName"},
    ("DRBDResource", "spec"): {"nodeName", "nodeID", "systemNetworks"},
    ("DRBDResource", "spec.peers[]"): {"name", "nodeID", "paths"},
    ("DRBDResourceOperation", "spec"): {"nodeName", "drbdResourceName", "type"},
    ("LVMLogicalVolume", "spec"): {"actualLVNameOnTheNode", "type", "size", "lvmVolumeGroupName"},
    ("ReplicatedVolumeReplica", "status.conditions[]"): {"type", "status", "reason", "message", "lastTransitionTime"},
}


@pytest.mark.parametrize(("kind", "path"), REQUIRED, ids=".".join)
def test_required_fields(kind: str, path: str) -> None:
    assert set(cast("list[str]", field(kind, path)["required"])) == REQUIRED[kind, path]


def test_only_our_kinds_have_a_definition() -> None:
    assert {resource.kind for resource in ALL if resource.crd} == set(NAMES)
    with pytest.raises(ValueError, match="not a custom resource"):
        crd(by_kind("Node"))


def test_the_command_prints_all_definitions() -> None:
    result = CliRunner().invoke(main, ["crds"])
    assert result.exit_code == 0
    assert list(yaml.safe_load_all(result.output)) == list(all_crds())


def test_the_command_writes_files_and_removes_stale_ones(tmp_path: Path) -> None:
    (tmp_path / "old.yaml").write_text("x", encoding="utf-8")
    result = CliRunner().invoke(main, ["crds", "--write", str(tmp_path)])
    assert result.exit_code == 0
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted(file_name(item) for item in all_crds())
