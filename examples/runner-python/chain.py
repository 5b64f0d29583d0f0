"""The part of the control API that a runner needs: its entry in the registry, the validators, and
its transactions ("Before connecting", "Registration and heartbeats on the chain").
"""

from __future__ import annotations

import asyncio
import http.client
import json
import urllib.error
import urllib.request
from dataclasses import dataclass
from typing import Any

import cbor2

from keys import SecretKey, keccak256

REQUEST_SECONDS = 10.0
MAX_ANSWER = 64 << 20

CUSTOM = 5
"""The number of the job kind `custom`: commands."""

STAKE = 10_000 * 10**9
"""The minimum stake of a runner: 10,000 CBY in wei."""
PRICE_PER_SECOND = 1_000_000
MAX_CONCURRENT_JOBS = 4

REGISTER_RUNNER, RUNNER_HEARTBEAT = 16, 19
"""The numbers of the kinds of transactions."""

CYCLE_LIMIT, CELL_LIMIT = 100_000, 5_000
"""More than either transaction uses; the unused part is not charged."""


class ApiError(Exception):
    """No answer of the control API, or an error with this HTTP status."""

    def __init__(self, message: str, status: int = 0) -> None:
        super().__init__(message)
        self.status = status


@dataclass(frozen=True)
class Validator:
    """A validator: its key, and where it listens while it runs."""

    name: str
    public: bytes
    address: tuple[str, int] | None


@dataclass(frozen=True)
class Registration:
    """A runner's entry in the registry."""

    kinds: list[str]
    max_concurrent: int
    last_heartbeat: int


class Chain:
    """A devnet's control API; requests that change the chain need the token."""

    def __init__(self, url: str, token: str | None = None) -> None:
        self._url = url.rstrip("/")
        self._token = token
        # The devnet is on this machine, so no proxy is used.
        self._opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))

    async def chain_id(self) -> int:
        """The chain id, which is part of every signature."""
        return int((await self._ask("/v1/chain/parameters"))["chain_id"], 16)

    async def block_seconds(self) -> float:
        """The block time, in seconds."""
        return float((await self._ask("/v1/chain/parameters"))["block_time_ms"]) / 1000

    async def registration(self, address: bytes) -> Registration | None:
        """The runner's entry in the registry, if it has one."""
        try:
            runner = await self._ask(f"/v1/runners/0x{address.hex()}")
        except ApiError as error:
            if error.status == 404:
                return None
            raise
        return Registration(
            kinds=runner["kinds"],
            max_concurrent=runner["max_concurrent_jobs"],
            last_heartbeat=runner["last_heartbeat"],
        )

    async def validators(self) -> list[Validator]:
        """The validators that the API names; `validators.Validators` decides which to trust."""
        return [
            Validator(found["name"], bytes.fromhex(found["pubkey"][2:]), _socket(found["quic"]))
            for found in await self._ask("/v1/validators")
        ]

    async def proof_of_validators(self) -> bytes:
        """The newest proof of the validators, for `validators.Validators`."""
        answer = await self._ask("/v1/chain/proofs/validators")
        try:
            return bytes.fromhex(answer["proof"][2:])
        except (LookupError, TypeError, ValueError) as error:
            raise ApiError(f"no proof of the validators: {error!r}") from error

    async def register(self, key: SecretKey) -> None:
        """Submits the registration of a runner for commands."""
        payload = registration(key.public)
        await self._ask("/v1/transactions", await self._transaction(key, payload))

    async def heartbeat(self, key: SecretKey, every: int) -> None:
        """Submits a heartbeat if the last one is `every` blocks old."""
        height = (await self._ask("/v1/chain/parameters"))["height"]
        entry = await self.registration(key.address)
        if entry and height - entry.last_heartbeat >= every:
            transaction = await self._transaction(key, [RUNNER_HEARTBEAT])
            await self._ask(f"/runner/0x{key.address.hex()}/heartbeat", transaction)

    async def _transaction(self, key: SecretKey, payload: list[Any]) -> dict[str, str]:
        """A transaction with the account's next nonce, as a request's body."""
        parameters = await self._ask("/v1/chain/parameters")
        account = await self._ask(f"/v1/accounts/0x{key.address.hex()}")
        transaction = {
            "chain_id": int(parameters["chain_id"], 16),
            "nonce": account["next_nonce"],
            "fees": fees(int(parameters["cycle_basefee"]), int(parameters["cell_basefee"])),
            "cycle_limit": CYCLE_LIMIT,
            "cell_limit": CELL_LIMIT,
            "payload": payload,
        }
        return {"transaction": f"0x{sign(key, transaction).hex()}"}

    async def _ask(self, path: str, body: Any = None) -> Any:
        """The answer to a request, in a thread of its own because it may take ten seconds."""
        return await asyncio.to_thread(self._answer, path, body)

    def _answer(self, path: str, body: Any) -> Any:
        headers = {"content-type": "application/json"}
        if self._token and path == "/v1/transactions":
            headers["authorization"] = f"Bearer {self._token}"
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(self._url + path, data, headers)
        try:
            with self._opener.open(request, timeout=REQUEST_SECONDS) as response:
                return json.loads(response.read(MAX_ANSWER))
        except urllib.error.HTTPError as error:
            message = _message(error.read(MAX_ANSWER)) or error
            raise ApiError(f"{path}: {message}", error.code) from error
        except (OSError, ValueError, http.client.HTTPException) as error:
            raise ApiError(f"{self._url}{path}: {error}") from error


def registration(public: bytes) -> list[Any]:
    """The payload that registers the key's owner as a runner for commands."""
    capabilities = {"kinds": [CUSTOM], "max_concurrent_jobs": MAX_CONCURRENT_JOBS, "tee": False}
    entry = {
        "pubkey": public,
        "stake": amount(STAKE),
        "capabilities": capabilities,
        "price_per_second": amount(PRICE_PER_SECOND),
    }
    return [REGISTER_RUNNER, entry]


def fees(cycle_basefee: int, cell_basefee: int) -> dict[str, bytes]:
    """The maximum fees of a transaction: twice the basefees, because they may rise."""
    return {
        "max_fee_per_cycle": amount(2 * cycle_basefee + 1),
        "max_priority_per_cycle": amount(1),
        "max_fee_per_cell": amount(2 * cell_basefee),
        "max_priority_per_cell": amount(0),
    }


def sign(key: SecretKey, transaction: dict[str, Any]) -> bytes:
    """The encoded transaction with its signature."""
    encoded = cbor2.dumps(transaction, canonical=True)
    signature = key.sign(keccak256(b"cowboy-transaction/v1", encoded))
    return cbor2.dumps({"transaction": transaction, "signature": signature}, canonical=True)


def amount(wei: int) -> bytes:
    """An amount of money in CBOR."""
    return wei.to_bytes((wei.bit_length() + 7) // 8, "big")


def _socket(address: str | None) -> tuple[str, int] | None:
    if address is None:
        return None
    host, _, port = address.rpartition(":")
    return host, int(port)


def _message(body: bytes) -> str | None:
    """The human-readable message of an error."""
    try:
        message = json.loads(body)["error"]["message"]
    except (ValueError, KeyError, TypeError):
        return None
    return str(message)
