"""The datamesh structures inside a volume's status (facts/api 4): members, transitions, steps, requests, protection.

`quorate.api.replicated_volume` re-exports everything here; import from there.
"""

from __future__ import annotations

from typing import Annotated, ClassVar

import msgspec

from quorate.api.common import (
    MAX_REPLICAS,
    Addresses,
    Generation,
    LvgName,
    Message,
    NodeName,
    ReplicaName,
    SystemNetworkNames,
    ThinPoolName,
    Time,
)
from quorate.api.quantity import ZERO, Quantity
from quorate.api.schema import Rule, Schema, unique_by
from quorate.api.value import SharedSecret, Value, always

REPLICA_TYPES = ("Diskful", "ShadowDiskful", "Access", "TieBreaker")


class MemberType:
    """Types of a datamesh member (open vocabulary). The four without `LIMINAL` are also replica types."""

    DISKFUL = "Diskful"
    """Voter with a disk."""
    LIMINAL_DISKFUL = "LiminalDiskful"
    """Voter that runs without its disk for the moment; its backing volume is kept."""
    SHADOW_DISKFUL = "ShadowDiskful"
    """Has a disk but no vote."""
    LIMINAL_SHADOW_DISKFUL = "LiminalShadowDiskful"
    """ShadowDiskful that runs without its disk for the moment."""
    TIE_BREAKER = "TieBreaker"
    """Diskless; breaks ties between equal halves of the voters."""
    ACCESS = "Access"
    """Diskless; reads and writes through the diskful members."""

    ALL = (DISKFUL, LIMINAL_DISKFUL, SHADOW_DISKFUL, LIMINAL_SHADOW_DISKFUL, TIE_BREAKER, ACCESS)


class Operation:
    """Operations of a membership request (open vocabulary)."""

    JOIN = "Join"
    """Become a member."""
    LEAVE = "Leave"
    """Stop being a member."""
    FORCE_LEAVE = "ForceLeave"
    """Be removed without the replica's cooperation."""
    FORCE_DETACH = "ForceDetach"
    """Be detached without the replica's cooperation."""
    CHANGE_ROLE = "ChangeRole"
    """Become another type of member."""
    CHANGE_BACKING_VOLUME = "ChangeBackingVolume"
    """Move to another volume group or thin pool."""

    ALL = (JOIN, LEAVE, FORCE_LEAVE, FORCE_DETACH, CHANGE_ROLE, CHANGE_BACKING_VOLUME)


class TransitionType:
    """Types of a datamesh transition (open vocabulary)."""

    FORMATION = "Formation"
    """The volume is being formed."""
    ADD_REPLICA = "AddReplica"
    """A replica becomes a member."""
    REMOVE_REPLICA = "RemoveReplica"
    """A member leaves."""
    FORCE_REMOVE_REPLICA = "ForceRemoveReplica"
    """A member that cannot cooperate is removed."""
    CHANGE_REPLICA_TYPE = "ChangeReplicaType"
    """A member becomes another type."""
    ATTACH = "Attach"
    """A member becomes Primary."""
    DETACH = "Detach"
    """A member becomes Secondary."""
    FORCE_DETACH = "ForceDetach"
    """A member that cannot cooperate is recorded as detached."""
    ENABLE_MULTIATTACH = "EnableMultiattach"
    """Several Primaries become possible."""
    DISABLE_MULTIATTACH = "DisableMultiattach"
    """Only one Primary is possible again."""
    CHANGE_QUORUM = "ChangeQuorum"
    """q and qmr change."""
    RESIZE_VOLUME = "ResizeVolume"
    """The published size grows."""
    REPAIR_NETWORK_ADDRESSES = "RepairNetworkAddresses"
    """Member addresses follow the replicas' addresses."""
    CHANGE_SYSTEM_NETWORKS = "ChangeSystemNetworks"
    """The system networks change."""

    ALL = (
        ADD_REPLICA,
        ATTACH,
        CHANGE_QUORUM,
        CHANGE_REPLICA_TYPE,
        CHANGE_SYSTEM_NETWORKS,
        DETACH,
        DISABLE_MULTIATTACH,
        ENABLE_MULTIATTACH,
        FORCE_DETACH,
        FORCE_REMOVE_REPLICA,
        FORMATION,
        REMOVE_REPLICA,
        REPAIR_NETWORK_ADDRESSES,
        RESIZE_VOLUME,
    )
    GLOBAL = (
        FORMATION,
        ENABLE_MULTIATTACH,
        DISABLE_MULTIATTACH,
        CHANGE_QUORUM,
        REPAIR_NETWORK_ADDRESSES,
        CHANGE_SYSTEM_NETWORKS,
        RESIZE_VOLUME,
    )
    """Types that concern the whole volume and therefore name no replica."""


