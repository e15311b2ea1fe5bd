"""Reviews: questions about the caller. Whoever has the token may do everything, and the answers say so."""

from __future__ import annotations

from quorate.local.jsonvalue import Json, JsonObject, as_object
from quorate.local.status import bad_request, no_such_path

REVIEWS: dict[tuple[str, str], str] = {
    ("authorization.k8s.io", "selfsubjectaccessreviews"): "SelfSubjectAccessReview",
    ("authorization.k8s.io", "selfsubjectrulesreviews"): "SelfSubjectRulesReview",
    ("authentication.k8s.io", "selfsubjectreviews"): "SelfSubjectReview",
}
USER = "quorate-admin"
_ALL: list[Json] = ["*"]


def review(group: str, version: str, plural: str, body: Json) -> JsonObject:
    """The body with its status filled in."""
    kind = REVIEWS[group, plural]
    if version != "v1":
        raise no_such_path()
    if not isinstance(body, dict) or body.get("kind") != kind:
        raise bad_request(f"expected a {kind}")
    answers: dict[str, JsonObject] = {
        "SelfSubjectAccessReview": {"allowed": True, "reason": "the token of the kubeconfig allows everything"},
        "SelfSubjectRulesReview": {
            "resourceRules": [{"verbs": _ALL, "apiGroups": _ALL, "resources": _ALL}],
            "nonResourceRules": [{"verbs": _ALL, "nonResourceURLs": _ALL}],
            "incomplete": False,
        },
        "SelfSubjectReview": {"userInfo": {"username": USER, "groups": ["system:masters", "system:authenticated"]}},
    }
    return {
        "kind": kind,
        "apiVersion": f"{group}/{version}",
        "metadata": as_object(body.get("metadata")),
        "spec": as_object(body.get("spec")),
        "status": answers[kind],
    }
