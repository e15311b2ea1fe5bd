"""ReplicatedVolume (rv): one replicated block volume, its committed datamesh and the transitions under way.

Spec, status, vocabularies, condition types and reasons stand here; the datamesh structures inside the status stand in
`datamesh_structures` and are re-exported. The status is written by the volume controller only.
"""

from __future__ import annotations

from typing import Annotated, ClassVar, Literal, TypeAlias

from quorate.api.common import MAX_REPLICAS, Address, Endpoint, Generation, NodeName
from quorate.api.datamesh_structures import (
    REPLICA_TYPES,
    Datamesh,
    DatameshMember,
    DatameshReplicaRequest,
    DatameshTransition,
    DatameshTransitionStep,
    EffectiveLayout,
    Formation,
    FormationProgress,
    MembershipRequest,
    MemberType,
    ObservedProtection,
    Operation,
    StepStatus,
    TransitionGroup,
    TransitionType,
)
from quorate.api.meta import Condition, Conditions, Object
from quorate.api.quantity import Quantity
from quorate.api.schema import AGE, Column, Crd, Rule, Schema, condition_column, unique_by
from quorate.api.value import SharedSecret, Value, always

__all__ = [
    "CRD",
    "NAME_LIMIT",
    "REPLICA_TYPES",
    "TOPOLOGIES",
    "VOLUME_ACCESSES",
    "Address",
    "Condition",
    "ConfigurationMode",
    "ConfigurationReadyCondition",
    "ConfiguredCondition",
    "Datamesh",
    "DatameshMember",
    "DatameshReplicaRequest",
    "DatameshTransition",
    "DatameshTransitionStep",
    "EffectiveLayout",
    "EligibleNodesViolation",
    "Endpoint",
    "Formation",
    "FormationProgress",
    "IOReadyCondition",
    "MemberType",
    "MembershipLayoutConvergedCondition",
    "MembershipRequest",
    "ObservedProtection",
    "Operation",
    "QuorumCondition",
    "ReplicatedVolume",
    "ReplicatedVolumeSpec",
    "ReplicatedVolumeStatus",
    "SatisfyEligibleNodesCondition",
    "ScheduledCondition",
    "SharedSecret",
    "StepStatus",
    "TransitionGroup",
    "TransitionType",
    "ViolationReason",
    "VolumeConfiguration",
]

ConfigurationMode: TypeAlias = Literal["Auto", "Manual"]

TOPOLOGIES = ("TransZonal", "Zonal", "Ignored")
VOLUME_ACCESSES = ("Local", "EventuallyLocal", "PreferablyLocal", "Any")
NAME_LIMIT = 92
"""Longest name of a volume: with replica id and hash it must fit the 128 characters of the DRBDResource's LLV reference."""


class ViolationReason:
    """Why a replica violates the pool's eligible nodes (open vocabulary)."""

    OUT_OF_ELIGIBLE_NODES = "OutOfEligibleNodes"
    """The node is not eligible."""
    NODE_TOPOLOGY_MISMATCH = "NodeTopologyMismatch"
    """The node's zone does not fit the topology."""


class ConfigurationReadyCondition:
    """Condition `ConfigurationReady`: whether the configuration is valid and derived from its source."""

    TYPE = "ConfigurationReady"
    """Condition type."""
    READY = "Ready"
    """True: the configuration is valid and matches the source."""
    WAITING_FOR_STORAGE_CLASS = "WaitingForStorageClass"
    """False: the class is missing or has no configuration yet (Auto mode only)."""
    INVALID_CONFIGURATION = "InvalidConfiguration"
    """False: the pool is missing or the number of zones does not fit."""
    NEWER_CONFIGURATION_HELD = "NewerConfigurationHeld"
    """False: the class has a newer configuration that is for new volumes only."""
    CONFIGURATION_ROLLOUT_IN_PROGRESS = "ConfigurationRolloutInProgress"
    """False: waiting for a place in the rollout of the class."""
    STALE_CONFIGURATION = "StaleConfiguration"
    """False: the configuration is older than its source."""


class MembershipLayoutConvergedCondition:
    """Condition `MembershipLayoutConverged`: whether the members are what the configuration asks for."""

    TYPE = "MembershipLayoutConverged"
    """Condition type."""
    CONVERGED = "Converged"
    """True: members match the configuration."""
    CONVERGING = "Converging"
    """False: replicas are being added, removed or changed."""
    CANNOT_CONVERGE = "CannotConverge"
    """False: the change is blocked; the message says by what."""
    TRANSITION_UNSUPPORTED = "TransitionUnsupported"
    """False: there is no plan from here to there."""
    VOLUME_DELETING = "VolumeDeleting"
    """Unknown: the volume is being deleted."""


