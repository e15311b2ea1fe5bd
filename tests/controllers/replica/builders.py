"""A small world around one replica, and how to ask the controller about it."""

from __future__ import annotations

from dataclasses import dataclass, replace

from quorate.api import conditions
from quorate.api.common import Address, DiskState, Endpoint
from quorate.api.drbd_resource import (
    ActiveConfiguration,
    ConfiguredCondition,
    DRBDResource,
    DRBDResourceStatus,
    DrbdRole,
    DrbdType,
    PeerPathStatus,
    PeerStatus,
)
from quorate.api.labels import (
    APP_AGENT,
    FINALIZER_REPLICA,
    FINALIZER_VOLUME,
    LABEL_APP,
    LABEL_STORAGE_CLASS,
    LABEL_VOLUME,
)
from quorate.api.lvm_logical_volume import LVMLogicalVolume, LVMLogicalVolumeSpec, LVMLogicalVolumeStatus, Phase, Thin
from quorate.api.meta import Condition, Object, ObjectMeta
from quorate.api.names import llv_name, replica_id
from quorate.api.node import Node, NodeStatus
from quorate.api.pod import Pod, PodSpec, PodStatus
from quorate.api.quantity import Quantity
from quorate.api.replicated_storage_pool import (
    EligibleNode,
    EligibleNodeLVMVolumeGroup,
    ReplicatedStoragePool,
    ReplicatedStoragePoolSpec,
    ReplicatedStoragePoolStatus,
)
from quorate.api.replicated_volume import (
    Datamesh,
    DatameshMember,
    MemberType,
    ReplicatedVolume,
    ReplicatedVolumeSpec,
    ReplicatedVolumeStatus,
    VolumeConfiguration,
)
from quorate.api.replicated_volume_replica import (
    ReplicatedVolumeReplica,
    ReplicatedVolumeReplicaSpec,
    ReplicatedVolumeReplicaStatus,
    ReplicaType,
)
from quorate.api.resources import controller_reference
from quorate.api.sizes import lower_size
from quorate.api.value import FrozenMap, SharedSecret
from quorate.api.value import replace as with_
from quorate.controllers.replica.decide import decide
from quorate.controllers.replica.refusal import WouldBeRefused
from quorate.controllers.replica.snapshot import Snapshot, gather
from quorate.machinery.effects import Create, Decision, Delete, Effect, Half, Patch
from quorate.machinery.reader import FixedReader

NOW = 1_800_000_000.0
CREATED = "2027-01-15T07:00:00Z"
DELETED = "2027-01-15T07:59:00Z"
NAMESPACE = "d8-sds-replicated-volume"
VOLUME, POOL, CLASS, NETWORK = "pvc-1", "pool", "fast", "Internal"
GIB = 1024**3
LOWER = lower_size(GIB)


def metadata(name: str, **changes: object) -> ObjectMeta:
    """Metadata of an object that exists."""
    base = ObjectMeta(name=name, uid=f"uid-{name}", resource_version="10", generation=1, creation_timestamp=CREATED)
    return with_(base, **changes)


def address(id: int) -> Address:
    """Where replica `id` listens."""
    return Address(system_network_name=NETWORK, address=Endpoint(ipv4=f"10.0.0.{id + 1}", port=7000 + id))


def condition(type: str, status: str, reason: str = "", message: str = "", generation: int = 1) -> Condition:
    """A condition that was set long ago."""
    return Condition(
        type=type,
        status=status,
        reason=reason or type,
        message=message,
        observed_generation=generation,
        last_transition_time=CREATED,
    )


def member(id: int, type: str = MemberType.DISKFUL, **changes: object) -> DatameshMember:
    """A member on `node-<id>`."""
    storage = type in (MemberType.DISKFUL, MemberType.LIMINAL_DISKFUL)
    base = DatameshMember(
        name=f"{VOLUME}-{id}",
        type=type,
        node_name=f"node-{id}",
        addresses=(address(id),),
        lvm_volume_group_name="vg" if storage else "",
    )
    return with_(base, **changes)


def volume(*members: DatameshMember, revision: int = 1, **changes: object) -> ReplicatedVolume:
    """A volume of class `fast` with these members."""
    datamesh = Datamesh(
        system_network_names=(NETWORK,),
        shared_secret=SharedSecret("secret"),
        shared_secret_alg="SHA256",
        size=Quantity.of(GIB),
        members=members,
        quorum=len(members) // 2 + 1,
        quorum_minimum_redundancy=1,
    )
    status = ReplicatedVolumeStatus(
        configuration=VolumeConfiguration(
            replicated_storage_pool_name=POOL,
            topology="Ignored",
            failures_to_tolerate=1,
            guaranteed_minimum_data_redundancy=1,
            volume_access="PreferablyLocal",
        ),
        datamesh_revision=revision,
        datamesh=datamesh,
    )
    return ReplicatedVolume(
        metadata=metadata(VOLUME, finalizers=(FINALIZER_VOLUME,)),
        spec=ReplicatedVolumeSpec(size=Quantity.of(GIB), replicated_storage_class_name=CLASS),
        status=with_(status, **changes),
    )


