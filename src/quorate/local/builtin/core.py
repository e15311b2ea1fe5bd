"""Core kinds: nodes, pods, namespaces, secrets, config maps, service accounts."""

from __future__ import annotations

import base64

from quorate.local.builtin.shapes import (
    array,
    boolean,
    condition,
    free,
    integer,
    keyed,
    mapping,
    obj,
    quantity,
    root,
    text,
    time,
)
from quorate.local.jsonvalue import Json, JsonObject, as_object, as_text, dig, objects, same, with_key
from quorate.local.kinds import Kind, Strategy
from quorate.local.metadata import label_name
from quorate.local.status import FieldError, duplicate, forbidden_field, invalid_value

_TAINT = obj(
    {
        "key": text("The taint key."),
        "value": text("The taint value."),
        "effect": text("What happens to pods.", enum=("NoSchedule", "PreferNoSchedule", "NoExecute")),
        "timeAdded": time(),
    },
    required=("key", "effect"),
)

_NODE = root(
    "Node is a machine of the cluster.",
    {
        "spec": obj(
            {
                "podCIDR": text(),
                "podCIDRs": array(text(), **{"x-kubernetes-patch-strategy": "merge", "x-kubernetes-list-type": "set"}),
                "providerID": text("The machine's name at its provider."),
                "unschedulable": boolean("No new pods are placed here (cordon)."),
                "taints": array(_TAINT, "Pods that do not tolerate these are not placed here."),
                "configSource": free(),
                "externalID": text(),
            }
        ),
        "status": obj(
            {
                "capacity": mapping(quantity()),
                "allocatable": mapping(quantity()),
                "phase": text(),
                "conditions": keyed(condition(lastHeartbeatTime=time()), "type", "What is known about the node."),
                "addresses": keyed(obj({"type": text(), "address": text()}, required=("type", "address")), "type"),
                "daemonEndpoints": free(),
                "nodeInfo": free("Versions and identifiers."),
                "images": array(free()),
                "volumesInUse": array(text()),
                "volumesAttached": array(obj({"name": text(), "devicePath": text()})),
            },
            more=True,
        ),
    },
)


def _validate_node(new: JsonObject, old: JsonObject | None) -> list[FieldError]:
    del old
    seen: list[tuple[Json, Json]] = []
    errors: list[FieldError] = []
    for index, taint in enumerate(objects(dig(new, "spec", "taints"))):
        identity = (taint.get("key"), taint.get("effect"))
        if identity in seen:
            errors.append(duplicate(f"spec.taints[{index}]", taint))
        seen.append(identity)
    return errors


_CONTAINER = obj({"name": text(), "image": text()}, required=("name",), more=True)

_POD = root(
    "Pod is a group of containers that run on one node.",
    {
        "spec": obj(
            {
                "nodeName": text("The node the pod runs on."),
                "containers": {**keyed(_CONTAINER, "name"), "minItems": 1},
                "initContainers": keyed(_CONTAINER, "name"),
                "volumes": keyed(obj({"name": text()}, required=("name",), more=True), "name"),
                "restartPolicy": text(enum=("Always", "OnFailure", "Never"), default="Always"),
                "terminationGracePeriodSeconds": integer(default=30),
                "dnsPolicy": text(default="ClusterFirst"),
                "schedulerName": text(default="default-scheduler"),
                "serviceAccountName": text(),
                "hostNetwork": boolean(),
                "nodeSelector": mapping(text()),
                "tolerations": array(free()),
                "priorityClassName": text(),
            },
            required=("containers",),
            more=True,
        ),
        "status": obj(
            {
                "phase": text(),
                "conditions": keyed(condition(lastProbeTime=time()), "type"),
                "message": text(),
                "reason": text(),
                "hostIP": text(),
                "podIP": text(),
                "startTime": time(),
                "containerStatuses": array(free()),
            },
            more=True,
        ),
    },
    required=("spec",),
)


def _prepare_pod(pod: JsonObject, now: float) -> JsonObject:
    del now
    return with_key(pod, "status", {"phase": "Pending", "qosClass": "BestEffort"})


_POD_MUTABLE = ("activeDeadlineSeconds", "tolerations", "terminationGracePeriodSeconds", "schedulingGates")


def _fixed_pod_spec(pod: JsonObject) -> JsonObject:
    spec = {key: value for key, value in as_object(pod.get("spec")).items() if key not in _POD_MUTABLE}
    for name in ("containers", "initContainers"):
        if name in spec:
            spec[name] = [with_key(container, "image", None) for container in objects(spec[name])]
    return spec


def _validate_pod(new: JsonObject, old: JsonObject | None) -> list[FieldError]:
    if old is None or same(_fixed_pod_spec(new), _fixed_pod_spec(old)):
        return []
    mutable = (
        "`spec.containers[*].image`,`spec.initContainers[*].image`,`spec.activeDeadlineSeconds`,`spec.tolerations`"
    )
    return [forbidden_field("spec", f"pod updates may not change fields other than {mutable} (only additions)")]


_NAMESPACE = root(
    "Namespace is a scope for names.",
    {
        "spec": obj({"finalizers": array(text())}),
        "status": obj({"phase": text(), "conditions": keyed(condition(), "type")}),
    },
)


