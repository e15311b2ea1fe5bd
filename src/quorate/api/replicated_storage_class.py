"""ReplicatedStorageClass (rsc): how volumes of a class are made; the StorageClass of the same name is made from it."""

from __future__ import annotations

from typing import Annotated, ClassVar, Literal, TypeAlias

from quorate.api.common import MAX_ZONES, Generation, LvgName, ThinPoolName
from quorate.api.meta import Conditions, LabelSelector, Object
from quorate.api.replicated_volume import VolumeConfiguration
from quorate.api.schema import AGE, Column, Crd, Rule, Schema
from quorate.api.value import Value, always

__all__ = ["VolumeConfiguration"]

PoolType: TypeAlias = Literal["LVM", "LVMThin"]
ReclaimPolicy: TypeAlias = Literal["Delete", "Retain"]
Replication: TypeAlias = Literal["None", "Availability", "Consistency", "ConsistencyAndAvailability", ""]
Topology: TypeAlias = Literal["TransZonal", "Zonal", "Ignored"]
VolumeAccess: TypeAlias = Literal["Local", "EventuallyLocal", "PreferablyLocal", "Any"]
RolloutType: TypeAlias = Literal["RollingUpdate", "NewVolumesOnly"]
ConflictResolutionType: TypeAlias = Literal["Manual", "RollingRepair"]

MAX_LVM_VOLUME_GROUPS = 250
"""Volume groups of a class or pool: bounds the cost of the rules."""
INTERNAL_NETWORK = "Internal"
DEFAULT_NOT_READY_GRACE_PERIOD = "10m"
DEFAULT_MAX_PARALLEL = 5


class Phase:
    """Phases of a class (open vocabulary)."""

    READY = "Ready"
    """Volumes can be made, and all are aligned."""
    WAITING_FOR_STORAGE_POOL = "WaitingForStoragePool"
    """The pool is not ready."""
    INSUFFICIENT_NODES = "InsufficientNodes"
    """The pool has too few eligible nodes."""
    INVALID_CONFIGURATION = "InvalidConfiguration"
    """The configuration cannot work."""
    ROLLING_OUT = "RollingOut"
    """Volumes are being brought to the newest configuration."""
    PARTIALLY_ALIGNED = "PartiallyAligned"
    """Some volumes do not follow and are not being changed."""
    TERMINATING = "Terminating"
    """Being deleted."""


class ReadyCondition:
    """Condition `Ready`: whether volumes of the class can be made."""

    TYPE = "Ready"
    """Condition type."""
    READY = "Ready"
    """True: volumes can be made."""
    INSUFFICIENT_ELIGIBLE_NODES = "InsufficientEligibleNodes"
    """False: too few eligible nodes for the layout."""
    INVALID_CONFIGURATION = "InvalidConfiguration"
    """False: the configuration cannot work."""
    WAITING_FOR_STORAGE_POOL = "WaitingForStoragePool"
    """False: the pool is not ready."""


class StoragePoolReadyCondition:
    """Condition `StoragePoolReady`: mirror of the pool's Ready condition."""

    TYPE = "StoragePoolReady"
    """Condition type."""
    PENDING = "Pending"
    """Unknown: the pool has no Ready condition yet."""
    STORAGE_POOL_NOT_FOUND = "StoragePoolNotFound"
    """False: the pool does not exist."""


class ConfigurationRolledOutCondition:
    """Condition `ConfigurationRolledOut`: whether all volumes have the newest configuration."""

    TYPE = "ConfigurationRolledOut"
    """Condition type."""
    ROLLED_OUT_TO_ALL_VOLUMES = "RolledOutToAllVolumes"
    """True: all volumes have it."""
    CONFIGURATION_ROLLOUT_IN_PROGRESS = "ConfigurationRolloutInProgress"
    """False: volumes are being changed."""
    CONFIGURATION_ROLLOUT_DISABLED = "ConfigurationRolloutDisabled"
    """False: the strategy is NewVolumesOnly, and some volumes have an older configuration."""
    NEW_CONFIGURATION_NOT_YET_OBSERVED = "NewConfigurationNotYetObserved"
    """Unknown: some volumes have not seen it yet."""


