"""Volumes, replicas and attachments in the states that the volume controller meets."""

from __future__ import annotations

from quorate.api import conditions, labels, names, sizes, times
from quorate.api.common import Address, Endpoint
from quorate.api.drbd_resource_operation import DRBDResourceOperation
from quorate.api.meta import Condition, ObjectMeta
from quorate.api.quantity import Quantity
from quorate.api.replicated_storage_class import (
    ReplicatedStorageClass,
    ReplicatedStorageClassSpec,
    ReplicatedStorageClassStatus,
)
from quorate.api.replicated_volume import (
    MembershipRequest,
    Operation,
    ReplicatedVolume,
    ReplicatedVolumeSpec,
    VolumeConfiguration,
)
from quorate.api.replicated_volume_attachment import ReplicatedVolumeAttachment, ReplicatedVolumeAttachmentSpec
from quorate.api.replicated_volume_replica import (
    BackingVolume,
    PeerStatus,
    ReplicaAttachment,
    ReplicatedVolumeReplica,
)
from quorate.api.resources import AnyObject
from quorate.api.value import replace
from quorate.controllers.volume.decide import decide
from quorate.controllers.volume.snapshot import gather
from quorate.machinery.effects import Answers, Create, Decision, Delete, Entropy, Half, Patch
from quorate.machinery.reader import FixedReader
from tests.controllers import builders as common

NOW = common.NOW
SIZE = 1 << 30
NODES = ("node-a", "node-b", "node-c", "node-d", "node-e")
POOL = common.pool(*(common.eligible(name) for name in NODES))
LAYOUTS = ((0, 0), (0, 1), (1, 0), (1, 1), (1, 2), (2, 1), (2, 2))


def configuration(
    ftt: int, gmdr: int, *, access: str = "PreferablyLocal", topology: str = "Ignored"
) -> VolumeConfiguration:
    """A configuration on the test pool."""
    return VolumeConfiguration(
        replicated_storage_pool_name="pool",
        topology=topology,
        failures_to_tolerate=ftt,
        guaranteed_minimum_data_redundancy=gmdr,
        volume_access=access,
    )


def storage_class(accepted: VolumeConfiguration | None, *, generation: int = 1) -> ReplicatedStorageClass:
    """A class that has accepted a configuration (or not yet)."""
    return ReplicatedStorageClass(
        metadata=ObjectMeta(name="fast", uid="uid-fast", generation=generation, resource_version="1"),
        spec=ReplicatedStorageClassSpec(reclaim_policy="Delete", topology="Ignored"),
        status=ReplicatedStorageClassStatus(
            configuration=accepted, configuration_generation=generation if accepted is not None else 0
        ),
    )


def volume(name: str = "vol", *, manual: VolumeConfiguration | None = None, size: int = SIZE) -> ReplicatedVolume:
    """A new volume, of class `fast` unless it is Manual."""
    spec = ReplicatedVolumeSpec(
        size=Quantity.of(size),
        configuration_mode="Manual" if manual is not None else "Auto",
        replicated_storage_class_name="" if manual is not None else "fast",
        manual_configuration=manual,
    )
    meta = ObjectMeta(
        name=name, uid=f"uid-{name}", generation=1, resource_version="1", creation_timestamp=times.format(NOW)
    )
    return ReplicatedVolume(metadata=meta, spec=spec)


def attachment(node: str, *, name: str = "", deleting: bool = False, age: float = 0.0) -> ReplicatedVolumeAttachment:
    """A wish to attach on a node."""
    meta = ObjectMeta(
        name=name or f"rva-{node}",
        uid=f"uid-rva-{node}",
        resource_version="1",
        generation=1,
        creation_timestamp=times.format(NOW - age),
        deletion_timestamp=times.format(NOW) if deleting else "",
        finalizers=(labels.FINALIZER_VOLUME,) if deleting else (),
    )
    return ReplicatedVolumeAttachment(
        metadata=meta, spec=ReplicatedVolumeAttachmentSpec(replicated_volume_name="vol", node_name=node)
    )


def stored(replica: ReplicatedVolumeReplica) -> ReplicatedVolumeReplica:
    """As the API server gives it back."""
    meta = replace(replica.metadata, uid=f"uid-{replica.metadata.name}", resource_version="1", generation=1)
    return replace(replica, metadata=replace(meta, creation_timestamp=times.format(NOW)))


