"""The chart's values, what it includes, and what the rendered manifests promise; rendering itself is in tests/kube."""

from __future__ import annotations

import copy
import importlib
import json
import re
import tomllib
from functools import cache
from typing import cast

import click
import jsonschema_rs
import pytest
import yaml

from quorate.cli.main import COMMANDS, module_name
from tests.deploy import helm

Object = dict[str, object]


def values() -> Object:
    return cast("Object", yaml.safe_load((helm.CHART / "values.yaml").read_text()))


def schema() -> jsonschema_rs.Draft7Validator:
    return jsonschema_rs.Draft7Validator(json.loads((helm.CHART / "values.schema.json").read_text()))


@cache
def objects(name: str = "quorate.yaml") -> list[Object]:
    """The objects of a manifest; nobody changes them."""
    documents = yaml.load_all((helm.MANIFESTS / name).read_text(), Loader=yaml.CSafeLoader)
    return [cast("Object", document) for document in documents if document]


def of_kind(kind: str, name: str = "quorate.yaml") -> list[Object]:
    return [found for found in objects(name) if found["kind"] == kind]


def pods(name: str = "quorate-with-extender.yaml") -> dict[str, Object]:
    """Pod templates of the workloads by name."""
    found: dict[str, Object] = {}
    for workload in (*of_kind("Deployment", name), *of_kind("DaemonSet", name)):
        spec = cast("dict[str, dict[str, Object]]", workload["spec"])
        found[cast("dict[str, str]", workload["metadata"])["name"]] = spec["template"]["spec"]
    return found


def containers(pod: Object) -> list[dict[str, Object]]:
    return cast("list[dict[str, Object]]", pod["containers"])


def test_the_default_values_are_valid() -> None:
    assert schema().is_valid(values())


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ("logLevel", "loud"),
        ("controller.replicas", 0),
        ("controller.enabled", ["rv"]),
        ("controller.unknown", 1),
        ("agent.ports.min", 80),
        ("extender.mode", "maybe"),
        ("extender.url", "somewhere"),
        ("image.digest", "latest"),
        ("misspelt", True),
    ],
)
def test_wrong_values_are_refused(path: str, value: object) -> None:
    wrong = copy.deepcopy(values())
    place = wrong
    *parents, last = path.split(".")
    for parent in parents:
        place = cast("Object", place[parent])
    place[last] = value
    assert not schema().is_valid(wrong)


def test_every_value_is_in_the_schema_and_every_section_is_described() -> None:
    known = json.loads((helm.CHART / "values.schema.json").read_text())["properties"]
    for section, content in values().items():
        assert section in known
        if isinstance(content, dict) and section != "dataNodeSelector":
            assert sorted(cast("Object", content)) == sorted(known[section]["properties"])
    text = (helm.CHART / "values.yaml").read_text()
    described = re.findall(r"^\s*#", text, re.MULTILINE)
    assert len(described) > 30


def test_what_the_chart_includes_is_what_the_sources_say() -> None:
    wanted = helm.included()
    assert sorted(helm.present()) == sorted(wanted)
    stale = [str(path) for path, content in wanted.items() if path.read_bytes() != content]
    assert stale == [], "run `make manifests`"


def test_chart_and_package_have_the_same_version() -> None:
    chart = cast("dict[str, str]", yaml.safe_load((helm.CHART / "Chart.yaml").read_text()))
    package = tomllib.loads((helm.ROOT / "pyproject.toml").read_text())["project"]["version"]
    assert chart["version"] == chart["appVersion"] == package


def test_crds_survive_the_release() -> None:
    crds = of_kind("CustomResourceDefinition")
    assert len(crds) == len(list((helm.DEPLOY / "crds").glob("*.yaml")))
    for crd in crds:
        marks = cast("dict[str, dict[str, str]]", crd["metadata"])["annotations"]
        assert marks["helm.sh/resource-policy"] == "keep"


def test_the_rights_are_those_that_the_tests_run_under() -> None:
    shipped = [
        document
        for path in sorted((helm.DEPLOY / "rbac").glob("*.yaml"))
        for document in yaml.safe_load_all(path.read_text())
        if document
    ]
    rendered = objects()
    assert [entry for entry in shipped if entry not in rendered] == []


