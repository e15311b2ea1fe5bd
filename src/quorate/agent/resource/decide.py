"""The decision about one DRBDResource. Pure: a snapshot and the host's answers in, effects out.

Order (facts/agent 1.6), each intent durable before its act (rule 4): rename, own finalizer, addresses and the list of
volumes to release, finalizer of the volume, converge, release volumes, status, drop the own finalizer.
"""

from __future__ import annotations

from dataclasses import dataclass

from quorate.agent.addresses import Place, in_network_order
from quorate.agent.converge import Outcome
from quorate.agent.intended import Intended, IntendedDisk, compute_intended, kernel_name, new_device_uuid
from quorate.agent.plan import Problem
from quorate.agent.resource.report import compute_effects, compute_failure_effects
from quorate.agent.resource.requests import AllocatePorts, ClearOrphan, Converge, Look, PortsAnswer, Rename
from quorate.agent.resource.snapshot import Snapshot, name_in_kernel, up_and_live
from quorate.api.common import Address
from quorate.api.drbd_resource import ActiveConfiguration, DRBDResource, DRBDResourceStatus
from quorate.api.drbd_resource import ConfiguredCondition as Reason
from quorate.api.labels import FINALIZER_AGENT
from quorate.api.lvm_logical_volume import Phase
from quorate.api.value import replace
from quorate.machinery.effects import Answers, Decision, Effect, Half, Patch


@dataclass(frozen=True, slots=True)
class Disk:
    """What is known about the disk that shall be attached."""

    intended: IntendedDisk | None = None
    keep: bool = False
    problem: Problem | None = None


def decide(snapshot: Snapshot, answers: Answers, now: float) -> Decision:
    """What to do about this name now."""
    resource = snapshot.resource
    if resource is None:
        return _decide_orphan(snapshot, answers)
    if resource.spec.actual_name_on_the_node and not resource.spec.maintenance:
        return _decide_rename(snapshot, resource, answers, now)
    return _decide_present(snapshot, resource, answers, now)


def _decide_orphan(snapshot: Snapshot, answers: Answers) -> Decision:
    request = ClearOrphan(snapshot.name)
    if request not in answers:
        return Decision(ask=(request,))
    problem = answers[request]
    return Decision(error=f"{problem.reason}: {problem.message}") if isinstance(problem, Problem) else Decision()


def _decide_rename(snapshot: Snapshot, resource: DRBDResource, answers: Answers, now: float) -> Decision:
    """Facts/agent 1.11: once the kernel has the standard name, the field is cleared."""
    if snapshot.namesakes:
        names = ", ".join(snapshot.namesakes)
        problem = Problem(Reason.RENAME_FAILED, f"{resource.spec.actual_name_on_the_node} is also claimed by {names}")
        return compute_failure_effects(resource, problem, now)
    request = Rename(resource.spec.actual_name_on_the_node, kernel_name(resource))
    if request not in answers:
        return Decision(ask=(request,))
    problem = answers[request]
    if isinstance(problem, Problem):
        return compute_failure_effects(resource, problem, now)
    cleared = replace(resource, spec=replace(resource.spec, actual_name_on_the_node=""))
    return Decision(effects=(Patch(resource, cleared, Half.MAIN, "the resource has its standard name"),), requeue=True)


def _decide_present(snapshot: Snapshot, resource: DRBDResource, answers: Answers, now: float) -> Decision:
    places = snapshot.wanted.missing
    allocate = _allocate(snapshot, resource, places)
    if places and allocate not in answers:
        return Decision(ask=(allocate,))
    ports = answers.get(allocate) if places else PortsAnswer(())
    addresses, problems = _merge_ports(snapshot, resource, ports)
    intents = _ensure_intents(snapshot, resource, addresses)
    if intents:
        return Decision(effects=intents, requeue=True)
    outcome_request = _outcome_request(snapshot, resource, addresses)
    if outcome_request not in answers:
        return Decision(ask=(outcome_request,))
    outcome = answers[outcome_request]
    if not isinstance(outcome, Outcome):
        raise TypeError(f"unexpected answer {outcome!r}")
    if outcome.busy_port:
        return _decide_busy_port(snapshot, resource, addresses, outcome, answers, now)
    disk = compute_disk(snapshot, resource)
    problems += (disk.problem,) if disk.problem else ()
    return compute_effects(snapshot, resource, addresses, outcome, problems, now)


# --- addresses ---------------------------------------------------------------------------------------------------


def _allocate(
    snapshot: Snapshot, resource: DRBDResource, places: tuple[Place, ...], *refused: tuple[str, int]
) -> AllocatePorts:
    name = name_in_kernel(resource)
    return AllocatePorts(resource.metadata.name, name, places, snapshot.taken_ports, refused)


def _merge_ports(
    snapshot: Snapshot, resource: DRBDResource, ports: object
) -> tuple[tuple[Address, ...], tuple[Problem, ...]]:
    if not isinstance(ports, PortsAnswer):
        raise TypeError(f"unexpected answer {ports!r}")
    addresses = in_network_order(resource, (*snapshot.wanted.kept, *ports.addresses))
    return addresses, (ports.problem,) if ports.problem else ()


