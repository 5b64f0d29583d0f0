"""A signer: keys of an owner, and signatures."""

from cowboy_sdk import actor, public, runtime, signing

KEY = b"signing key"


@actor
class Signer:
    @public
    def set_key(self, key):
        signing.set_signing_key(KEY, signing.ED25519, key)

    @public
    def submit(self, order):
        good = signing.verify_with_signing_key(KEY, order["message"], order["signature"])
        self.storage["good"] = (self.storage.get("good") or []) + [good]
        return good

    @public
    def verify(self, order):
        return runtime.verify_signature(2, order["key"], order["message"], order["signature"])
