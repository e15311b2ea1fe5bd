"""ChangeQuorum (facts/datamesh 3.9): the one place that changes qmr, and the repair of q and of the tie-breakers' vote.

Values are computed when a step is applied, from the members of that moment; one that is right already is a no-op step. qmr
rises only as far as the UpToDate copies carry it (S10). A vote or a connection of tie-breakers that a voter change left
behind is restored by a plan of its own.
"""

from __future__ import annotations

from quorate.api.replicated_volume import Datamesh, TransitionGroup, TransitionType
from quorate.api.value import replace
from quorate.datamesh import confirm, ids, steps
from quorate.datamesh.context import Context
from quorate.datamesh.dsl import Kind, Plan, Slot, Step
from quorate.datamesh.layout import target_qmr


def right_qmr(context: Context) -> int:
    """The qmr that is right now (facts/datamesh 1.6).

    The tie-break ignores qmr (S17b), so a higher one promises nothing while a tie-breaker that the layout does not want can
    still break a tie: it goes first.
    """
    mesh, layout = context.mesh, context.world.layout
    current = mesh.datamesh.quorum_minimum_redundancy
    right = target_qmr(layout, current, ids.count(context.up_to_date))
    surplus = ids.count(mesh.tie_breakers) > layout.tie_breakers and mesh.voter_count % 2 == 0
    return current if right > current >= 1 and surplus else right


def _set_qmr(context: Context) -> Datamesh:
    return replace(context.mesh.datamesh, quorum_minimum_redundancy=right_qmr(context))


def _restore(context: Context) -> Datamesh:
    datamesh = steps.vote_on(context)
    if not any(member.tie_breakers_disconnected for member in datamesh.members):
        return datamesh
    members = tuple(replace(member, tie_breakers_disconnected=False) for member in datamesh.members)
    return replace(datamesh, members=members)


def _quorum(name: str, raises: bool) -> Step:
    return Step(name, Kind.OTHER, steps.lower_quorum, confirm.by_all, voting=True, raises=raises)


def _qmr(name: str, raises: bool) -> Step:
    return Step(name, Kind.OTHER, _set_qmr, confirm.by_all, voting=True, raises=raises)


def _plan(plan_id: str, *plan_steps: Step) -> Plan:
    return Plan(
        type=TransitionType.CHANGE_QUORUM,
        plan_id=plan_id,
        group=TransitionGroup.QUORUM,
        slot=Slot.VOLUME,
        display="Adjusting quorum",
        guards=(),
        steps=plan_steps,
    )


LOWER = _plan("lower/v1", _qmr("qmr↓", False), _quorum("q↓", False))
RAISE = _plan("raise/v1", _quorum("q↑", True), _qmr("qmr↑", True))
LOWER_Q_RAISE_QMR = _plan("lower-q-raise-qmr/v1", _quorum("q↓", False), _qmr("qmr↑", True))
RAISE_Q_LOWER_QMR = _plan("raise-q-lower-qmr/v1", _quorum("q↑", True), _qmr("qmr↓", False))
RESTORE = _plan(
    "restore-tie-breakers/v1",
    Step("TB vote on", Kind.VOTE_ON, _restore, confirm.by_all, voting=True),
)

PLANS = (LOWER, RAISE, LOWER_Q_RAISE_QMR, RAISE_Q_LOWER_QMR, RESTORE)