def _prepare_namespace(namespace: JsonObject, now: float) -> JsonObject:
    del now
    name = as_text(dig(namespace, "metadata", "name"))
    metadata = as_object(namespace.get("metadata"))
    labels: JsonObject = {**as_object(metadata.get("labels")), "kubernetes.io/metadata.name": name}
    return {
        **namespace,
        "metadata": {**metadata, "labels": labels},
        "spec": {"finalizers": ["kubernetes"]},
        "status": {"phase": "Active"},
    }


def _keep_namespace_spec(new: JsonObject, old: JsonObject, now: float) -> JsonObject:
    del now
    return with_key(new, "spec", old.get("spec"))


def _terminating(namespace: JsonObject) -> JsonObject:
    return {**namespace, "status": {**as_object(namespace.get("status")), "phase": "Terminating"}}


_SECRET = root(
    "Secret holds confidential data.",
    {
        "data": mapping(text(format="byte"), "Values in base64."),
        "stringData": mapping(text(), "Plain values, merged into `data` when written."),
        "type": text("What the data is for.", default="Opaque"),
        "immutable": boolean("The data can never change."),
    },
)


def _merge_string_data(secret: JsonObject) -> JsonObject:
    plain = as_object(secret.get("stringData"))
    if not plain:
        return with_key(secret, "stringData", None)
    coded: JsonObject = {key: base64.b64encode(as_text(value).encode()).decode() for key, value in plain.items()}
    merged: JsonObject = {**as_object(secret.get("data")), **coded}
    return with_key(with_key(secret, "data", merged), "stringData", None)


def _validate_data(new: JsonObject, old: JsonObject | None) -> list[FieldError]:
    errors: list[FieldError] = []
    if old is None:
        return errors
    if not same(new.get("type"), old.get("type")):
        errors.append(invalid_value("type", new.get("type"), "field is immutable"))
    if old.get("immutable") is True:
        if new.get("immutable") is not True:
            errors.append(forbidden_field("immutable", "field is immutable when `immutable` is set"))
        errors += [
            forbidden_field(key, "field is immutable when `immutable` is set")
            for key in ("data", "binaryData")
            if not same(new.get(key), old.get(key))
        ]
    return errors


_CONFIG_MAP = root(
    "ConfigMap holds configuration data.",
    {"data": mapping(text()), "binaryData": mapping(text(format="byte")), "immutable": boolean()},
)

_SERVICE_ACCOUNT = root(
    "ServiceAccount is an identity for processes.",
    {
        "secrets": keyed(free(), "name"),
        "imagePullSecrets": array(obj({"name": text()})),
        "automountServiceAccountToken": boolean(),
    },
)

_POD_FIELDS = {
    "spec.nodeName": ("spec", "nodeName"),
    "spec.restartPolicy": ("spec", "restartPolicy"),
    "spec.schedulerName": ("spec", "schedulerName"),
    "spec.serviceAccountName": ("spec", "serviceAccountName"),
    "spec.hostNetwork": ("spec", "hostNetwork"),
    "status.phase": ("status", "phase"),
    "status.podIP": ("status", "podIP"),
    "status.nominatedNodeName": ("status", "nominatedNodeName"),
}

CORE: tuple[Kind, ...] = (
    Kind(
        "", "v1", "Node", "nodes", False, _NODE,
        singular="node", short_names=("no",), has_status=True,
        field_labels={"spec.unschedulable": ("spec", "unschedulable")},
        strategy=Strategy(status_on_create=True, validate=_validate_node),
    ),
    Kind(
        "", "v1", "Pod", "pods", True, _POD,
        singular="pod", short_names=("po",), categories=("all",), has_status=True, field_labels=_POD_FIELDS,
        strategy=Strategy(graceful=True, prepare=_prepare_pod, validate=_validate_pod),
    ),
    Kind(
        "", "v1", "Namespace", "namespaces", False, _NAMESPACE,
        singular="namespace", short_names=("ns",), has_status=True,
        field_labels={"status.phase": ("status", "phase")},
        strategy=Strategy(
            check_name=label_name,
            prepare=_prepare_namespace,
            prepare_update=_keep_namespace_spec,
            held=lambda namespace: bool(dig(namespace, "spec", "finalizers")),
            mark_deleted=_terminating,
        ),
        verbs=("create", "delete", "get", "list", "patch", "update", "watch"),
    ),
    Kind(
        "", "v1", "Secret", "secrets", True, _SECRET,
        singular="secret", field_labels={"type": ("type",)},
        strategy=Strategy(
            prepare=lambda secret, now: _merge_string_data(secret),
            prepare_update=lambda new, old, now: _merge_string_data(new),
            validate=_validate_data,
        ),
    ),
    Kind(
        "", "v1", "ConfigMap", "configmaps", True, _CONFIG_MAP,
        singular="configmap", short_names=("cm",), strategy=Strategy(validate=_validate_data),
    ),
    Kind(
        "", "v1", "ServiceAccount", "serviceaccounts", True, _SERVICE_ACCOUNT,
        singular="serviceaccount", short_names=("sa",),
    ),
)  # fmt: skip
