"""Names that a module does not have."""

import math

from cowboy_sdk import actor, public, publik, runtime  # expect: unknown-name
from cowboy_sdk import JobFailed, OffchainError, signing
from cowboy_sdk.runner import RUNNER_ADDRESS, nothing  # expect: unknown-name
from json import dumpz  # expect: unknown-name


@actor
class Vault:  # expect: no-init
    @public
    def take(self, payload):
        runtime.assume_ownership_if_unowned()  # expect: unknown-name
        return math.squareroot(payload)  # expect: float, unknown-name

    @public
    def give(self, payload):
        if hasattr(runtime, "amm_quote"):
            return runtime.amm_quote(payload)
        try:
            return runtime.amm_get_amount_out(payload)
        except AttributeError:
            return None
