"""Reading kubeconfig files: contexts, merging, relative paths, errors that name the fix."""

from __future__ import annotations

from pathlib import Path

import pytest

from quorate.kube.kubeconfig import ConfigError, load, service_account

BASE = """
apiVersion: v1
kind: Config
current-context: one
clusters:
- name: c1
  cluster: {server: "https://127.0.0.1:6443/", certificate-authority: ca.crt, tls-server-name: api}
- name: c2
  cluster: {server: "https://127.0.0.1:7443", insecure-skip-tls-verify: true, proxy-url: "http://127.0.0.1:3128"}
users:
- name: u1
  user: {client-certificate: me.crt, client-key: /keys/me.key}
- name: u2
  user: {token: sesame}
contexts:
- name: one
  context: {cluster: c1, user: u1, namespace: storage}
- name: two
  context: {cluster: c2, user: u2}
"""


def write(path: Path, text: str) -> str:
    path.write_text(text)
    return str(path)


def test_current_context_with_paths_relative_to_the_file(tmp_path: Path) -> None:
    config = load(write(tmp_path / "config", BASE))
    assert config.server == "https://127.0.0.1:6443"
    assert config.namespace == "storage"
    assert config.certificate_authority.path == str(tmp_path / "ca.crt")
    assert config.client_certificate.path == str(tmp_path / "me.crt")
    assert config.client_key.path == "/keys/me.key"
    assert (config.server_name, config.verify) == ("api", True)


def test_named_context_and_redacted_token(tmp_path: Path) -> None:
    config = load(write(tmp_path / "config", BASE), context="two")
    assert config.proxy == "http://127.0.0.1:3128"
    assert not config.verify
    assert config.token is not None
    assert config.token.reveal() == "sesame"
    assert "sesame" not in repr(config)


def test_files_of_kubeconfig_variable_are_merged_first_wins(tmp_path: Path) -> None:
    first = write(tmp_path / "a", "current-context: two\n")
    second = write(tmp_path / "b", BASE)
    config = load(environment={"KUBECONFIG": f"{first}:{second}:{tmp_path}/missing"})
    assert config.server == "https://127.0.0.1:7443"


def test_home_file_is_the_default(tmp_path: Path) -> None:
    (tmp_path / ".kube").mkdir()
    write(tmp_path / ".kube" / "config", BASE)
    assert load(environment={}, home=tmp_path).namespace == "storage"


@pytest.mark.parametrize(
    ("name", "text", "context", "said"),
    [
        ("unknown context", BASE, "three", "there is no context three; known contexts: one, two"),
        ("no current context", "contexts: []\n", "", "no current-context"),
        ("undefined cluster", BASE.replace("cluster: c1", "cluster: cx"), "", "names cluster cx, which is not defined"),
        ("undefined user", BASE.replace("user: u1", "user: ux"), "", "names user ux, which is not defined"),
        ("no server", BASE.replace('server: "https://127.0.0.1:6443/", ', ""), "", "has no server"),
        ("not yaml", "clusters: [", "", "not a kubeconfig file"),
    ],
)
def test_errors_say_what_is_wrong(tmp_path: Path, name: str, text: str, context: str, said: str) -> None:
    with pytest.raises(ConfigError, match="config") as caught:
        load(write(tmp_path / "config", text), context=context)
    assert said in str(caught.value), name


def test_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="no such kubeconfig file"):
        load(str(tmp_path / "nothing"))
    with pytest.raises(ConfigError, match="no kubeconfig found"):
        load(environment={}, home=tmp_path)


def test_service_account_of_a_pod(tmp_path: Path) -> None:
    (tmp_path / "namespace").write_text("d8-storage")
    config = service_account({"KUBERNETES_SERVICE_HOST": "fd00::1", "KUBERNETES_SERVICE_PORT": "443"}, tmp_path)
    assert config.server == "https://[fd00::1]:443"
    assert config.namespace == "d8-storage"
    assert config.token_file == str(tmp_path / "token")
    with pytest.raises(ConfigError, match="KUBERNETES_SERVICE_HOST"):
        service_account({}, tmp_path)
