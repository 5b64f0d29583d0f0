#!/usr/bin/env python3
"""Checks the answer of `GET /v1/chain/blocks/H/evidence` as docs/verification.md says, with the standard
library only, and derives P(H) from the votes.

    verify_evidence.py FILE CHAIN_ID RULE VALIDATOR_KEY...

FILE holds the JSON answer; - is standard input. CHAIN_ID is 0x and 16 hex digits, RULE the chain's
threshold rule, `committee` or `quorum`, each VALIDATOR_KEY an Ed25519 key of the block's epoch, 0x and
64 hex digits. Prints P(H) as one line of JSON, or which check failed, with exit code 7. `seeds` there is
the contribution of each embedded certificate to the seeds of later draws, if the chain's
`selection.seed` is `certificate`; validators have the right numbers only for certificates of this epoch.

Trusted inputs: these are the validators of the epoch, and RULE is the chain's. Whether the
registry's order and the state roots are the chain's follows only from executing it from genesis.
"""

import json
import sys

from verify_proof import Refused, check, decode, encode, keccak, votes

MAX_BYTES = 64 << 20
CAPACITY = 4096


def unhex(text, what):
    check(isinstance(text, str) and text.startswith("0x"), f"form: {what} is no byte string")
    try:
        return bytes.fromhex(text[2:])
    except ValueError:
        raise Refused(f"form: {what} is no byte string") from None


def read_block(data):
    """The block of these bytes and its hash. Checks that the header commits to all of the block."""
    block = decode(data, "block")
    check(sorted(block) == ["certificates", "header", "transactions"], "form: it is no block")
    header = block["header"]
    root = keccak(b"cowboy-certificates/v1", encode(block["certificates"]))
    check(header["certificates_root"] == root, "block: its certificates differ from their root")
    hashes = [keccak(encode(signed)) for signed in block["transactions"]]
    root = keccak(b"cowboy-transactions/v1", *hashes)
    check(header["transactions_root"] == root, "block: its transactions differ from their root")
    return block, hashes, keccak(b"cowboy-block/v1", encode(header))


