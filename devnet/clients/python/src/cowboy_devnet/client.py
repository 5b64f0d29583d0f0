"""A client of a devnet's control API."""

import http.client
import json
import re
import socket
import time
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlencode, urlsplit

from cowboy_devnet._api import Api, Query

REQUEST_SECONDS = 60.0
"""What a devnet takes at most to start or stop a node."""
MAX_ANSWER = 64 << 20
MAX_HEAD = 1 << 20
"""The longest body of an answer, and the rest of it, in bytes."""
MAX_TEXT = 2_000
"""The longest part of an error, in characters."""


@dataclass(eq=False)
class ApiError(Exception):
    """A request that was refused, or has no usable answer.

    `status` is the answer's HTTP status, None without an answer. `code` is the API's, or
    `unreachable`, `timeout` or `malformed`. `name` is the chain's name of the error, such as
    `InsufficientFunds`.
    """

    request: str
    status: int | None
    code: str
    message: str
    name: str | None = None
    hint: str | None = None

    def __str__(self) -> str:
        return f"{self.request}: {self.message}" + (f" ({self.hint})" if self.hint else "")


class Client(Api):
    """A client of the control API at `url`, such as `http://127.0.0.1:20123`.

    Requests that change state show the token. `timeout` is the maximum time of a request in
    seconds, from the connection to the last byte of the answer; `max_bytes` is the maximum length
    of its body. Every failure of a request is an `ApiError`. Redirects are not followed, proxies
    not used. Several threads can use one client.
    """

    def __init__(
        self,
        url: str,
        token: str | None = None,
        *,
        timeout: float = REQUEST_SECONDS,
        max_bytes: int = MAX_ANSWER,
    ) -> None:
        parts = urlsplit(url)
        if parts.scheme != "http" or not parts.hostname or "@" in parts.netloc or parts.path > "/":
            raise ValueError("the address of a control API is http://HOST:PORT")
        if token is not None and not re.fullmatch(r"[!-~]+", token):
            raise ValueError("the token has other characters than those of printable ASCII")
        self._host, self._port = parts.hostname, parts.port or 80
        self._token = token
        self._timeout = timeout
        self._max_bytes = max_bytes

    def __repr__(self) -> str:
        return f"Client({self._host}:{self._port})"

    def _json(self, method: str, path: str, query: Query, body: object = None) -> Any:
        status, answer = self._answer(method, path, query, body)
        try:
            return json.loads(answer)
        except (ValueError, RecursionError):
            pass
        raise ApiError(f"{method} {path}", status, "malformed", "the answer is not JSON")

    def _bytes(self, method: str, path: str, query: Query, body: object = None) -> bytes:
        return self._answer(method, path, query, body)[1]

    def _answer(self, method: str, path: str, query: Query, body: object) -> tuple[int, bytes]:
        """The status and the body of an answer, which is a success."""
        request = f"{method} {path}"
        given = {name: _text(value) for name, value in query.items() if value is not None}
        target = f"{path}?{urlencode(given)}" if given else path
        data = None if method == "GET" else json.dumps(body).encode()
        try:
            status, answer = self._exchange(method, target, data)
            failure = None
        except TimeoutError:
            failure = ("timeout", f"no answer within {self._timeout:g} s")
        except OSError as error:
            where = f"{self._host}:{self._port}"
            failure = ("unreachable", f"no answer from {where}: {error.strerror or error}")
        except (http.client.HTTPException, ValueError) as error:
            failure = ("malformed", f"the answer is not one of HTTP: {error!r}")
        # Raised here, so that no cause of the error shows what was sent or received.
        if failure:
            raise ApiError(request, None, failure[0], self._shown(failure[1]))
        if len(answer) > self._max_bytes:
            message = f"the answer is longer than {self._max_bytes} bytes"
            raise ApiError(request, status, "malformed", message)
        if not 200 <= status < 300:
            raise self._refusal(request, status, answer)
        return status, answer

    def _exchange(self, method: str, target: str, data: bytes | None) -> tuple[int, bytes]:
        """Sends a request; returns the status and the body, up to a byte beyond the maximum."""
        headers = {"connection": "close"}
        if data is not None:
            headers["content-type"] = "application/json"
            if self._token:
                headers["authorization"] = f"Bearer {self._token}"
        connection = _Connection(self._host, self._port, timeout=self._timeout)
        connection.room = self._max_bytes + MAX_HEAD
        try:
            connection.request(method, target, data, headers)
            response = connection.getresponse()
            answer = response.read(self._max_bytes + 1)
            if response.length and len(answer) <= self._max_bytes:
                raise http.client.IncompleteRead(answer, response.length)
            return response.status, answer
        finally:
            connection.close()

    def _refusal(self, request: str, status: int, answer: bytes) -> ApiError:
        try:
            error = json.loads(answer)["error"]
            code, message = str(error["code"]), str(error["message"])
            name, hint = error.get("name"), error.get("hint")
        except (ValueError, LookupError, TypeError, AttributeError, RecursionError):
            message = f"status {status} without an error of the API"
            return ApiError(request, status, "malformed", message)
        texts = [None if text is None else self._shown(str(text)) for text in (name, hint)]
        return ApiError(request, status, self._shown(code), self._shown(message), *texts)

    def _shown(self, text: str) -> str:
        """A text that the server may have chosen: on one line, and without the token."""
        text = text.replace(self._token, "(token)") if self._token else text
        return "".join(c if c.isprintable() else "\ufffd" for c in text[:MAX_TEXT])


class _Connection(http.client.HTTPConnection):
    """A connection for one request, whose timeout bounds all of it."""

    room = 0
    """The maximum length of the answer, in bytes."""

    def connect(self) -> None:
        assert self.timeout is not None
        deadline = time.monotonic() + self.timeout
        super().connect()
        self.sock = _Socket(fileno=self.sock.detach())
        self.sock.deadline = deadline
        self.sock.room = self.room


class _Socket(socket.socket):
    deadline = 0.0
    room = 0

    def sendall(self, data: Any, flags: int = 0) -> None:
        self.settimeout(self._left())
        super().sendall(data, flags)

    def recv_into(self, buffer: Any, nbytes: int = 0, flags: int = 0) -> int:
        self.settimeout(self._left())
        received = super().recv_into(buffer, nbytes, flags)
        self.room -= received
        if self.room < 0:
            raise http.client.HTTPException("it does not end")
        return received

    def _left(self) -> float:
        left = self.deadline - time.monotonic()
        if left <= 0:
            raise TimeoutError
        return left


def _text(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
