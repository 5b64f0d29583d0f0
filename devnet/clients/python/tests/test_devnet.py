"""Devnets: their commands, their failures and their end."""

import os
import select
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from cowboy_devnet import CommandError, Devnet, DevnetError
from cowboy_devnet import devnet as module

SMALL = ["--validators", "1", "--runners", "0", "--block-time", "50ms"]

PARENT = f"""
from cowboy_devnet import Devnet
devnet = Devnet.start(*{SMALL})
print(devnet._holder.pid, flush=True)
input()
"""


def processes(home: Path) -> list[str]:
    """The processes that were started with this folder of devnets, on Linux."""
    mark, found = f"COWBOYCTL_HOME={home}\0".encode(), []
    for process in Path("/proc").glob("[0-9]*"):
        try:
            if mark in (process / "environ").read_bytes():
                found.append(process.name)
        except OSError:
            pass
    return [process for process in found if process != str(os.getpid())]


@pytest.fixture
def own_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("COWBOYCTL_HOME", str(tmp_path))
    return tmp_path


def test_commands_give_their_results(devnet: Devnet, counter: str) -> None:
    before = devnet.read(counter, "count")
    assert devnet.call(counter, "add", {"by": 2}) == before + 2
    assert devnet.read(counter, "count") == before + 2
    assert devnet.submit_job("echo", "hi", options=["--tip", "1"])["result_text"] == "hi\n"
    height = devnet.advance(20)
    devnet.assert_(f".status.head.height >= {height}", "true")
    assert devnet.wait("+1") > height


def test_a_failed_command_has_its_parts(devnet: Devnet, counter: str) -> None:
    with pytest.raises(CommandError) as caught:
        devnet.call(counter, "add", {"by": -1})
    error = caught.value
    assert error.exit_code == 6
    assert "by is a positive number" in error.message
    assert error.hint is not None and error.hint in str(error)
    for code, arguments in [(2, ["nonsense"]), (3, ["chain", "block", "999999"])]:
        with pytest.raises(CommandError) as caught:
            devnet.run(*arguments)
        assert (caught.value.exit_code, caught.value.arguments) == (code, arguments)


def test_a_wait_has_an_end(devnet: Devnet) -> None:
    with pytest.raises(CommandError, match="not within 200 ms") as caught:
        devnet.wait("+1000", timeout=0.2)
    assert caught.value.exit_code == 5
    with pytest.raises(CommandError, match=r"not done within 0\.2 s") as caught:
        devnet.run("chain", "wait", "+1000", timeout=0.2)
    assert caught.value.exit_code is None


def test_other_output_is_an_error(devnet: Devnet, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(CommandError, match="not one JSON document"):
        devnet.run("completions", "bash")
    with pytest.raises(CommandError, match="Argument list too long"):
        devnet.run("chain", "block", "1" * 200_000)
    monkeypatch.setattr(module, "MAX_OUTPUT", 10)
    with pytest.raises(CommandError, match="longer than 10 bytes"):
        devnet.run("chain", "head")


def test_options_come_from_the_tests_alone(
    devnet: Devnet, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in [("QUIET", "1"), ("JQ", ".none"), ("DEVNET", "none")]:
        monkeypatch.setenv(f"COWBOYCTL_{name}", value)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    (tmp_path / "cowboyctl").mkdir()
    (tmp_path / "cowboyctl" / "config.toml").write_text("nonsense")
    assert devnet.run("devnet", "status")["name"] == devnet.name


def test_a_stopped_devnet_leaves_nothing(own_home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program = shutil.which(os.environ.get("COWBOYCTL", "cowboyctl"))
    assert program is not None
    with Devnet.start(*SMALL, program=os.path.relpath(program)) as devnet:
        monkeypatch.chdir("/")
        assert devnet.run("devnet", "status")["name"] == devnet.name
        token = (own_home / devnet.name / "token").read_text().strip()
        assert token not in repr(devnet) + repr(devnet.client)
    assert processes(own_home) == []
    assert list(own_home.iterdir()) == []
    with pytest.raises(CommandError) as caught:
        devnet.run("chain", "head")
    assert caught.value.exit_code == 4


@pytest.mark.skipif(not hasattr(os, "pidfd_open"), reason="the system has no pidfd")
def test_a_killed_parent_leaves_nothing(own_home: Path) -> None:
    parent = subprocess.Popen(
        [sys.executable, "-c", PARENT], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    with parent:
        assert parent.stdout is not None
        holder = os.pidfd_open(int(parent.stdout.readline()))
        assert len(list(own_home.iterdir())) == 1
        parent.send_signal(signal.SIGKILL)
    try:
        assert select.select([holder], [], [], 30)[0], "cowboyctl runs after its parent"
    finally:
        os.close(holder)
    assert processes(own_home) == []
    assert list(own_home.iterdir()) == []


def test_a_failed_start_says_why(
    own_home: Path, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(DevnetError, match="'--validators <N>': expected 1 to 64"):
        Devnet.start("--validators", "0")
    with pytest.raises(DevnetError, match="no program .*none: install cowboyctl.* COWBOYCTL "):
        Devnet.start(program=str(own_home / "none"))
    monkeypatch.setenv("COWBOYCTL", "no-such-program")
    with pytest.raises(DevnetError, match="no program no-such-program"):
        Devnet.start()
    program = tmp_path_factory.mktemp("program") / "cowboyctl"
    monkeypatch.setattr(module, "GRACE_SECONDS", 0)
    for script, message in [
        ("echo why >&2", "why"),
        ("printf 'a\\0b'", "ended or printed something else"),
        ("head -c 200000 /dev/zero | tr '\\0' a", "ended or printed something else"),
        ("exec cat", "not ready within 0.2 s"),
    ]:
        program.write_text(f"#!/bin/sh\n{script}\n")
        program.chmod(0o700)
        with pytest.raises(DevnetError, match=message):
            Devnet.start(program=str(program), timeout=0.2)
    assert list(own_home.iterdir()) == []