def replica(
    id: int = 0, type: ReplicaType = "Diskful", *, placed: bool = True, **changes: object
) -> ReplicatedVolumeReplica:
    """A replica as the volume controller creates it, placed on `node-<id>` unless said otherwise."""
    spec = ReplicatedVolumeReplicaSpec(replicated_volume_name=VOLUME, type=type)
    labels = {LABEL_VOLUME: VOLUME, LABEL_STORAGE_CLASS: CLASS}
    if placed:
        spec = with_(spec, node_name=f"node-{id}", lvm_volume_group_name="vg" if type == "Diskful" else "")
    if placed and type == "Diskful":
        labels["sds-replicated-volume.deckhouse.io/lvm-volume-group"] = "vg"
    base = ReplicatedVolumeReplica(
        metadata=metadata(
            f"{VOLUME}-{id}",
            finalizers=(FINALIZER_VOLUME, FINALIZER_REPLICA),
            labels=FrozenMap(labels),
            owner_references=(controller_reference(volume()),),
        ),
        spec=spec,
    )
    return with_(base, **changes)


def with_status(obj: ReplicatedVolumeReplica, **changes: object) -> ReplicatedVolumeReplica:
    """The replica with other status fields."""
    return with_(obj, status=with_(obj.status, **changes))


def deleting(obj: ReplicatedVolumeReplica, *finalizers: str) -> ReplicatedVolumeReplica:
    """The replica while it is being deleted, held by these finalizers."""
    return with_(obj, metadata=with_(obj.metadata, deletion_timestamp=DELETED, finalizers=finalizers))


def logical_volume(
    owner: ReplicatedVolumeReplica,
    *,
    group: str = "vg",
    thin: str = "",
    phase: str = Phase.CREATED,
    size: int | None = LOWER,
    spec_size: int = LOWER,
    name: str = "",
    **changes: object,
) -> LVMLogicalVolume:
    """A logical volume of the replica; `size` None = not made yet."""
    name = name or llv_name(owner.metadata.name, group, thin)
    base = LVMLogicalVolume(
        metadata=metadata(
            name,
            finalizers=(FINALIZER_REPLICA,),
            labels=FrozenMap({LABEL_VOLUME: VOLUME, LABEL_STORAGE_CLASS: CLASS}),
            owner_references=(controller_reference(owner),),
        ),
        spec=LVMLogicalVolumeSpec(
            actual_lv_name_on_the_node=name,
            type="Thin" if thin else "Thick",
            size=Quantity.of(spec_size),
            lvm_volume_group_name=group,
            thin=Thin(pool_name=thin) if thin else None,
        ),
        status=LVMLogicalVolumeStatus(phase=phase, actual_size=Quantity.of(size) if size is not None else None),
    )
    return with_(base, **changes)


def peer(id: int, **changes: object) -> PeerStatus:
    """A connected, up-to-date peer as DRBD reports it."""
    base = PeerStatus(
        name=f"{VOLUME}-{id}",
        node_id=id,
        type=DrbdType.DISKFUL,
        allow_remote_read=True,
        bitmap=True,
        paths=(PeerPathStatus(system_network_name=NETWORK, established=True),),
        connection_state="Connected",
        disk_state=DiskState.UP_TO_DATE,
        replication_state="Established",
        role=DrbdRole.SECONDARY,
    )
    return with_(base, **changes)


def drbd_status(
    obj: DRBDResource, *peers: PeerStatus, role: str = DrbdRole.SECONDARY, **changes: object
) -> DRBDResource:
    """The DRBDResource with the status an agent reports once it has applied the spec."""
    diskful = obj.spec.type == DrbdType.DISKFUL
    status = DRBDResourceStatus(
        conditions=(condition(ConfiguredCondition.TYPE, "True", generation=obj.metadata.generation),),
        device=f"/dev/sdsrv/{obj.metadata.name}",
        size=obj.spec.size,
        addresses=(address(obj.spec.node_id),),
        active_configuration=ActiveConfiguration(
            state="Up",
            role=role,
            type=obj.spec.type,
            quorum=obj.spec.quorum,
            quorum_minimum_redundancy=obj.spec.quorum_minimum_redundancy,
            lvm_logical_volume_name=obj.spec.lvm_logical_volume_name,
        ),
        peers=peers,
        disk_state=DiskState.UP_TO_DATE if diskful else DiskState.DISKLESS,
        quorum=True,
    )
    return with_(obj, status=with_(status, **changes))


