"""The runner against the bytes in docs/runner-protocol.md: `python3 -m unittest` in this folder."""

from __future__ import annotations

import dataclasses
import re
import unittest
from pathlib import Path

import cbor2
from cryptography.hazmat.primitives.asymmetric import ed25519

import chain
import keys
import wire
from keys import SecretKey, keccak256
from connection import check_reveals, sign_commit, sign_failure, sign_result
from wire import digest

DOCUMENT = Path(__file__).parents[2] / "docs" / "runner-protocol.md"
CHAIN = 0x0102030405060708
RUNNER, VALIDATOR, SUBMITTER, AGENT = (SecretKey(bytes([i]) * 32) for i in (1, 2, 3, 5))


def shown() -> dict[str, bytes]:
    """The hexadecimal dumps of the document, by heading."""
    section = re.compile(r"^### (.+)\n\n(?:.+\n)+\n```\n([0-9a-f\n]+)```$", re.MULTILINE)
    found = section.findall(DOCUMENT.read_text())
    return {title: bytes.fromhex(dump.replace("\n", "")) for title, dump in found}


SHOWN = shown()
FRAMES = {
    title: dump
    for title, dump in SHOWN.items()
    if title.startswith("0x") and not title.endswith("in version 2")
}


def read(dump: bytes) -> wire.Frame:
    frame = wire.decode(wire.KINDS[dump[4]].CHANNEL, dump[4:])
    assert frame is not None
    return frame


def frame(start: str) -> wire.Frame:
    """The first frame whose heading begins with a text."""
    return read(next(dump for title, dump in FRAMES.items() if title.startswith(start)))


def signature(shown: wire.Frame) -> bytes:
    """The one signature in a frame."""
    fields = dataclasses.asdict(shown)
    [found] = [value for value in fields.values() if type(value) is bytes and len(value) == 65]
    return found


