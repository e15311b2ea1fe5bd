"""The API over HTTPS: token, limits, malformed requests, certificate."""

from __future__ import annotations

import socket
import ssl
from collections.abc import Iterator
from pathlib import Path

import pytest

from quorate.local.certificate import make_certificate
from quorate.local.jsonvalue import JsonObject, as_text, encode
from tests.local.builders import WIDGETS, Api, make_api, widget
from tests.local.processes import Served, serving

VOLUMES = "/apis/storage.deckhouse.io/v1alpha1/replicatedvolumes"
VOLUME: JsonObject = {
    "apiVersion": "storage.deckhouse.io/v1alpha1",
    "kind": "ReplicatedVolume",
    "metadata": {"name": "v"},
    "spec": {"size": "1Gi", "replicatedStorageClassName": "c"},
}


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    with serving(tmp_path_factory.mktemp("http") / "data") as running:
        yield running


@pytest.mark.parametrize("token", ["", "wrong"])
@pytest.mark.parametrize("path", [VOLUMES, "/healthz", "/version", "/nonsense"])
def test_without_the_token_everything_is_unauthorized(served: Served, token: str, path: str) -> None:
    status, body = served.send("GET", path, token=token)
    assert (status, body["reason"], body["kind"]) == (401, "Unauthorized", "Status")


def test_files_with_secrets_are_private(served: Served) -> None:
    for name in ("kubeconfig", "token", "tls.key"):
        assert (served.directory / name).stat().st_mode & 0o077 == 0


def test_it_listens_on_loopback_only(served: Served) -> None:
    """The process has exactly the sockets it says: all on 127.0.0.1."""
    inodes = {
        link.readlink().name.removeprefix("socket:[").removesuffix("]")
        for link in Path(f"/proc/{served.process.pid}/fd").iterdir()
        if str(link.readlink()).startswith("socket:")
    }
    listening = [
        line.split()[1]
        for table in ("tcp", "tcp6")
        for line in Path(f"/proc/{served.process.pid}/net/{table}").read_text().splitlines()[1:]
        if line.split()[3] == "0A" and line.split()[9] in inodes
    ]
    assert listening == [f"0100007F:{served.port:04X}"]


def test_a_stranger_certificate_is_not_trusted(served: Served) -> None:
    with (
        socket.create_connection(("127.0.0.1", served.port), timeout=10) as plain,
        pytest.raises(ssl.SSLCertVerificationError),
        ssl.create_default_context().wrap_socket(plain, server_hostname="127.0.0.1"),
    ):
        pass


BAD_REQUESTS = [
    # method, path, body, content type, status, reason
    ("POST", VOLUMES, b"{", "application/json", 400, "BadRequest"),
    ("POST", VOLUMES, b"", "application/json", 400, "BadRequest"),
    ("POST", VOLUMES, b"[]", "application/json", 400, "BadRequest"),
    ("POST", VOLUMES, b"{}", "application/json", 400, "BadRequest"),
    ("POST", VOLUMES, b"\xff\xfe", "application/json", 400, "BadRequest"),
    ("POST", VOLUMES, b"[" * 100_000, "application/json", 400, "BadRequest"),
    ("POST", VOLUMES, b"x", "text/plain", 415, "UnsupportedMediaType"),
    ("POST", VOLUMES, b"x", "application/vnd.kubernetes.protobuf", 400, "BadRequest"),
    ("POST", VOLUMES, b"k8s\x00\x0a\x00", "application/vnd.kubernetes.protobuf", 415, "UnsupportedMediaType"),
    ("POST", VOLUMES, b"k8s\x00\xff\xff", "application/vnd.kubernetes.protobuf", 400, "BadRequest"),
    ("POST", VOLUMES, b"x" * (3 * 1024 * 1024 + 1), "application/json", 413, "RequestEntityTooLarge"),
    ("GET", "/apis/storage.deckhouse.io/v1alpha1/gizmos", b"", "application/json", 404, "NotFound"),
    ("GET", "/apis/storage.deckhouse.io/v9/replicatedvolumes", b"", "application/json", 404, "NotFound"),
    ("GET", "/api/v1/namespaces/default/nodes", b"", "application/json", 404, "NotFound"),
    ("GET", f"{VOLUMES}/v/status/deeper", b"", "application/json", 404, "NotFound"),
    ("GET", f"{VOLUMES}/v/scale", b"", "application/json", 404, "NotFound"),
    ("GET", "/nonsense", b"", "application/json", 404, "NotFound"),
    ("PUT", VOLUMES, b"{}", "application/json", 405, "MethodNotAllowed"),
    ("POST", f"{VOLUMES}/v", b"{}", "application/json", 405, "MethodNotAllowed"),
    ("DELETE", f"{VOLUMES}/v/status", b"", "application/json", 405, "MethodNotAllowed"),
    ("POST", "/api/v1/pods", b"{}", "application/json", 405, "MethodNotAllowed"),
    ("DELETE", "/version", b"", "application/json", 405, "MethodNotAllowed"),
    ("OPTIONS", VOLUMES, b"", "application/json", 405, "MethodNotAllowed"),
    ("PATCH", f"{VOLUMES}/missing", b"{}", "application/merge-patch+json", 404, "NotFound"),
]