def agent_pod(id: int = 0, *, ready: bool = True) -> Pod:
    """The node agent of `node-<id>`."""
    return Pod(
        metadata=with_(metadata(f"agent-{id}"), namespace=NAMESPACE, labels=FrozenMap({LABEL_APP: APP_AGENT})),
        spec=PodSpec(node_name=f"node-{id}"),
        status=PodStatus(conditions=(condition("Ready", "True" if ready else "False"),)),
    )


def node(id: int = 0, *, ready: bool = True) -> Node:
    """The node `node-<id>`."""
    return Node(
        metadata=metadata(f"node-{id}"),
        status=NodeStatus(conditions=(condition("Ready", "True" if ready else "False"),)),
    )


def eligible(id: int = 0, *groups: EligibleNodeLVMVolumeGroup, **changes: object) -> EligibleNode:
    """The pool's entry of `node-<id>`; one volume group `vg` unless said otherwise."""
    base = EligibleNode(
        node_name=f"node-{id}",
        lvm_volume_groups=groups or (EligibleNodeLVMVolumeGroup(name="vg", ready=True),),
        node_ready=True,
        agent_ready=True,
    )
    return with_(base, **changes)


def pool(*nodes: EligibleNode, type: str = "LVM") -> ReplicatedStoragePool:
    """The pool; three eligible nodes unless said otherwise."""
    return ReplicatedStoragePool(
        metadata=metadata(POOL),
        spec=with_(_POOL_SPEC, type=type),
        status=ReplicatedStoragePoolStatus(
            eligible_nodes_revision=1, eligible_nodes=nodes or tuple(eligible(id) for id in range(3))
        ),
    )


_POOL_SPEC = ReplicatedStoragePoolSpec(type="LVM", lvm_volume_groups=())


@dataclass(frozen=True)
class World:
    """The objects around one replica."""

    replica: ReplicatedVolumeReplica | None
    volume: ReplicatedVolume | None = None
    drbdr: DRBDResource | None = None
    volumes: tuple[LVMLogicalVolume, ...] = ()
    pool: ReplicatedStoragePool | None = None
    pod: Pod | None = None
    node: Node | None = None
    others: tuple[Object, ...] = ()
    key: str = f"{VOLUME}-0"

    def objects(self) -> tuple[Object, ...]:
        """Everything that exists."""
        single = (self.replica, self.volume, self.drbdr, self.pool, self.pod, self.node)
        return (*(obj for obj in single if obj is not None), *self.volumes, *self.others)

    def snapshot(self) -> Snapshot:
        """What the controller sees."""
        return gather(FixedReader(self.objects()), self.key, agent_namespace=NAMESPACE)

    def but(self, **changes: object) -> World:
        """The world with something else."""
        return replace(self, **changes)  # pyright: ignore[reportArgumentType]


def decide_at_once(world: World, now: float = NOW) -> Decision:
    """The decision when every difference has been held back long enough."""
    return decide_held(world, since=0.0, now=now)


def decide_held(world: World, *, since: float, now: float = NOW) -> Decision:
    """The decision when differences have been held back since `since`."""
    return decide_answered(world.snapshot(), since=since, now=now)


def decide_answered(snapshot: Snapshot, *, since: float, now: float = NOW) -> Decision:
    """The decision with its questions answered: held back since `since`, and the API server refuses nothing."""
    answers: dict[object, object] = {}
    for _ in range(4):
        decision = decide(snapshot, answers, now)
        if not decision.ask:
            return decision
        for request in decision.ask:
            assert request not in answers
            answers[request] = "" if isinstance(request, WouldBeRefused) else since
    raise AssertionError("too many rounds")


def created(decision: Decision) -> list[Object]:
    """Objects the decision creates."""
    return [effect.obj for effect in decision.effects if isinstance(effect, Create)]


def deleted(decision: Decision) -> list[str]:
    """Names of objects the decision deletes."""
    return [effect.obj.metadata.name for effect in decision.effects if isinstance(effect, Delete)]


def patches(decision: Decision, kind: type[Object], half: Half) -> list[Patch]:
    """Patches of one kind and half."""
    return [
        effect
        for effect in decision.effects
        if isinstance(effect, Patch) and effect.half is half and isinstance(effect.after, kind)
    ]


def writes(decision: Decision) -> list[Effect]:
    """Effects that reach the API server."""
    return [effect for effect in decision.effects if isinstance(effect, Create | Patch | Delete)]


