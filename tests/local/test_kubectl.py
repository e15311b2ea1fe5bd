"""The real kubectl against a served API with our kinds."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
import yaml

from quorate.api.crd import all_crds
from quorate.local.jsonvalue import JsonObject, dig, encode
from tests.local.processes import Served, as_json, kubectl_path, serving

VOLUMES = "/apis/storage.deckhouse.io/v1alpha1/replicatedvolumes"


@dataclass
class Kubectl:
    """Runs kubectl; `ok` insists on success, `fails` on failure."""

    binary: str
    served: Served
    home: Path

    def command(self, *arguments: str) -> list[str]:
        return [self.binary, "--kubeconfig", str(self.served.kubeconfig), "--cache-dir", str(self.home), *arguments]

    def run(self, *arguments: str, stdin: str = "", editor: str = "") -> subprocess.CompletedProcess[str]:
        environment = {**os.environ, "HOME": str(self.home), "KUBE_EDITOR": editor}
        return subprocess.run(
            self.command(*arguments),
            input=stdin,
            capture_output=True,
            text=True,
            timeout=60,
            env=environment,
            check=False,
        )

    def ok(self, *arguments: str, stdin: str = "", editor: str = "") -> str:
        done = self.run(*arguments, stdin=stdin, editor=editor)
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    def fails(self, *arguments: str, stdin: str = "") -> str:
        done = self.run(*arguments, stdin=stdin)
        assert done.returncode != 0, done.stdout
        return done.stderr

    def json(self, *arguments: str) -> JsonObject:
        return as_json(self.ok(*arguments, "-o", "json"))


@pytest.fixture(scope="module")
def kubectl(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Kubectl]:
    binary = kubectl_path()
    directory = tmp_path_factory.mktemp("kubectl")
    with serving(directory / "data") as served:
        yield Kubectl(binary, served, directory)


def volume(name: str, size: str = "1Gi", **metadata: str) -> str:
    return yaml.safe_dump(
        {
            "apiVersion": "storage.deckhouse.io/v1alpha1",
            "kind": "ReplicatedVolume",
            "metadata": {"name": name, **({"labels": metadata} if metadata else {})},
            "spec": {"size": size, "replicatedStorageClassName": "fast"},
        }
    )


STATUS = encode(
    {
        "status": {
            "datameshRevision": 3,
            "datamesh": {"size": "1Gi"},
            "size": "1Gi",
            "conditions": [
                {
                    "type": "IOReady",
                    "status": "True",
                    "reason": "Ready",
                    "message": "all is well",
                    "lastTransitionTime": "2024-01-01T00:00:00Z",
                }
            ],
        }
    }
).decode()


def test_version_and_api_resources(kubectl: Kubectl) -> None:
    assert "Server Version: v1.32" in kubectl.ok("version")
    listed = kubectl.ok("api-resources", "--no-headers")
    rows = {line.split()[0]: line.split() for line in listed.splitlines()}
    assert rows["replicatedvolumes"] == [
        "replicatedvolumes",
        "rv",
        "storage.deckhouse.io/v1alpha1",
        "false",
        "ReplicatedVolume",
    ]
    assert set(rows) >= {
        "nodes",
        "events",
        "leases",
        "replicatedvolumereplicas",
        "storageclasses",
    }
    ours = kubectl.ok("api-resources", "--categories=quorate", "-o", "name").split()
    assert "replicatedvolumes.storage.deckhouse.io" in ours
    assert "nodes" not in ours


def test_apply_creates_leaves_alone_and_configures(kubectl: Kubectl) -> None:
    assert "created" in kubectl.ok("apply", "-f", "-", stdin=volume("applied"))
    assert "unchanged" in kubectl.ok("apply", "-f", "-", stdin=volume("applied"))
    assert "configured" in kubectl.ok("apply", "-f", "-", stdin=volume("applied", "2Gi", team="a"))
    body = kubectl.json("get", "rv", "applied")
    assert (dig(body, "spec", "size"), dig(body, "metadata", "generation"), dig(body, "metadata", "labels")) == (
        "2Gi",
        2,
        {"team": "a"},
    )
    assert "serverside-applied" not in kubectl.fails("apply", "--server-side", "-f", "-", stdin=volume("applied"))
    assert "Server-side apply not available" in kubectl.fails(
        "apply", "--server-side", "-f", "-", stdin=volume("applied")
    )
    assert kubectl.run("diff", "-f", "-", stdin=volume("applied", "2Gi", team="a")).returncode == 0


def test_apply_of_a_built_in_kind_merges_strategically(kubectl: Kubectl) -> None:
    def config(**data: str) -> str:
        return yaml.safe_dump(
            {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "c", "namespace": "default"}, "data": data}
        )

    kubectl.ok("apply", "-f", "-", stdin=config(a="1", b="2"))
    kubectl.ok("apply", "-f", "-", stdin=config(b="3"))
    assert kubectl.json("get", "configmap", "c")["data"] == {"b": "3"}


def test_mistakes_are_explained(kubectl: Kubectl) -> None:
    unknown = kubectl.fails("apply", "-f", "-", stdin=volume("bad").replace("size:", "sise:"))
    assert 'unknown field "spec.sise"' in unknown
    invalid = kubectl.fails("create", "-f", "-", stdin=volume("bad", "0"))
    assert 'The ReplicatedVolume "bad" is invalid' in invalid
    assert "spec.size: Invalid value" in invalid
    assert "NotFound" in kubectl.fails("get", "rv", "bad")
    assert "doesn't have a resource type" in kubectl.fails("get", "gizmos")


def test_get_shows_the_printer_columns(kubectl: Kubectl) -> None:
    kubectl.ok("create", "-f", "-", stdin=volume("shown"))
    kubectl.ok("patch", "rv", "shown", "--subresource=status", "--type=merge", "-p", STATUS)
    header, row = kubectl.ok("get", "rv", "shown").splitlines()
    assert header.split() == ["NAME", "IOREADY", "QUORUM", "SCHEDULED", "CONFIGURED", "SIZE", "AGE"]
    assert row.split()[:3] == ["shown", "True", "1Gi"]
    wide = kubectl.ok("get", "rv", "shown", "-o", "wide").splitlines()
    assert wide[0].split()[-1] == "STORAGECLASS"
    assert wide[1].split()[-1] == "fast"
    assert yaml.safe_load(kubectl.ok("get", "rv", "shown", "-o", "yaml"))["spec"]["size"] == "1Gi"
    assert kubectl.ok("get", "rv", "shown", "-o", "jsonpath={.status.datameshRevision}") == "3"
    assert kubectl.ok("get", "rv", "-l", "x=y", "--ignore-not-found") == ""
    assert kubectl.ok("get", "rv", "--field-selector", "metadata.name=shown", "-o", "name").split() == [
        "replicatedvolume.storage.deckhouse.io/shown"
    ]


def test_status_is_a_half_of_its_own(kubectl: Kubectl) -> None:
    kubectl.ok("create", "-f", "-", stdin=volume("halves"))
    kubectl.ok("patch", "rv", "halves", "--type=merge", "-p", STATUS)
    assert "status" not in kubectl.json("get", "rv", "halves")
    kubectl.ok("patch", "rv", "halves", "--subresource=status", "--type=merge", "-p", STATUS)
    body = kubectl.json("get", "rv", "halves")
    assert dig(body, "status", "datameshRevision") == 3
    assert dig(body, "metadata", "generation") == 1


def test_wait_for_a_condition(kubectl: Kubectl) -> None:
    kubectl.ok("create", "-f", "-", stdin=volume("waited"))
    waiting = subprocess.Popen(
        kubectl.command("wait", "--for=condition=IOReady", "rv/waited", "--timeout=30s"),
        stdout=subprocess.PIPE,
        text=True,
    )
    kubectl.ok("patch", "rv", "waited", "--subresource=status", "--type=merge", "-p", STATUS)
    told, _ = waiting.communicate(timeout=60)
    assert (waiting.returncode, told) == (0, "replicatedvolume.storage.deckhouse.io/waited condition met\n")
    assert "timed out" in kubectl.fails("wait", "--for=condition=Quorum", "rv/waited", "--timeout=1s")


def test_watch_follows_changes(kubectl: Kubectl) -> None:
    kubectl.ok("create", "-f", "-", stdin=volume("watched"))
    watching = subprocess.Popen(
        kubectl.command("get", "rv", "watched", "-w", "--no-headers", "-o", "custom-columns=S:.spec.size"),
        stdout=subprocess.PIPE,
        text=True,
    )
    table = subprocess.Popen(kubectl.command("get", "rv", "watched", "-w"), stdout=subprocess.PIPE, text=True)
    try:
        assert watching.stdout is not None
        assert table.stdout is not None
        assert watching.stdout.readline() == "1Gi\n"
        assert table.stdout.readline().startswith("NAME")
        assert table.stdout.readline().startswith("watched")
        kubectl.ok(
            "patch", "rv", "watched", "--type=json", "-p", '[{"op":"replace","path":"/spec/size","value":"3Gi"}]'
        )
        assert watching.stdout.readline() == "3Gi\n"
        assert table.stdout.readline().startswith("watched")
    finally:
        for process in (watching, table):
            process.send_signal(signal.SIGINT)
            process.communicate(timeout=30)


def test_describe_shows_events(kubectl: Kubectl) -> None:
    kubectl.ok("create", "-f", "-", stdin=volume("described"))
    uid = str(dig(kubectl.json("get", "rv", "described"), "metadata", "uid"))
    involved = {
        "apiVersion": "storage.deckhouse.io/v1alpha1",
        "kind": "ReplicatedVolume",
        "name": "described",
        "uid": uid,
    }
    event = {
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": {"name": "described.1", "namespace": "default"},
        "involvedObject": involved,
        "reason": "Formed",
        "message": "the volume is formed",
        "type": "Normal",
        "source": {"component": "volume-controller"},
        "firstTimestamp": "2024-01-01T00:00:00Z",
        "lastTimestamp": "2024-01-01T00:00:00Z",
        "count": 1,
    }
    kubectl.ok("create", "-f", "-", stdin=yaml.safe_dump(event))
    described = kubectl.ok("describe", "rv", "described")
    assert "Replicated Storage Class Name:  fast" in described
    assert "the volume is formed" in described
    header, row = kubectl.ok("get", "events").splitlines()[:2]
    assert header.split() == ["LAST", "SEEN", "TYPE", "REASON", "OBJECT", "MESSAGE"]
    assert "replicatedvolume/described" in row
    assert "Formed" in kubectl.ok("events", "--for", "replicatedvolume/described")


def test_edit_changes_an_object(kubectl: Kubectl) -> None:
    kubectl.ok("create", "-f", "-", stdin=volume("edited"))
    assert "edited" in kubectl.ok("edit", "rv", "edited", editor="sed -i s/1Gi/4Gi/")
    assert dig(kubectl.json("get", "rv", "edited"), "spec", "size") == "4Gi"


def test_label_annotate_and_select(kubectl: Kubectl) -> None:
    kubectl.ok("create", "-f", "-", stdin=volume("labelled"))
    kubectl.ok("label", "rv", "labelled", "tier=gold")
    kubectl.ok("annotate", "rv", "labelled", "note=hello")
    assert kubectl.ok("get", "rv", "-l", "tier in (gold,silver)", "-o", "name").split() == [
        "replicatedvolume.storage.deckhouse.io/labelled"
    ]
    kubectl.ok("label", "rv", "labelled", "tier-")
    assert kubectl.ok("get", "rv", "-l", "tier", "-o", "name") == ""


def test_nodes_are_tainted_and_cordoned(kubectl: Kubectl) -> None:
    kubectl.ok("create", "-f", "-", stdin="apiVersion: v1\nkind: Node\nmetadata: {name: n1}\n")
    kubectl.ok("taint", "nodes", "n1", "a=b:NoSchedule", "c=d:NoExecute")
    kubectl.ok("taint", "nodes", "n1", "a-")
    assert dig(kubectl.json("get", "node", "n1"), "spec", "taints") == [
        {"key": "c", "value": "d", "effect": "NoExecute"}
    ]
    kubectl.ok("cordon", "n1")
    assert "SchedulingDisabled" in kubectl.ok("get", "nodes")
    kubectl.ok("uncordon", "n1")
    assert "SchedulingDisabled" not in kubectl.ok("get", "nodes")
    assert "Taints:             c=d:NoExecute" in kubectl.ok("describe", "node", "n1")


def test_delete_waits_for_finalizers(kubectl: Kubectl) -> None:
    kubectl.ok("create", "-f", "-", stdin=volume("deleted"))
    kubectl.ok("patch", "rv", "deleted", "--type=merge", "-p", '{"metadata":{"finalizers":["a/b"]}}')
    deleting = subprocess.Popen(kubectl.command("delete", "rv", "deleted"), stdout=subprocess.PIPE, text=True)
    kubectl.ok("wait", "--for=jsonpath={.metadata.deletionTimestamp}", "rv/deleted", "--timeout=30s")
    assert deleting.poll() is None
    kubectl.ok("patch", "rv", "deleted", "--type=merge", "-p", '{"metadata":{"finalizers":null}}')
    assert deleting.wait(timeout=60) == 0
    deleting.communicate()
    assert "NotFound" in kubectl.fails("get", "rv", "deleted")
    assert kubectl.ok("delete", "rv", "deleted", "--ignore-not-found") == ""


def test_explain_describes_fields(kubectl: Kubectl) -> None:
    explained = kubectl.ok("explain", "rv.spec")
    assert "VERSION:    v1alpha1" in explained
    assert "replicatedStorageClassName\t<string>" in explained
    assert "enum: Auto, Manual" in explained
    assert "-required-" in explained
    assert "Unique name." in kubectl.ok("explain", "rv.metadata.name")
    assert "effect" in kubectl.ok("explain", "node.spec.taints")
    assert "datameshRevision" in kubectl.ok("explain", "rv", "--recursive")


def test_namespaces_secrets_and_rights(kubectl: Kubectl) -> None:
    """kubectl sends these bodies as protobuf."""
    kubectl.ok("create", "namespace", "area")
    kubectl.ok("create", "secret", "generic", "s", "-n", "area", "--from-literal=key=value")
    assert kubectl.json("get", "secret", "s", "-n", "area")["data"] == {"key": "dmFsdWU="}
    kubectl.ok("create", "configmap", "m", "-n", "area", "--from-literal=key=value")
    assert kubectl.json("get", "configmap", "m", "-n", "area")["data"] == {"key": "value"}
    kubectl.ok("create", "serviceaccount", "a", "-n", "area")
    dry = as_json(kubectl.ok("create", "configmap", "dry", "--dry-run=server", "--from-literal=a=b", "-o", "json"))
    assert dry["data"] == {"a": "b"}
    assert "NotFound" in kubectl.fails("get", "configmap", "dry")
    assert kubectl.ok("auth", "can-i", "delete", "nodes").strip() == "yes"
    assert "quorate-admin" in kubectl.ok("auth", "whoami")
    kubectl.ok("delete", "namespace", "area")
    assert "NotFound" in kubectl.fails("get", "namespace", "area")


def test_definitions_can_be_applied(kubectl: Kubectl) -> None:
    definitions = yaml.safe_dump_all(all_crds())
    assert kubectl.ok("apply", "-f", "-", stdin=definitions).count("configured") == len(all_crds())
    kubectl.ok("wait", "--for=condition=Established", "crd", "--all", "--timeout=10s")
    assert "customresourcedefinition" in kubectl.ok("get", "crd", "-o", "name")


def test_a_saved_list_can_be_applied(kubectl: Kubectl) -> None:
    names = ["north", "south"]
    items = [{"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}} for name in names]
    saved = yaml.safe_dump({"apiVersion": "v1", "kind": "List", "items": items})
    assert kubectl.ok("apply", "-f", "-", stdin=saved).count("created") == 2
    again = kubectl.ok("get", "namespace", *names, "-o", "yaml")
    assert kubectl.ok("apply", "-f", "-", stdin=again).count("configured") == 2


def test_raw_paths(kubectl: Kubectl) -> None:
    assert kubectl.ok("get", "--raw", "/readyz") == "ok"
    assert as_json(kubectl.ok("get", "--raw", "/openapi/v2"))["swagger"] == "2.0"
    assert "apis/storage.deckhouse.io/v1alpha1" in kubectl.ok("get", "--raw", "/openapi/v3")
