"""Dialogues in which ids, numbers, names and dates are given early, and then others things are talked about."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from random import Random
from typing import Any, NamedTuple

from langgraph_scrum_master.dialogue import DialogueTurn

SCRIPTS = Path(__file__).parent / "data" / "dialogues.json"

PER_TOPIC = 6
"""Dialogues per topic, of different lengths."""

FEWEST, MOST = 12, 72
"""Turns of the shortest and the longest dialogue."""

_SLOT = re.compile(r"\{(\w+)\}")
_MONTHS = ("January", "March", "April", "June", "September", "November")
_WORDS = ("login", "retry", "billing", "export", "search", "upload", "cache", "report")


class GivenFacts(NamedTuple):
    """A dialogue, and what was given in it early."""

    topic: str
    turns: tuple[DialogueTurn, ...]
    facts: tuple[str, ...]
    question: str


def dialogues(group: str) -> list[GivenFacts]:
    """The dialogues of a group of topics, the same each time. Nothing is tuned on the group `held_out`."""
    scripts = json.loads(SCRIPTS.read_text(encoding="utf-8"))
    return [
        _dialogue(script | {"topic": topic}, scripts, Random(f"{topic}-{seed}"), seed)
        for topic, script in scripts[group].items()
        for seed in range(PER_TOPIC)
    ]


def _dialogue(script: dict[str, Any], scripts: dict[str, Any], random: Random, seed: int) -> GivenFacts:
    # Half of the dialogues are full of other numbers, names and decisions.
    common = [*scripts["common"], *scripts["dense"]] if seed % 2 else scripts["dense"]
    length = FEWEST + (MOST - FEWEST) * seed // (PER_TOPIC - 1)
    given = [_filled(text, random) for text in script["facts"]]
    if seed % 3:
        given = [(_within(text, scripts["around"], random), facts) for text, facts in given]
    talk = [*script["talk"], *common]
    random.shuffle(talk)
    opening = [(given[0][0], talk.pop()[1])]
    for text, _ in given[1:]:
        # Between the facts, other things may be said.
        opening += [tuple(talk.pop())] * random.randint(0, 1) + [(text, talk.pop()[1])]
    pairs = [*opening, *map(tuple, talk)]
    while len(pairs) * 2 < length:
        pairs += [tuple(pair) for pair in random.sample(common, len(common))]
    said = [text for pair in pairs for text in pair][: max(length, len(opening) * 2 + 6)]
    turns = tuple(
        DialogueTurn(turn_id=f"t{i}", speaker=("user", "assistant")[i % 2], text=text) for i, text in enumerate(said)
    )
    facts = tuple(fact for _, facts in given for fact in facts)
    return GivenFacts(script["topic"], turns, facts, script["question"])


def _within(text: str, around: list[Any], random: Random) -> str:
    """The text in the middle of a longer turn."""
    before, after = random.choice(around)
    return f"{before} {text} {after}"


def _filled(text: str, random: Random) -> tuple[str, tuple[str, ...]]:
    facts: list[str] = []

    def fill(match: re.Match[str]) -> str:
        facts.append(random.choice(list(_forms(match[1], random))))
        return facts[-1]

    return _SLOT.sub(fill, text), tuple(facts)


def _forms(kind: str, random: Random) -> Iterator[str]:
    """Ways to write a fact of this kind."""

    def digits(count: int) -> str:
        return "".join(random.choices("0123456789", k=count))

    def letters(count: int) -> str:
        return "".join(random.choices("ABCDEFGHKLMNPRSTUVWXYZ", k=count))

    word, year = random.choice(_WORDS), random.randint(2023, 2027)
    month, day = random.randint(1, 12), random.randint(1, 28)
    match kind:
        case "order":
            yield from (f"{letters(1)}-{digits(5)}", digits(8), f"{digits(4)}-{digits(4)}", f"#{digits(6)}")
        case "ticket":
            yield from (f"{letters(3)}-{digits(4)}", f"#{digits(4)}", f"{letters(2)}{digits(5)}")
        case "sha":
            yield from (f"{random.getrandbits(28):07x}", f"{random.getrandbits(40):010x}")
        case "amount":
            yield from (f"€{random.randint(10, 99)}.{digits(2)}", f"{random.randint(11, 99)},{digits(3)} USD")
            yield from (f"$ {random.randint(100, 999)}", f"{random.randint(100, 999)} euros")
        case "ip":
            yield from (f"10.{random.randint(1, 250)}.{random.randint(1, 250)}.{random.randint(1, 250)}",)
        case "port":
            yield from (str(random.randint(1025, 9999)),)
        case "email":
            yield from (f"{word}.{letters(3).lower()}@example.org", f"{letters(4).lower()}{digits(2)}@mail.example")
        case "path":
            yield from (f"/srv/{word}/{letters(3).lower()}{digits(1)}.db", f"src/{word}/{random.choice(_WORDS)}.py")
        case "version":
            yield from (f"v{digits(1)}.{digits(1)}.{random.randint(1, 20)}", f"{year}.{month}", f"{digits(1)}.0-rc2")
        case "date":
            yield from (f"{year}-{month:02}-{day:02}", f"{day} {random.choice(_MONTHS)}", f"{day:02}.{month:02}.{year}")
        case "person":
            yield from (
                f"{random.choice(('Marta', 'Ingrid', 'Yuki', 'Priya'))} {random.choice(('Kowalczyk', 'Tanaka'))}",
            )
        case "phone":
            yield from (f"+49 30 {digits(6)}", f"0{digits(3)} {digits(5)}")
        case "room":
            yield from (f"{letters(1)}{digits(3)}", f"{letters(1)}-{digits(2)}", digits(3))
        case "code":
            yield from (f"{letters(6)}", f"{letters(2)}{digits(2)}{letters(2)}", f"E{digits(4)}")
        case "flight":
            yield from (f"{letters(2)}{digits(4)}", f"{letters(2)} {digits(3)}")
        case "plate":
            yield from (f"{letters(2)}{digits(6)}", f"{letters(1)}-{letters(2)} {digits(4)}")
        case "branch":
            yield from (f"feature/{word}-{digits(2)}", f"fix/{word}")
        case "host":
            yield from (f"{word}-{digits(2)}.example.net", f"node{digits(2)}")
        case "uuid":
            yield from (f"{random.getrandbits(32):08x}-{random.getrandbits(16):04x}", f"run-{digits(6)}")
        case "dose":
            yield from (f"{random.randint(2, 40)} mg", "2.5 mg")
        case "decimal":
            yield from (f"0.{digits(3)}1",)
        case "handle":
            yield from (f"{word}_{digits(3)}", f"{word.title()}{letters(1)}x{digits(2)}")