def read_certificate(data):
    certificate = decode(data, "certificate")
    check(sorted(certificate) == ["block", "round", "votes"], "form: it is no certificate")
    for vote in certificate["votes"]:
        length, bitmap = vote["presence"]["bit_length"], vote["presence"]["bytes"]
        check(length <= CAPACITY, "certificate: a bitmap longer than a vote carries")
        check(len(bitmap) == (length + 7) // 8, "certificate: a bitmap of another length")
        padding = length % 8 and bitmap[-1] >> length % 8
        check(not padding, "certificate: a bitmap sets bits beyond its length")
    return certificate


def bit(bitmap, index):
    """Bit `index` of a bitmap, least significant first; 0 beyond its end."""
    return index < 8 * len(bitmap) and bitmap[index // 8] >> index % 8 & 1


def derived(certificate, runners, validators, rule):
    """P(H) over this number of runners, and the number of votes for each runner."""
    cast = [vote["presence"]["bytes"] for vote in certificate["votes"]]
    base = {"committee": validators, "quorum": len(cast)}.get(rule)
    check(base is not None, f"rule: {rule} is neither committee nor quorum")
    needed = (base - 1) // 3 + 1
    counts = [sum(bit(bitmap, runner) for bitmap in cast) for runner in range(runners)]
    presence = bytearray((runners + 7) // 8)
    for runner, count in enumerate(counts):
        if count >= needed:
            presence[runner // 8] |= 1 << runner % 8
    return bytes(presence), counts


def seed_digest(certificate, keys, embedder):
    """A certificate's contribution to seeds if the validator with this key embeds it."""
    own = sorted(keys).index(embedder) if embedder in keys else None
    return keccak(b"cowboy-certificate-seed/v1", certificate["block"], *(
        vote["validator"].to_bytes(4, "big") + vote["signature"]
        for vote in certificate["votes"] if vote["validator"] != own))


def hexed(data):
    return "0x" + data.hex()


def header_fields(header):
    turn, executed = header["round"], header["executed"]
    return {
        "height": header["height"], "parent": hexed(header["parent"]), "epoch": turn["epoch"],
        "view": turn["view"], "parent_view": turn["parent_view"],
        "proposer": hexed(header["proposer"]), "timestamp_ms": header["timestamp_ms"],
        "subset_epoch": header["subset_epoch"],
        "transactions_root": hexed(header["transactions_root"]),
        "certificates_root": hexed(header["certificates_root"]),
        "open": [{"height": one["height"], "hash": hexed(one["hash"])} for one in header["open"]],
        "executed_height": executed["height"],
        "executed_state_root": hexed(executed["state_root"]),
    }


def certificate_fields(certificate, chain_id, keys):
    turn = certificate["round"]
    named = [{
        "index": vote["validator"], "key": hexed(sorted(keys)[vote["validator"]]),
        "bit_length": vote["presence"]["bit_length"],
        "bitmap": hexed(vote["presence"]["bytes"]), "signature": hexed(vote["signature"]),
    } for vote in certificate["votes"]]
    return {
        "block": hexed(certificate["block"]), "epoch": turn["epoch"], "view": turn["view"],
        "parent_view": turn["parent_view"],
        "namespace": hexed(b"cowboy/" + chain_id.to_bytes(8, "big") + b"_FINALIZE"),
        "votes": named,
    }


def verify(evidence, chain_id, rule, keys):
    block, hashes, block_hash = read_block(unhex(evidence["block_bytes"], "block_bytes"))
    header = block["header"]
    check(evidence["height"] == header["height"], "block: it has another height")
    check(evidence["hash"] == hexed(block_hash), "block: it has another hash")
    check(evidence["header"] == header_fields(header), "fields: the header has others")
    check(evidence["transactions"] == [hexed(one) for one in hashes],
          "fields: the transactions have others")

    check(evidence["certificate_bytes"] is not None, "certificate: it is missing")
    certificate = read_certificate(unhex(evidence["certificate_bytes"], "certificate_bytes"))
    check(certificate["block"] == block_hash, "certificate: it is for another block")
    check(certificate["round"]["epoch"] == header["round"]["epoch"],
          "certificate: it is of another epoch")
    votes(certificate, chain_id, keys)
    check(evidence["certificate"] == certificate_fields(certificate, chain_id, keys),
          "fields: the certificate has others")

    said = evidence["presence"]
    check(said is not None, "presence: no block embeds a certificate yet")
    runners = len(said["registry"])
    presence, counts = derived(certificate, runners, len(keys), rule)
    check(said["bit_length"] == runners, "presence: it has another length than the registry")
    check(said["bitmap"] == hexed(presence), f"presence: the votes give {hexed(presence)}")
    return {"height": header["height"], "hash": hexed(block_hash), "presence": hexed(presence),
            "counts": counts, "votes": len(certificate["votes"]),
            "seeds": [hexed(seed_digest(one, keys, header["proposer"]))
                      for one in block["certificates"]]}


def main(arguments):
    if len(arguments) < 4:
        print(__doc__, file=sys.stderr)
        return 2
    file, chain_id, rule, *keys = arguments
    with (sys.stdin.buffer if file == "-" else open(file, "rb")) as opened:
        data = opened.read(MAX_BYTES + 1)
    try:
        check(len(data) <= MAX_BYTES, "length: no answer is as long")
        try:
            evidence = json.loads(data)
        except ValueError:
            raise Refused("form: it is no JSON") from None
        found = verify(evidence, int(chain_id, 16), rule, [bytes.fromhex(k[2:]) for k in keys])
        print(json.dumps(found))
    except Refused as refused:
        print(refused)
        return 7
    except (KeyError, TypeError, AttributeError, IndexError, OverflowError) as error:
        print(f"form: a record is not what it should be: {error!r}")
        return 7
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