class TransitionGroup:
    """Groups by which transitions are admitted next to each other (open vocabulary)."""

    FORMATION = "Formation"
    """Formation."""
    ATTACHMENT = "Attachment"
    """Attach and detach."""
    MULTIATTACH = "Multiattach"
    """Enable and disable multiattach."""
    NON_VOTING_MEMBERSHIP = "NonVotingMembership"
    """Membership changes that touch no voter."""
    VOTING_MEMBERSHIP = "VotingMembership"
    """Membership changes that touch a voter."""
    QUORUM = "Quorum"
    """Quorum changes."""
    RESIZE = "Resize"
    """Resize."""
    NETWORK = "Network"
    """Network changes."""
    EMERGENCY = "Emergency"
    """Forced changes."""

    ALL = (
        ATTACHMENT,
        EMERGENCY,
        FORMATION,
        MULTIATTACH,
        NETWORK,
        NON_VOTING_MEMBERSHIP,
        QUORUM,
        RESIZE,
        VOTING_MEMBERSHIP,
    )


class StepStatus:
    """Status of a transition step (open vocabulary)."""

    PENDING = "Pending"
    """Not started."""
    ACTIVE = "Active"
    """Applied, waiting for confirmation."""
    COMPLETED = "Completed"
    """Confirmed."""

    ALL = (PENDING, ACTIVE, COMPLETED)


class DatameshMember(Value):
    """A replica that takes part in the volume."""

    RULES: ClassVar[tuple[Rule, ...]] = (
        Rule(
            "!has(self.lvmVolumeGroupName) || self.type in ['Diskful', 'LiminalDiskful']",
            "lvmVolumeGroupName may be set only for Diskful and LiminalDiskful members.",
        ),
        Rule(
            "!has(self.lvmVolumeGroupThinPoolName) || has(self.lvmVolumeGroupName)",
            "lvmVolumeGroupThinPoolName requires lvmVolumeGroupName.",
        ),
    )

    name: Annotated[str, Schema(min_length=1, max_length=140, pattern=r"^.+-([0-9]|[12][0-9]|3[01])$")]
    """Name of the ReplicatedVolumeReplica."""
    type: Annotated[str, Schema(enum=MemberType.ALL)]
    """Type of the member."""
    node_name: NodeName
    """Node of the member."""
    zone: Annotated[str, Schema(max_length=64)] = ""
    """Zone of the node."""
    addresses: Annotated[Addresses, Schema(min_items=1, required=True)] = always(())
    """Where peers reach the member."""
    lvm_volume_group_name: LvgName = ""
    """LVMVolumeGroup of the backing volume."""
    lvm_volume_group_thin_pool_name: ThinPoolName = ""
    """Thin pool of the backing volume."""
    attached: Annotated[bool, Schema(required=True, default=False)] = always(False)
    """Whether the member shall be Primary."""
    tie_breakers_disconnected: bool = False
    """Whether tie-breakers shall have no connection to this member (first half of an emergency removal, decision 6)."""


class Datamesh(Value):
    """The configuration that all members are told to apply; `datameshRevision` numbers its versions."""

    system_network_names: Annotated[SystemNetworkNames, Schema(required=True, default=[])] = always(())
    """System networks that members listen on."""
    shared_secret: Annotated[SharedSecret | None, Schema(max_length=256)] = None
    """Secret by which DRBD peers authenticate each other."""
    shared_secret_alg: Annotated[str, Schema(enum=("SHA256", "SHA1", "DummyForTest"))] = ""
    """Hash algorithm of the authentication."""
    multiattach: Annotated[bool, Schema(default=False)] = False
    """Whether several members may be Primary."""
    size: Annotated[Quantity, Schema(required=True)] = always(ZERO)
    """Published usable size, a multiple of 4 KiB."""
    members: Annotated[
        tuple[DatameshMember, ...],
        Schema(required=True, default=[], max_items=MAX_REPLICAS, list_type="atomic", rules=(unique_by("name"),)),
    ] = always(())
    """The members."""
    quorum: Annotated[int, Schema(required=True, default=0, minimum=0, maximum=13)] = always(0)
    """Number of voters that must see each other (q)."""
    quorum_minimum_redundancy: Annotated[int, Schema(required=True, default=0, minimum=0, maximum=8)] = always(0)
    """Number of UpToDate voters that must see each other (qmr)."""
    data_present: bool = False
    """Latch: set before the first promotion. Skipping the initial synchronisation is legal only while it is unset."""
    tie_breakers_suspended: bool = False
    """Whether tie-breakers have no vote on any diskful member for the moment (decision 4, M1)."""


