# Sends the dispatcher payloads that are no jobs, of every kind of CBOR.
# expect: ok 12 refused
# value: 10cby
import pvm_host
from cowboy_sdk import codec

DISPATCHER = bytes(19) + b"\x02"


def attack(payload):
    refused = 0
    call = {"args": [], "kwargs": {}}
    job = {"kind": "runner_job", "job_type": "llm", "reply_handler": "x", "cid": bytes(32)}
    for data in (
        b"",
        b"\xff",
        b"\x81" * 300 + b"\x00",
        b"\x9b\x10" + bytes(7),
        b"\xfb\x7f\xf8" + bytes(6),
        codec.encode([]),
        codec.encode({"kind": "other"}),
        codec.encode(job),
        codec.encode({**job, "payload": []}),
        codec.encode({**job, "payload": {"args": 1, "kwargs": 2}}),
        codec.encode({**job, "payload": call, "cid": bytes(31)}),
        codec.encode({**job, "payload": call, "reply_handler": 1}),
    ):
        try:
            pvm_host.send_message(DISPATCHER, data)
        except pvm_host.HostError:
            refused += 1
    return f"{refused} refused".encode()
