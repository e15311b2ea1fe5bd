"""The chart on a real API server: rendering is current, everything is accepted, and the documents hold when followed literally.

The documents get a control plane of their own: they install what the shared one already has.
"""

from __future__ import annotations

import asyncio
import os
import subprocess
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

import pytest
import yaml

from tests.deploy import documents, helm
from tests.kube import binaries
from tests.kube.processes import QUORATE, Process
from tests.kube.servers import ControlPlane, control_plane, free_port

FULL = ("extender.mode=deployment", "monitoring.dashboard=true", "agent.metricsPort=0", "logLevel=debug")
MONITORING_KINDS = ("ServiceMonitor", "PodMonitor", "PrometheusRule")


@pytest.fixture(scope="module", autouse=True)
def helm_program() -> Path:
    """Helm; where it cannot be had the tests are skipped, and fail with CI=true."""
    try:
        return helm.program()
    except binaries.Unavailable as error:
        if os.environ.get("CI") == "true":
            raise
        pytest.skip(f"no Helm here: {error}")


def kubectl(plane: ControlPlane, *arguments: str, stdin: str = "") -> subprocess.CompletedProcess[str]:
    command = [str(plane.programs / "kubectl"), "--kubeconfig", str(plane.kubeconfig()), *arguments]
    return subprocess.run(command, input=stdin, capture_output=True, text=True, check=False)


def accepted(plane: ControlPlane, text: str) -> None:
    """The API server would take every object, without a warning."""
    done = kubectl(plane, "apply", "--dry-run=server", "-f", "-", stdin=text)
    assert done.returncode == 0, done.stderr
    assert "Warning" not in done.stderr, done.stderr


def test_the_manifests_are_what_the_chart_renders() -> None:
    for name, text in helm.manifests().items():
        assert (helm.MANIFESTS / name).read_text() == text, "run `make manifests`"


def test_helm_finds_nothing_wrong_with_the_chart() -> None:
    done = helm.run("lint", "--strict", str(helm.CHART))
    assert "0 chart(s) failed" in done.stdout


@pytest.mark.parametrize(
    "setting", ["logLevel=loud", "controller.replicas=0", "misspelt=1", "extender.mode=external", "image.digest=latest"]
)
def test_wrong_values_are_refused_by_helm(setting: str) -> None:
    done = helm.run(
        "template", "quorate", str(helm.CHART), "--kube-version", helm.KUBERNETES, "--set", setting, check=False
    )
    assert done.returncode != 0
    assert setting.split("=")[0].split(".")[-1] in done.stderr or "extender.url is required" in done.stderr


def test_an_older_kubernetes_is_refused() -> None:
    done = helm.run("template", "quorate", str(helm.CHART), "--kube-version", "1.31.0", check=False)
    assert "1.31.0" in done.stderr


def test_the_namespace_of_the_release_is_used_everywhere() -> None:
    text = helm.template("--set", "extender.mode=deployment", namespace="storage")
    assert "quorate-system" not in text
    for found in yaml.load_all(text, Loader=yaml.CSafeLoader):
        if found:
            assert found["metadata"].get("namespace", "storage") in ("storage", "default"), found["metadata"]["name"]


def test_the_monitoring_objects_carry_the_shipped_rules_and_dashboard() -> None:
    switches = (
        "monitoring.monitors=true",
        "monitoring.rules=true",
        "monitoring.dashboard=true",
        "extender.mode=deployment",
    )
    options = [word for switch in switches for word in ("--set", switch)]
    objects = [found for found in yaml.load_all(helm.template(*options), Loader=yaml.CSafeLoader) if found]
    kinds = [found["kind"] for found in objects if found["kind"] in MONITORING_KINDS]
    assert sorted(kinds) == ["PodMonitor", "PrometheusRule", "ServiceMonitor", "ServiceMonitor"]
    (rule,) = (found for found in objects if found["kind"] == "PrometheusRule")
    assert rule["spec"] == yaml.safe_load((helm.DEPLOY / "monitoring" / "alerts.yaml").read_text())
    (board,) = (found for found in objects if found["metadata"]["name"] == "quorate-dashboard")
    assert board["data"]["quorate.json"].strip() == (helm.DEPLOY / "monitoring" / "dashboard.json").read_text().strip()


@pytest.mark.parametrize("name", list(helm.RENDERED))
def test_the_api_server_accepts_the_manifests(plane: ControlPlane, name: str) -> None:
    accepted(plane, (helm.MANIFESTS / name).read_text())


def test_the_api_server_accepts_every_switch(plane: ControlPlane) -> None:
    accepted(plane, helm.template(*(word for switch in FULL for word in ("--set", switch))))


@pytest.fixture(scope="module")
def fresh_plane(tmp_path_factory: pytest.TempPathFactory) -> Generator[ControlPlane]:
    """A cluster that nobody has installed anything in."""
    try:
        binaries.directory(("etcd", "kube-apiserver", "kubectl"))
    except binaries.Unavailable as error:
        if os.environ.get("CI") == "true":
            raise
        pytest.skip(f"no kube-apiserver and etcd here: {error}")
    with control_plane(tmp_path_factory.mktemp("documents")) as running:
        yield running