@pytest.mark.parametrize("name", list(helm.RENDERED))
def test_containers_take_arguments_that_the_commands_know(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NODE_NAME", "node-a")
    for pod in pods(name).values():
        for container in containers(pod):
            for variable in cast("list[dict[str, str]]", container.get("env", [])):
                monkeypatch.setenv(variable["name"], variable.get("value", "quorate-system"))
            command, *arguments = cast("list[str]", container["args"])
            assert command in COMMANDS
            program: click.Command = importlib.import_module(module_name(command)).command
            with program.make_context(command, list(arguments)) as context:
                assert context.args == []


def test_everything_but_the_agent_runs_without_rights() -> None:
    for name, pod in pods().items():
        if name == "quorate-agent":
            continue
        assert cast("dict[str, object]", pod["securityContext"])["runAsNonRoot"] is True
        assert "hostNetwork" not in pod
        assert not [v for v in cast("list[Object]", pod["volumes"]) if "hostPath" in v]
        for container in containers(pod):
            guard = container["securityContext"]
            assert guard["allowPrivilegeEscalation"] is False
            assert guard["readOnlyRootFilesystem"] is True
            assert guard["capabilities"] == {"drop": ["ALL"]}
            assert "privileged" not in guard


def test_the_agent_has_the_node_s_devices_and_no_more_of_the_node() -> None:
    pod = pods()["quorate-agent"]
    paths = [
        cast("dict[str, str]", v["hostPath"])["path"] for v in cast("list[Object]", pod["volumes"]) if "hostPath" in v
    ]
    assert sorted(paths) == ["/dev", "/etc/lvm", "/lib/modules", "/run/lock/lvm", "/run/lvm", "/run/udev", "/sys"]
    assert "hostPID" not in pod
    assert pod["nodeSelector"] == {"storage.deckhouse.io/sds-replicated-volume-node": ""}
    (container,) = containers(pod)
    assert container["securityContext"]["readOnlyRootFilesystem"] is True
    probe = cast("dict[str, dict[str, object]]", container["readinessProbe"])["httpGet"]
    assert probe["host"] == "127.0.0.1"


def test_two_controllers_on_two_nodes_of_which_one_may_be_evicted() -> None:
    (deployment,) = of_kind("Deployment")
    spec = cast("dict[str, object]", deployment["spec"])
    assert spec["replicas"] == 2
    (budget,) = of_kind("PodDisruptionBudget")
    assert cast("dict[str, object]", budget["spec"])["maxUnavailable"] == 1
    selector = cast("dict[str, dict[str, str]]", spec["selector"])["matchLabels"]
    assert cast("dict[str, dict[str, dict[str, str]]]", budget["spec"])["selector"]["matchLabels"] == selector
    pod = pods()["quorate-controller"]
    assert "podAntiAffinity" in cast("dict[str, object]", pod["affinity"])
    for container in (c for p in pods().values() for c in containers(p)):
        assert "memory" in cast("dict[str, dict[str, str]]", container["resources"])["limits"]
        assert {"livenessProbe", "readinessProbe"} <= set(container)


def test_the_agents_are_found_by_the_label_that_the_controller_looks_for() -> None:
    (agents,) = of_kind("DaemonSet")
    template = cast("dict[str, dict[str, dict[str, dict[str, str]]]]", agents["spec"])["template"]
    assert template["metadata"]["labels"]["app"] == "agent"


@pytest.mark.parametrize("component", ["controller", "extender", "agent"])
def test_the_document_derives_the_requests_and_limits_that_the_chart_has(component: str) -> None:
    asked = cast("dict[str, dict[str, dict[str, dict[str, str]]]]", values())[component]["resources"]
    text = (helm.ROOT / "docs" / "install.md").read_text()
    (row,) = re.findall(rf"^\| {component}, memory \|(.*)\|$", text, re.MULTILINE)
    _, request, limit = row.split("|")
    assert request.split(",")[0].strip() == asked["requests"]["memory"]
    assert limit.split(",")[0].strip() == asked["limits"]["memory"]


def test_the_figures_that_requests_are_derived_from_are_those_of_the_benchmarks() -> None:
    figures = (helm.ROOT / "docs" / "benchmarks.md").read_text()
    derived = (helm.ROOT / "docs" / "install.md").read_text()
    for name in (
        "controller memory at 1,000 volumes",
        "controller memory at 5,000 volumes",
        "extender memory at 5,000 volumes",
    ):
        (value,) = re.findall(rf"^\| {name} \| (\S+) \| MiB", figures, re.MULTILINE)
        assert f"{float(value):.0f} MiB" in derived, name
