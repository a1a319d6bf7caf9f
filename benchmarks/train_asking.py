"""Train the asking model and the reply model, and print what they do on turns of authors they have not seen.

    python benchmarks/train_asking.py            trains, writes both weights files, prints figures on test.txt
    python benchmarks/train_asking.py --check    trains, and fails if the files in the package differ by a byte
    python benchmarks/train_asking.py --figures  leaves out one file at a time: by style and by language (minutes)

The data is in `benchmarks/data/asking` (turns) and `benchmarks/data/replies` (questions with later turns), all of it
written for this project. `test.txt` is never trained on.
"""

from __future__ import annotations

import argparse
import json
import random
import sys
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from langgraph_scrum_master.team.observe.asking import model as asking_model
from langgraph_scrum_master.team.observe.asking.dataset import LabelledTurn, read_labelled_turns
from langgraph_scrum_master.team.observe.asking.features import UnitFeatures, features
from langgraph_scrum_master.team.observe.asking.model import score
from langgraph_scrum_master.team.observe.asking.replies import reply_features
from langgraph_scrum_master.team.observe.asking.train import Example, examples_of, train
from langgraph_scrum_master.team.observe.asking.units import split_units
from langgraph_scrum_master.team.observe.asking.weights import LinearWeights

DATA = Path(__file__).parent / "data"
PACKAGE = Path(asking_model.__file__).parent
TEST = "test.txt"

THRESHOLDS = {"calibration": [1.0, 0.0], "lower": 0.35, "upper": 0.7}
"""How a score becomes a probability, and from which probability a turn is doubtful, or asks.

Set for the rate of false alarms on real turns of 14 systems that cannot be shipped, none of which was trained on: 0.06.
"""

REPLY_PENALTY = 0.1

MISTYPED, CARELESS_WEIGHT = 0.3, 0.5
"""The share of words with a typing error in turns that are shown a second time, and what those count."""

RARE = {"exam": 0.3, "negotiation": 0.5, "quoted": 0.5, "answered": 0.5, "selfask": 0.6}
"""What the kinds of turns count that are more frequent in the data than among agents at work."""

ELSEWHERE = ("plain", "status", "deleg", "code", "confirm", "offer")
"""The kinds of turns that stand for talk about something else."""

ELSEWHERE_WEIGHT = 0.1


class Figures(NamedTuple):
    """How well turns that ask are separated from others."""

    precision: float
    recall: float
    f1: float
    false_positive_rate: float
    turns: int

    def __str__(self) -> str:
        return (
            f"F1 {self.f1:.2f}  precision {self.precision:.2f}  recall {self.recall:.2f}  "
            f"false-positive rate {self.false_positive_rate:.2f}  ({self.turns} turns)"
        )


def figures(found: Sequence[bool], labels: Sequence[bool]) -> Figures:
    hits = sum(f and y for f, y in zip(found, labels, strict=True))
    alarms = sum(f and not y for f, y in zip(found, labels, strict=True))
    asked = sum(labels)
    precision, recall = hits / max(1, hits + alarms), hits / max(1, asked)
    f1 = 2 * precision * recall / max(1e-9, precision + recall)
    return Figures(precision, recall, f1, alarms / max(1, len(labels) - asked), len(labels))


def turns() -> dict[str, list[LabelledTurn]]:
    return {path.name: read_labelled_turns(path) for path in sorted((DATA / "asking").glob("*.txt"))}


def careless(turn: LabelledTurn, chance: random.Random) -> LabelledTurn | None:
    """A short turn as typed in a hurry: no capitals, no last mark, letters dropped, doubled or swapped."""
    if len(turn.text) > 160 or not turn.text[:1].isalpha() or turn.spans not in ((), ((0, len(turn.text)),)):
        return None
    words = turn.text.lower().rstrip("?.!").replace("'", "").split(" ")
    text = " ".join(_mistyped(word, chance) if chance.random() < MISTYPED else word for word in words)
    return replace(turn, text=text, spans=((0, len(text)),) if turn.asks else ())


def _mistyped(word: str, chance: random.Random) -> str:
    if len(word) < 4 or not word.isalpha() or not word.islower():
        return word
    at = chance.randrange(1, len(word) - 1)
    return chance.choice(
        (
            word[:at] + word[at + 1 :],
            word[:at] + word[at] + word[at:],
            word[:at] + word[at + 1] + word[at] + word[at + 2 :],
        )
    )


def weighted(turn: LabelledTurn) -> list[Example]:
    return [each._replace(weight=each.weight * RARE.get(turn.kind, 1.0)) for each in examples_of(turn)]


