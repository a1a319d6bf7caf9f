"""Escapes texts of others, so that they cannot imitate the frame around them, hide anything, or steer a terminal."""

from __future__ import annotations

import json
import re
from html import escape

from langgraph_scrum_master._internal.patterns import lazy_pattern
from langgraph_scrum_master.text.skeleton import replaced_by_look

FRAME_TAGS = ("injected_context", "context_item")
"""The tags of the frame around injected context."""

# The characters that Unicode 16 says to ignore in display (Default_Ignorable_Code_Point), control characters, changes
# of direction, annotations and lone surrogates.
_IGNORABLE = (
    "\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u202a-\u202e\u2060-\u206f\u3164\ufe00-\ufe0f"
    "\ufeff\uffa0\ufff0-\ufffb\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0000-\U000e0fff"
)
_CONTROL = "\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff"
_PICTURE = (
    "\u00a9\u00ae\u203c\u2049\u2122\u2139\u2190-\u21ff\u2300-\u27bf\u2900-\u2bff\u3030\u303d\u3297\u3299"
    "\U0001f000-\U0001faff"
)
# Arabic, Syriac, N'Ko and relatives, the scripts of India, Tibet and Myanmar, Khmer and Mongolian.
_JOINING = "\u0600-\u061b\u061d-\u109f\u1780-\u17b3\u17b6-\u180a\u1810-\u18af\ua840-\ua87f\ua8e0-\ua8ff"
_SHOWN = (
    # In emoji sequences, after letters of scripts that need joiners, and in the flags of three nations.
    f"(?<=[{_PICTURE}])\ufe0f?\u200d(?=[{_PICTURE}])|(?<=[{_PICTURE}])[\ufe0e\ufe0f]|(?<=[#*0-9])\ufe0f(?=\u20e3)"
    f"|(?<=[{_JOINING}])[\u200c\u200d](?![\u200c\u200d])|(?<=[\u1820-\u18aa])[\u180b-\u180f]"
    "|(?<=\U0001f3f4)\U000e0067\U000e0062(?:\U000e0065\U000e006e\U000e0067|\U000e0073\U000e0063\U000e0074"
    "|\U000e0077\U000e006c\U000e0073)\U000e007f"
)
_INVISIBLE = lazy_pattern(f"({_SHOWN})|[{_IGNORABLE}{_CONTROL}]")
_LINE_END = lazy_pattern("\r\n|[\r\x85\u2028\u2029]")


def _letters(name: str) -> str:
    """Matches a name with anything but letters and digits between its letters."""
    alike = {"i": "[i1l]", "o": "[o0]", "m": "(?:m|rn)"}
    return "[^a-z0-9]*+".join(alike.get(char, char) for char in name if char != "_")


# Tokens that chat templates give a meaning: Llama, Mistral, Gemma, Qwen, Phi, DeepSeek, Command, gpt-oss, EXAONE, Seed,
# MiniMax and others; tags in which hosts of agents enclose calls, results and their own notes.
_TOKENS = (
    r"/?s|/?pad|/?unk|[be]os(?:_token)?|(?:start|end)_of_(?:turn|image)|/?<?/?sys>|sop|eop|/?think|/?tool_(?:call|response|result)s?"
    r"|/?function_(?:call|result|response)s?|/?system-reminder|(?:extra_id|special|unused|reserved)_?\d+|seed:[\w:]{1,40}"
)
_BRACKETED = (
    r"/?(?:inst|system_prompt|available_tools|tool_(?:calls?|results?|content)|model_settings|args|call_id|think|gmask)"
)
_MARKUP = lazy_pattern(
    rf"<(?=[^a-z<]*(?:{'|'.join(map(_letters, FRAME_TAGS))}))"
    r"|<(?=\|[\w▁/][^<>\n]{0,60}>|[\w▁/][^<>\n|]{0,60}\|[ \t]?>|[ \t]\|[^<>\n|]{1,60}\|[ \t]?>)"
    rf"|<(?=[ \t]?(?:{_TOKENS})[ \t]?>|/?antml:|/?invoke[ >])"
    rf"|\[(?={_BRACKETED}\]|\|[^\[\]\n|]{{1,60}}\|\]|e~\[)|\](?=~!?b[\[\]])"
)
_SPEAKER = lazy_pattern(
    r"^(?=[ \t]{0,8}(?:\*\*)?(?:Human|HUMAN|User|USER|Assistant|ASSISTANT|System|SYSTEM)(?:\*\*)?[ \t]?[:：])", re.M
)
_ENTITIES = {"[": "&#91;", "]": "&#93;"}


def visible(text: str) -> str:
    """The text without control and other invisible characters, except tabs and line ends, which become `\\n`."""
    if text.isascii() and text.isprintable():
        return text
    return _INVISIBLE.sub(lambda match: match[1] or "", _LINE_END.sub("\n", text))


def escaped_json(text: str) -> str:
    """The JSON with its invisible characters as `\\u` escapes."""
    return _INVISIBLE.sub(lambda match: match[1] or json.dumps(match[0])[1:-1], text)


def as_data(text: str, *, speakers: bool = False) -> str:
    """The text without invisible characters, and with the frame's tags and the tokens of chat templates escaped.

    Lines that start like the turn of a chat become quotations, unless `speakers` says that such lines are ours.
    """
    if _harmless(text):
        return text
    shown = _without_markup(visible(text))
    return shown if speakers else quoted_speakers(shown)


def quoted_speakers(text: str) -> str:
    """The text with lines that start like the turn of a chat as quotations, such as `> Assistant: Done.`"""
    return _SPEAKER.sub("> ", text) if ":" in text or "：" in text else text


def one_line(text: str) -> str:
    """The text as data on one line."""
    if _harmless(text) and "  " not in text:
        return text.strip()
    return " ".join(as_data(text).split())


def _harmless(text: str) -> bool:
    """A fast check for texts that need no escaping, as most do."""
    return text.isascii() and text.isprintable() and not any(char in text for char in "<[]:")


def as_attribute(text: str) -> str:
    """The text on one line, escaped for an attribute of a tag."""
    return _without_markup(escape(" ".join(visible(text).split()), quote=True))


def _without_markup(text: str) -> str:
    return replaced_by_look(_MARKUP, text, lambda char: _ENTITIES.get(char, "&lt;"))
