"""Redacts secrets from logs, the audit log, streams and traces."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from typing import Literal, TypeAlias, get_args

from langgraph_scrum_master._internal.logs import Redact
from langgraph_scrum_master.errors import ConfigError

Redaction: TypeAlias = Literal["all", "secrets", "emails"]
"""What to redact: all text, secrets (keys, tokens, passwords), or e-mail addresses."""

REDACTED = "[redacted]"

_SECRETS = re.compile(
    r"-----BEGIN [A-Z ]*PRIVATE KEY-----.*?(?:-----END [A-Z ]*PRIVATE KEY-----|\Z)"
    # Keys with a provider's prefix.
    r"|\b(?:sk|pk|rk)[-_](?:[A-Za-z0-9]+[-_])*[A-Za-z0-9]{16,}\b"
    r"|\bgh[pousr]_[A-Za-z0-9]{20,}\b|\bgithub_pat_[A-Za-z0-9_]{20,}\b|\bglpat-[\w\-]{16,}\b"
    r"|\bxox[abeprs]-[\w\-]{10,}|\b(?:AKIA|ASIA)[A-Z0-9]{16}\b|\bAIza[\w\-]{30,}\b|\bhf_[A-Za-z0-9]{20,}\b"
    r"|\blsv2_[a-z]{2}_[A-Za-z0-9_]{20,}\b|\bnpm_[A-Za-z0-9]{30,}\b|\bpypi-[\w\-]{30,}"
    # A JSON web token.
    r"|\beyJ[\w\-]{8,}\.[\w\-]{8,}\.[\w\-]*"
    # Credentials in headers and URLs.
    r"|(?<=bearer )[\w\-.~+/]{8,}=*|(?<=basic )[A-Za-z0-9+/]{8,}=*"
    r"|(?<=://)[^\s/:@]+:[^\s/@]+(?=@)",
    re.I | re.S,
)
_LABELLED = re.compile(
    r"((?:api[_\- ]?key|secret|token|passw(?:or)?d|pwd|access[_\- ]?key|private[_\- ]?key|credentials?)"
    r"[\"']?\s*(?:[:=]|\bis\b)\s*[\"']?)([^\s\"',;&]{4,})",
    re.I,
)
_EMAIL = re.compile(r"\b[\w.+\-]{1,64}@[\w\-]+(?:\.[\w\-]+)+\b")


def redactor(wanted: Redaction | Redact | Iterable[Redaction | Redact]) -> Redact | None:
    """One function that applies these redactions in order; None if there are none."""
    several = [wanted] if isinstance(wanted, str) or callable(wanted) else list(wanted)
    steps = [_step(each) for each in several]

    def redact(text: str) -> str:
        try:
            redacted: object = text
            for step in steps:
                redacted = step(str(redacted))
            return redacted if isinstance(redacted, str) else REDACTED
        # A text that cannot be redacted must not be passed on.
        except Exception:
            return REDACTED

    return redact if steps else None


def _step(wanted: object) -> Redact:
    if isinstance(wanted, str) and wanted in _BUILT_IN:
        return _BUILT_IN[wanted]
    if callable(wanted):
        return wanted
    raise ConfigError(f"redact must be among {get_args(Redaction)}, or a function from text to text, got {wanted!r}")


def _all(text: str) -> str:
    return REDACTED if text else text


def _secrets(text: str) -> str:
    return _LABELLED.sub(lambda match: match[1] + REDACTED, _SECRETS.sub(REDACTED, text))


def _emails(text: str) -> str:
    return _EMAIL.sub(REDACTED, text)


_BUILT_IN: dict[str, Callable[[str], str]] = {"all": _all, "secrets": _secrets, "emails": _emails}
