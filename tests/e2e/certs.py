"""Certificates of all kinds for tests, made on the spot."""
import datetime
import ipaddress
import os

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

HOUR = datetime.timedelta(hours=1)
SERVER, CLIENT = ExtendedKeyUsageOID.SERVER_AUTH, ExtendedKeyUsageOID.CLIENT_AUTH


class Cert:
    """A certificate with its key. issuer None: self-signed. sans: DNS names, or ipaddress objects, or GeneralNames."""

    def __init__(self, cn, issuer=None, sans=(), ca=False, path_length=None, eku=SERVER, begin=-HOUR, end=HOUR * 24,
                 bits=None, digest=None, constraints=None, critical=None, must_staple=False, key_usage=True):
        self.issuer = issuer
        self.key = rsa.generate_private_key(65537, bits) if bits else ec.generate_private_key(ec.SECP256R1())
        by, by_key = (issuer.x, issuer.key) if issuer else (None, self.key)
        now = datetime.datetime.utcnow()
        subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, cn)])
        make = (x509.CertificateBuilder().subject_name(subject).issuer_name(by.subject if by else subject)
                .public_key(self.key.public_key()).serial_number(x509.random_serial_number())
                .not_valid_before(now + begin).not_valid_after(now + end)
                .add_extension(x509.BasicConstraints(ca, path_length if ca else None), True)
                .add_extension(x509.SubjectKeyIdentifier.from_public_key(self.key.public_key()), False))
        if issuer:
            make = make.add_extension(x509.AuthorityKeyIdentifier.from_issuer_public_key(by_key.public_key()), False)
        if sans:
            names = [n if isinstance(n, x509.GeneralName) else
                     x509.DNSName(n) if isinstance(n, str) else x509.IPAddress(n) for n in sans]
            make = make.add_extension(x509.SubjectAlternativeName(names), False)
        if eku and not ca:
            make = make.add_extension(x509.ExtendedKeyUsage([eku]), False)
        if ca and key_usage:
            make = make.add_extension(x509.KeyUsage(False, False, False, False, False, True, True, False, False), True)
        if constraints:
            make = make.add_extension(x509.NameConstraints([x509.DNSName(c) for c in constraints], None), True)
        if critical:
            make = make.add_extension(x509.UnrecognizedExtension(x509.ObjectIdentifier(critical), b"\x05\0"), True)
        if must_staple:
            make = make.add_extension(x509.TLSFeature([x509.TLSFeatureType.status_request]), False)
        self.x = make.sign(by_key, digest or hashes.SHA256())

    def pem(self):
        return self.x.public_bytes(serialization.Encoding.PEM)

    def write(self, directory, name, chain=()):
        """NAME.pem, with the chain behind, and NAME.key; returns both paths."""
        certificate, key = (os.path.join(str(directory), name + end) for end in (".pem", ".key"))
        with open(certificate, "wb") as f:
            f.write(self.pem() + b"".join(c.pem() for c in chain))
        with open(key, "wb") as f:
            os.chmod(key, 0o600)
            f.write(self.key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8,
                                           serialization.NoEncryption()))
        return certificate, key


def address(text):
    return ipaddress.ip_address(text)
