"""The plan: from what is on the node and what shall be there to the commands that lead from one to the other. Pure.

Theory of operation

* Order of facts/agent 1.7: resource, options, minor, link, disk, peers, size, role. One change: what makes this node
  stricter (a higher q or qmr, a tie-breaker losing its vote) comes before the peers are touched, what makes it laxer
  comes after (decision 5), so that in between the stricter of the two holds. `majority` sinks with the peers: before a
  voter goes, a number of the same value is written. The model checker runs this order (`verification/agent.py`).
* A plan is valid for the observation it was made from. `attach` is planned only where `show` and `status` both say
  "no disk", the metadata tool itself just found the disk free, and used metadata got its log applied: a second attach
  of an attached minor can crash the node (S15b), and unclean metadata is refused (165).
* Metadata is created only where none exists; a disk with another identity is refused, never touched.
* Options of the peer device stand before `connect`, so no bitmap slot is wasted and no wrong quorum moment exists (T4).
* A peer that is no longer wanted is disconnected, deleted and forgotten: it counts until it is forgotten (S9).
* `down` is planned only while nobody has the device open: a read-only opener makes it dismantle half a resource (S4b).
* An empty plan means: as intended. The caller runs the steps, observes again and plans again; a command that returned 0
  without effect shows up as the same plan twice.
"""

from __future__ import annotations

from dataclasses import dataclass

from quorate.agent import commands
from quorate.agent.actual import NO_OPTIONS, ActualResource, ActualVolume, Observation
from quorate.agent.commands import Command, MakeLink, RemoveLink, Step
from quorate.agent.intended import Intended, IntendedDisk
from quorate.agent.parsers.metadata import Metadata
from quorate.agent.parsers.show import Options, text
from quorate.agent.plan_peers import loses_voters, plan_forgotten_peers, plan_peers, plan_removed_peers, plan_votes
from quorate.agent.quorum_flag import compute_threshold
from quorate.api.common import DiskState, DrbdRole
from quorate.api.drbd_resource import ConfiguredCondition as Reason

LONGEST_NAME = 127
LONGEST_SECRET = 63


@dataclass(frozen=True, slots=True)
class Problem:
    """Something the agent will not do by itself."""

    reason: str
    message: str


@dataclass(frozen=True, slots=True)
class Plan:
    """Steps in order, and what stands in the way of the rest."""

    steps: tuple[Step, ...] = ()
    problems: tuple[Problem, ...] = ()

    @property
    def done(self) -> bool:
        return not self.steps and not self.problems


def compute_plan(observation: Observation, intended: Intended) -> Plan:
    """What to do next."""
    actual = observation.resource
    if not intended.up:
        return _plan_tear_down(observation, intended)
    limits = _exceeded_limits(intended)
    if limits:
        return Plan(problems=limits)
    if actual is None:
        return Plan(_plan_new_resource(intended))
    if actual.node_id != intended.node_id or actual.surplus_volumes:
        # A leftover of another incarnation under our own name: new-resource would silently keep its node id (S15).
        return _plan_tear_down(observation, intended)
    if actual.volume is None:
        minor = commands.new_minor(intended.name, observation.free_minor, diskless=intended.diskless)
        return Plan((*_plan_options_first(actual, intended), minor))
    return _plan_existing(observation, actual, actual.volume, intended)


def _exceeded_limits(intended: Intended) -> tuple[Problem, ...]:
    """T12: what the API accepts and DRBD does not, said before any command is run."""
    problems: list[Problem] = []
    if len(intended.name) > LONGEST_NAME:
        text_ = f"the resource name has {len(intended.name)} characters, DRBD takes {LONGEST_NAME}"
        problems.append(Problem(Reason.NEW_RESOURCE_FAILED, text_))
    for peer in intended.peers:
        secret = dict(peer.net).get("shared-secret", "")
        if len(secret.encode()) > LONGEST_SECRET:
            text_ = f"the shared secret of {peer.name} has {len(secret)} characters, DRBD takes {LONGEST_SECRET}"
            problems.append(Problem(Reason.NEW_PEER_FAILED, text_))
    return tuple(problems)