class Document(unittest.TestCase):
    def test_every_frame_decodes_and_encodes_to_the_same_bytes(self) -> None:
        self.assertEqual({dump[4] for dump in FRAMES.values()}, set(wire.KINDS))
        for title, dump in FRAMES.items():
            with self.subTest(title):
                decoded = read(dump)
                self.assertTrue(title.startswith(f"{decoded.KIND:#04x} {type(decoded).__name__}"))
                self.assertEqual(wire.encode(decoded), dump)

    def test_frames_are_found_in_pieces_of_any_size(self) -> None:
        for channel in wire.LIMITS:
            dumps = [dump for dump in FRAMES.values() if wire.KINDS[dump[4]].CHANNEL == channel]
            stream = b"".join(dumps)
            for size in (1, 7, len(stream)):
                reader = wire.FrameReader(channel)
                pieces = (stream[at : at + size] for at in range(0, len(stream), size))
                found = [frame for piece in pieces for frame in reader.feed(piece)]
                self.assertEqual([wire.encode(frame) for frame in found], dumps)

    def test_parties_are_those_of_the_table(self) -> None:
        text = DOCUMENT.read_text()
        for name, key in (("runner", RUNNER), ("validator", VALIDATOR)):
            line = f"| {name} | `{{}}` | `{key.public.hex()}` | `0x{key.address.hex()}` |"
            self.assertIn(line.format(("01" if key is RUNNER else "02") * 32), text)

    def test_every_signature_is_over_what_the_table_says(self) -> None:
        assignment = frame("0x20 JobAssignment")
        assert isinstance(assignment, wire.JobAssignment)
        job, spec = assignment.job_id, assignment.job_spec
        errand = frame("0x26 Errand")
        assert isinstance(errand, wire.Errand)
        result, aggregate = frame("0x23 JobResult"), frame("0x82 JobAggregate")
        assert isinstance(result, wire.JobResult) and isinstance(aggregate, wire.JobAggregate)
        commitment = keccak256(result.result_data, result.runner_signed)
        reveals = [found["runner"] + keccak256(b"hi\n") for found in aggregate.reveals]
        revealed = keccak256(*reveals)
        lists = [keccak256(cbor2.dumps(texts)) for texts in (["http"], ["custom"], [], [])]
        cases: list[tuple[str, SecretKey, tuple[int | bytes | str, ...]]] = [
            ("0x02 HelloAck, of the validator", VALIDATOR, (bytes([0x11]) * 32,)),
            ("0x02 HelloAck, of the runner", RUNNER, (bytes([0x22]) * 32,)),
            ("0x10 HeartbeatPing", RUNNER, (42, 1)),
            ("0x11 HeartbeatPong", VALIDATOR, (42, RUNNER.public)),
            ("0x13 CapabilityDelta", RUNNER, (42, *lists)),
            ("0x20 JobAssignment", VALIDATOR, (job, keccak256(spec), 42, 82, RUNNER.public)),
            ("0x21 JobAck: accepted", RUNNER, (job, 82, "accepted")),
            ("0x21 JobAck: duplicate", RUNNER, (job, 82, "duplicate")),
            ("0x21 JobAck: reject", RUNNER, (job, 82, "reject(at_capacity)")),
            ("0x23 JobResult", RUNNER, (job, keccak256(b"hi\n"))),
            ("0x24 JobCancel", VALIDATOR, (job, 82, "reassigned")),
            ("0x26 Errand", AGENT, (errand.errand_id, 82, RUNNER.public)),
            ("0x80 JobCommit", RUNNER, (job, 82, commitment)),
            ("0x81 JobReveal", VALIDATOR, (job,)),
            ("0x82 JobAggregate", VALIDATOR, (job, revealed)),
            ("0x83 JobAggregated", RUNNER, (job, revealed)),
            ("0x84 JobFailure", RUNNER, (job, "exited with 3: no such file")),
        ]
        for title, key, parts in cases:
            with self.subTest(title):
                found = frame(title)
                signed = digest(CHAIN, type(found).__name__, *parts)
                self.assertEqual(signature(found), key.sign(signed))
                self.assertTrue(keys.verify(key.public, signed, signature(found)))
        submitted = SUBMITTER.address + (7).to_bytes(8, "big") + keccak256(spec)
        self.assertEqual(job, keccak256(submitted))
        self.assertTrue(assignment.is_of_its_job())
        self.assertFalse(dataclasses.replace(assignment, nonce=8).is_of_its_job())
        content = (errand.agent_pubkey, errand.label, keccak256(errand.errand_spec))
        self.assertEqual(errand.errand_id, keccak256(b"cowboy/errand/v1", *content))

    def test_what_a_committee_makes_has_the_same_bytes(self) -> None:
        job = dataclasses.asdict(frame("0x23 JobResult"))["job_id"]
        result = sign_result(CHAIN, RUNNER, job, b"hi\n")
        self.assertEqual(result, frame("0x23 JobResult"))
        self.assertEqual(sign_commit(CHAIN, RUNNER, result, 82), frame("0x80 JobCommit"))
        aggregate = frame("0x82 JobAggregate")
        assert isinstance(aggregate, wire.JobAggregate)
        revealed, are_signed = check_reveals(CHAIN, aggregate)
        self.assertTrue(are_signed)
        signed = RUNNER.sign(digest(CHAIN, "JobAggregated", job, revealed))
        self.assertEqual(signature(frame("0x83 JobAggregated")), signed)
        first, second = aggregate.reveals
        foreign = [first, second | {"runner": first["runner"]}]
        self.assertFalse(check_reveals(CHAIN, dataclasses.replace(aggregate, reveals=foreign))[1])

    def test_a_report_of_failed_work_has_the_same_bytes_and_a_bounded_reason(self) -> None:
        shown = frame("0x84 JobFailure")
        assert isinstance(shown, wire.JobFailure)
        made = sign_failure(CHAIN, RUNNER, shown.job_id, "exited with 3: no such file")
        self.assertEqual(made, shown)
        long = sign_failure(CHAIN, RUNNER, shown.job_id, "x" + "ä" * 200)
        self.assertEqual(long.reason, "x" + "ä" * 127)
        self.assertEqual(wire.decode(wire.JOB, wire.encode(long)[4:]), long)
        longer = dataclasses.replace(long, reason="ä" * 129)
        with self.assertRaises(wire.ProtocolError):
            wire.decode(wire.JOB, wire.encode(longer)[4:])

    def test_what_else_is_signed_has_the_same_bytes(self) -> None:
        key = bytes.fromhex("d75a980182b10ab7d54bfed3c964073a0ee172f3daa62325af021a68f707511a")
        public = ed25519.Ed25519PublicKey.from_public_bytes(key)
        self.assertEqual(keys.binding(RUNNER, public), SHOWN["A certificate's binding"])
        cases = [
            ("A registration", 0, chain.registration(RUNNER.public)),
            ("A heartbeat on the chain", 7, [chain.RUNNER_HEARTBEAT]),
        ]
        for title, nonce, payload in cases:
            with self.subTest(title):
                shown = cbor2.loads(SHOWN[title])["transaction"]
                transaction = {
                    "chain_id": CHAIN,
                    "nonce": nonce,
                    "fees": chain.fees(1_000, 1_000),
                    "cycle_limit": shown["cycle_limit"],
                    "cell_limit": shown["cell_limit"],
                    "payload": payload,
                }
                self.assertEqual(chain.sign(RUNNER, transaction), SHOWN[title])
                self.assertLessEqual(shown["cycle_limit"], chain.CYCLE_LIMIT)
                self.assertLessEqual(shown["cell_limit"], chain.CELL_LIMIT)


