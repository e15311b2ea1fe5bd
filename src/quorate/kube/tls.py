"""TLS contexts from certificates that may be files or inline data. Verification is on unless the configuration says no."""

from __future__ import annotations

import base64
import binascii
import os
import ssl
import tempfile
from pathlib import Path

from quorate.kube.credentials import Proof
from quorate.kube.kubeconfig import ConfigError, Material, ServerConfig


def context_of(config: ServerConfig, proof: Proof) -> ssl.SSLContext | None:
    """The context for a server; None for plain HTTP."""
    if not config.server.startswith("https://"):
        return None
    context = ssl.create_default_context()
    if config.certificate_authority:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.load_verify_locations(cadata=_text(config.certificate_authority, "certificate authority"))
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    if not config.verify:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    if proof.client_certificate and proof.client_key is not None:
        _load_pair(context, proof.client_certificate, proof.client_key.reveal())
    elif config.client_certificate and config.client_key:
        certificate = _text(config.client_certificate, "client certificate")
        _load_pair(context, certificate, _text(config.client_key, "client key"))
    return context


def _text(material: Material, what: str) -> str:
    """The PEM text; inline data wins over a file, as in kubectl."""
    if material.data:
        try:
            return base64.b64decode(material.data, validate=True).decode()
        except (binascii.Error, UnicodeDecodeError) as error:
            raise ConfigError(f"the {what} data in the kubeconfig is not base64 of a PEM text") from error
    try:
        return Path(material.path).read_text()
    except OSError as error:
        raise ConfigError(f"{material.path}: the {what} cannot be read: {error.strerror}") from error


def _load_pair(context: ssl.SSLContext, certificate: str, key: str) -> None:
    """The ssl module reads certificates from files only: the pair passes through a private file that is gone at once."""
    descriptor, name = tempfile.mkstemp(prefix="quorate-tls-")
    try:
        os.write(descriptor, f"{certificate}\n{key}\n".encode())
        os.close(descriptor)
        context.load_cert_chain(name)
    except (ssl.SSLError, OSError) as error:
        raise ConfigError(f"the client certificate and key do not fit together: {error}") from error
    finally:
        os.unlink(name)