def follow(plane: ControlPlane, script: str) -> str:
    """One block of a document, as a person would paste it into a shell in the checkout."""
    path = f"{plane.programs}:{helm.program().parent}:{os.environ['PATH']}"
    environment = {"PATH": path, "HOME": str(plane.directory), "KUBECONFIG": str(plane.kubeconfig())}
    # What a block leaves behind (a backup) must not land in the checkout.
    work = plane.directory / "work"
    work.mkdir(exist_ok=True)
    link = work / "deploy"
    if not link.exists():
        link.symlink_to(helm.DEPLOY)
    done = subprocess.run(
        ["bash", "-euo", "pipefail", "-c", script],
        cwd=work,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, f"{script}\n{done.stdout}\n{done.stderr}"
    assert "Warning" not in done.stderr, done.stderr
    return done.stdout


@contextmanager
def installed_controller(plane: ControlPlane) -> Generator[Process]:
    """The controller as the chart starts it, under the account that the chart made."""
    rendered = yaml.safe_load_all(helm.template("-s", "templates/controller.yaml"))
    (deployment,) = (found for found in rendered if found["kind"] == "Deployment")
    (container,) = deployment["spec"]["template"]["spec"]["containers"]
    token = follow(plane, "kubectl -n quorate-system create token quorate-controller").strip()
    config = plane.kubeconfig(f"token: {token}", "installed.kubeconfig")
    level = plane.directory / "level"
    level.write_text("debug")
    port = free_port()
    places = {":4271": f"127.0.0.1:{port}", ":4272": "0", "/etc/quorate/log/level": str(level)}
    words = [word.partition("=") for word in container["args"][1:]]
    arguments = [f"{name}={places.get(value, value)}" for name, _, value in words]
    environment = {v["name"]: v.get("value", "quorate-system") for v in container["env"]}
    log = plane.directory / "installed.log"
    with log.open("wb") as output:
        popen = subprocess.Popen(
            [QUORATE, container["args"][0], *arguments],
            env={"PATH": os.environ["PATH"], "KUBECONFIG": str(config), **environment},
            cwd=plane.directory,
            stdout=output,
            stderr=output,
        )
    process = Process("controller", port, popen, log)
    try:
        asyncio.run(process.ready())
        yield process
    finally:
        asyncio.run(process.end())


def check_what_the_controller_does(plane: ControlPlane, process: Process) -> None:
    """It takes up the documents' objects: the class gets its pool, and says that no node of it is there."""
    follow(plane, "kubectl wait --for=jsonpath='{.status.phase}'=InsufficientNodes --timeout=300s rsc/replicated")
    follow(plane, "kubectl get rsp -o name | grep -q .")
    metrics = asyncio.run(process.metrics())
    assert 'sds_rv_count{storage_class="replicated",phase="Active"} 1' in metrics
    assert 'sds_rsc_phase{name="replicated",phase="InsufficientNodes"} 1' in metrics
    assert 'leader_election_master_status{name="sds-replicated-volume-controller"} 1' in metrics
    assert "log level changed" in process.log.read_text()
    assert "orbidden" not in process.log.read_text()


def test_the_documents_hold_when_they_are_followed(fresh_plane: ControlPlane) -> None:
    install = documents.scripts("install.md")
    assert len(install) == 6
    *installing, removing_volumes, removing = install
    for script in installing:
        follow(fresh_plane, script)
    created = follow(fresh_plane, "kubectl get rv,rva,rsc,lvg -o name").split()
    assert len(created) == 6
    with installed_controller(fresh_plane) as process:
        check_what_the_controller_does(fresh_plane, process)

    for script in documents.scripts("operating.md"):
        follow(fresh_plane, script)
    said = [follow(fresh_plane, script) for script in documents.scripts("upgrade.md")]
    assert "quorate:0.1.0" in said[1]
    assert said[2] == '["v1alpha1"]'
    assert said[3] == ""
    assert "Rollback to 1" in said[4]
    assert (fresh_plane.directory / "work" / "quorate-objects.yaml").stat().st_size > 1000

    with installed_controller(fresh_plane):
        follow(fresh_plane, removing_volumes)
        follow(fresh_plane, "kubectl wait --for=delete --timeout=300s rv/first rva/first-on-node-a rsc/replicated")
        assert follow(fresh_plane, "kubectl get rv,rvr,rva,rsc,rsp -o name") == ""
    follow(fresh_plane, removing)
    assert NAMES not in follow(fresh_plane, INSTALLED)
    check_plain_manifests(fresh_plane)
    follow(fresh_plane, documents.inline("install.md", "kubectl delete crd"))
    assert follow(fresh_plane, "kubectl get crd -o name") == ""


NAMES = "quorate"
INSTALLED = "kubectl -n quorate-system get deployment,daemonset,configmap -o name"


def check_plain_manifests(plane: ControlPlane) -> None:
    """What the documents offer instead of Helm: the same files install, and replace, an upgrade and the CRDs alone too."""
    command = documents.inline("install.md", "kubectl apply --server-side")
    assert documents.inline("upgrade.md", "kubectl apply --server-side -f deploy/manifests") == command
    follow(plane, command)
    assert follow(plane, INSTALLED).count(NAMES) >= 3
    with installed_controller(plane):
        follow(plane, command)
        follow(plane, documents.inline("upgrade.md", "kubectl apply --server-side -f deploy/crds"))
    follow(plane, "kubectl delete --wait=false -f deploy/manifests/quorate.yaml")
