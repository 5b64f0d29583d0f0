"""The client: answers of a devnet, its refusals, and servers that misbehave."""

import inspect
import socketserver
import threading
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from socket import socket
from types import UnionType
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints, is_typeddict

import pytest

from cowboy_devnet import ApiError, Client, Devnet
from cowboy_devnet._api import Api

TOKEN = "0123456789abcdef"


def fits(value: Any, kind: Any) -> bool:
    """Whether a value is of a type from `types`."""
    origin, parts = get_origin(kind), get_args(kind)
    if is_typeddict(kind):
        fields = get_type_hints(kind)
        return (
            isinstance(value, dict)
            and kind.__required_keys__ <= value.keys() <= fields.keys()
            and all(fits(part, fields[name]) for name, part in value.items())
        )
    if origin is list:
        return isinstance(value, list) and all(fits(part, parts[0]) for part in value)
    if origin is dict:
        return isinstance(value, dict) and all(fits(part, parts[1]) for part in value.values())
    if origin is Literal:
        return value in parts
    if origin in (Union, UnionType):
        return any(fits(value, part) for part in parts)
    return kind is Any or isinstance(value, kind)


ARGUMENTS = {
    "account": "dev-0",
    "actor": "latest",
    "height": "1",
    "id": "latest",
    "runner": "runner-0",
    "subject": "presence",
    "validator": "validator-0",
}
# There is no machine for actors in Python, and no runner that polls.
OTHER = ("_", "post_", "delete_", "machine", "runner_jobs")
READS = [
    (name, [ARGUMENTS[one] for one in parameters])
    for name, method in inspect.getmembers(Api, inspect.isfunction)
    if not name.startswith(OTHER)
    and set(parameters := inspect.getfullargspec(method).args[1:]) <= ARGUMENTS.keys()
]


@pytest.fixture(scope="module")
def busy(devnet: Devnet, counter: str) -> Client:
    """The client of a devnet with an actor and a job."""
    devnet.submit_job("true")
    return devnet.client


@pytest.mark.parametrize(("name", "arguments"), READS)
def test_answers_have_their_types(busy: Client, name: str, arguments: list[str]) -> None:
    answer = getattr(busy, name)(*arguments)
    kind = get_type_hints(getattr(Api, name))["return"]
    assert fits(answer, kind), f"{answer} is not a {kind}"


def test_queries_and_bodies_arrive(devnet: Devnet, counter: str) -> None:
    devnet.call(counter, "add", {"by": 1})
    assert len(devnet.client.chain_events(from_=1, limit=1)["events"]) >= 1
    assert devnet.client.actor(counter, prefix="none")["state"] == []
    assert devnet.client.timers(all=True) == []
    advanced = devnet.client.post_chain_advance({"blocks": 3, "within_ms": 10_000})
    assert devnet.wait(advanced["to"]) >= advanced["from"] + 3


def refusal(ask: Callable[[], object]) -> ApiError:
    with pytest.raises(ApiError) as caught:
        ask()
    return caught.value


def test_refusals_have_their_parts(devnet: Devnet) -> None:
    error = refusal(lambda: devnet.client.job("a/../b?c=d"))
    assert (error.status, error.code) == (404, "not_found")
    error = refusal(lambda: devnet.client.account("dev-0", node="none"))
    assert (error.status, error.code) == (404, "not_found")
    error = refusal(lambda: devnet.client.post_transactions({"transaction": "0x00"}))
    assert (error.status, error.code) == (400, "bad_request")
    assert str(error) == f"POST /v1/transactions: {error.message}"
    for token in (None, TOKEN):
        error = refusal(Client(devnet.rpc_url, token).post_shutdown)
        assert (error.status, error.code) == (401, "unauthorized")
        assert error.hint is not None and error.hint in str(error)


@contextmanager
def server(answer: Callable[[socket, bytes], None]) -> Iterator[tuple[str, list[bytes]]]:
    """A server on a port that the system chooses: its URL, and the requests that it got."""
    requests: list[bytes] = []

    class Handler(socketserver.BaseRequestHandler):
        def handle(self) -> None:
            requests.append(self.request.recv(65_536))
            with suppress(OSError):
                answer(self.request, requests[-1])

    with socketserver.ThreadingTCPServer(("127.0.0.1", 0), Handler) as listening:
        thread = threading.Thread(target=listening.serve_forever, args=(0.01,))
        thread.start()
        try:
            yield f"http://127.0.0.1:{listening.server_address[1]}", requests
        finally:
            listening.shutdown()
            thread.join()


def head(*headers: str, status: str = "200 OK") -> bytes:
    return "\r\n".join([f"HTTP/1.1 {status}", *headers, "", ""]).encode()