def status_after(decision: Decision, world: World) -> ReplicatedVolumeReplicaStatus:
    """The replica's status once the decision is performed."""
    found = patches(decision, ReplicatedVolumeReplica, Half.STATUS)
    assert len(found) <= 1
    assert world.replica is not None
    after = found[0].after if found else world.replica
    assert isinstance(after, ReplicatedVolumeReplica)
    return after.status


def find(status: ReplicatedVolumeReplicaStatus, type: str) -> tuple[str, str] | None:
    """Status and reason of a condition; None when absent."""
    found = conditions.get(status.conditions, type)
    return (found.status, found.reason) if found is not None else None


def drbdr_for(world: World) -> DRBDResource:
    """The DRBDResource that the controller makes for this world, as the API server stores it."""
    made = [obj for obj in created(decide_at_once(world.but(drbdr=None))) if isinstance(obj, DRBDResource)]
    assert len(made) == 1, "the world has no DRBDResource to make"
    return with_(made[0], metadata=stored(made[0].metadata))


def joined(
    *peers: PeerStatus, id: int = 0, type: str = MemberType.DISKFUL, revision: int = 2, members: int = 2
) -> World:
    """A member that has confirmed the current revision and whose peers are as given."""
    others = tuple(member(other) for other in range(members) if other != id)
    spec_type: ReplicaType = (
        "Diskful" if type == MemberType.DISKFUL else ("TieBreaker" if type == MemberType.TIE_BREAKER else "Access")
    )
    rvr = replica(id, spec_type)
    disks = (logical_volume(rvr),) if type == MemberType.DISKFUL else ()
    mesh = tuple(sorted((member(id, type), *others), key=lambda entry: entry.name))
    bare = World(
        replica=rvr,
        volume=volume(*mesh, revision=revision),
        volumes=disks,
        pool=pool(),
        pod=agent_pod(id),
        node=node(id),
        key=f"{VOLUME}-{id}",
    )
    shown = peers or tuple(peer(replica_id(other.name)) for other in others)
    with_drbdr = bare.but(drbdr=drbd_status(drbdr_for(bare), *shown))
    return published(with_drbdr)


def published(world: World) -> World:
    """The world after the controller has written what it has to say, until it has nothing more to say."""
    for _ in range(5):
        decision = decide_at_once(world)
        if not writes(decision):
            return world
        world = performed(world, decision)
    raise AssertionError("the controller does not settle")


def performed(world: World, decision: Decision) -> World:
    """The world after the effects, as an API server would have it."""
    for effect in decision.effects:
        world = _perform(world, effect)
    return world


def _perform(world: World, effect: Effect) -> World:
    match effect:
        case Create(obj=LVMLogicalVolume() as made):
            return world.but(volumes=(*world.volumes, with_(made, metadata=stored(made.metadata))))
        case Create(obj=DRBDResource() as made):
            return world.but(drbdr=with_(made, metadata=stored(made.metadata)))
        case Patch(after=ReplicatedVolumeReplica() as after, half=Half.STATUS):
            assert world.replica is not None
            return world.but(replica=with_(world.replica, status=after.status, metadata=bumped(world.replica.metadata)))
        case Patch(after=ReplicatedVolumeReplica() as after):
            assert world.replica is not None
            return world.but(replica=with_(world.replica, metadata=bumped(after.metadata)))
        case Patch(before=DRBDResource() as before, after=DRBDResource() as after):
            return world.but(drbdr=with_(after, metadata=bumped(after.metadata, spec=before.spec != after.spec)))
        case Patch(before=LVMLogicalVolume() as before, after=LVMLogicalVolume() as after):
            changed = with_(after, metadata=bumped(after.metadata, spec=before.spec != after.spec))
            return world.but(volumes=tuple(changed if item is before else item for item in world.volumes))
        case Delete(obj=DRBDResource() as gone):
            return world.but(drbdr=with_(gone, metadata=with_(gone.metadata, deletion_timestamp=DELETED)))
        case Delete(obj=LVMLogicalVolume() as gone):
            marked = with_(gone, metadata=with_(gone.metadata, deletion_timestamp=DELETED))
            return world.but(volumes=tuple(marked if item is gone else item for item in world.volumes))
        case _:
            return world


def stored(meta: ObjectMeta) -> ObjectMeta:
    """Metadata of a created object as the API server stores it."""
    return with_(meta, uid=f"uid-{meta.name}", resource_version="10", generation=1, creation_timestamp=CREATED)


def bumped(meta: ObjectMeta, *, spec: bool = False) -> ObjectMeta:
    """Metadata after a write."""
    return with_(
        meta, resource_version=str(int(meta.resource_version) + 1), generation=meta.generation + (1 if spec else 0)
    )
