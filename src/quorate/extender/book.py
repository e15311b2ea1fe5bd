"""The capacity book: what the extender knows, and its two answers. No I/O; the time comes in with each question.

The book is fed with the changes of volume groups and logical volumes and remembers the capacity of each place, so a question
about a thousand places costs a thousand look-ups. A reservation named like a logical volume ends when that volume appears,
because then the volume itself counts.
"""

from __future__ import annotations

from quorate.api.lvm_logical_volume import LVMLogicalVolume
from quorate.api.lvm_volume_group import LVMVolumeGroup
from quorate.api.scheduler_extender import (
    FilterAndScore,
    NarrowReservation,
    Scores,
    VolumeGroupScore,
    parse_go_duration,
)
from quorate.extender.capacity import Capacity, compute_capacities
from quorate.extender.reservations import Place, Reservations
from quorate.extender.scoring import DEFAULT_DIVISOR, compute_free_percent_after, compute_score_table
from quorate.machinery.cache import Caches
from quorate.machinery.store import Change


class BadRequest(ValueError):
    """A question that makes no sense; the message says why."""


class CapacityBook:
    """Capacities by place, and who reserved what."""

    def __init__(self, divisor: float = DEFAULT_DIVISOR) -> None:
        self.reservations = Reservations()
        self._scores = compute_score_table(divisor)
        self._groups: dict[str, LVMVolumeGroup] = {}
        self._volumes: dict[str, dict[str, LVMLogicalVolume]] = {}
        self._capacities: dict[Place, Capacity] = {}
        """By place; up to date but for the groups in `_changed`."""
        self._places: dict[str, tuple[Place, ...]] = {}
        self._changed: dict[str, None] = {}

    def follow(self, caches: Caches) -> None:
        """Feed the book from the caches of this process."""
        caches.follow(LVMVolumeGroup).subscribe(self._on_group)
        caches.follow(LVMLogicalVolume).subscribe(self._on_volume)

    def _on_group(self, change: Change[LVMVolumeGroup]) -> None:
        self.apply_group(change.old, change.new)

    def _on_volume(self, change: Change[LVMLogicalVolume]) -> None:
        self.apply_volume(change.old, change.new)

    def apply_group(self, old: LVMVolumeGroup | None, new: LVMVolumeGroup | None) -> None:
        """A volume group appeared, changed or went."""
        for group in (old, new):
            if group is not None:
                self._changed[group.metadata.name] = None
                self._groups.pop(group.metadata.name, None)
        if new is not None:
            self._groups[new.metadata.name] = new

    def apply_volume(self, old: LVMLogicalVolume | None, new: LVMLogicalVolume | None) -> None:
        """A logical volume appeared, changed or went. Its reservation ends either way: it counts itself, or not at all."""
        for volume in (old, new):
            if volume is None:
                continue
            group = volume.spec.lvm_volume_group_name
            self._changed[group] = None
            self._volumes.get(group, {}).pop(volume.metadata.name, None)
            self.reservations.release(volume.metadata.name)
        if new is not None:
            self._volumes.setdefault(new.spec.lvm_volume_group_name, {})[new.metadata.name] = new

    def capacity(self, place: Place) -> Capacity | None:
        """Capacity of a place before reservations; None when unknown."""
        self._refresh()
        return self._capacities.get(place)

    def _refresh(self) -> None:
        """Compute the capacities of the groups that changed."""
        for name in self._changed:
            for place in self._places.pop(name, ()):
                del self._capacities[place]
            group = self._groups.get(name)
            if group is not None:
                found = compute_capacities(group, self._volumes.get(name, {}).values())
                self._places[name] = tuple(found)
                self._capacities.update(found)
        self._changed.clear()

    def filter_and_score(self, request: FilterAndScore, now: float) -> Scores:
        """The places that have room, reserved until the request's time to live is over."""
        ttl = _check(request.reservation_id, request.reservation_ttl)
        if request.size <= 0:
            raise BadRequest("size must be greater than 0")
        if not request.lvgs:
            raise BadRequest("lvgs must not be empty")
        if any(not item.name for item in request.lvgs):
            raise BadRequest("name of an LVMVolumeGroup must not be empty")
        self.reservations.advance(now)
        # The asker's own older claim is about to be replaced: it does not compete with itself.
        self.reservations.release(request.reservation_id)
        self._refresh()
        scores: list[VolumeGroupScore] = []
        places: list[Place] = []
        for item in request.lvgs:
            place = Place(item.name, item.thin_pool_name)
            capacity = self._capacities.get(place)
            if capacity is None:
                continue
            available = capacity.available - self.reservations.reserved(place)
            if available < request.size:
                continue
            score = self._scores[compute_free_percent_after(capacity.total, available, request.size)]
            places.append(place)
            scores.append(VolumeGroupScore(name=item.name, thin_pool_name=item.thin_pool_name, score=score))
        self.reservations.claim(request.reservation_id, request.size, places, now + ttl)
        return Scores(lvgs=tuple(scores))

    def narrow(self, request: NarrowReservation, now: float) -> str:
        """Keep one place of a reservation; why it cannot be kept, empty when it is."""
        ttl = _check(request.reservation_id, request.reservation_ttl)
        if not request.lvg.name:
            raise BadRequest("name of an LVMVolumeGroup must not be empty")
        self.reservations.advance(now)
        place = Place(request.lvg.name, request.lvg.thin_pool_name)
        if self.reservations.narrow(request.reservation_id, place, now + ttl, rename=request.new_reservation_id):
            return ""
        return f"no live reservation {request.reservation_id} holds {'/'.join(filter(None, place))}"


def _check(reservation_id: str, ttl: str) -> float:
    if not reservation_id:
        raise BadRequest("reservationID must not be empty")
    try:
        seconds = parse_go_duration(ttl)
    except ValueError as error:
        raise BadRequest(f"reservationTTL: {error}") from None
    if seconds <= 0:
        raise BadRequest("reservationTTL must be greater than 0")
    return seconds
