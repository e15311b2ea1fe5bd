"""What all planners share."""

from __future__ import annotations

from quorate.datamesh import messages
from quorate.datamesh.create import Proposal, create
from quorate.datamesh.dsl import Block
from quorate.datamesh.state import Report, State


def create_global(state: State, proposal: Proposal, report: Report) -> State:
    """Create a transition of the whole volume, or note why it waits."""
    result = create(state, proposal)
    if isinstance(result, Block):
        report.volume[proposal.plan.type] = messages.blocked_text(proposal.plan, result)
        return state
    return result
