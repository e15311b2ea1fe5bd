"""Which zones a replica should go to, by topology (seed 002, Zone Scheduling Logic).

Zones are those of the eligible nodes; the empty name is a zone like any other. Preferred zones are chosen before anybody
looks at free nodes. A filter exists only where the preferred zones are a proper subset: when all are tied, none is wrong.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import NamedTuple

from quorate.api.replicated_volume import MemberType


class ZoneCount(NamedTuple):
    """Replicas of the volume in one zone."""

    diskful: int = 0
    tie_breakers: int = 0

    def plus(self, replica_type: str) -> ZoneCount:
        """The count with one more replica; other types do not count."""
        match replica_type:
            case MemberType.DISKFUL:
                return ZoneCount(self.diskful + 1, self.tie_breakers)
            case MemberType.TIE_BREAKER:
                return ZoneCount(self.diskful, self.tie_breakers + 1)
            case _:
                return self


@dataclass(frozen=True)
class ZoneFilter:
    """The zones to keep, and how the summary calls the others."""

    label: str
    zones: frozenset[str]


ZONAL = "Zonal"
TRANS_ZONAL = "TransZonal"
ZONAL_LABEL = "zone (zonal majority)"
TRANS_ZONAL_LABEL = "zone (transZonal min replicas)"


def compute_zone_filter(topology: str, replica_type: str, counts: Mapping[str, ZoneCount]) -> ZoneFilter | None:
    """The filter for one replica; None when every zone is as good as any other."""
    match topology:
        case "Zonal":
            # Sticky: where most of the diskful replicas are, for tie-breakers too.
            return _filter(ZONAL_LABEL, counts, lambda count: (-count.diskful,))
        case "TransZonal" if replica_type == MemberType.DISKFUL:
            return _filter(TRANS_ZONAL_LABEL, counts, lambda count: (count.diskful,))
        case "TransZonal":
            # Fewest replicas, then fewest tie-breakers: the tie-breaker quorum is balanced for itself.
            return _filter(
                TRANS_ZONAL_LABEL, counts, lambda count: (count.diskful + count.tie_breakers, count.tie_breakers)
            )
        case _:
            return None


def _filter(
    label: str, counts: Mapping[str, ZoneCount], rank: Callable[[ZoneCount], tuple[int, ...]]
) -> ZoneFilter | None:
    if not counts:
        return None
    best = min(rank(count) for count in counts.values())
    preferred = frozenset(zone for zone, count in counts.items() if rank(count) == best)
    return None if len(preferred) == len(counts) else ZoneFilter(label, preferred)
