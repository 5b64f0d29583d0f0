"""Hashes, keys, signatures and certificates ("Before connecting" and "Transport").

Everything here is a pure function except `certificate`, which makes a fresh key.
"""

from __future__ import annotations

import datetime
from dataclasses import dataclass

import cbor2
from cryptography import x509
from cryptography.exceptions import InvalidSignature, UnsupportedAlgorithm
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, utils
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat
from cryptography.x509.oid import NameOID

ORDER = 0xFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFEBAAEDCE6AF48A03BBFD25E8CD0364141
"""The number of points of secp256k1."""
PRIME = 2**256 - 2**32 - 977
"""The size of the curve's field."""

BINDING_OID = x509.ObjectIdentifier("1.3.6.1.4.1.58888.11.1")
BINDING_DOMAIN = b"cowboy-cip11-tls/v1"

# Signed values are 32-byte hashes already.
PREHASHED = utils.Prehashed(hashes.SHA256())


# keccak256


def _round_constants() -> list[int]:
    """The constants of Keccak-f[1600]'s 24 rounds, from its shift register."""
    register, constants = 1, []
    for _ in range(24):
        constant = 0
        for j in range(7):
            if register & 1:
                constant |= 1 << ((1 << j) - 1)
            register = (register << 1) ^ (0x171 if register & 0x80 else 0)
        constants.append(constant)
    return constants