def _plan_tear_down(observation: Observation, intended: Intended) -> Plan:
    actual = observation.resource
    unlink: tuple[Step, ...] = (RemoveLink(intended.link),) if observation.link is not None else ()
    if actual is None:
        return Plan(unlink)
    if actual.open:
        return Plan(problems=(Problem(Reason.DOWN_FAILED, "the device is held open"),))
    demote = (commands.secondary(intended.name),) if actual.role == DrbdRole.PRIMARY else ()
    return Plan((*demote, *unlink, commands.down(intended.name)))


def _plan_new_resource(intended: Intended) -> tuple[Step, ...]:
    """A new resource starts with q as a number: `majority` of the few peers known at first could be too low."""
    options = [*intended.options, ("quorum", str(intended.quorum or "off"))]
    options.append(("quorum-minimum-redundancy", intended.redundancy_text))
    return (
        commands.new_resource(intended.name, intended.node_id),
        commands.resource_options(intended.name, options),
    )


def _plan_existing(observation: Observation, actual: ActualResource, volume: ActualVolume, intended: Intended) -> Plan:
    first = (*_plan_options_first(actual, intended), *plan_votes(actual, intended, gained=False))
    device = f"/dev/drbd{volume.minor}"
    link = (MakeLink(intended.link, device),) if observation.link != device else ()
    disk = _plan_disk(observation, volume, intended)
    if _ends_round(disk.steps):
        return Plan((*first, *link, *disk.steps))
    peers: tuple[Step, ...] = (
        *plan_peers(actual, intended, observation.held_connects),
        *plan_removed_peers(observation, actual, intended),
        *plan_forgotten_peers(observation, actual, intended),
    )
    last = (
        *_plan_options_last(actual, intended),
        *plan_votes(actual, intended, gained=True),
        *_plan_size(volume, intended),
        *(() if observation.held_role else _plan_role(actual, intended)),
    )
    # A disk that must not be touched keeps nothing else from being done: a demotion or a lower q may be urgent.
    return Plan((*first, *link, *disk.steps, *peers, *last), disk.problems)


# --- options -----------------------------------------------------------------------------------------------------


def _plan_options_first(actual: ActualResource, intended: Intended) -> tuple[Step, ...]:
    """Options that are never wrong to set at once: everything but quorum, and a quorum that becomes stricter."""
    options = [(name, value) for name, value in intended.options if text(actual.options, name) != value]
    quorum = _stricter_quorum(actual, intended)
    if quorum:
        options.append(("quorum", quorum))
    if _redundancy_changes(actual, intended) and intended.redundancy > _number(actual.redundancy_option):
        options.append(("quorum-minimum-redundancy", intended.redundancy_text))
    return (commands.resource_options(intended.name, options),) if options else ()


def _plan_options_last(actual: ActualResource, intended: Intended) -> tuple[Step, ...]:
    """What becomes looser, after the peers are as intended."""
    options: list[tuple[str, str]] = []
    written = _stricter_quorum(actual, intended) or actual.quorum_option
    if written != intended.quorum_text:
        options.append(("quorum", intended.quorum_text))
    if _redundancy_changes(actual, intended) and intended.redundancy < _number(actual.redundancy_option):
        options.append(("quorum-minimum-redundancy", intended.redundancy_text))
    return (commands.resource_options(intended.name, options),) if options else ()


def _stricter_quorum(actual: ActualResource, intended: Intended) -> str:
    """What to write before the peers: a number, when it is higher than what the kernel asks for now or when `majority`
    would sink meanwhile; empty otherwise. `majority` itself is written last in any case."""
    current = compute_threshold(actual.quorum_option, count_voters(actual))
    if actual.quorum_option == "majority" and (intended.quorum_text != "majority" or loses_voters(actual, intended)):
        pinned = max(intended.quorum, current)
        return str(pinned) if pinned else ""
    if actual.quorum_option != intended.quorum_text and intended.quorum > current:
        return str(intended.quorum)
    return ""


def count_voters(actual: ActualResource) -> int:
    """Voters as the kernel's configuration has them: the own disk and every peer with a bitmap slot that is visible."""
    own = 1 if actual.volume is not None and actual.volume.attached else 0
    return own + sum(1 for peer in actual.peers if peer.bitmap and peer.allow_remote_read)


def _redundancy_changes(actual: ActualResource, intended: Intended) -> bool:
    return actual.redundancy_option != intended.redundancy_text


def _number(option: str) -> int:
    return int(option) if option.isdigit() else 0


# --- disk --------------------------------------------------------------------------------------------------------


