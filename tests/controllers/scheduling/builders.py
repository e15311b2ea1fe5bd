"""A small language for placements: zones, nodes, scores, replicas in; node by replica out."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from quorate.api import conditions
from quorate.api.labels import ANNOTATION_RESERVATION_ID
from quorate.api.meta import Condition, Object, ObjectMeta
from quorate.api.quantity import Quantity
from quorate.api.replicated_storage_pool import (
    EligibleNode,
    EligibleNodeLVMVolumeGroup,
    ReplicatedStoragePool,
    ReplicatedStoragePoolSpec,
    ReplicatedStoragePoolStatus,
)
from quorate.api.replicated_volume import (
    DatameshMember,
    ReplicatedVolume,
    ReplicatedVolumeSpec,
    ReplicatedVolumeStatus,
    VolumeConfiguration,
)
from quorate.api.replicated_volume_attachment import ReplicatedVolumeAttachment, ReplicatedVolumeAttachmentSpec
from quorate.api.replicated_volume_replica import (
    ReplicatedVolumeReplica,
    ReplicatedVolumeReplicaSpec,
    ReplicaType,
    ScheduledCondition,
)
from quorate.api.scheduler_extender import FilterAndScore, NarrowReservation, Scores, VolumeGroupScore
from quorate.api.value import FrozenMap
from quorate.api.value import replace as with_
from quorate.controllers.scheduling.decide import decide
from quorate.controllers.scheduling.placement import ExtenderFailure
from quorate.controllers.scheduling.snapshot import gather
from quorate.machinery.effects import Decision, Half, Patch
from quorate.machinery.reader import FixedReader

NOW = 1_800_000_000.0
CREATED = "2027-01-15T07:00:00Z"
DELETED = "2027-01-15T07:59:00Z"
VOLUME, POOL = "pvc-1", "pool"
MAXIMUM_ROUNDS = 8


def metadata(name: str, **changes: object) -> ObjectMeta:
    base = ObjectMeta(name=name, uid=f"uid-{name}", resource_version="10", generation=1, creation_timestamp=CREATED)
    return with_(base, **changes)


def group(name: str, thin: str = "", **changes: object) -> EligibleNodeLVMVolumeGroup:
    return with_(EligibleNodeLVMVolumeGroup(name=name, thin_pool_name=thin, ready=True), **changes)


def node(name: str, zone: str = "", *groups: EligibleNodeLVMVolumeGroup, **changes: object) -> EligibleNode:
    """A ready node; one volume group `vg-<node>` unless said otherwise."""
    base = EligibleNode(
        node_name=name,
        zone_name=zone,
        lvm_volume_groups=groups or (group(f"vg-{name}"),),
        node_ready=True,
        agent_ready=True,
    )
    return with_(base, **changes)


def zones(**counts: int) -> tuple[EligibleNode, ...]:
    """`zones(a=2, b=1)`: nodes a1, a2 in zone a and b1 in zone b."""
    return tuple(node(f"{zone}{number}", zone) for zone, count in counts.items() for number in range(1, count + 1))


def replica(
    id: int, type: ReplicaType = "Diskful", at: str = "", *, lvg: str | None = None, thin: str = "", **changes: object
) -> ReplicatedVolumeReplica:
    """A replica; `at` places it completely (`vg-<node>`), `lvg=""` only on the node."""
    storage = (f"vg-{at}" if lvg is None else lvg) if at and type == "Diskful" else ""
    base = ReplicatedVolumeReplica(
        metadata=metadata(f"{VOLUME}-{id}"),
        spec=ReplicatedVolumeReplicaSpec(
            replicated_volume_name=VOLUME,
            type=type,
            node_name=at,
            lvm_volume_group_name=storage,
            lvm_volume_group_thin_pool_name=thin,
        ),
    )
    return with_(base, **changes)


def deleting(obj: ReplicatedVolumeReplica) -> ReplicatedVolumeReplica:
    return with_(obj, metadata=with_(obj.metadata, deletion_timestamp=DELETED, finalizers=("x",)))


def attachment(at: str, *, deleted: bool = False) -> ReplicatedVolumeAttachment:
    return ReplicatedVolumeAttachment(
        metadata=metadata(f"rva-{at}", deletion_timestamp=DELETED if deleted else ""),
        spec=ReplicatedVolumeAttachmentSpec(replicated_volume_name=VOLUME, node_name=at),
    )


@dataclass(frozen=True)
class Asked:
    """What the extender was asked, in order."""

    scored: list[FilterAndScore] = field(default_factory=list[FilterAndScore])
    narrowed: list[NarrowReservation] = field(default_factory=list[NarrowReservation])


@dataclass(frozen=True)
class Result:
    """A decision and how it came about."""

    decision: Decision
    asked: Asked
    case: Case

    def spec(self, id: int) -> ReplicatedVolumeReplicaSpec:
        """Spec of a replica after the pass."""
        for effect in self.decision.effects:
            if (
                isinstance(effect, Patch)
                and effect.half is Half.MAIN
                and effect.after.metadata.name == f"{VOLUME}-{id}"
            ):
                assert isinstance(effect.after, ReplicatedVolumeReplica)
                return effect.after.spec
        return next(item.spec for item in self.case.replicas if item.metadata.name == f"{VOLUME}-{id}")

    def at(self, *ids: int) -> list[str]:
        """Nodes of replicas after the pass; empty = not placed."""
        return [self.spec(id).node_name for id in ids]

    def placements(self) -> dict[int, str]:
        """Nodes of the replicas that this pass placed."""
        return {
            int(effect.after.metadata.name.rsplit("-", 1)[1]): effect.after.spec.node_name
            for effect in self.decision.effects
            if isinstance(effect, Patch)
            and effect.half is Half.MAIN
            and isinstance(effect.after, ReplicatedVolumeReplica)
        }

    def condition(self, id: int) -> Condition | None:
        """The Scheduled condition after the pass."""
        found = next(item for item in self.case.replicas if item.metadata.name == f"{VOLUME}-{id}")
        for effect in self.decision.effects:
            if (
                isinstance(effect, Patch)
                and effect.half is Half.STATUS
                and effect.after.metadata.name == f"{VOLUME}-{id}"
            ):
                assert isinstance(effect.after, ReplicatedVolumeReplica)
                found = effect.after
        return conditions.get(found.status.conditions, ScheduledCondition.TYPE)

    def outcome(self, id: int) -> tuple[str, str] | None:
        """Status and reason of the Scheduled condition."""
        found = self.condition(id)
        return (found.status, found.reason) if found is not None else None

    def message(self, id: int) -> str:
        """Message of the Scheduled condition."""
        found = self.condition(id)
        return found.message if found is not None else ""


@dataclass(frozen=True)
class Case:
    """One volume and what surrounds it; defaults are those of facts/controllers 6.4."""

    nodes: tuple[EligibleNode, ...] = ()
    replicas: tuple[ReplicatedVolumeReplica, ...] = ()
    topology: str = "Ignored"
    ftt: int = 1
    gmdr: int = 1
    access: str = "Local"
    pool_type: str = "LVM"
    attach: tuple[str, ...] = ()
    attachments: tuple[ReplicatedVolumeAttachment, ...] = ()
    members: tuple[DatameshMember, ...] = ()
    reservation: str = ""
    scores: Mapping[str, int] = field(default_factory=dict[str, int])
    """Score by volume group or by node name; 5 for all others, 0 = left out."""
    extender_error: str = ""
    narrow_error: str = ""
    has_volume: bool = True
    has_configuration: bool = True
    has_pool: bool = True
    pool_name: str = POOL

    def but(self, **changes: object) -> Case:
        return replace(self, **changes)  # pyright: ignore[reportArgumentType]

    def volume(self) -> ReplicatedVolume:
        configuration = VolumeConfiguration(
            replicated_storage_pool_name=self.pool_name,
            topology=self.topology,
            failures_to_tolerate=self.ftt,
            guaranteed_minimum_data_redundancy=self.gmdr,
            volume_access=self.access,
        )
        status = ReplicatedVolumeStatus(
            configuration=configuration if self.has_configuration else None, configuration_generation=1
        )
        annotations = FrozenMap({ANNOTATION_RESERVATION_ID: self.reservation} if self.reservation else {})
        return ReplicatedVolume(
            metadata=metadata(VOLUME, annotations=annotations),
            spec=ReplicatedVolumeSpec(size=Quantity.parse("1Gi"), replicated_storage_class_name="fast"),
            status=with_(status, datamesh=with_(status.datamesh, members=self.members)),
        )

    def pool(self) -> ReplicatedStoragePool:
        return ReplicatedStoragePool(
            metadata=metadata(POOL),
            spec=with_(ReplicatedStoragePoolSpec(type="LVM", lvm_volume_groups=()), type=self.pool_type),
            status=ReplicatedStoragePoolStatus(eligible_nodes_revision=1, eligible_nodes=self.nodes),
        )

    def objects(self) -> tuple[Object, ...]:
        return (
            *((self.volume(),) if self.has_volume else ()),
            *((self.pool(),) if self.has_pool else ()),
            *self.replicas,
            *(attachment(at) for at in self.attach),
            *self.attachments,
        )

    def answer(self, request: object, asked: Asked) -> object:
        match request:
            case FilterAndScore():
                asked.scored.append(request)
                if self.extender_error:
                    return ExtenderFailure(self.extender_error)
                return Scores(
                    lvgs=tuple(
                        VolumeGroupScore(name=item.name, thin_pool_name=item.thin_pool_name, score=score)
                        for item in request.lvgs
                        if (score := self._score(item.name)) != 0
                    )
                )
            case NarrowReservation():
                asked.narrowed.append(request)
                return ExtenderFailure(self.narrow_error) if self.narrow_error else None
            case _:
                raise TypeError(type(request).__name__)

    def _score(self, volume_group: str) -> int:
        return self.scores.get(volume_group, self.scores.get(volume_group.removeprefix("vg-"), 5))

    def run(self) -> Result:
        """One pass with its questions answered, as the shell does it."""
        snapshot = gather(FixedReader(self.objects()), VOLUME)
        answers: dict[object, object] = {}
        asked = Asked()
        for _ in range(MAXIMUM_ROUNDS):
            decision = decide(snapshot, answers, NOW)
            if not decision.ask:
                return Result(decision, asked, self)
            for request in decision.ask:
                assert request not in answers
                answers[request] = self.answer(request, asked)
        raise AssertionError("too many rounds")

    def after(self) -> Case:
        """The case once the pass is performed."""
        result = self.run()
        replicas = tuple(self._performed(result, item) for item in self.replicas)
        return self.but(replicas=replicas)

    def _performed(self, result: Result, item: ReplicatedVolumeReplica) -> ReplicatedVolumeReplica:
        for effect in result.decision.effects:
            if not isinstance(effect, Patch) or effect.after.metadata.name != item.metadata.name:
                continue
            assert isinstance(effect.after, ReplicatedVolumeReplica)
            if effect.half is Half.MAIN:
                item = with_(
                    item, spec=effect.after.spec, metadata=with_(item.metadata, generation=item.metadata.generation + 1)
                )
            else:
                item = with_(item, status=effect.after.status)
        return item
