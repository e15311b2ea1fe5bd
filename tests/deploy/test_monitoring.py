"""Alert rules and dashboard name only metrics and labels that exist, and every alert is explained."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import cast

import pytest
import yaml

from quorate.machinery.metrics import MetricSpec
from tests.deploy import metric_names

ROOT = Path(__file__).resolve().parents[2]
MONITORING = ROOT / "deploy" / "monitoring"
Rule = dict[str, object]


@pytest.fixture(scope="module")
def declared() -> dict[str, MetricSpec]:
    return metric_names.declared()


def rules() -> list[Rule]:
    document = cast("dict[str, list[dict[str, list[Rule]]]]", yaml.safe_load((MONITORING / "alerts.yaml").read_text()))
    return [rule for group in document["groups"] for rule in group["rules"]]


def dashboard_expressions() -> list[str]:
    board = json.loads((MONITORING / "dashboard.json").read_text())
    found = [target["expr"] for panel in board["panels"] for target in panel.get("targets", ())]
    return [*found, *(v["query"]["query"] for v in board["templating"]["list"] if v["type"] == "query")]


def expressions() -> list[str]:
    return [*(str(rule["expr"]) for rule in rules()), *dashboard_expressions()]


def test_every_metric_that_is_named_exists(declared: dict[str, MetricSpec]) -> None:
    missing = {
        name: text
        for text in expressions()
        for name in metric_names.names(text)
        if not metric_names.base_name(name, declared)
    }
    assert missing == {}
    assert len({name for text in expressions() for name in metric_names.names(text)}) > 40


def test_every_recording_rule_that_is_named_is_defined() -> None:
    defined = [str(rule["record"]) for rule in rules() if "record" in rule]
    assert {name for text in expressions() for name in metric_names.recorded(text)} <= set(defined)


def test_every_label_that_is_matched_or_grouped_by_exists(declared: dict[str, MetricSpec]) -> None:
    wrong: list[str] = []
    for text in expressions():
        known = {
            label
            for name in metric_names.names(text)
            for label in declared[metric_names.base_name(name, declared)].labels
        }
        for name, matched in metric_names.selected_labels(text).items():
            labels = declared[metric_names.base_name(name, declared)].labels
            wrong.extend(f"{name}{{{m}}}" for m in matched if m not in (*labels, *metric_names.TARGET_LABELS))
        if not metric_names.recorded(text):
            allowed = known | set(metric_names.TARGET_LABELS)
            wrong.extend(f"by ({g}): {text}" for g in metric_names.grouped_labels(text) if g not in allowed)
    assert wrong == []


@pytest.mark.parametrize(
    ("text", "bad"),
    [("sum(sds_rv_nothing)", "sds_rv_nothing"), ("rate(sds_rv_count_bucket[5m])", "sds_rv_count_bucket")],
)
def test_a_metric_that_does_not_exist_is_found(text: str, bad: str, declared: dict[str, MetricSpec]) -> None:
    assert metric_names.names(text) == (bad,)
    assert metric_names.base_name(bad, declared) == ""


def test_quantiles_are_taken_of_buckets_and_rates_of_counters(declared: dict[str, MetricSpec]) -> None:
    for text in expressions():
        for name in re.findall(r"rate\(([a-z_]+)", text):
            spec = declared[metric_names.base_name(name, declared)]
            assert spec.kind in ("counter", "histogram"), text
        if "histogram_quantile" in text:
            assert "_bucket" in text
            assert "le)" in text


def test_every_alert_has_a_severity_a_text_and_a_section_in_the_document() -> None:
    sections = re.findall(r"^### (\w+)$", (ROOT / "docs" / "operating.md").read_text(), re.MULTILINE)
    alerts = [rule for rule in rules() if "alert" in rule]
    assert sorted(str(alert["alert"]) for alert in alerts) == sorted(sections)
    for alert in alerts:
        labels, notes = cast("dict[str, str]", alert["labels"]), cast("dict[str, str]", alert["annotations"])
        assert labels["severity"] in ("critical", "warning")
        assert notes["summary"]
        assert notes["description"]
        assert re.fullmatch(r"\d+m", str(alert["for"]))


def test_panels_have_a_place_and_no_two_share_one() -> None:
    board = json.loads((MONITORING / "dashboard.json").read_text())
    taken: set[tuple[int, int]] = set()
    for panel in board["panels"]:
        place = panel["gridPos"]
        cells = {
            (x, y)
            for x in range(place["x"], place["x"] + place["w"])
            for y in range(place["y"], place["y"] + place["h"])
        }
        assert max(x for x, _ in cells) < 24
        assert not cells & taken, panel["title"]
        taken |= cells
    assert len({panel["id"] for panel in board["panels"]}) == len(board["panels"])