def _plan_disk(observation: Observation, volume: ActualVolume, intended: Intended) -> Plan:
    if intended.keep_disk:
        return Plan()
    if volume.attached and not volume.backing_disk:
        # Attaching, detaching or failed: on its way, the next event says where it went.
        return Plan()
    if volume.attached:
        wanted = intended.disk.device if intended.disk and not intended.diskless else ""
        if volume.backing_disk == wanted and wanted:
            return Plan(_plan_disk_options(volume.minor, volume.disk_options, observation, intended))
        return Plan((commands.detach(volume.minor, diskless=intended.diskless),))
    if intended.diskless or intended.disk is None:
        return Plan()
    return _plan_attach(observation, volume, intended, intended.disk)


def _plan_attach(observation: Observation, volume: ActualVolume, intended: Intended, disk: IntendedDisk) -> Plan:
    """Facts/agent 1.8, row by row."""
    probe = observation.probe
    if probe is None or probe.metadata is Metadata.BUSY:
        return Plan(problems=(Problem(Reason.ATTACH_FAILED, f"{disk.device} is in use by somebody else"),))
    if probe.metadata is Metadata.UNREADABLE:
        return Plan(problems=(Problem(Reason.READ_DEV_UUID_FAILED, probe.error),))
    minor = volume.minor
    if probe.metadata is Metadata.NONE:
        identity = disk.known_uuid or disk.new_uuid
        return Plan((commands.create_md(minor, disk.device), commands.write_dev_uuid(minor, disk.device, identity)))
    if disk.known_uuid and probe.device_uuid and probe.device_uuid != disk.known_uuid:
        text_ = f"{disk.device} carries device uuid {probe.device_uuid}, expected {disk.known_uuid}"
        return Plan(problems=(Problem(Reason.FOREIGN_DISK_DETECTED, text_),))
    if probe.metadata is Metadata.UNCLEAN:
        return Plan((commands.apply_al(minor, disk.device),))
    if probe.dump is not None and probe.dump.node_id not in (-1, intended.node_id):
        text_ = f"{disk.device} belongs to node id {probe.dump.node_id}, this is node id {intended.node_id}"
        return Plan(problems=(Problem(Reason.FOREIGN_DISK_DETECTED, text_),))
    if not probe.device_uuid:
        return Plan((commands.write_dev_uuid(minor, disk.device, disk.known_uuid or disk.new_uuid),))
    options = _disk_options(observation, intended)
    return Plan((commands.attach(minor, disk.device), commands.disk_options(minor, options)))


def _ends_round(steps: tuple[Step, ...]) -> bool:
    """After metadata work the disk is looked at again before `attach`; a detach settles before anything else."""
    last = steps[-1] if steps else None
    return isinstance(last, Command) and (last.argv[0] == "drbdmeta" or last.verb == "detach")


def _disk_options(observation: Observation, intended: Intended) -> list[tuple[str, str]]:
    options = [("discard-zeroes-if-aligned", "yes"), ("rs-discard-granularity", str(observation.discard_granularity))]
    if intended.non_voting:
        # Only where it differs from the built-in default: tools without the option then say so (T7).
        options.append(("non-voting", "yes"))
    return options


def _plan_disk_options(minor: int, actual: Options, observation: Observation, intended: Intended) -> tuple[Step, ...]:
    differing = [(name, value) for name, value in _disk_options(observation, intended) if text(actual, name) != value]
    if "non-voting" in actual and not intended.non_voting and text(actual, "non-voting") == "yes":
        differing.append(("non-voting", "no"))
    return (commands.disk_options(minor, differing),) if differing and actual is not NO_OPTIONS else ()


# --- size and role -----------------------------------------------------------------------------------------------


def _plan_size(volume: ActualVolume, intended: Intended) -> tuple[Step, ...]:
    grown = volume.attached and volume.disk_state != DiskState.DISKLESS and 0 < volume.size < intended.size
    return (commands.resize(volume.minor, intended.size),) if grown and not intended.diskless else ()


def _plan_role(actual: ActualResource, intended: Intended) -> tuple[Step, ...]:
    if intended.primary and actual.role != DrbdRole.PRIMARY:
        return (commands.primary(intended.name),)
    if not intended.primary and actual.role == DrbdRole.PRIMARY:
        return (commands.secondary(intended.name),)
    return ()