class SatisfyEligibleNodesCondition:
    """Condition `SatisfyEligibleNodes`: summary of the replicas' condition of the same name."""

    TYPE = "SatisfyEligibleNodes"
    """Condition type."""
    SATISFY_ELIGIBLE_NODES = "SatisfyEligibleNodes"
    """True: every replica is on an eligible node."""
    IN_CONFLICT_WITH_ELIGIBLE_NODES = "InConflictWithEligibleNodes"
    """False: a replica is on a node that is not eligible."""
    CONFLICT_RESOLUTION_IN_PROGRESS = "ConflictResolutionInProgress"
    """False: such a replica is being replaced."""


class ScheduledCondition:
    """Condition `Scheduled`: summary of the replicas' condition of the same name."""

    TYPE = "Scheduled"
    """Condition type."""
    ALL_REPLICAS_SCHEDULED = "AllReplicasScheduled"
    """True: every replica has its place."""
    REPLICAS_NOT_SCHEDULED = "ReplicasNotScheduled"
    """False: a replica could not be placed."""
    SCHEDULING_IN_PROGRESS = "SchedulingInProgress"
    """False: a replica has not been placed yet."""


class ConfiguredCondition:
    """Condition `Configured`: summary of the replicas' condition of the same name."""

    TYPE = "Configured"
    """Condition type."""
    CONFIGURED = "Configured"
    """True: every replica is configured as intended."""
    CONFIGURATION_IN_PROGRESS = "ConfigurationInProgress"
    """False: a replica is not configured as intended yet."""


class IOReadyCondition:
    """Condition `IOReady`: whether the volume serves or could serve I/O now."""

    TYPE = "IOReady"
    """Condition type."""
    IO_READY = "IOReady"
    """True: the volume serves I/O, or could after attaching."""
    IO_SUSPENDED = "IOSuspended"
    """False: an attached member has its I/O suspended."""
    NO_QUORUM = "NoQuorum"
    """False: no diskful member has quorum."""
    FORMING = "Forming"
    """False: the volume is not formed yet."""
    AGENT_NOT_READY = "AgentNotReady"
    """Unknown: no agent reports."""


class QuorumCondition:
    """Condition `Quorum`: whether the diskful members have quorum."""

    TYPE = "Quorum"
    """Condition type."""
    QUORUM_REACHED = "QuorumReached"
    """True: every reachable diskful member has quorum."""
    QUORUM_DEGRADED = "QuorumDegraded"
    """True: some diskful member has no quorum."""
    QUORUM_LOST = "QuorumLost"
    """False: no diskful member has quorum."""
    FORMING = "Forming"
    """False: the volume is not formed yet."""
    AGENT_NOT_READY = "AgentNotReady"
    """Unknown: no agent reports."""


class VolumeConfiguration(Value):
    """What a volume must look like. Two configurations are equal when these five values are."""

    RULES: ClassVar[tuple[Rule, ...]] = (
        Rule(
            "self.failuresToTolerate - self.guaranteedMinimumDataRedundancy <= 1 && "
            "self.guaranteedMinimumDataRedundancy - self.failuresToTolerate <= 1",
            "|failuresToTolerate - guaranteedMinimumDataRedundancy| must be at most 1.",
        ),
        Rule(
            "self.failuresToTolerate != 0 || self.guaranteedMinimumDataRedundancy != 0 || self.topology == 'Ignored'",
            "failuresToTolerate=0 with guaranteedMinimumDataRedundancy=0 requires topology Ignored.",
        ),
    )

    replicated_storage_pool_name: Annotated[str, Schema(min_length=1, max_length=253)]
    """Name of the ReplicatedStoragePool that the replicas live in."""
    topology: Annotated[str, Schema(enum=TOPOLOGIES)]
    """How replicas are spread over zones."""
    failures_to_tolerate: Annotated[int, Schema(minimum=0, maximum=2)]
    """Number of nodes that may fail without stopping I/O (FTT)."""
    guaranteed_minimum_data_redundancy: Annotated[int, Schema(minimum=0, maximum=2)]
    """Number of further copies that every acknowledged write is guaranteed to have (GMDR)."""
    volume_access: Annotated[str, Schema(enum=VOLUME_ACCESSES)]
    """From which nodes the volume may be used."""


