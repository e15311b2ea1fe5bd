"""Content negotiation: what form of an answer the client asked for, and how to read its body."""

from __future__ import annotations

from dataclasses import dataclass

import yaml

from quorate.local import protobuf
from quorate.local.jsonvalue import Json, decode
from quorate.local.status import bad_request, not_acceptable, unsupported_media_type

OBJECT = ""
TABLE = "Table"
PARTIAL = "PartialObjectMetadata"
PARTIAL_LIST = "PartialObjectMetadataList"
AGGREGATED_DISCOVERY = "APIGroupDiscoveryList"

_GROUPS = {
    TABLE: ("meta.k8s.io", ("v1", "v1beta1")),
    PARTIAL: ("meta.k8s.io", ("v1", "v1beta1")),
    PARTIAL_LIST: ("meta.k8s.io", ("v1", "v1beta1")),
    AGGREGATED_DISCOVERY: ("apidiscovery.k8s.io", ("v2",)),
}


@dataclass(frozen=True)
class Form:
    """The wanted form of an answer: the object itself, or one of its projections, in a version."""

    kind: str = OBJECT
    version: str = "v1"


def negotiate(accept: str, supported: tuple[str, ...]) -> Form:
    """The first acceptable form; raises 406 when there is none."""
    for entry in (accept or "*/*").split(","):
        media_type, *parameters = [part.strip() for part in entry.split(";")]
        if media_type not in ("application/json", "application/*", "*/*"):
            continue
        values = dict(part.split("=", 1) for part in parameters if "=" in part)
        wanted = values.get("as", OBJECT)
        if wanted == OBJECT:
            return Form()
        if wanted not in supported:
            continue
        group, versions = _GROUPS[wanted]
        if values.get("g") == group and values.get("v", "") in versions:
            return Form(wanted, values["v"])
    raise not_acceptable("only the following media types are accepted: application/json")


def parse_body(content_type: str, body: bytes) -> Json:
    """The JSON value of a body; raises 400 when it is malformed and 415 when it is something else."""
    media_type = content_type.split(";")[0].strip().lower()
    if media_type in ("application/yaml", "application/apply-patch+yaml"):
        try:
            return yaml.safe_load(body)
        except yaml.YAMLError as error:
            raise bad_request(f"error decoding YAML: {error}") from None
    if media_type == protobuf.MEDIA_TYPE:
        return protobuf.decode_protobuf(body)
    if media_type not in ("", "application/json") and not media_type.endswith("+json"):
        accepted = "application/json, application/yaml"
        text = f"the body of the request was in an unknown format - accepted media types include: {accepted}"
        raise unsupported_media_type(text)
    try:
        return decode(body)
    except (ValueError, RecursionError) as error:
        raise bad_request(f"error decoding JSON: {error}") from None
