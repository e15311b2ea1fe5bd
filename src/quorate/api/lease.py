"""Lease (built-in, coordination.k8s.io/v1): leader election."""

from __future__ import annotations

from quorate.api.meta import Object
from quorate.api.value import Value


class LeaseSpec(Value):
    """Who holds the lease until when. Times have microseconds."""

    holder_identity: str = ""
    lease_duration_seconds: int = 0
    acquire_time: str = ""
    renew_time: str = ""
    lease_transitions: int = 0


class Lease(Object):
    """A lease."""

    spec: LeaseSpec = LeaseSpec()