class VolumesSatisfyEligibleNodesCondition:
    """Condition `VolumesSatisfyEligibleNodes`: whether all replicas are on eligible nodes."""

    TYPE = "VolumesSatisfyEligibleNodes"
    """Condition type."""
    ALL_VOLUMES_SATISFY = "AllVolumesSatisfy"
    """True: all replicas are on eligible nodes."""
    CONFLICT_RESOLUTION_IN_PROGRESS = "ConflictResolutionInProgress"
    """False: replicas are being replaced."""
    MANUAL_CONFLICT_RESOLUTION = "ManualConflictResolution"
    """False: the strategy is Manual, and somebody must act."""
    UPDATED_ELIGIBLE_NODES_NOT_YET_OBSERVED = "UpdatedEligibleNodesNotYetObserved"
    """Unknown: some volumes have not seen the newest eligible nodes yet."""


class LVMVolumeGroupRef(Value):
    """A volume group, and a thin pool in it for LVMThin."""

    name: LvgName
    """Name of the LVMVolumeGroup."""
    thin_pool_name: ThinPoolName = ""
    """Thin pool; LVMThin only."""


THIN_POOL_RULES = (
    Rule(
        "self.type != 'LVMThin' || self.lvmVolumeGroups.all(g, has(g.thinPoolName))",
        "thinPoolName is required for every volume group when type is LVMThin.",
    ),
    Rule(
        "self.type != 'LVM' || self.lvmVolumeGroups.all(g, !has(g.thinPoolName))",
        "thinPoolName must not be set when type is LVM.",
    ),
)
"""Shared by the class's storage and the pool's spec."""


class Storage(Value):
    """Where the data lives."""

    RULES: ClassVar[tuple[Rule, ...]] = THIN_POOL_RULES

    type: PoolType
    """LVM (thick) or LVMThin."""
    lvm_volume_groups: Annotated[
        tuple[LVMVolumeGroupRef, ...],
        Schema(min_items=1, max_items=MAX_LVM_VOLUME_GROUPS, list_type="map", list_keys=("name",)),
    ]
    """The volume groups."""


class MaxParallel(Value):
    """How many volumes may be changed at the same time."""

    max_parallel: Annotated[int, Schema(minimum=1, maximum=200, default=DEFAULT_MAX_PARALLEL, format="int32")] = always(
        DEFAULT_MAX_PARALLEL
    )
    """Number of volumes."""


class ConfigurationRolloutStrategy(Value):
    """How a changed configuration reaches existing volumes."""

    RULES: ClassVar[tuple[Rule, ...]] = (
        Rule(
            "(self.type == 'RollingUpdate') == has(self.rollingUpdate)",
            "rollingUpdate is required when type is RollingUpdate, and forbidden otherwise.",
        ),
    )

    type: RolloutType
    """RollingUpdate or NewVolumesOnly."""
    rolling_update: MaxParallel | None = None
    """Parameters of RollingUpdate."""


class EligibleNodesConflictResolutionStrategy(Value):
    """What happens to replicas on nodes that are no longer eligible."""

    RULES: ClassVar[tuple[Rule, ...]] = (
        Rule(
            "(self.type == 'RollingRepair') == has(self.rollingRepair)",
            "rollingRepair is required when type is RollingRepair, and forbidden otherwise.",
        ),
    )

    type: ConflictResolutionType
    """Manual or RollingRepair."""
    rolling_repair: MaxParallel | None = None
    """Parameters of RollingRepair."""


class EligibleNodesPolicy(Value):
    """When a node stops being eligible."""

    not_ready_grace_period: Annotated[
        str,
        Schema(
            default=DEFAULT_NOT_READY_GRACE_PERIOD,
            max_length=32,
            pattern=r"^([0-9]+(\.[0-9]+)?(ns|us|µs|ms|s|m|h))+$",
        ),
    ] = always(DEFAULT_NOT_READY_GRACE_PERIOD)
    """How long a node may be NotReady before it stops being eligible."""


