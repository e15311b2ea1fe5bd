"""Where the embedded server differs from a real kube-apiserver on purpose: case and reason (also in docs/local-api.md)."""

from __future__ import annotations

DIFFERENCES: dict[str, str] = {
    "without status subresource": "the text about a subresource that a kind does not have names no object",
    "bodies of another kind": "an object of another kind is refused with 400 before anything else is looked at; Kubernetes "
    "refuses it later, with 422 or with the first other problem",
    "bodies of no kind": "the texts name no Go types",
    "unknown paths": "a path that is not served is a Status object in JSON; Kubernetes sends the plain text of its router",
    "events": "built-in kinds carry no zero values that nobody set (eventTime: null), and items of their lists name their kind",
    "node halves": "nodes get no not-ready taint (no node lifecycle here) and no empty nodeInfo and daemonEndpoints",
    "node selectors": "as above: nodes carry no zero values and no taint, and items of lists name their kind",
    "patch: strategic": "server-side apply is not served, so the text does not offer it",
    "finalizers": "the answer to the removal of the last finalizer carries the version of the deletion, not the one before",
    "delete collection": "the list that was deleted states the version after the deletion",
    "no label selectors": "refused as well (400), with one text for all syntax errors",
    "watch expired": "a version that is no number is 400; Kubernetes answers 500",
    "unacceptable": "only JSON is offered; YAML and protobuf answers are not served",
    "methods": "POST to an object and PUT to a collection are 405; Kubernetes reads them as a create and as a nameless replace",
    "refused: no integer": "a fraction instead of an integer is refused once; Kubernetes adds a second error about its format",
    "bad definitions": "definitions are checked for what the embedded server needs; CEL rules are not estimated for cost",
}
"""A case that is listed here must differ; one that does not is struck from the list."""
