import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from cowboy_devnet import CommandError, Devnet

pytest_plugins = ["pytester"]


@pytest.fixture(scope="session", autouse=True)
def environment(
    pytestconfig: pytest.Config, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[None]:
    """All devnets of these tests are in a folder of their own, and have one program."""
    folder = tmp_path_factory.mktemp("devnets")
    program = pytestconfig.getoption("devnet_program")
    with pytest.MonkeyPatch.context() as patch:
        if program:
            patch.setenv("COWBOYCTL", os.path.abspath(program))
        patch.setenv("COWBOYCTL_HOME", str(folder))
        yield


@pytest.fixture(scope="session")
def counter(devnet: Devnet) -> str:
    return devnet.deploy(Path(__file__).parent / "counter.star")


@pytest.fixture(scope="session")
def snapshots(devnet: Devnet) -> None:
    """Skips a test if this `cowboyctl` cannot run it."""
    try:
        devnet.run("chain", "snapshot", "--help")
    except CommandError as error:
        # Help has exit code 0, and is not JSON.
        if error.exit_code != 0:
            pytest.skip("this cowboyctl has no `chain snapshot`")