@pytest.mark.parametrize(
    ("answer", "status", "code", "message"),
    [
        (head() + b"<html>", 200, "malformed", "the answer is not JSON"),
        (head() + b"[" * 100_000, 200, "malformed", "the answer is not JSON"),
        (head() + b"\xff", 200, "malformed", "the answer is not JSON"),
        (head("content-length: 9") + b"{}", None, "malformed", "IncompleteRead"),
        (head("content-length: 99999999") + b"1" * 200_001, 200, "malformed", "longer than 200000"),
        (head() + b"1" * 300_000, 200, "malformed", "longer than 200000"),
        (
            head("transfer-encoding: chunked") + b"fffff\r\n" + b"1" * 300_000,
            200,
            "malformed",
            "longer than 200000",
        ),
        (head("transfer-encoding: chunked") + b"xyz\r\n", None, "malformed", "IncompleteRead"),
        (head("transfer-encoding: chunked") + b"-9\r\n", None, "malformed", "read length"),
        (
            head("transfer-encoding: chunked") + b"-1\r\n" + b"1" * (2 << 20),
            None,
            "malformed",
            "it does not end",
        ),
        (head(status="100 Continue") * (2 << 15), None, "malformed", "it does not end"),
        (head(*["a: b"] * 200), None, "malformed", "more than 100 headers"),
        (b"SSH-2.0-\x1b[31m\r\n", None, "malformed", "BadStatusLine"),
        (b"", None, "unreachable", "closed connection"),
        (head("location: /", status="302 Found"), 302, "malformed", "status 302"),
        (head(status="500 No") + b'{"error": 5}', 500, "malformed", "status 500"),
        (
            head(status="400 No") + b'{"error": {"code": "a", "message": "b\\n\\u001b\\ud800"}}',
            400,
            "a",
            "b\ufffd\ufffd\ufffd",
        ),
    ],
)
def test_a_bad_answer_is_an_error(answer: bytes, status: int, code: str, message: str) -> None:
    with server(lambda peer, _: peer.sendall(answer)) as (url, requests):
        error = refusal(Client(url, TOKEN, timeout=10, max_bytes=200_000).status)
    assert (error.status, error.code) == (status, code)
    assert message in error.message
    assert str(error).isprintable()
    assert len(requests) == 1 and TOKEN.encode() not in requests[0]


@pytest.mark.parametrize("begin", [b"", b"HTTP/1.1 200 OK\r\na: ", head("content-length: 100000")])
@pytest.mark.parametrize("pause", [10, 0.02])
def test_a_slow_answer_is_a_timeout(begin: bytes, pause: float) -> None:
    over = threading.Event()

    def answer(peer: socket, request: bytes) -> None:
        peer.sendall(begin)
        for _ in range(round(10 / pause)):
            if over.wait(pause):
                break
            peer.sendall(b"1")

    with server(answer) as (url, _):
        error = refusal(Client(url, timeout=0.3).status)
        over.set()
    assert (error.status, error.code) == (None, "timeout")
    assert "no answer within 0.3 s" in str(error)


def test_a_closed_port_is_unreachable() -> None:
    with socket() as bound:
        bound.bind(("127.0.0.1", 0))
        port = bound.getsockname()[1]
        error = refusal(Client(f"http://127.0.0.1:{port}").status)
    assert error.code == "unreachable" and f"127.0.0.1:{port}" in str(error)


@pytest.mark.parametrize(
    "begin",
    [b"", b"HTTP/1.1 ", b'HTTP/1.1 400 No\r\n\r\n{"error": {"code": "a", "message": "'],
)
def test_errors_do_not_show_the_token(begin: bytes) -> None:
    def echo(peer: socket, request: bytes) -> None:
        peer.sendall(begin + b" ".join(request.split()) + b'"}}\r\n')

    with server(echo) as (url, requests):
        client = Client(url, TOKEN, timeout=10)
        error = refusal(client.post_shutdown)
    assert f"Bearer {TOKEN}".encode() in requests[0]
    shown = "".join(traceback.format_exception(error))
    assert TOKEN not in shown + repr(error) + repr(client) + error.message
    assert "(token)" in error.message


@pytest.mark.parametrize(
    ("url", "token"),
    [
        ("https://127.0.0.1:1", None),
        ("127.0.0.1:1", None),
        (f"http://user:{TOKEN}@127.0.0.1:1", None),
        ("http://127.0.0.1:1/v1", None),
        ("http://127.0.0.1:1", f"{TOKEN}\r\n"),
    ],
)
def test_what_no_request_can_use_is_refused(url: str, token: str | None) -> None:
    with pytest.raises(ValueError, match="the (address|token)") as caught:
        Client(url, token)
    assert TOKEN not in str(caught.value)
