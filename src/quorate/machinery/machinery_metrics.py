"""The metrics of the machinery itself, declared in one place.

Names are those of controller-runtime and client-go where they exist, so existing dashboards keep working.
"""

from __future__ import annotations

from quorate.machinery.metrics import Metric, MetricSpec, Registry

DEPTH = MetricSpec("workqueue_depth", "gauge", "Keys that are ready to be worked on", ("name",))
ADDS = MetricSpec("workqueue_adds_total", "counter", "Keys added to the queue", ("name",))
QUEUE_TIME = MetricSpec(
    "workqueue_queue_duration_seconds", "histogram", "Time a key was ready before work began", ("name",)
)
WORK_TIME = MetricSpec("workqueue_work_duration_seconds", "histogram", "Time a key was worked on", ("name",))
RETRIES = MetricSpec("workqueue_retries_total", "counter", "Rate-limited additions", ("name",))
RECONCILES = MetricSpec(
    "controller_runtime_reconcile_total", "counter", "Reconciles by result", ("controller", "result")
)
RECONCILE_ERRORS = MetricSpec(
    "controller_runtime_reconcile_errors_total", "counter", "Failed reconciles", ("controller",)
)
RECONCILE_TIME = MetricSpec(
    "controller_runtime_reconcile_time_seconds", "histogram", "Duration of a reconcile", ("controller",)
)
ACTIVE_WORKERS = MetricSpec("controller_runtime_active_workers", "gauge", "Keys being worked on", ("controller",))
CLIENT_REQUESTS = MetricSpec("rest_client_requests_total", "counter", "API requests", ("method", "kind", "code"))
CLIENT_TIME = MetricSpec(
    "rest_client_request_duration_seconds", "histogram", "Duration of an API request", ("method", "kind")
)
EFFECTS = MetricSpec("quorate_effects_total", "counter", "Effects performed", ("controller", "effect", "result"))
CONFLICTS = MetricSpec(
    "quorate_conflicts_total", "counter", "Writes refused by a lock or precondition", ("controller",)
)
UNKNOWN_OUTCOMES = MetricSpec("quorate_unknown_outcomes_total", "counter", "Writes without an answer", ("controller",))
QUARANTINED = MetricSpec("quorate_cache_quarantined", "gauge", "Objects that cannot be decoded", ("kind",))
CACHE_OBJECTS = MetricSpec("quorate_cache_objects", "gauge", "Objects in the cache", ("kind",))
CACHE_EVENTS = MetricSpec(
    "quorate_cache_events_total", "counter", "Watch events by what became of them", ("kind", "result")
)
CACHE_LISTS = MetricSpec("quorate_cache_lists_total", "counter", "Complete lists read", ("kind",))
EVENTS_DROPPED = MetricSpec(
    "quorate_events_dropped_total", "counter", "Kubernetes Events that were not sent", ("cause",)
)
LEADER = MetricSpec("leader_election_master_status", "gauge", "1 while this process holds the lease", ("name",))


class MachineryMetrics:
    """The declared metrics as fields."""

    def __init__(self, registry: Registry) -> None:
        def metric(spec: MetricSpec) -> Metric:
            return registry.declare(spec)

        self.depth = metric(DEPTH)
        self.adds = metric(ADDS)
        self.queue_time = metric(QUEUE_TIME)
        self.work_time = metric(WORK_TIME)
        self.retries = metric(RETRIES)
        self.reconciles = metric(RECONCILES)
        self.reconcile_errors = metric(RECONCILE_ERRORS)
        self.reconcile_time = metric(RECONCILE_TIME)
        self.active_workers = metric(ACTIVE_WORKERS)
        self.client_requests = metric(CLIENT_REQUESTS)
        self.client_time = metric(CLIENT_TIME)
        self.effects = metric(EFFECTS)
        self.conflicts = metric(CONFLICTS)
        self.unknown_outcomes = metric(UNKNOWN_OUTCOMES)
        self.quarantined = metric(QUARANTINED)
        self.cache_objects = metric(CACHE_OBJECTS)
        self.cache_events = metric(CACHE_EVENTS)
        self.cache_lists = metric(CACHE_LISTS)
        self.events_dropped = metric(EVENTS_DROPPED)
        self.leader = metric(LEADER)