def _decide_busy_port(
    snapshot: Snapshot,
    resource: DRBDResource,
    addresses: tuple[Address, ...],
    outcome: Outcome,
    answers: Answers,
    now: float,
) -> Decision:
    """The kernel refused the local address (102): take another port; the peers learn it through the status."""
    ip, _, port = outcome.busy_port.rpartition(":")
    busy = tuple(address for address in addresses if address.address.ipv4 == ip and address.address.port == int(port))
    places = tuple(Place(address.system_network_name, ip) for address in busy)
    request = _allocate(snapshot, resource, places, (ip, int(port)))
    if places and request not in answers:
        return Decision(ask=(request,))
    answer = answers.get(request) if places else PortsAnswer(())
    if not isinstance(answer, PortsAnswer):
        raise TypeError(f"unexpected answer {answer!r}")
    kept = tuple(address for address in addresses if address not in busy)
    fresh = in_network_order(resource, (*kept, *(answer.addresses or busy)))
    problems = (answer.problem,) if answer.problem else ()
    return compute_effects(snapshot, resource, fresh, outcome, problems, now)


# --- intents, durable before anything is done --------------------------------------------------------------------


def _ensure_intents(snapshot: Snapshot, resource: DRBDResource, addresses: tuple[Address, ...]) -> tuple[Effect, ...]:
    """Own finalizer; addresses and write-ahead list; finalizer of the volume. In this order, in one go."""
    effects: list[Effect] = []
    live = up_and_live(resource)
    finalizers = resource.metadata.finalizers
    if live and not resource.metadata.deleting and FINALIZER_AGENT not in finalizers:
        metadata = replace(resource.metadata, finalizers=(*finalizers, FINALIZER_AGENT))
        effects.append(Patch(resource, replace(resource, metadata=metadata), Half.MAIN, "the agent works on it"))
    noted = ensure_noted(resource, addresses, _volume_to_note(resource))
    if noted != resource.status:
        cause = "addresses and the volume to release are durable before the kernel is touched"
        effects.append(Patch(resource, replace(resource, status=noted), Half.STATUS, cause))
    volume = snapshot.volume(_volume_to_note(resource)).volume if _volume_to_note(resource) else None
    if volume is not None and not volume.metadata.deleting and FINALIZER_AGENT not in volume.metadata.finalizers:
        held = replace(volume.metadata, finalizers=(*volume.metadata.finalizers, FINALIZER_AGENT))
        effects.append(Patch(volume, replace(volume, metadata=held), Half.MAIN, "the volume is about to be attached"))
    return tuple(effects)


def ensure_noted(resource: DRBDResource, addresses: tuple[Address, ...], volume: str) -> DRBDResourceStatus:
    """The status with the addresses and, in the list of volumes to release, the volume."""
    status = resource.status
    active = status.active_configuration
    listed = active.llv_finalizers_to_release if active else ()
    if volume and volume not in listed:
        base = active or ActiveConfiguration()
        active = replace(base, llv_finalizers_to_release=(*listed, volume))
    return replace(status, addresses=addresses, active_configuration=active)


def _volume_to_note(resource: DRBDResource) -> str:
    """The volume that will be attached; none in maintenance, where nothing is attached."""
    spec = resource.spec
    if spec.maintenance or not up_and_live(resource) or spec.type != "Diskful":
        return ""
    return spec.lvm_logical_volume_name


# --- the intended state ------------------------------------------------------------------------------------------


def _outcome_request(snapshot: Snapshot, resource: DRBDResource, addresses: tuple[Address, ...]) -> Converge | Look:
    if resource.spec.maintenance:
        return Look(name_in_kernel(resource))
    return Converge(compute_target(snapshot, resource, addresses))


def compute_target(snapshot: Snapshot, resource: DRBDResource, addresses: tuple[Address, ...]) -> Intended:
    """What the host is asked to bring about."""
    disk = compute_disk(snapshot, resource)
    return compute_intended(
        resource,
        name=kernel_name(resource),
        up=up_and_live(resource),
        addresses=addresses,
        disk=disk.intended,
        keep_disk=disk.keep,
        settings=snapshot.settings,
    )


def compute_disk(snapshot: Snapshot, resource: DRBDResource) -> Disk:
    """Phase 5 of facts/agent 1.6: which device, or why there is none."""
    spec = resource.spec
    if spec.type != "Diskful" or not up_and_live(resource):
        return Disk()
    backing = snapshot.volume(spec.lvm_logical_volume_name)
    volume = backing.volume
    if volume is None:
        return _unavailable(f"LVMLogicalVolume {backing.name} does not exist")
    if backing.group is None:
        return _unavailable(f"LVMVolumeGroup {volume.spec.lvm_volume_group_name} is not on this node")
    active = resource.status.active_configuration
    if volume.metadata.deleting:
        if active is not None and active.lvm_logical_volume_name == backing.name:
            return Disk(keep=True)
        return Disk(keep=True, problem=Problem(Reason.BACKING_VOLUME_DELETING, f"{backing.name} is being deleted"))
    if volume.status.actual_size is None and volume.status.phase != Phase.CREATED:
        return _unavailable(f"LVMLogicalVolume {backing.name} is not created yet")
    return Disk(IntendedDisk(backing.device, resource.status.device_uuid, new_device_uuid(resource)))


def _unavailable(message: str) -> Disk:
    return Disk(keep=True, problem=Problem(Reason.BACKING_VOLUME_UNAVAILABLE, message))