class DatameshTransitionStep(Value):
    """One step of a transition. All steps are written when the transition is created."""

    name: Annotated[str, Schema(min_length=1, max_length=64)]
    """Display name."""
    status: Annotated[str, Schema(required=True, default="Pending", enum=StepStatus.ALL)] = always(StepStatus.PENDING)
    """Pending, Active or Completed."""
    datamesh_revision: Generation = 0
    """Revision assigned when the step was activated; 0 when it published nothing."""
    started_at: Time = ""
    """When the step was activated."""
    completed_at: Time = ""
    """When the step was confirmed."""
    message: Message = ""
    """What the step waits for."""
    reason: Annotated[str, Schema(max_length=64)] = ""
    """Machine-readable form of what the step waits for (fencing evidence, blocked by a guard)."""


class DatameshTransition(Value):
    """A change of the datamesh under way. It carries all its later steps need (E15)."""

    RULES: ClassVar[tuple[Rule, ...]] = (
        Rule(
            "(self.type in ['Formation', 'EnableMultiattach', 'DisableMultiattach', 'ChangeQuorum', "
            "'RepairNetworkAddresses', 'ChangeSystemNetworks', 'ResizeVolume']) == !has(self.replicaName)",
            "replicaName is required for replica transitions and forbidden for transitions of the whole volume.",
        ),
        Rule(
            "(self.type in ['AddReplica', 'RemoveReplica', 'ForceRemoveReplica']) == has(self.replicaType)",
            "replicaType is required for AddReplica, RemoveReplica and ForceRemoveReplica, and forbidden otherwise.",
        ),
        Rule(
            "(self.type == 'ChangeReplicaType') == has(self.fromReplicaType) && "
            "(self.type == 'ChangeReplicaType') == has(self.toReplicaType)",
            "fromReplicaType and toReplicaType are required for ChangeReplicaType, and forbidden otherwise.",
        ),
        Rule(
            "(self.type == 'ChangeSystemNetworks') == has(self.fromSystemNetworkNames) && "
            "(self.type == 'ChangeSystemNetworks') == has(self.toSystemNetworkNames)",
            "fromSystemNetworkNames and toSystemNetworkNames are required for ChangeSystemNetworks, "
            "and forbidden otherwise.",
        ),
    )

    type: Annotated[str, Schema(enum=TransitionType.ALL)]
    """What changes."""
    group: Annotated[str, Schema(enum=TransitionGroup.ALL)]
    """Group by which concurrent transitions are admitted."""
    plan_id: Annotated[str, Schema(min_length=1, max_length=64)] = msgspec.field(default="", name="planID")
    """Key of the plan, with version."""
    replica_name: ReplicaName = ""
    """The replica that the transition is about."""
    replica_type: Annotated[str, Schema(enum=REPLICA_TYPES)] = ""
    """Type that is added or removed."""
    from_replica_type: Annotated[str, Schema(enum=REPLICA_TYPES)] = ""
    """Type before the change."""
    to_replica_type: Annotated[str, Schema(enum=REPLICA_TYPES)] = ""
    """Type after the change."""
    from_system_network_names: SystemNetworkNames | None = None
    """Networks before the change."""
    to_system_network_names: SystemNetworkNames | None = None
    """Networks after the change."""
    steps: Annotated[
        tuple[DatameshTransitionStep, ...], Schema(required=True, min_items=1, max_items=8, list_type="atomic")
    ] = always(())
    """The steps, in order; exactly one is Active."""
    node_name: Annotated[str, Schema(max_length=253)] = ""
    """Node of the replica, captured at creation."""
    lvm_volume_group_name: LvgName = ""
    """Volume group that the replica's disk is on after the transition, captured at creation."""
    lvm_volume_group_thin_pool_name: ThinPoolName = ""
    """Thin pool that the replica's disk is on after the transition, captured at creation."""
    quorum: Annotated[int | None, Schema(minimum=0, maximum=13)] = None
    """q after the transition, captured at creation."""
    quorum_minimum_redundancy: Annotated[int | None, Schema(minimum=0, maximum=8)] = None
    """qmr after the transition, captured at creation."""
    previous_quorum: Annotated[int | None, Schema(minimum=0, maximum=13)] = None
    """q before the transition: what taking it back restores."""
    previous_quorum_minimum_redundancy: Annotated[int | None, Schema(minimum=0, maximum=8)] = None
    """qmr before the transition: what taking it back restores."""
    size: Quantity | None = None
    """Size after a resize, captured at creation."""
    reverting: bool = False
    """Whether the transition is being taken back (decision 8)."""
    reason: Annotated[str, Schema(max_length=64)] = ""
    """Machine-readable reason why the transition waits, if a guard or missing fencing evidence holds it."""
    message: Message = ""
    """The same for people."""


