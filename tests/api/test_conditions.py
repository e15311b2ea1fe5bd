from __future__ import annotations

from quorate.api import conditions
from quorate.api.meta import Condition

T0, T1 = 1_000_000.0, 1_000_060.0


def _set(
    old: tuple[Condition, ...],
    type_: str = "Ready",
    *,
    status: str = "True",
    reason: str = "Ready",
    message: str = "",
    generation: int = 1,
    now: float = T0,
) -> tuple[Condition, ...]:
    return conditions.set_(old, type_, status=status, reason=reason, message=message, generation=generation, now=now)


def test_setting_stamps_generation_and_time() -> None:
    (condition,) = _set((), message="fine", generation=7)
    assert condition == Condition(
        type="Ready",
        status="True",
        reason="Ready",
        message="fine",
        observed_generation=7,
        last_transition_time="1970-01-12T13:46:40Z",
    )


def test_setting_the_same_again_returns_the_very_same_tuple() -> None:
    first = _set(())
    assert _set(first, now=T1) is first


def test_the_time_moves_only_when_the_status_changes() -> None:
    first = _set(())
    for changed in (
        _set(first, reason="Other", now=T1),
        _set(first, message="other", now=T1),
        _set(first, generation=2, now=T1),
    ):
        assert changed != first
        assert changed[0].last_transition_time == first[0].last_transition_time
    moved = _set(first, status="False", reason="Lost", now=T1)
    assert moved[0].last_transition_time == "1970-01-12T13:47:40Z"


def test_order_is_stable() -> None:
    three = _set(_set(_set((), "A"), "B"), "C")
    changed = _set(three, "B", status="False", now=T1)
    assert [condition.type for condition in changed] == ["A", "B", "C"]
    assert changed[0] is three[0]
    assert changed[2] is three[2]


def test_messages_are_cut_to_the_limit() -> None:
    (condition,) = _set((), message="x" * 40_000)
    assert len(condition.message) == 32768
    assert condition.message.endswith("…")
    assert _set((condition,), message="x" * 40_000, now=T1) == (condition,)


def test_removing() -> None:
    both = _set(_set((), "A"), "B")
    assert [condition.type for condition in conditions.remove(both, "A")] == ["B"]
    assert conditions.remove(both, "C") is both
    assert conditions.remove(both, "A", "B") == ()


def test_reading() -> None:
    found = _set(_set((), "A", generation=3), "B", status="False", reason="No", generation=3)
    assert conditions.is_true(found, "A")
    assert conditions.is_true(found, "A", generation=3)
    assert not conditions.is_true(found, "A", generation=4)
    assert not conditions.is_true(found, "B")
    assert not conditions.is_true(found, "C")
    assert conditions.is_false(found, "B")
    assert not conditions.is_false(found, "B", generation=4)
    assert conditions.status_of(found, "B") == "False"
    assert conditions.status_of(found, "C") is None
    assert conditions.reason_of(found, "B") == "No"
    assert conditions.reason_of(found, "C") == ""
    assert conditions.get(found, "C") is None


def test_sameness_ignores_the_time_only() -> None:
    (a,) = _set(())
    (later,) = _set((), now=T1)
    assert a != later
    assert conditions.same(a, later)
    assert conditions.same(None, None)
    assert not conditions.same(a, None)
    for other in (_set((), generation=2), _set((), reason="R"), _set((), message="m"), _set((), status="False")):
        assert not conditions.same(a, other[0])
    assert conditions.all_same((a,), (later,), ["Ready", "Absent"])
    assert not conditions.all_same((a,), (), ["Ready"])
