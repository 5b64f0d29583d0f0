"""The pytest plugin and the examples of README.md, in runs of pytest within a test."""

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from cowboy_devnet import Devnet

README = Path(__file__).parents[1] / "README.md"
OPTIONS = "--validators 1 --runners 0 --block-time 50ms"
SECONDS = 120


def test_without_cowboyctl_the_tests_fail(pytester: pytest.Pytester) -> None:
    pytester.makepyfile("def test_it(devnet): pass")
    result = pytester.runpytest_subprocess("--devnet-program", "no-such-program", timeout=SECONDS)
    result.assert_outcomes(errors=1)
    result.stdout.fnmatch_lines("no devnet: there is no program no-such-program: install *")


@pytest.mark.parametrize("workers", [1, 2])
def test_each_process_has_one_devnet(pytester: pytest.Pytester, workers: int) -> None:
    pytester.makepyfile(
        """
        from pathlib import Path

        def test_first(devnet): Path(devnet.name).touch()

        def test_second(devnet): assert Path(devnet.name).exists()
        """
    )
    arguments = ["--devnet-options", OPTIONS]
    if workers > 1:
        pytest.importorskip("xdist", reason="pytest-xdist is not installed")
        arguments += ["-n", str(workers), "--dist", "each"]
    result = pytester.runpytest_subprocess(*arguments, timeout=SECONDS)
    result.assert_outcomes(passed=2 * workers)
    assert len(list(pytester.path.glob("exec-*"))) == workers


def test_options_come_from_the_configuration(pytester: pytest.Pytester) -> None:
    pytester.makeini(f"[pytest]\ncowboy_devnet_options = {OPTIONS} --name 'of-the-file'")
    pytester.makepyfile("def test_it(devnet): assert devnet.name == 'of-the-file'")
    pytester.runpytest_subprocess(timeout=SECONDS).assert_outcomes(passed=1)


def test_the_chain_returns_to_its_state_after_each_test(
    pytester: pytest.Pytester, snapshots: None
) -> None:
    shutil.copy(Path(__file__).parent / "counter.star", pytester.path)
    pytester.makepyfile(
        """
        import pytest

        @pytest.fixture(scope="session")
        def add(devnet):
            counter = devnet.deploy("counter.star")
            return lambda by: devnet.call(counter, "add", {"by": by})

        @pytest.fixture(scope="class")
        def more(add): add(10)

        @pytest.fixture(scope="class")
        def unrelated(): pass

        @pytest.mark.parametrize("by", [1, 2])
        def test_it(cowboy, add, by): assert add(by) == by

        def test_fails(cowboy, add): assert add(3) == 0

        @pytest.mark.parametrize("by", [4, 5])
        class TestMore:
            def test_it(self, cowboy, add, more, by): assert add(by) == 10 + by

        class TestUnrelated:
            def test_it(self, cowboy, add, unrelated): assert add(6) == 16

        def test_snapshots(devnet):
            assert [kept["snapshot"] for kept in devnet.client.chain_snapshots()] == [2]

        def test_ends_the_run(cowboy):
            cowboy.forget(2)

        def test_does_not_run(): pass
        """
    )
    result = pytester.runpytest_subprocess("--devnet-options", OPTIONS, timeout=SECONDS)
    result.assert_outcomes(passed=7, failed=1)
    result.stdout.fnmatch_lines("*the chain does not return to its state: * UnknownMark: *")
    assert result.ret == 1


def test_the_examples_work(pytester: pytest.Pytester, devnet: Devnet, snapshots: None) -> None:
    blocks = re.findall(r"```python\n(.*?)```", README.read_text(), re.DOTALL)
    actor, tests, script, client = blocks
    (pytester.path / "counter.star").write_text(actor)
    pytester.makepyfile(tests)
    pytester.runpytest_subprocess(timeout=SECONDS).assert_outcomes(passed=2)
    for text in (script, client.replace("http://127.0.0.1:20123", devnet.rpc_url)):
        subprocess.run([sys.executable, "-c", text], check=True, timeout=SECONDS)
