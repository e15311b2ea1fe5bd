"""What the shipped roles grant, rule by rule, and which of it the API server's log shows in use."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import cast

import yaml

from tests.kube.audit import Entry

RBAC = Path(__file__).resolve().parents[2] / "deploy" / "rbac"
Grant = tuple[str, str]
"""Verb and plural, with `/status` and the like."""
Rule = dict[str, list[str]]


def granted(account: str) -> tuple[Grant, ...]:
    """Everything that the roles bound to a service account allow."""
    objects = [found for path in sorted(RBAC.glob("*.yaml")) for found in yaml.safe_load_all(path.read_text()) if found]
    bound = [found["roleRef"]["name"] for found in objects if _binds(found, account)]
    roles = [found for found in objects if found["kind"] in ("Role", "ClusterRole")]
    rules = [rule for role in roles if role["metadata"]["name"] in bound for rule in cast("list[Rule]", role["rules"])]
    return tuple(dict.fromkeys(grant for rule in rules for grant in _expanded(rule)))


def _binds(found: dict[str, object], account: str) -> bool:
    if found["kind"] not in ("RoleBinding", "ClusterRoleBinding"):
        return False
    return any(subject["name"] == account for subject in cast("list[dict[str, str]]", found["subjects"]))


def _expanded(rule: Rule) -> Iterator[Grant]:
    for resource in rule["resources"]:
        for verb in rule["verbs"]:
            yield verb, resource


def used(entries: Iterable[Entry]) -> set[Grant]:
    """What was asked for and allowed."""
    return {(entry.verb, entry.resource) for entry in entries if entry.code != 403}