def trained(given: Sequence[LabelledTurn]) -> LinearWeights:
    examples = [example for turn in given for example in weighted(turn)]
    # By the turn alone: what is added elsewhere changes no other turn.
    typed = [turn for each in given if (turn := careless(each, random.Random(each.text))) is not None]
    examples += [
        example._replace(weight=CARELESS_WEIGHT * example.weight) for turn in typed for example in weighted(turn)
    ]
    about = {**THRESHOLDS, "turns": len(given), "units": len(examples)}
    return train(examples, about)


def reply_rows() -> list[dict[str, Any]]:
    paths = sorted((DATA / "replies").glob("*.jsonl"))
    return [{**json.loads(line), "file": path.name} for path in paths for line in path.read_text("utf-8").splitlines()]


def reply_examples(rows: Sequence[dict[str, Any]]) -> list[Example]:
    return [Example(reply_features(r["question"], r["reply"], r["by"]), bool(r["settles"])) for r in rows]


def unrelated(rows: Sequence[dict[str, Any]], files: dict[str, list[LabelledTurn]]) -> list[dict[str, Any]]:
    """The questions with turns about something else, in the same language: talk that goes on settles nothing."""
    chance = random.Random(7)
    others: dict[str, list[str]] = {}
    for turn in (turn for each in files.values() for turn in each):
        if turn.kind in ELSEWHERE and len(turn.text) < 300:
            others.setdefault(turn.language, []).append(turn.text)
    return [
        {**row, "by": by, "reply": chance.choice(others[row["lang"]]), "settles": 0}
        for row in rows
        for by in (("other", "other", "self") if row["by"] != "tool" else ("tool",))
    ]


def trained_replies(rows: Sequence[dict[str, Any]], files: dict[str, list[LabelledTurn]]) -> LinearWeights:
    own, more = reply_examples(rows), reply_examples(unrelated(rows, files))
    examples = [*own, *(example._replace(weight=ELSEWHERE_WEIGHT) for example in more)]
    return train(examples, {"pairs": len(examples)}, penalty=REPLY_PENALTY)


def best_score(weights: LinearWeights, text: str) -> float:
    found = split_units(text)
    read: list[UnitFeatures] = features(text, found, range(len(found.items)))
    return max((score(weights, each) for each in read), default=-10.0)


def asks(weights: LinearWeights, given: Sequence[LabelledTurn]) -> list[bool]:
    upper = float(np.log(THRESHOLDS["upper"] / (1 - THRESHOLDS["upper"])))  # type: ignore[operator]
    return [best_score(weights, turn.text) >= upper for turn in given]


def by_group(name: Callable[[LabelledTurn], str], given: Sequence[LabelledTurn], found: Sequence[bool]) -> None:
    for group in sorted({name(turn) for turn in given}):
        chosen = [i for i, turn in enumerate(given) if name(turn) == group]
        print(f"  {group:16s} {figures([found[i] for i in chosen], [given[i].asks for i in chosen])}")


def left_out(files: dict[str, list[LabelledTurn]]) -> None:
    print("Asking, each file left out in turn:")
    given: list[LabelledTurn] = []
    found: list[bool] = []
    for name in files:
        weights = trained([turn for other in files if other != name for turn in files[other]])
        given += files[name]
        found += asks(weights, files[name])
        print(f"  {name:18s} {figures(found[-len(files[name]) :], [turn.asks for turn in files[name]])}", flush=True)
    print("by language")
    by_group(lambda turn: turn.language, given, found)
    rows = reply_rows()
    print("Replies, each file left out in turn:")
    for name in sorted({row["file"] for row in rows}):
        weights = trained_replies([row for row in rows if row["file"] != name], files)
        rest = [row for row in rows if row["file"] == name]
        right = [(score(weights, e.features) > 0) == e.label for e in reply_examples(rest)]
        print(f"  {name:18s} right {np.mean(right):.2f} ({len(rest)} pairs)")


def on_test(weights: LinearWeights, test: Sequence[LabelledTurn]) -> None:
    found = asks(weights, test)
    print(f"Asking, on {TEST}: {figures(found, [turn.asks for turn in test])}")
    by_group(lambda turn: turn.language, test, found)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true")
    parser.add_argument("--figures", action="store_true")
    options = parser.parse_args()
    files = turns()
    test = files.pop(TEST)
    if options.figures:
        left_out(files)
    asking = trained([turn for each in files.values() for turn in each])
    on_test(asking, test)
    written = {"asking.weights": asking.to_bytes(), "replies.weights": trained_replies(reply_rows(), files).to_bytes()}
    differs = (
        [name for name, content in written.items() if (PACKAGE / name).read_bytes() != content] if options.check else []
    )
    if differs:
        print(f"differs from the package: {', '.join(differs)}", file=sys.stderr)
    elif not options.check:
        for name, content in written.items():
            (PACKAGE / name).write_bytes(content)
            print(f"wrote {name}, {len(content) // 1024} KB")
    return 1 if differs else 0


if __name__ == "__main__":
    raise SystemExit(main())
