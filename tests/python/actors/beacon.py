"""A beacon: events, and what a call knows of its chain."""

import pvm_host

from cowboy_sdk import Address, actor, codec, emit, public, pvm_time, runtime


@actor
class Beacon:
    @public
    @emit("signal")
    def flash(self, count):
        return {"count": count, "by": bytes(self.sender)}

    @public
    def flash_often(self, texts):
        answers = [runtime.emit_event("text", text) for text in texts]
        self.storage["emitted"] = [answer["emit_id"] for answer in answers]

    @public(decode="raw")
    def flash_raw(self, payload):
        runtime.emit_event("raw", payload)
        runtime.emit_event("typed", codec.encode([1, None]), schema=b"\x05" * 32)
        runtime.emit_event("none", None)

    @public
    def flash_and_fail(self, payload):
        runtime.emit_event("lost", 1)
        raise RuntimeError("the light is broken")

    @public
    def look(self, payload):
        seen = runtime.context()
        self.storage["seen"] = {
            "tx_hash": seen["tx_hash"],
            "sender": seen["sender"],
            "height": seen["block_height"],
            "timestamp": seen["timestamp_ms"],
            "chain": seen["chain_id"],
            "instance": seen["chain_instance_id"],
            "names": sorted(seen),
        }
        self.storage["self"] = [bytes(self.address), runtime.get_actor_address()]
        self.storage["host"] = [pvm_host.current_block(), pvm_host.self_address()]
        self.storage["config"] = pvm_host.runtime_config()
        self.storage["time"] = [pvm_time.time_ns(), pvm_time.block_height()]
        self.storage["mode"] = [runtime.mode(), runtime.is_production()]
        runtime.charge_gas(1_000)
        digest = runtime.keccak256(b"beacon")
        self.storage["digest"] = [digest, Address(digest[:20]).to_hex()]
        return digest
