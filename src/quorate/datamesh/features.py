"""What the kernels of a volume's members can do (decision 15)."""

from __future__ import annotations

from typing import Literal, TypeAlias

from quorate.api.value import Value

VoterMode: TypeAlias = Literal["dynamic", "static"]


class Features(Value):
    """The weakest of the members decides. The defaults are the stock module's behaviour."""

    voter_mode: VoterMode = "dynamic"
    """`dynamic`: missing voters that are known to be stale stop counting (stock). `static`: they count (patched)."""
    peer_tiebreaker_option: bool = True
    """Whether the module knows `peer-tiebreaker`; without it a suspended tie-breaker is made invisible instead."""
