"""Runs a runner until it is told to stop: see README.md."""

from __future__ import annotations

import argparse
import asyncio
import logging
import os
import secrets
import signal
import sys
from pathlib import Path

from chain import ApiError, Chain, Registration
from keys import SecretKey
from runner import Runner
from validators import Refused

REGISTERED_WITHIN = 20
"""Number of blocks within which a registration should be on the chain."""


class KeyFileError(Exception):
    """A key file that cannot be used. The message never contains the key."""


def consensus_key(text: str) -> bytes:
    """Parses an Ed25519 key of the command line. Raises ValueError."""
    key = bytes.fromhex(text.removeprefix("0x"))
    if len(key) != 32:
        raise ValueError
    return key


def arguments() -> argparse.Namespace:
    """Parses the command line."""
    parser = argparse.ArgumentParser(
        prog="runner-python", description="A runner that does jobs of kind `custom`."
    )
    parser.add_argument(
        "--key-file",
        required=True,
        type=Path,
        metavar="FILE",
        help="the runner's key, 64 hex digits; a missing file is created",
    )
    parser.add_argument(
        "--address", action="store_true", help="print the key's address, and nothing else"
    )
    parser.add_argument(
        "--register",
        action="store_true",
        help="register first if necessary; the account needs slightly more than 10,000 CBY",
    )
    parser.add_argument(
        "--api",
        default=os.environ.get("COWBOYCTL_RPC_URL"),
        metavar="URL",
        help="the devnet's control API, as http://127.0.0.1:20123 [env: COWBOYCTL_RPC_URL]",
    )
    parser.add_argument(
        "--token-file",
        default=os.environ.get("COWBOYCTL_TOKEN_FILE"),
        type=Path,
        metavar="FILE",
        help="the API's token, for --register [env: COWBOYCTL_TOKEN_FILE]",
    )
    parser.add_argument(
        "--validator",
        action="append",
        type=consensus_key,
        metavar="KEY",
        help="trust this validator, by its consensus key, and those it vouches for; repeat for "
        "each of an epoch; the default is those that the API names first",
    )
    parsed = parser.parse_args()
    if not parsed.api and not parsed.address:
        parser.error('say where the control API is: eval "$(cowboyctl devnet env)", or --api URL')
    return parsed


def read_key(path: Path) -> SecretKey:
    """Reads the key from a file, or creates a missing file. Raises KeyFileError."""
    try:
        if not path.exists():
            made = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
            with open(made, "w") as file:
                file.write(f"{secrets.token_hex(32)}\n")
        return SecretKey(bytes.fromhex(path.read_text().strip()))
    except OSError as error:
        raise KeyFileError(f"{path}: {error.strerror}") from error
    except ValueError:
        raise KeyFileError(f"{path}: not a secret key: expected 64 hex digits") from None


async def registered(chain: Chain, key: SecretKey, register: bool) -> Registration:
    """The runner's entry in the registry; registers first if asked to. Raises ApiError."""
    found = await chain.registration(key.address)
    if found is None and register:
        await chain.register(key)
        for _ in range(REGISTERED_WITHIN):
            await asyncio.sleep(max(0.1, await chain.block_seconds()))
            found = await chain.registration(key.address)
            if found:
                break
    if found is None:
        raise ApiError(f"0x{key.address.hex()} is not registered as a runner: see --register")
    if "custom" not in found.kinds:
        raise ApiError("the runner is registered without the kind `custom`")
    return found


async def run(
    chain: Chain, key: SecretKey, register: bool, voters: list[bytes] | None
) -> None:
    """Runs until SIGINT or SIGTERM."""
    registration = await registered(chain, key, register)
    if voters is None:
        logging.getLogger("runner").warning(
            "the API alone says who validates; name the validators to be sure: --validator KEY"
        )
    runner = Runner(chain, key, await chain.chain_id(), registration.max_concurrent, voters)
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, runner.stop)
    await runner.run()


def main() -> int:
    """Returns the exit code."""
    parsed = arguments()
    logging.basicConfig(format="%(asctime)s %(name)s: %(message)s", level=logging.INFO)
    logging.getLogger("quic").setLevel(logging.WARNING)
    try:
        key = read_key(parsed.key_file)
        if parsed.address:
            print(f"0x{key.address.hex()}")
            return 0
        token = parsed.token_file.read_text().strip() if parsed.token_file else None
        asyncio.run(run(Chain(parsed.api, token), key, parsed.register, parsed.validator))
    except (ApiError, KeyFileError, OSError, Refused) as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
