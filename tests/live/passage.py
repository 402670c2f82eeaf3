"""A passage between Sakshi and a server, which can lose answers and can be shut. It reads no more of HTTP than it must."""

import socket
import threading
from collections.abc import Generator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from urllib.parse import urlsplit


@dataclass
class Passage:
    """`loses` and `shut` name requests by how `METHOD target` begins: their answers are lost on the way back, or they are not let through.

    `passed` are the requests that reached the server, as (method, target).
    """

    url: str
    loses: frozenset[str] = frozenset()
    shut: frozenset[str] = frozenset()
    passed: list[tuple[str, str]] = field(default_factory=list[tuple[str, str]])

    def methods(self, method: str) -> list[str]:
        """The targets of the requests of one method that reached the server."""
        return [target for one, target in self.passed if one == method]


@contextmanager
def passage(to: str) -> Generator[Passage]:
    """A passage to a server while the block runs."""
    there = urlsplit(to)
    assert there.hostname is not None
    assert there.port is not None
    listening = socket.create_server(("127.0.0.1", 0))
    made = Passage(f"http://127.0.0.1:{listening.getsockname()[1]}")
    carrier = threading.Thread(target=_accept, args=(listening, made, (there.hostname, there.port)))
    carrier.start()
    try:
        yield made
    finally:
        # Closing alone does not wake a thread that waits in accept.
        with suppress(OSError):
            listening.shutdown(socket.SHUT_RDWR)
        listening.close()
        carrier.join()


def _accept(listening: socket.socket, made: Passage, to: tuple[str, int]) -> None:
    carriers: list[threading.Thread] = []
    with suppress(OSError):
        while True:
            came, _ = listening.accept()
            carriers.append(threading.Thread(target=_carry, args=(came, made, to)))
            carriers[-1].start()
    for carrier in carriers:
        carrier.join()


def _carry(came: socket.socket, made: Passage, to: tuple[str, int]) -> None:
    """One request and its answer; then the connection is closed."""
    with came, suppress(OSError):
        came.settimeout(60)
        request = _request(came)
        method, target = (part.decode("ascii") for part in request.split(b" ", 2)[:2]) if request else ("", "")
        asked = f"{method} {target}"
        if not request or asked.startswith(tuple(made.shut)):
            return
        with socket.create_connection(to, timeout=60) as server:
            made.passed.append((method, target))
            server.sendall(request)
            answer = _rest(server)
        if not asked.startswith(tuple(made.loses)):
            came.sendall(answer)


def _request(came: socket.socket) -> bytes:
    """A request with its whole body; empty if the connection was closed instead. The connection is not kept."""
    data = b""
    while b"\r\n\r\n" not in data:
        chunk = came.recv(65536)
        if not chunk:
            return b""
        data += chunk
    head, _, body = data.partition(b"\r\n\r\n")
    lines = [line for line in head.split(b"\r\n") if not line.lower().startswith(b"connection:")]
    length = next((int(line.partition(b":")[2]) for line in lines if line.lower().startswith(b"content-length:")), 0)
    while len(body) < length:
        body += came.recv(65536)
    return b"\r\n".join([*lines, b"Connection: close"]) + b"\r\n\r\n" + body


def _rest(server: socket.socket) -> bytes:
    data = b""
    while chunk := server.recv(65536):
        data += chunk
    return data