class MembershipRequest(Value):
    """What a replica asks the volume for; the same shape on the replica and in the volume's list."""

    RULES: ClassVar[tuple[Rule, ...]] = (
        Rule(
            "self.operation in ['Join', 'ChangeRole'] ? has(self.type) : "
            "(!(self.operation in ['Leave', 'ChangeBackingVolume']) || !has(self.type))",
            "type is required for Join and ChangeRole, forbidden for Leave and ChangeBackingVolume.",
        ),
        Rule(
            "!(self.operation in ['Join', 'ChangeRole']) || "
            "(has(self.type) && self.type == 'Diskful') == has(self.lvmVolumeGroupName)",
            "lvmVolumeGroupName is required for Join and ChangeRole to Diskful, and forbidden for other types.",
        ),
        Rule(
            "self.operation != 'ChangeBackingVolume' || has(self.lvmVolumeGroupName)",
            "lvmVolumeGroupName is required for ChangeBackingVolume.",
        ),
        Rule(
            "!(self.operation in ['Leave', 'ForceLeave', 'ForceDetach']) || !has(self.lvmVolumeGroupName)",
            "lvmVolumeGroupName is forbidden for Leave, ForceLeave and ForceDetach.",
        ),
        Rule(
            "!has(self.thinPoolName) || has(self.lvmVolumeGroupName)",
            "thinPoolName requires lvmVolumeGroupName.",
        ),
    )

    operation: Annotated[str, Schema(enum=Operation.ALL)]
    """What is asked for."""
    type: Annotated[str, Schema(enum=("Diskful", "Access", "TieBreaker"))] = ""
    """Type of member to become."""
    lvm_volume_group_name: LvgName = ""
    """Volume group for a Diskful member."""
    thin_pool_name: ThinPoolName = ""
    """Thin pool for a Diskful member."""


class DatameshReplicaRequest(Value):
    """A replica's request as the volume sees it."""

    name: ReplicaName
    """Name of the replica."""
    request: MembershipRequest
    """What it asks for."""
    first_observed_at: Time
    """When this request was seen first."""
    message: Message = ""
    """What the request waits for."""


class EffectiveLayout(Value):
    """The level of protection that is committed: what quorum and members were last brought to (decision 2)."""

    failures_to_tolerate: int | None = None
    """FTT that is committed."""
    guaranteed_minimum_data_redundancy: int | None = None
    """GMDR that is committed."""


class ObservedProtection(Value):
    """The level of protection that is observed now (facts/datamesh 5.6); negative = degraded, absent = unknown."""

    failures_to_tolerate: int | None = None
    """Further failures that would be survived now."""
    guaranteed_minimum_data_redundancy: int | None = None
    """Further copies that writes acknowledged now have at least."""
    total_voters: Annotated[int, Schema(required=True, default=0)] = always(0)
    """Voters among the members."""
    reachable_voters: Annotated[int, Schema(required=True, default=0)] = always(0)
    """Voters that have quorum or that a ready peer is connected to."""
    up_to_date_voters: Annotated[int, Schema(required=True, default=0)] = always(0)
    """Voters with current data."""
    total_tie_breakers: Annotated[int, Schema(required=True, default=0)] = always(0)
    """Tie-breakers among the members."""
    reachable_tie_breakers: Annotated[int, Schema(required=True, default=0)] = always(0)
    """Tie-breakers that are reachable."""
    stale_agents: Annotated[int, Schema(required=True, default=0)] = always(0)
    """Members whose agent does not report."""
    message: Message = ""
    """Summary for people."""


class FormationProgress(Value):
    """The furthest a formation has come; compared field by field from the first to the last."""

    created: Annotated[int, Schema(default=0)] = 0
    """Replicas created."""
    scheduled: Annotated[int, Schema(default=0)] = 0
    """Replicas placed."""
    preconfigured: Annotated[int, Schema(default=0)] = 0
    """Replicas preconfigured."""
    configured: Annotated[int, Schema(default=0)] = 0
    """Replicas configured for the published revision."""
    connected: Annotated[int, Schema(default=0)] = 0
    """Replicas connected to all their peers."""
    up_to_date: Annotated[int, Schema(default=0)] = 0
    """Diskful replicas with current data."""
    synced_bytes: Annotated[int, Schema(default=0, format="int64")] = 0
    """Bytes synchronised."""

    def key(self) -> tuple[int, int, int, int, int, int, int]:
        """The tuple of decision 7, for comparison."""
        return (
            self.created,
            self.scheduled,
            self.preconfigured,
            self.configured,
            self.connected,
            self.up_to_date,
            self.synced_bytes,
        )


class Formation(Value):
    """Bookkeeping of formation, outside what a restart resets (decision 7)."""

    id: Annotated[str, Schema(max_length=64)] = ""
    """Identity of the current formation; operations of earlier ones carry another."""
    restarts: Annotated[int, Schema(default=0)] = 0
    """How often formation was restarted."""
    started_at: Time = ""
    """When the current formation started."""
    progress: FormationProgress = FormationProgress()
    """The furthest this formation has come."""
    progressed_at: Time = ""
    """When it came that far; timeouts count from here."""
