# SPDX-License-Identifier: BSD-2-Clause
"""The operator's certificate authority, which signs the certificates of members and of the operator.

The caller stores it, in a Secret. Members' certificates are signed in the playbook, by openssl, from requests; the
operator's own are issued here.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from ipaddress import ip_address
from typing import TYPE_CHECKING

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

if TYPE_CHECKING:
    from collections.abc import Sequence

METRICS_ROLE = "urn:shai:role:metrics"
"""The role of clients that collect metrics: monitors answer their requests for metrics and probes, and no others."""

_SKEW = timedelta(days=1)
"""How far the clocks of those who check a certificate may be behind; enough for any time zone that was set wrongly."""
_LIFE = timedelta(days=3650)
_LEAF_LIFE = timedelta(days=90)


class AuthorityError(ValueError):
    """The stored data are not an authority; the text says what is wrong and what to do."""


@dataclass(frozen=True)
class Identity:
    """A certificate and its private key, as PEM."""

    certificate: str
    key: str = field(repr=False)

    @property
    def ends(self) -> datetime:
        """When the certificate expires."""
        return x509.load_pem_x509_certificate(self.certificate.encode()).not_valid_after_utc


def create(now: datetime | None = None) -> Identity:
    """Make an authority with a new P-256 key, valid for ten years."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "Shai operator's authority")])
    builder = (
        _builder(name, name, key.public_key(), now or datetime.now(UTC), _LIFE)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .add_extension(_usage(certificates=True), critical=True)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
    )
    return _signed(builder, key, key)


def check(authority: Identity) -> None:
    """Raise AuthorityError unless the identity is an authority's certificate with its own key."""
    _load(authority)


def issue_client(authority: Identity, name: str, now: datetime | None = None, *, role: str = "") -> Identity:
    """Issue a certificate that identifies a client of the monitors; valid for 90 days.

    Without a role, such as the operator's own, it has all rights.
    """
    names = (x509.UniformResourceIdentifier(role),) if role else ()
    return _issue(authority, name, ExtendedKeyUsageOID.CLIENT_AUTH, names, now)


def issue_server(authority: Identity, host: str, now: datetime | None = None) -> Identity:
    """Issue a certificate for a server at a host name or IP address; valid for 90 days."""
    try:
        alternative: x509.GeneralName = x509.IPAddress(ip_address(host))
    except ValueError:
        alternative = x509.DNSName(host)
    return _issue(authority, "Shai operator", ExtendedKeyUsageOID.SERVER_AUTH, (alternative,), now)


def _issue(
    authority: Identity,
    name: str,
    usage: x509.ObjectIdentifier,
    alternatives: Sequence[x509.GeneralName],
    now: datetime | None,
) -> Identity:
    issuer, issuer_key = _load(authority)
    key = ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
    builder = (
        _builder(subject, issuer.subject, key.public_key(), now or datetime.now(UTC), _LEAF_LIFE)
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .add_extension(_usage(certificates=False), critical=True)
        .add_extension(x509.ExtendedKeyUsage([usage]), critical=False)
        .add_extension(x509.AuthorityKeyIdentifier.from_issuer_public_key(issuer_key.public_key()), critical=False)
    )
    if alternatives:
        builder = builder.add_extension(x509.SubjectAlternativeName(alternatives), critical=False)
    return _signed(builder, issuer_key, key)


def _load(authority: Identity) -> tuple[x509.Certificate, ec.EllipticCurvePrivateKey]:
    try:
        certificate = x509.load_pem_x509_certificate(authority.certificate.encode())
        key = serialization.load_pem_private_key(authority.key.encode(), password=None)
        constraints = certificate.extensions.get_extension_for_class(x509.BasicConstraints).value
    except (ValueError, TypeError, x509.ExtensionNotFound) as error:
        raise AuthorityError(f"the certificate authority cannot be read ({error}): restore its Secret") from error
    if not isinstance(key, ec.EllipticCurvePrivateKey) or certificate.public_key() != key.public_key():
        raise AuthorityError("the certificate authority's key is not its certificate's: restore its Secret")
    if not constraints.ca:
        raise AuthorityError("the certificate authority's certificate is not an authority's: restore its Secret")
    return certificate, key


def _builder(
    subject: x509.Name, issuer: x509.Name, key: ec.EllipticCurvePublicKey, now: datetime, life: timedelta
) -> x509.CertificateBuilder:
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key)
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - _SKEW)
        .not_valid_after(now + life)
    )


def _usage(*, certificates: bool) -> x509.KeyUsage:
    """Allow only the signing of certificates, or only that of handshakes."""
    return x509.KeyUsage(
        digital_signature=not certificates,
        key_cert_sign=certificates,
        crl_sign=certificates,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        encipher_only=False,
        decipher_only=False,
    )


def _signed(
    builder: x509.CertificateBuilder, signer: ec.EllipticCurvePrivateKey, key: ec.EllipticCurvePrivateKey
) -> Identity:
    certificate = builder.sign(signer, hashes.SHA256()).public_bytes(serialization.Encoding.PEM)
    private = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    return Identity(certificate.decode(), private.decode())