class ReplicatedVolumeSpec(Value):
    """What the user asks for."""

    RULES: ClassVar[tuple[Rule, ...]] = (
        Rule(
            "self.configurationMode != 'Auto' || "
            "(has(self.replicatedStorageClassName) && size(self.replicatedStorageClassName) > 0)",
            "replicatedStorageClassName is required when configurationMode is Auto.",
        ),
        Rule(
            "self.configurationMode != 'Auto' || !has(self.manualConfiguration)",
            "manualConfiguration must not be set when configurationMode is Auto.",
        ),
        Rule(
            "self.configurationMode != 'Manual' || has(self.manualConfiguration)",
            "manualConfiguration is required when configurationMode is Manual.",
        ),
        Rule(
            "self.configurationMode != 'Manual' || !has(self.replicatedStorageClassName) || "
            "size(self.replicatedStorageClassName) == 0",
            "replicatedStorageClassName must not be set when configurationMode is Manual.",
        ),
    )

    size: Annotated[
        Quantity,
        Schema(rules=(Rule("quantity(string(self)).isGreaterThan(quantity('0'))", "size must be greater than 0."),)),
    ]
    """Usable size of the volume."""
    configuration_mode: Annotated[ConfigurationMode, Schema(default="Auto")] = always("Auto")
    """Auto: configuration comes from the class. Manual: from manualConfiguration."""
    replicated_storage_class_name: Annotated[str, Schema(min_length=1, max_length=253)] = ""
    """Name of the ReplicatedStorageClass (Auto mode)."""
    manual_configuration: VolumeConfiguration | None = None
    """The configuration itself (Manual mode)."""
    max_attachments: Annotated[int, Schema(minimum=1, maximum=32, default=1)] = always(1)
    """How many nodes may have the volume attached at the same time."""


class EligibleNodesViolation(Value):
    """A replica that is where the pool does not want it any more."""

    node_name: NodeName
    """Node of the replica."""
    replica_name: Annotated[str, Schema(min_length=1, max_length=253)]
    """Name of the replica."""
    reason: Annotated[
        str,
        Schema(enum=(ViolationReason.OUT_OF_ELIGIBLE_NODES, ViolationReason.NODE_TOPOLOGY_MISMATCH)),
    ]
    """Why."""


class ReplicatedVolumeStatus(Value):
    """What the volume controller has committed and observed."""

    conditions: Conditions = ()
    """Conditions."""
    size: Quantity | None = None
    """Usable capacity; absent without ready replicas."""
    configuration: VolumeConfiguration | None = None
    """The configuration in force."""
    configuration_generation: Generation = 0
    """Generation of the class's configuration that `configuration` came from; 0 in Manual mode."""
    configuration_observed_generation: Generation = 0
    """Newest generation of the class's configuration that was seen."""
    eligible_nodes_violations: Annotated[
        tuple[EligibleNodesViolation, ...],
        Schema(max_items=MAX_REPLICAS, list_type="atomic", rules=(unique_by("replicaName"),)),
    ] = ()
    """Replicas on nodes that are not eligible any more."""
    datamesh_revision: Annotated[int, Schema(required=True, format="int64")] = always(0)
    """Version of `datamesh`; 0 = never formed."""
    datamesh: Annotated[Datamesh, Schema(required=True)] = always(Datamesh())
    """The published configuration."""
    membership_layout: Annotated[str, Schema(max_length=16)] = ""
    """Members in short form (`2D+1TB`); absent during formation."""
    effective_layout: EffectiveLayout = EffectiveLayout()
    """The committed level of protection."""
    observed_protection: ObservedProtection | None = None
    """The observed level of protection."""
    baseline_guaranteed_minimum_data_redundancy: Annotated[
        int, Schema(required=True, default=0, minimum=0, maximum=2)
    ] = always(0)
    """GMDR that holds for certain: falls when a lowering is applied, rises when a raise is confirmed by all."""
    datamesh_transitions: Annotated[tuple[DatameshTransition, ...], Schema(max_items=128, list_type="atomic")] = ()
    """Changes under way."""
    datamesh_replica_requests: Annotated[
        tuple[DatameshReplicaRequest, ...],
        Schema(max_items=MAX_REPLICAS, list_type="atomic", rules=(unique_by("name"),)),
    ] = ()
    """What the replicas ask for, by id."""
    formation: Formation | None = None
    """Bookkeeping of formation."""


class ReplicatedVolume(Object):
    """A replicated block volume."""

    spec: ReplicatedVolumeSpec
    """What the user asks for."""
    status: ReplicatedVolumeStatus = ReplicatedVolumeStatus()
    """What is committed and observed."""


CRD = Crd(
    columns=(
        condition_column("IOReady", IOReadyCondition.TYPE),
        condition_column("Quorum", QuorumCondition.TYPE),
        condition_column("Scheduled", ScheduledCondition.TYPE),
        condition_column("Configured", ConfiguredCondition.TYPE),
        Column("Size", ".status.size"),
        AGE,
        Column("MembershipLayout", ".status.membershipLayout", wide=True),
        condition_column("ConfigurationReady", ConfigurationReadyCondition.TYPE, wide=True),
        condition_column("SatisfyEligibleNodes", SatisfyEligibleNodesCondition.TYPE, wide=True),
        Column("StorageClass", ".spec.replicatedStorageClassName", wide=True),
    ),
    rules=(
        Rule(
            f"size(self.metadata.name) <= {NAME_LIMIT}",
            f"metadata.name must be no longer than {NAME_LIMIT} characters.",
        ),
    ),
)
"""What the CRD says beyond the fields."""
