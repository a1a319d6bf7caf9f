"""How the estimate of tokens compares with o200k, by kind of text.

    python benchmarks/calibrate_tokens.py FILE…

Kinds go by the ends of the files' names. For each: the exact number, the estimate, and their ratio; then what pieces
of a kind have on average, which is where the numbers in `text/tokens.py` come from. Needs rs-bpe, which the dev extra
brings.
"""

from __future__ import annotations

import sys
from collections import defaultdict
from pathlib import Path

from rs_bpe.bpe import openai  # type: ignore[import-not-found]

from langgraph_scrum_master.text import tokens

MOST = 200_000
"""Characters of a file that are read."""


def main() -> None:
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    exact = openai.o200k_base()
    by_kind: dict[str, list[int]] = defaultdict(lambda: [0, 0])
    by_piece: dict[str, list[int]] = defaultdict(lambda: [0, 0])
    for name in sys.argv[1:]:
        text = Path(name).read_text(encoding="utf-8", errors="replace")[:MOST]
        for kind in (Path(name).suffix or "other", "all"):
            by_kind[kind][0] += exact.count(text)
            by_kind[kind][1] += tokens.estimate_tokens(text)
        for piece in tokens._PIECES.findall(text):
            by_piece[_described(piece)][0] += exact.count(piece)
            by_piece[_described(piece)][1] += 1
    for kind, (right, estimated) in sorted(by_kind.items()):
        print(f"{kind:8} {right:9,} tokens, estimated {estimated:9,}: {estimated / max(1, right):.3f} x")
    print("\npieces of a kind: tokens of one, on average, and how many there are")
    for kind, (right, count) in sorted(by_piece.items()):
        print(f"{kind:24} {right / count:6.2f} {count:9,}")


def _described(piece: str) -> str:
    if piece.isdecimal():
        return "digits"
    if piece.isspace():
        return "blanks"
    if not piece[-1].isascii():
        return f"U+{ord(piece[-1]) >> 8:02X}xx, {min(20, len(piece)):2} long"
    if any(map(str.isalpha, piece)):
        return f"{'CAPITALS' if piece.isupper() else 'word'}, {min(20, len(piece)):2} long"
    return f"signs, {min(20, len(piece.strip())):2} long"


if __name__ == "__main__":
    main()