class ReplicatedStorageClassSpec(Value):
    """How volumes of the class are made."""

    RULES: ClassVar[tuple[Rule, ...]] = (
        Rule(
            "!has(self.replication) || self.replication != 'None' || self.topology == 'Ignored'",
            "replication None requires topology Ignored.",
        ),
        Rule(
            "self.topology != 'TransZonal' || !has(self.zones) || size(self.zones) == 0 || "
            "has(self.failuresToTolerate) || "
            "(has(self.replication) && self.replication == 'Consistency' ? size(self.zones) >= 2 : "
            "size(self.zones) >= 3)",
            "TransZonal topology needs at least 3 zones (2 for replication Consistency).",
        ),
        Rule(
            "!has(self.replication) || (!has(self.failuresToTolerate) && !has(self.guaranteedMinimumDataRedundancy))",
            "replication excludes failuresToTolerate and guaranteedMinimumDataRedundancy.",
        ),
        Rule(
            "has(self.failuresToTolerate) == has(self.guaranteedMinimumDataRedundancy)",
            "failuresToTolerate and guaranteedMinimumDataRedundancy must be set together.",
        ),
        Rule(
            "!has(self.failuresToTolerate) || !has(self.guaranteedMinimumDataRedundancy) || "
            "(self.failuresToTolerate - self.guaranteedMinimumDataRedundancy <= 1 && "
            "self.guaranteedMinimumDataRedundancy - self.failuresToTolerate <= 1)",
            "|failuresToTolerate - guaranteedMinimumDataRedundancy| must be at most 1.",
        ),
        Rule(
            "!has(self.failuresToTolerate) || !has(self.guaranteedMinimumDataRedundancy) || "
            "self.failuresToTolerate != 0 || self.guaranteedMinimumDataRedundancy != 0 || "
            "self.topology == 'Ignored'",
            "failuresToTolerate=0 with guaranteedMinimumDataRedundancy=0 requires topology Ignored.",
        ),
        Rule(
            "self.topology != 'TransZonal' || !has(self.zones) || size(self.zones) == 0 || "
            "!has(self.failuresToTolerate) || !has(self.guaranteedMinimumDataRedundancy) || "
            "(self.failuresToTolerate == 0 ? size(self.zones) == 2 : "
            "self.failuresToTolerate == 2 ? size(self.zones) in [3, 4, 5] : "
            "self.guaranteedMinimumDataRedundancy == 2 ? size(self.zones) == 4 : size(self.zones) == 3)",
            "TransZonal topology needs these numbers of zones by (failuresToTolerate, "
            "guaranteedMinimumDataRedundancy): (0,1) 2; (1,0) and (1,1) 3; (1,2) 4; (2,1) and (2,2) 3, 4 or 5.",
        ),
        Rule("self.topology == oldSelf.topology", "topology is immutable."),
        Rule(
            "has(self.volumeAccess) == has(oldSelf.volumeAccess) && "
            "(!has(self.volumeAccess) || self.volumeAccess == oldSelf.volumeAccess)",
            "volumeAccess is immutable.",
        ),
        Rule(
            "has(self.zones) == has(oldSelf.zones) && (!has(self.zones) || self.zones == oldSelf.zones)",
            "zones are immutable.",
        ),
        Rule(
            "!has(oldSelf.systemNetworkNames) || "
            "(has(self.systemNetworkNames) && self.systemNetworkNames == oldSelf.systemNetworkNames)",
            "systemNetworkNames are immutable once set.",
        ),
        Rule(
            "!has(oldSelf.eligibleNodesPolicy) || "
            "(has(self.eligibleNodesPolicy) && self.eligibleNodesPolicy == oldSelf.eligibleNodesPolicy)",
            "eligibleNodesPolicy is immutable once set.",
        ),
        Rule(
            "!has(oldSelf.storage) || (has(self.storage) && self.storage == oldSelf.storage)",
            "storage is immutable once set.",
        ),
        Rule(
            "has(self.nodeLabelSelector) == has(oldSelf.nodeLabelSelector) && "
            "(!has(self.nodeLabelSelector) || self.nodeLabelSelector == oldSelf.nodeLabelSelector)",
            "nodeLabelSelector is immutable.",
        ),
    )

    reclaim_policy: ReclaimPolicy
    """What happens to a volume whose claim is deleted."""
    topology: Topology
    """How replicas are spread over zones."""
    storage_pool: Annotated[
        str,
        Schema(
            max_length=253,
            rules=(Rule("size(self) == 0 || self == oldSelf", "storagePool is deprecated: it can only be removed."),),
        ),
    ] = ""
    """Deprecated: name of a pool; use storage."""
    storage: Storage | None = None
    """Where the data lives."""
    replication: Replication = ""
    """Deprecated wording of failuresToTolerate and guaranteedMinimumDataRedundancy."""
    failures_to_tolerate: Annotated[int | None, Schema(minimum=0, maximum=2)] = None
    """Number of nodes that may fail without stopping I/O (FTT)."""
    guaranteed_minimum_data_redundancy: Annotated[int | None, Schema(minimum=0, maximum=2)] = None
    """Number of further copies that every acknowledged write is guaranteed to have (GMDR)."""
    volume_access: Annotated[VolumeAccess, Schema(default="PreferablyLocal")] = always("PreferablyLocal")
    """From which nodes volumes may be used. EventuallyLocal behaves like PreferablyLocal."""
    zones: Annotated[tuple[str, ...], Schema(list_type="set", max_items=MAX_ZONES, item=Schema(max_length=63))] = ()
    """Zones to use; empty = all."""
    node_label_selector: LabelSelector | None = None
    """Nodes to use; absent = all."""
    system_network_names: Annotated[
        tuple[str, ...],
        Schema(list_type="set", min_items=1, max_items=1, item=Schema(max_length=64, enum=(INTERNAL_NETWORK,))),
    ] = ()
    """Networks of the replication; only Internal."""
    configuration_rollout_strategy: ConfigurationRolloutStrategy | None = None
    """How a changed configuration reaches existing volumes; absent = RollingUpdate."""
    eligible_nodes_conflict_resolution_strategy: EligibleNodesConflictResolutionStrategy | None = None
    """What happens to replicas on nodes that are no longer eligible; absent = RollingRepair."""
    eligible_nodes_policy: EligibleNodesPolicy | None = None
    """When a node stops being eligible."""


