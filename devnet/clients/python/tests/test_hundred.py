"""A hundred tests change the same state of one devnet, and each begins with the original."""

from typing import Any

import pytest

from cowboy_devnet import Devnet

FUNDED = "0x00000000000000000000000000000000000000aa"


def state(devnet: Devnet, counter: str) -> dict[str, Any]:
    """What the tests change: the counter's store, and balances."""
    accounts = (counter, FUNDED, "dev-0", "faucet")
    balances = {name: devnet.client.account(name)["balance"] for name in accounts}
    return {"stored": devnet.client.actor(counter)["state"], **balances}


@pytest.fixture(scope="module")
def original(snapshots: None, devnet: Devnet, counter: str) -> dict[str, Any]:
    return state(devnet, counter)


@pytest.mark.parametrize("number", range(1, 101))
def test_it_begins_with_the_original_state(
    original: dict[str, Any], cowboy: Devnet, counter: str, number: int
) -> None:
    assert state(cowboy, counter) == original
    before = cowboy.read(counter, "count")
    assert cowboy.call(counter, "add", {"by": number}, "--value", str(number)) == before + number
    cowboy.run("account", "fund", FUNDED, f"{number}cby")
    changed = state(cowboy, counter)
    assert all(changed[part] != original[part] for part in original)