def current(
    replica: ReplicatedVolumeReplica, type_: str, status: str, reason: str, message: str = ""
) -> ReplicatedVolumeReplica:
    """The replica with a condition of its present generation."""
    found = conditions.set_(
        replica.status.conditions,
        type_,
        status=status,
        reason=reason,
        message=message,
        generation=replica.metadata.generation,
        now=NOW,
    )
    return replace(replica, status=replace(replica.status, conditions=found))


def placed(replica: ReplicatedVolumeReplica, node: str) -> ReplicatedVolumeReplica:
    """Scheduled on a node."""
    group = f"vg-{node}" if replica.spec.type == "Diskful" else ""
    moved = replace(replica, spec=replace(replica.spec, node_name=node, lvm_volume_group_name=group))
    return current(moved, "Scheduled", conditions.TRUE, "Scheduled")


def preconfigured(replica: ReplicatedVolumeReplica, *, size: int = SIZE) -> ReplicatedVolumeReplica:
    """DRBD is set up and the replica asks to join."""
    number = names.replica_id(replica.metadata.name)
    request = MembershipRequest(
        operation=Operation.JOIN, type=replica.spec.type, lvm_volume_group_name=replica.spec.lvm_volume_group_name
    )
    backing = BackingVolume(size=Quantity.of(sizes.lower_size(size)), state="Inconsistent")
    status = replace(
        replica.status,
        datamesh_request=request,
        addresses=(Address(system_network_name="Internal", address=Endpoint(ipv4="10.0.0.1", port=7000 + number)),),
        backing_volume=backing if replica.spec.type == "Diskful" else None,
    )
    ready = replace(replica, status=status)
    return current(ready, "DRBDConfigured", conditions.FALSE, "PendingDatameshJoin")


def joined(
    replica: ReplicatedVolumeReplica,
    replicas: tuple[ReplicatedVolumeReplica, ...],
    revision: int,
    *,
    disk: str,
    attached: bool = False,
) -> ReplicatedVolumeReplica:
    """A configured member, connected to its peers, with quorum; Primary where it is attached."""
    peers = tuple(
        PeerStatus(
            name=other.metadata.name,
            type=other.spec.type,
            connection_state="Connected",
            replication_state="Established",
            backing_volume_state=disk if other.spec.type == "Diskful" else "Diskless",
        )
        for other in replicas
        if other.metadata.name != replica.metadata.name and "Diskful" in (replica.spec.type, other.spec.type)
    )
    backing = replica.status.backing_volume
    status = replace(
        replica.status,
        peers=peers,
        datamesh_revision=revision,
        datamesh_request=None,
        quorum=True,
        quorum_enforced=True,
        type="Diskful" if replica.spec.type == "Diskful" else "Diskless",
        size=Quantity.of(SIZE) if replica.spec.type == "Diskful" else None,
        backing_volume=replace(backing, state=disk) if backing is not None else None,
        attachment=(replica.status.attachment or ReplicaAttachment(device_path="/dev/drbd1000")) if attached else None,
    )
    found = current(replace(replica, status=status), "DRBDConfigured", conditions.TRUE, "Configured")
    found = current(found, "Configured", conditions.TRUE, "Configured")
    return current(found, "Ready", conditions.TRUE, "Ready")