class Refusals(unittest.TestCase):
    def test_what_is_no_frame_is_refused_with_the_documents_reason(self) -> None:
        ping = next(dump for title, dump in FRAMES.items() if "HeartbeatPing" in title)
        longer = ping.replace(b"\x65nonce\x01", b"\x65nonce\x18\x01")
        cases = [
            (wire.CONTROL, (65_537).to_bytes(4, "big"), "frame_too_large"),
            (wire.JOB, (16_777_217).to_bytes(4, "big"), "frame_too_large"),
            (wire.CONTROL, bytes(4), "malformed_frame"),
            (wire.JOB, ping, "malformed_frame"),
            (wire.CONTROL, b"\0\0\0\x01\x80", "malformed_frame"),
            (wire.CONTROL, b"\0\0\0\x02\x10\xa0", "malformed_frame"),
            (wire.CONTROL, b"\0\0\0\x02\x10\xff", "malformed_frame"),
            (wire.CONTROL, b"\0\0\0\x63" + longer[4:], "malformed_frame"),
        ]
        for channel, stream, reason in cases:
            with self.subTest(stream=stream[:8].hex()):
                with self.assertRaises(wire.ProtocolError) as raised:
                    list(wire.FrameReader(channel).feed(stream))
                self.assertEqual(raised.exception.reason, reason)
        self.assertEqual(list(wire.FrameReader(wire.JOB).feed(b"\0\0\0\x01\x85")), [])

    def test_no_changed_signature_holds(self) -> None:
        signed = RUNNER.sign(bytes(32))
        high = (keys.ORDER - int.from_bytes(signed[32:64], "big")).to_bytes(32, "big")
        wrong = [
            signed[:64],
            signed[:64] + b"\x02",
            signed[:32] + high + bytes([1 - signed[64]]),
            bytes(65),
            b"\xff" * 65,
        ]
        for found in wrong:
            self.assertFalse(keys.verify(RUNNER.public, bytes(32), found), found.hex())
        self.assertFalse(keys.verify(RUNNER.public, b"\x01" * 32, signed))
        self.assertFalse(keys.verify(bytes(33), bytes(32), signed))
        self.assertEqual(keys.recover(bytes(32), signed), RUNNER.address)
        for found in [*wrong, signed[:64] + bytes([1 - signed[64]])]:
            self.assertNotEqual(keys.recover(bytes(32), found), RUNNER.address, found.hex())
        for i in range(20):
            message = keccak256(bytes([i]))
            self.assertEqual(keys.recover(message, RUNNER.sign(message)), RUNNER.address)

    def test_a_certificate_is_bound_to_one_key(self) -> None:
        made = keys.certificate(RUNNER)
        self.assertEqual(keys.bound_key([made.x509]), RUNNER.public)
        for several in ([], [made.x509, made.x509]):
            with self.assertRaises(keys.IdentityError):
                keys.bound_key(several)


class Subset(unittest.TestCase):
    def test_it_has_the_size_that_the_document_says(self) -> None:
        sizes = {1: 1, 2: 2, 3: 3, 4: 3, 5: 4, 8: 4, 9: 5, 64: 7, 65: 8, 200: 8}
        for count, size in sizes.items():
            validators = [keccak256(i.to_bytes(4, "big")) for i in range(count)]
            self.assertEqual(len(keys.subset(RUNNER.public, validators)), size, count)


if __name__ == "__main__":
    unittest.main()
