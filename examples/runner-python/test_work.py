"""Commands as jobs run them: `python3 -m unittest` in this folder."""

from __future__ import annotations

import asyncio
import dataclasses
import os
import tempfile
import unittest
from pathlib import Path

import cbor2

import work
from work import Command


def shell(script: str) -> Command:
    """A command for the shell, with generous limits."""
    return Command(
        program="sh",
        args=["-c", script],
        env={"GREETING": "hello"},
        stdin=b"input",
        max_return_bytes=64,
        seconds=60.0,
        max_memory_mb=256,
        runners=1,
    )


class Commands(unittest.TestCase):
    def check(self, command: Command, expected: bytes) -> None:
        self.assertEqual(asyncio.run(work.run(command)), expected)

    def fails(self, command: Command, reason: str) -> None:
        with self.assertRaisesRegex(work.Failed, reason):
            asyncio.run(work.run(command))

    def test_the_result_is_the_standard_output(self) -> None:
        self.check(shell(r"printf 'a\0'; echo no >&2; cat"), b"a\0input")
        self.check(shell('test "$HOME" -ef . && echo $GREETING$USER; ls -A'), b"hello\n")

    def test_what_goes_wrong_gives_no_result(self) -> None:
        self.fails(shell("echo why >&2; exit 3"), "exit code 3: why")
        self.fails(shell("head -c 65 /dev/zero"), "more than 64 bytes")
        self.fails(shell("yes"), "more than 64 bytes")
        self.fails(dataclasses.replace(shell("sleep 600"), seconds=0.1), "not done within 0.1 s")
        self.fails(dataclasses.replace(shell(""), program="/no/such"), "cannot start '/no/such'")

    def test_whatever_ends_a_command_ends_what_it_started(self) -> None:
        """All of its processes hold a pipe open, so its end shows that they are gone."""

        async def run(pipe: Path, then: str, cancel: bool) -> bytes | None:
            command = shell(f"exec 9> {pipe}; echo ready >&9; sleep 600 & {then}")
            running = asyncio.create_task(work.run(command))
            reader = await asyncio.to_thread(pipe.open)
            self.assertEqual(await asyncio.to_thread(reader.readline), "ready\n")
            if cancel:
                running.cancel()
            [result] = await asyncio.gather(running, return_exceptions=True)
            with reader:
                self.assertEqual(await asyncio.to_thread(reader.read), "")
            return result if isinstance(result, bytes) else None

        with tempfile.TemporaryDirectory() as folder:
            pipe = Path(folder, "pipe")
            os.mkfifo(pipe)
            self.assertEqual(asyncio.run(run(pipe, "echo done", cancel=False)), b"done\n")
            self.assertIsNone(asyncio.run(run(pipe, "wait", cancel=True)))


class Specifications(unittest.TestCase):
    def test_what_is_no_command_is_rejected(self) -> None:
        bounds = {"max_return_bytes": 1, "expected_execution_ms": 1, "max_memory_mb": 1}
        command = {"program": "true", "args": [], "env": []}
        rest = {"bounds": bounds, "verification": {"runners": 3}}
        good = work.parse(cbor2.dumps({"work": [5, command]} | rest))
        self.assertEqual((good.program, good.runners), ("true", 3))
        cases = [
            ({"work": [2, {}]} | rest, "unsupported_kind"),
            ({"work": [5, {}]} | rest, "invalid_spec"),
            ({"work": [5, command], "bounds": bounds}, "invalid_spec"),
            ({"work": [5, command], "verification": {"runners": 3}}, "invalid_spec"),
            ({"work": [5, command]} | rest | {"verification": {"runners": 0}}, "invalid_spec"),
            ({"work": [5, command | {"args": [1]}]} | rest, "invalid_spec"),
            (
                {"work": [5, command]} | rest | {"bounds": bounds | {"max_memory_mb": 0}},
                "invalid_spec",
            ),
            ({"work": 5}, "invalid_spec"),
            (None, "invalid_spec"),
        ]
        for spec, reason in cases:
            with self.subTest(spec=spec), self.assertRaisesRegex(work.Rejected, reason):
                work.parse(cbor2.dumps(spec))


if __name__ == "__main__":
    unittest.main()