class VolumeStatistics(Value):
    """The volumes of the class."""

    total: Annotated[int | None, Schema(format="int32")] = None
    """All volumes."""
    pending_observation: Annotated[int | None, Schema(format="int32")] = None
    """Volumes that have not seen the newest configuration."""
    aligned: Annotated[int | None, Schema(format="int32")] = None
    """Volumes that are as the class says."""
    in_conflict_with_eligible_nodes: Annotated[int | None, Schema(format="int32")] = None
    """Volumes with a replica on a node that is not eligible."""
    stale_configuration: Annotated[int | None, Schema(format="int32")] = None
    """Volumes with an older configuration."""
    used_storage_pool_names: Annotated[tuple[str, ...], Schema(list_type="atomic", item=Schema(max_length=253))] = ()
    """Pools that the volumes use, sorted."""


class ReplicatedStorageClassStatus(Value):
    """What is accepted and observed."""

    conditions: Conditions = ()
    """Conditions."""
    phase: Annotated[str, Schema(max_length=32)] = ""
    """Summary in one word."""
    message: str = ""
    """Summary for people."""
    configuration_generation: Generation = 0
    """Generation of the class at which `configuration` was accepted."""
    configuration: VolumeConfiguration | None = None
    """The accepted configuration."""
    storage_pool_name: Annotated[str, Schema(max_length=253)] = ""
    """Pool made for the class."""
    storage_pool_based_on_generation: Generation = 0
    """Generation of the class that the pool's name was computed from."""
    storage_pool_eligible_nodes_revision: Generation = 0
    """Revision of the pool's eligible nodes that was seen."""
    volumes: Annotated[VolumeStatistics, Schema(required=True, default={})] = always(VolumeStatistics())
    """The volumes of the class."""


class ReplicatedStorageClass(Object):
    """How volumes of a class are made."""

    spec: ReplicatedStorageClassSpec
    """What the user asks for."""
    status: ReplicatedStorageClassStatus = ReplicatedStorageClassStatus()
    """What is accepted and observed."""


CLUSTER_CONFIG_LABELS = (("heritage", "deckhouse"), ("backup.deckhouse.io/cluster-config", "true"))

CRD = Crd(
    columns=(
        Column("Phase", ".status.phase"),
        Column("FTT", ".status.configuration.failuresToTolerate", type="integer"),
        Column("GMDR", ".status.configuration.guaranteedMinimumDataRedundancy", type="integer"),
        Column("Volumes", ".status.volumes.total", type="integer"),
        AGE,
        Column("Topology", ".spec.topology", wide=True),
        Column("VolumeAccess", ".spec.volumeAccess", wide=True),
        Column("StoragePool", ".status.storagePoolName", wide=True),
        Column("Message", ".status.message", wide=True),
    ),
    selectable_fields=(".status.phase",),
    labels=CLUSTER_CONFIG_LABELS,
)
"""What the CRD says beyond the fields."""
