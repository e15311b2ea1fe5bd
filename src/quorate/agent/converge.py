"""Converging one resource: observe, plan, run the steps, observe again, until there is nothing left to do.

Guarantees:

* bounded: at most `ROUNDS` rounds, every round starts from a fresh observation;
* results are judged by state: a command that returned 0 and changed nothing leaves the same plan behind, which is a
  failure with that command's reason (unless the step is soft);
* the first refused command ends the round; it is reported with the kernel's words;
* a revision is in force only when the kernel's quorum flag is one its own rule allows for what this node sees
  (decision 5). A flag that stayed at "no quorum" although everything is there is woken by writing q again, higher first
  and then as it was, which never gives quorum to anybody who should not have it (S9);
* PrimaryFailed and SecondaryFailed are told only when everything else is as intended and in force: a node that waits for
  quorum must be able to confirm its configuration.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from quorate.agent import commands
from quorate.agent.actual import ActualResource, Observation
from quorate.agent.broker import Broker, CommandUnavailable
from quorate.agent.commands import Command, MakeLink, RemoveLink, Step
from quorate.agent.intended import Intended, Settings
from quorate.agent.minors import Minors
from quorate.agent.observe import PROC_DRBD, ObservationFailed, observe_resource, probe_disk
from quorate.agent.patience import Patience
from quorate.agent.plan import Problem, compute_plan
from quorate.agent.quorum_flag import Verdict, compute_verdict
from quorate.api.common import DrbdRole
from quorate.api.drbd_resource import ConfiguredCondition as Reason
from quorate.machinery.logs import Logger

ROUNDS = 12
ROLE_REASONS = (Reason.PRIMARY_FAILED, Reason.SECONDARY_FAILED)


@dataclass(frozen=True, slots=True)
class Outcome:
    """What came of a pass over one resource."""

    observed: bool
    """Whether `actual` can be believed."""
    actual: ActualResource | None = None
    problems: tuple[Problem, ...] = ()
    verdict: Verdict | None = None
    ran: int = 0
    """Commands that changed something."""
    device_uuid: str = ""
    """Identity found or written on the disk."""
    busy_port: str = ""
    """A local address that another resource holds (102)."""
    soft: tuple[str, ...] = ()
    """Steps that had no effect yet and need another try later."""
    wait: float | None = None
    """Seconds until another pass is worth it without an event."""


@dataclass
class _Pass:
    """What one pass remembers between its rounds."""

    refused: set[int] = field(default_factory=set[int])
    forgotten: set[int] = field(default_factory=set[int])
    ran: int = 0
    device_uuid: str = ""
    busy_port: str = ""
    nudged: bool = False
    forgot_others: bool = False


class Converger:
    """Runs passes; one per resource at a time (the controller's queue sees to that, the broker's lock as well)."""

    def __init__(self, broker: Broker, patience: Patience, settings: Settings, log: Logger) -> None:
        self._log = log
        self._broker = broker
        self._minors = Minors(broker.host)
        self._patience = patience
        self._settings = settings

    async def observe(self, name: str) -> Outcome:
        """Only look (maintenance mode)."""
        try:
            actual = await observe_resource(self._broker, name)
        except (ObservationFailed, CommandUnavailable) as error:
            return Outcome(False, problems=(_problem_of(error),))
        return Outcome(True, actual, verdict=self._verdict(actual))

    async def converge(self, intended: Intended) -> Outcome:
        """Bring the resource to what is intended, as far as that goes now."""
        if intended.up and self._broker.host.read_text(PROC_DRBD) is None:
            # drbdsetup would load the module, with a helper that breaks resyncs; loading it is the agent's own step.
            return Outcome(False, problems=(Problem(Reason.STATE_QUERY_FAILED, "the DRBD module is not loaded"),))
        memory = _Pass()
        actual: ActualResource | None = None
        before: tuple[Step, ...] = ()
        for _ in range(ROUNDS):
            try:
                observation = await self._observe(intended, memory)
            except (ObservationFailed, CommandUnavailable) as error:
                return self._outcome(False, actual, (_problem_of(error),), memory)
            actual = observation.resource
            plan = compute_plan(observation, intended)
            if not plan.steps or plan.steps == before:
                nudge = self._nudge(actual, intended, memory) if not plan.steps else None
                if nudge is None:
                    return self._finish(actual, intended, plan.steps, plan.problems, memory)
                plan = replace(plan, steps=nudge)
            before = plan.steps
            problem = await self._run_steps(intended, plan.steps, memory)
            if problem is not None and problem.reason not in ROLE_REASONS:
                return await self._after_failure(intended, (problem, *plan.problems), memory)
            if problem is not None and actual is not None:
                # The role comes last: what else there is to say about the state is said first, in the next round.
                self._patience.role_refused(actual, problem)
        stuck = Problem(Reason.FAILED, f"still not as intended after {ROUNDS} rounds")
        return self._outcome(True, actual, (stuck,), memory)

    async def _observe(self, intended: Intended, memory: _Pass) -> Observation:
        host = self._broker.host
        actual = await observe_resource(self._broker, intended.name)
        volume = actual.volume if actual else None
        probe = None
        disk = intended.disk
        wanted = intended.up and disk is not None and not intended.diskless and not intended.keep_disk
        if wanted and disk is not None and volume is not None and not volume.attached:
            probe = await probe_disk(self._broker, intended.name, volume.minor, disk.device)
            if probe.device_uuid and (not disk.known_uuid or probe.device_uuid == disk.known_uuid):
                memory.device_uuid = probe.device_uuid
        return Observation(
            resource=actual,
            link=host.read_link(intended.link),
            probe=probe,
            free_minor=self._minors.free_for(intended.name) if intended.up and volume is None else 0,
            discard_granularity=_discard_granularity(self._broker, disk.device) if disk else 0,
            held_connects=self._patience.held_connects(intended.name, actual),
            held_role=self._patience.held_role(actual, primary=intended.primary) is not None,
            refused_disconnects=frozenset(memory.refused),
            forgotten=frozenset(memory.forgotten),
            forget_all_others=memory.forgot_others,
        )

    async def _run_steps(self, intended: Intended, steps: tuple[Step, ...], memory: _Pass) -> Problem | None:
        for step in steps:
            problem = await self._run_step(intended, step, memory)
            if problem is not None:
                if problem.reason == Reason.DISCONNECT_FAILED and self._may_force(step, memory):
                    return None
                return problem
        return None

    async def _run_step(self, intended: Intended, step: Step, memory: _Pass) -> Problem | None:
        host = self._broker.host
        if isinstance(step, MakeLink | RemoveLink):
            try:
                if isinstance(step, MakeLink):
                    host.make_link(step.path, step.target)
                else:
                    host.remove(step.path)
            except OSError as error:
                return Problem(step.reason, str(error))
            return None
        try:
            result = await self._broker.run(intended.name, step.argv)
        except CommandUnavailable as error:
            return Problem(step.reason, str(error))
        memory.ran += 1
        if result.exit_code == 0:
            self._remember(intended, step, memory)
            return None
        code = commands.kernel_code(result)
        if code in step.tolerated:
            return None
        if step.verb == "disconnect" and code in (commands.REFUSED_BY_PEER, commands.NO_QUORUM):
            memory.refused.add(int(step.argv[3]))
        if step.verb == "new-path" and code == commands.LOCAL_ADDRESS_IN_USE:
            memory.busy_port = step.argv[4]
        self._log.warning("command refused", command=str(step), error=commands.error_text(result))
        return Problem(step.reason, f"{step.verb}: {commands.error_text(result)}")

    def _may_force(self, step: Step, memory: _Pass) -> bool:
        """A plain disconnect of a peer that shall go was refused for the sake of quorum: the next round forces it."""
        return isinstance(step, Command) and "--force" not in step.argv and int(step.argv[3]) in memory.refused

    def _remember(self, intended: Intended, step: Command, memory: _Pass) -> None:
        match step.verb:
            case "forget-peer":
                memory.forgotten.add(int(step.argv[3]))
            case "connect":
                self._patience.connect_accepted(intended.name, int(step.argv[3]))
            case "write-dev-uuid":
                memory.device_uuid = step.argv[-1]
            case "new-minor" | "down":
                self._minors.settle(intended.name)
            case "primary" | "secondary":
                self._patience.role_settled(intended.name)
            case _:
                pass

    async def _after_failure(self, intended: Intended, problems: tuple[Problem, ...], memory: _Pass) -> Outcome:
        """The state after a refused command is reported as well."""
        try:
            actual = await observe_resource(self._broker, intended.name)
        except (ObservationFailed, CommandUnavailable) as error:
            return self._outcome(False, None, (*problems, _problem_of(error)), memory)
        return self._outcome(True, actual, problems, memory)

    def _nudge(self, actual: ActualResource | None, intended: Intended, memory: _Pass) -> tuple[Step, ...] | None:
        """Make the kernel look at its quorum again when it says "none" although its own rule says otherwise."""
        verdict = self._verdict(actual)
        if verdict is None or not verdict.stale_loss or not intended.quorum:
            return None
        if not memory.nudged:
            memory.nudged = True
            higher = commands.resource_options(intended.name, [("quorum", str(intended.quorum + 1))])
            return (higher, commands.resource_options(intended.name, [("quorum", intended.quorum_text)]))
        if not memory.forgot_others:
            # Voters nobody configured: peers removed while an agent was down. Look again with all of them forgotten.
            memory.forgot_others, memory.nudged = True, False
            wanted = {peer.node_id for peer in intended.peers} | {intended.node_id}
            others = (node_id for node_id in range(32) if node_id not in wanted)
            return tuple(commands.forget_peer(intended.name, node_id) for node_id in others)
        return None

    def _finish(
        self,
        actual: ActualResource | None,
        intended: Intended,
        left: tuple[Step, ...],
        problems: tuple[Problem, ...],
        memory: _Pass,
    ) -> Outcome:
        """Nothing more can be done now: what is left had no effect."""
        hard = [step for step in left if not (isinstance(step, Command) and step.soft)]
        if hard:
            problems = (Problem(hard[0].reason, f"{hard[0]} had no effect"), *problems)
        soft = tuple(str(step) for step in left if isinstance(step, Command) and step.soft)
        verdict = self._verdict(actual)
        if verdict is not None and not verdict.enforced and intended.up:
            problems = (*problems, Problem(Reason.QUORUM_NOT_ENFORCED, describe(verdict)))
        if actual is None or not _role_differs(actual, intended):
            self._patience.role_settled(intended.name)
        elif (refused := self._patience.held_role(actual, primary=intended.primary)) is not None:
            problems = (*problems, refused)
        return replace(self._outcome(True, actual, problems, memory), soft=soft)

    def _outcome(
        self, observed: bool, actual: ActualResource | None, problems: tuple[Problem, ...], memory: _Pass
    ) -> Outcome:
        return Outcome(
            observed=observed,
            actual=actual,
            problems=problems,
            verdict=self._verdict(actual),
            ran=memory.ran,
            device_uuid=memory.device_uuid,
            busy_port=memory.busy_port,
            wait=self._patience.wait(actual) if actual else None,
        )

    def _verdict(self, actual: ActualResource | None) -> Verdict | None:
        return compute_verdict(actual, dynamic_voters=not self._settings.static) if actual else None


def describe(verdict: Verdict) -> str:
    """Why the flag is not what it should be, in numbers."""
    tally = verdict.tally
    says = "quorum" if verdict.flag else "no quorum"
    return (
        f"the kernel says {says}, but {tally.visible} of {tally.voters} voters are visible and {tally.up_to_date} are"
        " UpToDate; the stored thresholds are not in force yet"
    )


def _role_differs(actual: ActualResource, intended: Intended) -> bool:
    return intended.up and intended.primary != (actual.role == DrbdRole.PRIMARY)


def _problem_of(error: ObservationFailed | CommandUnavailable) -> Problem:
    reason = error.reason if isinstance(error, ObservationFailed) else Reason.STATE_QUERY_FAILED
    return Problem(reason, str(error))


def _discard_granularity(broker: Broker, device: str) -> int:
    """Of the device mapper node behind the disk; 0 when it says nothing."""
    target = broker.host.read_link(device)
    name = (target or device).rpartition("/")[2]
    text = broker.host.read_text(f"/sys/block/{name}/queue/discard_granularity")
    return int(text) if text and text.strip().isdigit() else 0