class World:
    """Objects of one volume; `step` decides once and stores what the decision writes, as a server would."""

    def __init__(self, *objects: AnyObject, now: float = NOW) -> None:
        self.objects: dict[tuple[type[AnyObject], str], AnyObject] = {}
        self.now = now
        self.decisions: list[Decision] = []
        self.put(*objects)

    def put(self, *objects: AnyObject) -> None:
        """Store objects."""
        for obj in objects:
            self.objects[(type(obj), obj.metadata.name)] = obj

    def reader(self) -> FixedReader:
        """The objects as a cache shows them."""
        return FixedReader(tuple(self.objects.values()))

    def step(self) -> Decision:
        """One decision about volume `vol`, performed."""
        answers: dict[object, object] = {}
        decision = decide(gather(self.reader(), "vol"), answers, self.now)
        for _ in range(3):
            if not decision.ask:
                break
            answers.update({request: b"s" * request.size for request in decision.ask if isinstance(request, Entropy)})
            decision = decide(gather(self.reader(), "vol"), answers, self.now)
        self._perform(decision)
        self.decisions.append(decision)
        return decision

    def _perform(self, decision: Decision) -> None:
        for effect in decision.effects:
            match effect:
                case Create():
                    obj = effect.obj
                    self.put(stored(obj) if isinstance(obj, ReplicatedVolumeReplica) else obj)
                case Patch():
                    self._patch(effect)
                case Delete():
                    self._delete(effect.obj)
                case _:
                    pass

    def _patch(self, effect: Patch) -> None:
        present = self.objects.get((type(effect.after), effect.after.metadata.name))
        if present is None:
            return
        if effect.half is Half.STATUS:
            changed = replace(present, status=effect.after.status)  # pyright: ignore[reportAttributeAccessIssue,reportUnknownArgumentType,reportUnknownMemberType]
        else:
            changed = replace(effect.after, status=present.status)  # pyright: ignore[reportAttributeAccessIssue,reportUnknownArgumentType,reportUnknownMemberType]
        if changed.metadata.deleting and not changed.metadata.finalizers:
            del self.objects[(type(changed), changed.metadata.name)]
        else:
            self.put(changed)

    def _delete(self, obj: AnyObject) -> None:
        present = self.objects.get((type(obj), obj.metadata.name))
        if present is None:
            return
        if present.metadata.finalizers:
            meta = replace(present.metadata, deletion_timestamp=times.format(self.now))
            self.put(replace(present, metadata=meta))
        else:
            del self.objects[(type(obj), obj.metadata.name)]

    @property
    def volume(self) -> ReplicatedVolume:
        """The volume."""
        found = self.objects[(ReplicatedVolume, "vol")]
        assert isinstance(found, ReplicatedVolume)
        return found

    @property
    def replicas(self) -> tuple[ReplicatedVolumeReplica, ...]:
        """The replicas by id."""
        found = (obj for obj in self.objects.values() if isinstance(obj, ReplicatedVolumeReplica))
        return tuple(sorted(found, key=lambda replica: names.replica_id(replica.metadata.name)))

    @property
    def operation(self) -> DRBDResourceOperation | None:
        """The bootstrap operation."""
        found = self.objects.get((DRBDResourceOperation, "vol-formation"))
        return found if isinstance(found, DRBDResourceOperation) else None

    def attachment(self, node: str) -> ReplicatedVolumeAttachment:
        """The attachment of a node."""
        found = self.objects[(ReplicatedVolumeAttachment, f"rva-{node}")]
        assert isinstance(found, ReplicatedVolumeAttachment)
        return found

    def condition(self, type_: str) -> Condition:
        """A condition of the volume."""
        found = conditions.get(self.volume.status.conditions, type_)
        assert found is not None
        return found

    def message(self) -> str:
        """What the active step of formation says, now or before it was postponed."""
        (transition,) = (t for t in self.volume.status.datamesh_transitions if t.type == "Formation")
        return next(step.message for step in transition.steps if step.status == "Active")

    def place_all(self) -> None:
        """Schedule every replica on its own node."""
        for index, replica in enumerate(self.replicas):
            if not replica.spec.node_name:
                self.put(placed(replica, NODES[index % len(NODES)]))

    def preconfigure_all(self) -> None:
        """Place and preconfigure every replica."""
        self.place_all()
        self.put(*(preconfigured(replica) for replica in self.replicas))

    def join_all(self, disk: str) -> None:
        """Every replica runs the published revision, connected."""
        replicas = self.replicas
        revision = self.volume.status.datamesh_revision
        attached = [member.name for member in self.volume.status.datamesh.members if member.attached]
        self.put(
            *(
                joined(replica, replicas, revision, disk=disk, attached=replica.metadata.name in attached)
                for replica in replicas
            )
        )

    def form(self) -> None:
        """Drive formation to its end on a perfect cluster."""
        self.step()
        self.preconfigure_all()
        self.step()
        self.join_all("Inconsistent")
        self.step()
        operation = self.operation
        assert operation is not None
        self.put(replace(operation, status=replace(operation.status, phase="Succeeded")))
        self.join_all("UpToDate")
        self.step()


def writes(decision: Decision) -> list[str]:
    """The writes of a decision in short: kind, verb, half."""
    found: list[str] = []
    for effect in decision.effects:
        match effect:
            case Create():
                found.append(f"create {type(effect.obj).__name__} {effect.obj.metadata.name}")
            case Patch():
                found.append(f"patch {effect.half.value} {type(effect.after).__name__} {effect.after.metadata.name}")
            case Delete():
                found.append(f"delete {type(effect.obj).__name__} {effect.obj.metadata.name}")
            case _:
                pass
    return found


NO_ANSWERS: Answers = {}
