"""Long hostile texts take time in proportion to their length."""

from __future__ import annotations

import re
import time
from collections.abc import Callable

import pytest

from langgraph_scrum_master.text.adr import parse_adr
from langgraph_scrum_master.text.redact import redactor
from langgraph_scrum_master.text.secret_formats import SECRET_FORMATS

SIZES = (25_000, 50_000, 100_000)
LIMIT = 1.0
"""Seconds for all sizes together, far above what linear time needs: a quadratic pattern takes minutes."""


def seconds(read: Callable[[str], object], before: str, unit: str) -> float:
    texts = [before + unit * (size // len(unit)) for size in SIZES]
    start = time.process_time()
    for text in texts:
        read(text)
    return time.process_time() - start


def read_adr(text: str) -> object:
    adr = parse_adr(text, text)
    return adr.in_force, adr.successor


ADR_UNITS = (
    *("superseded by ", "superseded ", "# ", "#", "#\n", "##\n", "## status ", "## status\n", "~~", "~~a", "* ", "*"),
    *("-\n", "status", "status*", "status:", "status:\n", "---\n", "--- ", "\n--- x", " ", "\n", "0", "ADR 0", "a"),
)


@pytest.mark.parametrize("before", ["", "# T\n\n## Status\n\n", "---\nstatus: ", "---\n"])
@pytest.mark.parametrize("unit", ADR_UNITS)
def test_an_adr_is_read_in_linear_time(before: str, unit: str) -> None:
    assert seconds(read_adr, before, unit) < LIMIT


def literals(pattern: str) -> list[str]:
    """What a pattern starts with: its first literal characters, of its first alternatives."""
    plain = re.sub(r"\(\?-?[i<=!][^()]*\)|\(\?-?i:|\(\?:|\\(?=[^\w])", "", pattern)
    return [found for found in re.findall(r"[A-Za-z0-9_.:/\- ]{2,}", plain.split("{")[0]) if found.strip()]


STARTS = sorted({found for each in SECRET_FORMATS for found in literals(each.pattern)})
SECRET_UNITS = (
    *("sk-", "sk-a1-", "pk_a", "eyJ", "eyJaaaaaaaa-", "eyJaaaaaaaa.", "-----BEGIN ", "-----BEGIN PRIVATE KEY-----"),
    *("://", "://a:", "://:@", "a:b@", "bearer ", "basic ", "a", "A", "1", "f", "a.", "a-", "a ", "-", "--", " ", "\n"),
    *("password", "password=", "password = ", "password:", 'password="', 'password=\\"', "password='", "token is "),
    *(
        '"password": ',
        '\\"password\\": \\"',
        "--token ",
        "--token=",
        '"--token", ',
        "--a-",
        "api_key",
        "api key ",
        "key",
    ),
    *(
        "cookie:",
        "cookie: a",
        "cookie: a=",
        "<token>",
        "<a",
        "-u a",
        "-u a:",
        "@",
        "a@",
        "a@a.",
        "a@a.-",
        "a+",
        ".",
        "\\",
        '\\"',
    ),
    *(
        "password=os.",
        "password=$",
        "password: str = ",
        "1:A",
        "M",
        "SG.",
        "SG.aaaaaaaaaaaaaaaaaaaa-",
        "xoxb-",
        "'",
        '"',
    ),
    *STARTS,
)


@pytest.mark.parametrize("unit", dict.fromkeys(SECRET_UNITS))
@pytest.mark.parametrize("before", ["", 'password="'])
def test_secrets_and_addresses_are_redacted_in_linear_time(before: str, unit: str) -> None:
    redact = redactor(["secrets", "emails"])

    assert redact is not None
    assert seconds(redact, before, unit) < LIMIT