def _lane_moves() -> list[tuple[int, int, int]]:
    """The moves and rotations of lanes: (from, to, bits); a lane is x + 5 * y."""
    moves, x, y = [(0, 0, 0)], 1, 0
    for t in range(24):
        to_x, to_y = y, (2 * x + 3 * y) % 5
        moves.append((x + 5 * y, to_x + 5 * to_y, (t + 1) * (t + 2) // 2 % 64))
        x, y = to_x, to_y
    return moves


ROUND_CONSTANTS = _round_constants()
LANE_MOVES = _lane_moves()
LANE = (1 << 64) - 1
RATE = 136


def _permute(lanes: list[int]) -> list[int]:
    for constant in ROUND_CONSTANTS:
        columns = [
            lanes[x] ^ lanes[x + 5] ^ lanes[x + 10] ^ lanes[x + 15] ^ lanes[x + 20]
            for x in range(5)
        ]
        mixed = [
            columns[x - 1] ^ ((columns[(x + 1) % 5] << 1 | columns[(x + 1) % 5] >> 63) & LANE)
            for x in range(5)
        ]
        moved = [0] * 25
        for source, target, bits in LANE_MOVES:
            lane = lanes[source] ^ mixed[source % 5]
            moved[target] = (lane << bits | lane >> (64 - bits)) & LANE
        lanes = [
            moved[i] ^ (~moved[i - i % 5 + (i + 1) % 5] & moved[i - i % 5 + (i + 2) % 5])
            for i in range(25)
        ]
        lanes[0] ^= constant
    return lanes


def keccak256(*parts: bytes) -> bytes:
    """Ethereum's hash of the concatenated parts: with Keccak's padding, not SHA-3's."""
    message = bytearray().join(parts)
    message += bytes(RATE - len(message) % RATE)
    message[sum(map(len, parts))] ^= 0x01
    message[-1] ^= 0x80
    lanes = [0] * 25
    for start in range(0, len(message), RATE):
        for i in range(RATE // 8):
            at = start + 8 * i
            lanes[i] ^= int.from_bytes(message[at : at + 8], "little")
        lanes = _permute(lanes)
    return b"".join(lane.to_bytes(8, "little") for lane in lanes[:4])


# Keys and signatures


class SecretKey:
    """A runner's secret key. Nothing ever prints it."""

    def __init__(self, secret: bytes) -> None:
        """Takes 32 bytes, big-endian. Raises ValueError if they are not a key."""
        self._number = int.from_bytes(secret, "big")
        if len(secret) != 32 or not 0 < self._number < ORDER:
            raise ValueError("a secret key is 32 bytes, not zero and below the curve's order")
        self._key = ec.derive_private_key(self._number, ec.SECP256K1())
        point = self._key.public_key()
        self.public = point.public_bytes(Encoding.X962, PublicFormat.CompressedPoint)
        self.address = address(self.public)

    def sign(self, digest: bytes) -> bytes:
        """The signature over a 32-byte digest: r, s in the lower half, and v."""
        der = self._key.sign(digest, ec.ECDSA(PREHASHED, deterministic_signing=True))
        r, s = utils.decode_dss_signature(der)
        # v is the parity of the nonce's point; the nonce can be computed with the key.
        nonce = (int.from_bytes(digest, "big") + r * self._number) * pow(s, -1, ORDER) % ORDER
        point = ec.derive_private_key(nonce, ec.SECP256K1()).public_key().public_numbers()
        v = point.y & 1
        if s > ORDER // 2:
            s, v = ORDER - s, 1 - v
        return r.to_bytes(32, "big") + s.to_bytes(32, "big") + bytes([v])


def address(public: bytes) -> bytes:
    """The address of a compressed public key. Raises ValueError if it is not a point."""
    point = ec.EllipticCurvePublicKey.from_encoded_point(ec.SECP256K1(), public)
    encoded = point.public_bytes(Encoding.X962, PublicFormat.UncompressedPoint)
    return keccak256(encoded[1:])[12:]


def verify(public: bytes, digest: bytes, signature: bytes) -> bool:
    """Whether the holder of a compressed public key signed the digest."""
    r, s = int.from_bytes(signature[:32], "big"), int.from_bytes(signature[32:64], "big")
    if len(signature) != 65 or s > ORDER // 2 or signature[64] > 1:
        return False
    try:
        key = ec.EllipticCurvePublicKey.from_encoded_point(ec.SECP256K1(), public)
        key.verify(utils.encode_dss_signature(r, s), digest, ec.ECDSA(PREHASHED))
    except (InvalidSignature, ValueError):
        return False
    return True


Point = tuple[int, int] | None
"""A point of the curve; None is the point at infinity."""


def _add(one: Point, other: Point) -> Point:
    if one is None or other is None:
        return one or other
    (x1, y1), (x2, y2) = one, other
    if x1 == x2 and (y1 + y2) % PRIME == 0:
        return None
    if one == other:
        slope = 3 * x1 * x1 * pow(2 * y1, -1, PRIME)
    else:
        slope = (y2 - y1) * pow(x2 - x1, -1, PRIME)
    x = (slope * slope - x1 - x2) % PRIME
    return x, (slope * (x1 - x) - y1) % PRIME


def _multiply(point: Point, number: int) -> Point:
    product: Point = None
    for bit in bin(number)[2:]:
        product = _add(product, product)
        if bit == "1":
            product = _add(product, point)
    return product


def recover(digest: bytes, signature: bytes) -> bytes | None:
    """The address of the digest's signer; None if the signature is invalid."""
    r, s = int.from_bytes(signature[:32], "big"), int.from_bytes(signature[32:64], "big")
    if len(signature) != 65 or not (0 < r < ORDER and 0 < s <= ORDER // 2) or signature[64] > 1:
        return None
    square = (pow(r, 3, PRIME) + 7) % PRIME
    y = pow(square, (PRIME + 1) // 4, PRIME)
    if y * y % PRIME != square:
        return None
    nonce = r, y if y & 1 == signature[64] else PRIME - y
    # The key is the point (s * nonce - digest * generator) / r.
    inverse = pow(r, -1, ORDER)
    minus = -int.from_bytes(digest, "big") * inverse % ORDER
    generator = ec.derive_private_key(1, ec.SECP256K1()).public_key().public_numbers()
    public = _add(
        _multiply(nonce, s * inverse % ORDER), _multiply((generator.x, generator.y), minus)
    )
    if public is None:
        return None
    x, y = public
    return keccak256(x.to_bytes(32, "big"), y.to_bytes(32, "big"))[12:]


def subset(runner: bytes, validators: list[bytes]) -> list[bytes]:
    """The validators that a runner keeps connections to, nearest first; all are public keys."""
    count = len(validators)
    size = min(count, max(3, min(8, max(count - 1, 0).bit_length() + 1)))
    return sorted(validators, key=lambda validator: keccak256(runner, validator))[:size]


# Certificates


class IdentityError(Exception):
    """A certificate that is not bound to an on-chain key."""


@dataclass(frozen=True)
class Certificate:
    """A self-signed certificate and the key that signed it."""

    x509: x509.Certificate
    key: ed25519.Ed25519PrivateKey


def binding(secret: SecretKey, key: ed25519.Ed25519PublicKey) -> bytes:
    """The extension's value in the certificate of `key`."""
    spki = key.public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo)
    signature = secret.sign(keccak256(BINDING_DOMAIN, spki))
    return cbor2.dumps({"sig": signature, "pubkey": secret.public}, canonical=True)


def certificate(secret: SecretKey) -> Certificate:
    """A fresh certificate that is bound to `secret`."""
    key = ed25519.Ed25519PrivateKey.generate()
    bound = x509.UnrecognizedExtension(BINDING_OID, binding(secret, key.public_key()))
    # Names and dates are ignored, but mandatory.
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "runner")])
    builder = (
        x509.CertificateBuilder(subject_name=name, issuer_name=name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(datetime.datetime(1975, 1, 1))
        .not_valid_after(datetime.datetime(4096, 1, 1))
        .add_extension(bound, critical=False)
    )
    return Certificate(builder.sign(key, None), key)


def bound_key(chain: list[x509.Certificate]) -> bytes:
    """The on-chain public key that a peer's certificate is bound to."""
    if len(chain) != 1:
        raise IdentityError(f"{len(chain)} certificates where one is expected")
    [peer] = chain
    try:
        peer.verify_directly_issued_by(peer)
    except (InvalidSignature, UnsupportedAlgorithm, ValueError, TypeError) as error:
        raise IdentityError("the certificate is not signed with its own key") from error
    try:
        # Raises ValueError if an extension occurs twice.
        extension = peer.extensions.get_extension_for_oid(BINDING_OID)
        assert isinstance(extension.value, x509.UnrecognizedExtension)
        value = extension.value.value
        found = cbor2.loads(value)
        canonical = cbor2.dumps(found, canonical=True) == value
    except (x509.ExtensionNotFound, ValueError, cbor2.CBORError) as error:
        raise IdentityError(f"no binding to a key: {error}") from error
    if extension.critical or not canonical:
        raise IdentityError("the binding is critical, or not in its one form")
    match found:
        case {"sig": bytes(signature), "pubkey": bytes(public), **rest} if not rest:
            pass
        case _:
            raise IdentityError("the binding has other fields than `sig` and `pubkey`")
    spki = peer.public_key().public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo)
    if not verify(public, keccak256(BINDING_DOMAIN, spki), signature):
        raise IdentityError(f"{public.hex()} did not sign the certificate's key")
    return public