@pytest.mark.parametrize(("method", "path", "body", "content_type", "status", "reason"), BAD_REQUESTS)
def test_a_bad_request_gets_a_status_object_and_changes_nothing(
    served: Served, method: str, path: str, body: bytes, content_type: str, status: int, reason: str
) -> None:
    before = served.send("GET", VOLUMES)
    answer, told = served.send(method, path, body, content_type=content_type)
    assert (answer, told["reason"], told["code"]) == (status, reason, status)
    assert (told["kind"], told["apiVersion"], told["status"]) == ("Status", "v1", "Failure")
    assert as_text(told["message"])
    assert served.send("GET", VOLUMES) == before


def test_a_body_just_below_the_limit_is_read(served: Served) -> None:
    body = encode({**VOLUME, "metadata": {"name": "big", "annotations": {"a": "x" * (3 * 1024 * 1024 - 500)}}})
    assert len(body) < 3 * 1024 * 1024
    status, told = served.send("POST", VOLUMES, body)
    assert (status, told["reason"]) == (422, "Invalid"), "annotations have a limit of their own"


def test_a_chunked_body_over_the_limit_is_refused(served: Served) -> None:
    connection = served.connection()
    try:
        headers = {"Authorization": f"Bearer {served.token}", "Content-Type": "application/json"}
        chunks = (b"x" * 65536 for _ in range(64))
        try:
            connection.request("POST", VOLUMES, chunks, headers, encode_chunked=True)
        except (BrokenPipeError, ConnectionResetError, ssl.SSLError):
            pass
        else:
            assert connection.getresponse().status == 413
    finally:
        connection.close()
    assert served.send("GET", VOLUMES)[0] == 200


def test_a_watch_streams_over_the_network(served: Served) -> None:
    connection = served.connection()
    try:
        headers = {"Authorization": f"Bearer {served.token}"}
        connection.request("GET", f"{VOLUMES}?watch=true&fieldSelector=metadata.name=streamed", headers=headers)
        response = connection.getresponse()
        assert response.getheader("Transfer-Encoding") == "chunked"
        served.send("POST", VOLUMES, encode({**VOLUME, "metadata": {"name": "streamed"}}))
        assert response.readline().startswith(b'{"type":"ADDED","object":{')
        served.send("DELETE", f"{VOLUMES}/streamed")
        assert response.readline().startswith(b'{"type":"DELETED","object":{')
    finally:
        connection.close()


def test_an_unacceptable_form_is_refused() -> None:
    api: Api = make_api()
    api.post(WIDGETS, widget())
    assert api.send("GET", WIDGETS, accept="application/vnd.kubernetes.protobuf").status == 406
    assert api.send("GET", WIDGETS, accept="application/vnd.kubernetes.protobuf,application/json").status == 200


def test_certificates_are_accepted_by_openssl(tmp_path: Path) -> None:
    made = make_certificate(1_700_000_000.0)
    (tmp_path / "crt").write_text(made.certificate)
    (tmp_path / "key").write_text(made.key)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(tmp_path / "crt", tmp_path / "key")
    trusted = ssl.create_default_context(cadata=made.certificate)
    (root,) = trusted.get_ca_certs()
    assert root["notBefore"] == "Nov 13 22:13:20 2023 GMT"
    assert root["notAfter"] == "Nov  1 22:13:20 2033 GMT"
