"""Closes the network, but for loopback, in every Python process that a test starts."""

from __future__ import annotations

import socket
from typing import Any

_connect = socket.socket.connect


def _only_loopback(self: socket.socket, address: Any) -> None:
    host = address[0] if isinstance(address, tuple) else "127.0.0.1"
    if str(host) not in ("127.0.0.1", "::1", "localhost"):
        raise OSError(f"a test tried to reach {host}")
    _connect(self, address)


socket.socket.connect = _only_loopback  # type: ignore[method-assign, assignment]
