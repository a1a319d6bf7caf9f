"""What a text looks like: characters that are drawn alike become one, so that imitations of markup are found."""

from __future__ import annotations

import re
from collections.abc import Callable
from itertools import accumulate
from unicodedata import combining, normalize

_PLACEHOLDER = "\x00"
"""Stands for an accent."""

# After NFKD, which already unfolds full-width, mathematical and circled letters.
_LOOK_ALIKES = {
    "<": "‹❮❬❰〈⟨⧼⦑˂ᐸ𝈶ᚲ≺«《⟪≪",
    "[": "⟦〚【〔❲⁅",
    "]": "⟧〛】〕❳⁆",
    "|": "∣❘ǀ│┃￨⏐▏▕ꟾ｜",
    "/": "∕⁄⧸╱⟋",
    "-": "‐‑‒–—―−⁃➖─━",
    "_": "ˍ＿",
    "a": "аαɑ⍺аⲁᴀꭺ",
    "b": "ЬƄвβʙ",
    "c": "сϲᴄⲥꮯↄ",
    "d": "ԁɗժᑯᏧꓒᴅ",
    "e": "еεҽєꬲ℮ᴇⲉꭼꓰ⋿",
    "f": "ϝƒẝքꞙғꓝ",
    "g": "ɡցᶃɢԍ",
    "h": "һհʜнⲏ",
    "i": "іιıɩɪӏꙇꭵⲓꓲ⍳ΙІӀ",
    "j": "јϳʝᴊꓙ",
    "k": "кκᴋⲕ",
    "l": "ʟӏǀⅼון",
    "m": "мᴍⲙꮇϻ",
    "n": "ոռпηɴⲛꓠν",
    "o": "оοօσᴏᴑ၀০०੦૦௦๐໐ⲟჿⵔꓳ",
    "p": "рρᴘⲣ",
    "r": "гᴦʀⲅꭇꮁ",
    "s": "ѕꜱƽꮪ",
    "t": "тτᴛⲧꭲꓔ⊤",
    "u": "υսʋᴜц",
    "v": "ѵνᴠⅴ",
    "w": "ԝաɯᴡѡ",
    "x": "хχᕁᕽ×ⲭꓫ᙭",
    "y": "уγүұყʏ",
    "z": "ᴢꮓ",
}
_ALIKE = {ord(alike): char for char, several in _LOOK_ALIKES.items() for alike in (*several, *several.lower())}


class _Folded(dict[int, str]):
    """For `str.translate`. Ideographs and syllables, of which there are too many to keep, stay as they are."""

    def __missing__(self, code: int) -> str:
        if code in _ALIKE:
            self[code] = _ALIKE[code]
        elif 0x3400 <= code < 0xF900 or code >= 0x20000:
            return chr(code)
        else:
            plain = "".join(char for char in normalize("NFKD", chr(code)).lower() if not combining(char))
            self[code] = "".join(_ALIKE.get(ord(char), char) for char in plain) or _PLACEHOLDER
        return self[code]


_FOLDED = _Folded()


def replaced_by_look(pattern: re.Pattern[str], text: str, replacement: Callable[[str], str]) -> str:
    """The text with characters replaced: the first of each match of the pattern in what the text looks like.

    The pattern is applied to lower case without accents.
    """
    look = text.lower() if text.isascii() else text.translate(_FOLDED)
    found = [match.start() for match in pattern.finditer(look)]
    if not found:
        return text
    if len(look) != len(text):
        ends = accumulate(len(_FOLDED[ord(char)]) for char in text)
        origin = [i for i, end in enumerate(ends) for _ in range(len(_FOLDED[ord(text[i])]))]
        found = list(dict.fromkeys(origin[at] for at in found))
    starts = [0, *(at + 1 for at in found)]
    parts = (text[start:at] + replacement(text[at]) for start, at in zip(starts, found, strict=False))
    return "".join(parts) + text[starts[-1] :]
