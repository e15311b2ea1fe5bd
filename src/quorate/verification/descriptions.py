"""Published configurations and passes in short words, for traces."""

from __future__ import annotations

from quorate.datamesh.contract import ReplicaAction
from quorate.datamesh.members import id_of
from quorate.verification.published import Published


def describe_pass(before: Published, after: Published, actions: tuple[ReplicaAction, ...]) -> str:
    parts = [type(action).__name__ for action in actions]
    if after.revision != before.revision or after.status.datamesh != before.status.datamesh:
        parts.append(f"publishes {summary(after)}")
    for transition in after.status.datamesh_transitions:
        active = next((step.name for step in transition.steps if step.status == "Active"), "")
        parts.append(f"{transition.type} {transition.plan_id} {transition.replica_name}: {active}".replace("  ", " "))
    return "; ".join(parts) or "records progress"


def summary(entry: Published) -> str:
    """Members, q and qmr in short."""
    datamesh = entry.status.datamesh
    marks = {"Diskful": "D", "LiminalDiskful": "D∅", "TieBreaker": "TB", "Access": "A"}
    found = " ".join(
        f"n{id_of(m.name)}={marks.get(m.type, m.type)}{'*' if m.attached else ''}"
        f"{'!' if m.tie_breakers_disconnected else ''}"
        for m in sorted(datamesh.members, key=lambda m: id_of(m.name))
    )
    off = ", TB vote off" if datamesh.tie_breakers_suspended else ""
    return f"[{found}] q={datamesh.quorum} qmr={datamesh.quorum_minimum_redundancy}{off}"
