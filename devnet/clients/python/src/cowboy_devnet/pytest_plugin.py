"""Fixtures for pytest: `devnet`, one for all tests, and `cowboy`, which returns to its state."""

import shlex
from collections.abc import Iterator

import pytest

from cowboy_devnet.devnet import CommandError, Devnet, DevnetError

OPTIONS = ["--validators", "1", "--runners", "1", "--block-time", "100ms"]

SNAPSHOT = pytest.StashKey[int]()
"""The snapshot to which tests return."""
IS_OLD = pytest.StashKey[bool]()
"""Whether the chain has changed since that snapshot was made, other than by tests."""
USERS = pytest.StashKey[set[str]]()
"""The names of fixtures of a wider scope than a test that use the devnet."""


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("cowboy-devnet")
    group.addoption(
        "--devnet-options",
        type=shlex.split,
        metavar="OPTIONS",
        help="options of `cowboyctl devnet exec` [default: those of the configuration]",
    )
    group.addoption(
        "--devnet-program",
        metavar="PATH",
        help="cowboyctl [default: $COWBOYCTL, else `cowboyctl` in PATH]",
    )
    parser.addini(
        "cowboy_devnet_options",
        type="args",
        default=OPTIONS,
        help=f"options of `cowboyctl devnet exec` [default: {shlex.join(OPTIONS)}]",
    )


def pytest_fixture_setup(
    fixturedef: pytest.FixtureDef[object], request: pytest.FixtureRequest
) -> None:
    """Keeps what fixtures of a wider scope do on the chain: after one that uses the devnet, itself
    or by another fixture, the next test takes a new snapshot.
    """
    stash, name = request.config.stash, fixturedef.argname
    users = stash.setdefault(USERS, {"devnet"})
    is_user = fixturedef.scope != "function" and users.intersection(fixturedef.argnames)
    if is_user or name == "devnet":
        users.add(name)
        stash[IS_OLD] = True


@pytest.fixture(scope="session")
def devnet(pytestconfig: pytest.Config) -> Iterator[Devnet]:
    """A devnet for all tests; each worker process of pytest-xdist has its own."""
    options = pytestconfig.getoption("devnet_options")
    if options is None:
        options = pytestconfig.getini("cowboy_devnet_options")
    try:
        started = Devnet.start(*options, program=pytestconfig.getoption("devnet_program"))
    except DevnetError as error:
        pytest.fail(f"no devnet: {error}", pytrace=False)
    with started:
        yield started


@pytest.fixture
def cowboy(devnet: Devnet, pytestconfig: pytest.Config) -> Iterator[Devnet]:
    """The devnet; after the test its chain returns to the state before."""
    stash = pytestconfig.stash
    if stash[IS_OLD]:
        old = stash.get(SNAPSHOT, None)
        stash[SNAPSHOT] = devnet.snapshot()
        stash[IS_OLD] = False
        if old is not None:
            devnet.forget(old)
    yield devnet
    try:
        devnet.revert(stash[SNAPSHOT])
    except CommandError as error:
        # The tests that follow would begin with what this one left.
        pytest.exit(f"the chain does not return to its state: {error}", returncode=1)
