"""What the agent knows about the DRBD resources of its node, at every scrape.

From the cached status, so a scrape runs no command. A value that is not known has no series.
"""

from __future__ import annotations

from collections.abc import Iterable

from quorate.api import conditions
from quorate.api.common import ConnectionState, DiskState
from quorate.api.drbd_resource import ConfiguredCondition, DRBDResource
from quorate.machinery.gauges import Gauges, Samples
from quorate.machinery.metrics import MetricSpec, Sample
from quorate.machinery.reader import Reader

CONFIGURED = MetricSpec(
    "sds_drbdr_configured", "gauge", "1 while DRBD is as the spec says; the reason verbatim", ("name", "reason")
)
QUORUM = MetricSpec("sds_drbdr_quorum", "gauge", "1 while the kernel grants quorum", ("name",))
SUSPENDED = MetricSpec("sds_drbdr_io_suspended", "gauge", "1 while I/O of the device is frozen", ("name",))
DISKLESS = MetricSpec(
    "sds_drbdr_unintentionally_diskless", "gauge", "1 while a diskful resource runs without its disk", ("name",)
)
CONNECTED = MetricSpec("sds_drbdr_peer_connected", "gauge", "1 while the connection to a peer stands", ("name", "peer"))
OUT_OF_SYNC = MetricSpec(
    "sds_drbdr_peer_out_of_sync_bytes", "gauge", "Data that differs, or may differ, from a peer", ("name", "peer")
)


def compute(reader: Reader) -> Samples:
    """One pass over the resources of this node."""
    resources = reader.list(DRBDResource)
    return {
        CONFIGURED.name: tuple(_configured(resource) for resource in resources),
        QUORUM.name: _flags((r, r.status.quorum) for r in resources),
        SUSPENDED.name: _flags((r, r.status.device_io_suspended) for r in resources),
        DISKLESS.name: _flags((r, _lost_its_disk(r)) for r in resources),
        CONNECTED.name: tuple(
            Sample((r.metadata.name, peer.name), float(peer.connection_state == ConnectionState.CONNECTED))
            for r in resources
            for peer in r.status.peers
        ),
        OUT_OF_SYNC.name: tuple(
            Sample((r.metadata.name, peer.name), float(peer.out_of_sync))
            for r in resources
            for peer in r.status.peers
            if peer.out_of_sync is not None
        ),
    }


def _flags(values: Iterable[tuple[DRBDResource, bool | None]]) -> tuple[Sample, ...]:
    return tuple(Sample((r.metadata.name,), float(value)) for r, value in values if value is not None)


def _lost_its_disk(resource: DRBDResource) -> bool | None:
    """Diskful by its applied configuration, without a disk in the kernel."""
    applied = resource.status.active_configuration
    if applied is None or applied.type != "Diskful":
        return None
    return resource.status.disk_state in (DiskState.DISKLESS, DiskState.FAILED)


def _configured(resource: DRBDResource) -> Sample:
    found = conditions.get(resource.status.conditions, ConfiguredCondition.TYPE)
    if found is None:
        return Sample((resource.metadata.name, "Unknown"), 0.0)
    return Sample((resource.metadata.name, found.reason), float(found.status == conditions.TRUE))


GAUGES = Gauges((CONFIGURED, QUORUM, SUSPENDED, DISKLESS, CONNECTED, OUT_OF_SYNC), compute)
