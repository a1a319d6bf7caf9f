"""Redacts secrets from logs, the audit log, streams and traces."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias, get_args

from langgraph_scrum_master._internal.foreign import recordable
from langgraph_scrum_master._internal.logs import Redact
from langgraph_scrum_master.errors import ConfigError
from langgraph_scrum_master.text.secret_formats import SECRET_FORMATS, SECRET_NAMES

Redaction: TypeAlias = Literal["all", "secrets", "emails"]
"""What to redact: all text, secrets (keys, tokens, passwords), or e-mail addresses."""

REDACTED = "[redacted]"

_FORMATS = re.compile(rf"(?<![A-Za-z0-9])(?:{'|'.join(each.pattern for each in SECRET_FORMATS)})", re.I | re.S)
_IN_URL = re.compile(r"(?<=://)(?:[^\s/:@\"'<>]*+:[^\s/\"'<>]+|[^\s/:@\"'<>]{20,}+)(?=@)")
# Lower case alone is a word of prose, such as in "basic knowledge".
_IN_HEADER = re.compile(r"(?:(?<=bearer )|(?<=basic ))(?=(?-i:[a-z.~+/\-]{0,60}+[A-Z0-9_=]))[\w\-.~+/]{8,}+=*+", re.I)
_COOKIE = re.compile(r"(\bcookie\\*+[\"']?[ \t]*+:[ \t]*+\\*+[\"']?)[^\s=;:\"']{1,64}+=[^\n\"']++", re.I)
_LOGIN = re.compile(r"((?<![\w\-])(?:-u|--user)(?:=|[ \t]++)[\"']?(?!\d+:\d)[^\s:\"']{1,64}+:)[^\s\"']++")
_ELEMENT = re.compile(rf"(<[\w:.\-]{{0,40}}?(?:{SECRET_NAMES})>)[^<\n]{{1,400}}+(?=</)", re.I)

# A quoted value ends at the same quote with as many backslashes, as JSON within JSON is escaped.
_VALUE = (
    r"(?P<quote>\\*+[\"'`])?+(?:(?:bearer|basic|token|digest|apikey)[ \t]++)?)"
    r"(?P<value>(?(quote)[^\n]*?(?=(?<!\\)(?P=quote)|\n|\Z)|[^\s\"'`,;&\\][^\s\"',;&]*+))"
)
_LABELLED = re.compile(
    rf"(?P<label>(?:{SECRET_NAMES})\\*+[\"']?\]?[ \t]*+"
    # An annotation may stand before the value: password: str = "x".
    r"(?P<sign>:[ \t]*+[\w.\[\]|]{1,40}+[ \t]++=(?!=)|=>|:=|={1,3}+|:|\bis\b)[ \t]*+" + _VALUE,
    re.I,
)
_OPTION = re.compile(
    rf"(?P<label>(?<![\w\-])--[\w\-]{{0,40}}?(?:{SECRET_NAMES})(?P<sign>=|[ \t]++(?!-)|\\*+[\"'][ \t]*+,\s*+)" + _VALUE,
    re.I,
)
_HARMLESS = re.compile(
    r"(?:none|null|nil|true|false|undefined|str|string|int|integer|bool|boolean|bytes|float|number|any|object|dict|list"
    r"|required|optional|missing|invalid|expired|revoked|unknown|empty|yes|no"
    r"|to|for|and|or|is|in|on|of|with|if|when|only|option|flag|from|must|the|an?)[)\]}.?!:|]*+"
    # Code and placeholders.
    r"|[a-z_][\w.]*+\(\)?[)\]}:.]*+|(?:os|self|cls|settings|config|env|process|secrets|args)\.[\w.]++[\[(]?[)\]}:]*+"
    r"|(?:optional|union|annotated|literal|list|dict)\[[\w.|\]]*+|\$[{(]*+[\w.: \-]*+[})]*+"
    r"|<[\w .\-]*+>?|\{+[\w. ]*+\}*+|[*.x]{3,}+|\[redacted\].*",
    re.I,
)
_NAMED = re.compile(rf"(?:{SECRET_NAMES}|cookie)(s?)\Z", re.I)
_EMAIL = re.compile(r"\b[\w.+\-]{1,64}@[\w\-]++(?:\.[\w\-]+)+\b")


@dataclass(frozen=True, slots=True)
class Redactor:
    """Applies redactions to a text, in order."""

    steps: tuple[Redact, ...]
    by_name: bool
    """Whether values are secret if their names say so, whatever they look like."""

    def __call__(self, text: str) -> str:
        """The text without what is redacted. A text that cannot be redacted is not passed on."""
        try:
            redacted: object = text
            for step in self.steps:
                redacted = step(str(redacted))
            return redacted if isinstance(redacted, str) else REDACTED
        except BaseException as error:
            recordable(error)
            return REDACTED


def redactor(wanted: Redaction | Redact | Iterable[Redaction | Redact]) -> Redact | None:
    """One function that applies these redactions in order; None if there are none."""
    several = [wanted] if isinstance(wanted, str) or callable(wanted) else list(wanted)
    steps = tuple(_step(each) for each in several)
    return Redactor(steps, by_name=_secrets in steps or _all in steps) if steps else None


def redacted_values(value: Any, redact: Redact, kept: frozenset[str] = frozenset()) -> Any:
    """JSON values with their texts redacted, except names and ids in the fields that are `kept`."""
    if isinstance(value, str):
        return redact(value)
    if isinstance(value, dict):
        return {_key(key, redact): _field(key, item, redact, kept) for key, item in value.items()}
    if isinstance(value, list | tuple):
        before = (None, *value)
        by_name = _by_name(redact)
        return [
            REDACTED if by_name and _is_option(last) and isinstance(item, str) else redacted_values(item, redact, kept)
            for last, item in zip(before, value, strict=False)
        ]
    return value


def _step(wanted: object) -> Redact:
    if isinstance(wanted, str) and wanted in _BUILT_IN:
        return _BUILT_IN[wanted]
    if callable(wanted):
        return wanted
    raise ConfigError(f"redact must be among {get_args(Redaction)}, or a function from text to text, got {wanted!r}")


def _field(key: object, item: Any, redact: Redact, kept: frozenset[str]) -> Any:
    name = str(key)
    if name in kept and (not isinstance(item, str) or _NAME_LIKE.fullmatch(item)):
        return item
    if _by_name(redact) and (named := _NAMED.search(name)):
        return _hidden(item, numbers=not named[1])
    return redacted_values(item, redact, frozenset() if name in _FREE else kept)


def _key(key: Any, redact: Redact) -> Any:
    return redact(key) if isinstance(key, str) and key and not _NAME_LIKE.fullmatch(key) else key


_NAME_LIKE = re.compile(r"[\w.:@/+\-]{1,128}(?: [\w.:\-]{1,32}){0,2}")
_FREE = frozenset(("args", "arguments", "content", "additional_kwargs", "response_metadata", "artifact", "input"))
"""Fields with any keys that a model, a tool or a user chose: none of them is certain to be a name or an id."""


def _by_name(redact: Redact) -> bool:
    return isinstance(redact, Redactor) and redact.by_name


def _is_option(value: object) -> bool:
    return isinstance(value, str) and value.startswith("--") and bool(_NAMED.search(value))


def _hidden(value: Any, numbers: bool) -> Any:
    """The shape of a secret value. Numbers stay if the name is plural: they are counts, such as of tokens."""
    if isinstance(value, dict):
        return {key: _hidden(item, numbers) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_hidden(item, numbers) for item in value]
    if value is None or value == "" or isinstance(value, bool) or (isinstance(value, int | float) and not numbers):
        return value
    return REDACTED


def _all(text: str) -> str:
    return REDACTED if text else text


def _secrets(text: str) -> str:
    for pattern in (_FORMATS, _IN_URL, _IN_HEADER):
        text = pattern.sub(REDACTED, text)
    for pattern in (_COOKIE, _LOGIN, _ELEMENT):
        text = pattern.sub(rf"\1{REDACTED}", text)
    return _LABELLED.sub(_without_labelled, _OPTION.sub(_without_value, text))


def _without_value(match: re.Match[str]) -> str:
    value = match["value"]
    return match["label"] + REDACTED if value and not _HARMLESS.fullmatch(value) else match[0]


def _without_labelled(match: re.Match[str]) -> str:
    """The label without the value, unless it is rather prose or code."""
    value, sign = match["value"], match["sign"].lower()
    short = len(value) < 4 or sign in ("==", "===") or (sign == "is" and not _DIGIT_OR_SIGN.search(value))
    return match[0] if short and not match["quote"] else _without_value(match)


_DIGIT_OR_SIGN = re.compile(r"[\d!@#$%^*=+]")


def _emails(text: str) -> str:
    return _EMAIL.sub(REDACTED, text)


_BUILT_IN: dict[str, Callable[[str], str]] = {"all": _all, "secrets": _secrets, "emails": _emails}
