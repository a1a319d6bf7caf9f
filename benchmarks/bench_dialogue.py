"""How many ids, numbers, names and dates that were given early in a dialogue remain when its history is compressed.

Dialogues of 12 to 44 turns, in which each is said once. Nothing is tuned on the dialogues of the topics left out.
"""

from __future__ import annotations

from collections.abc import Callable

from dialogues import GivenFacts, dialogues
from langgraph_scrum_master import PromptAssembler
from langgraph_scrum_master._internal.threads import wait_for
from langgraph_scrum_master.dialogue.history import compress_history, format_history
from langgraph_scrum_master.dialogue.settings import HistoryConfig
from langgraph_scrum_master.text.extract import extract
from langgraph_scrum_master.text.tokens import estimate_tokens

SIZES = (300, 600)
BARS = {300: 0.58, 600: 0.88}
"""The share that should remain: 45 and 68 of 77."""


async def _extracted(text: str, max_tokens: int) -> str:
    return extract(text, max_tokens, estimate_tokens)


def in_history(dialogue: GivenFacts, max_tokens: int) -> str:
    """The history of the dialogue, compressed to so many tokens."""
    history = wait_for(format_history(dialogue.turns, max_tokens, _extracted, estimate_tokens, HistoryConfig()))
    return wait_for(compress_history(history, max_tokens, _extracted, estimate_tokens)).text


def in_prompt(dialogue: GivenFacts, max_tokens: int) -> str:
    """The whole prompt for the next question."""
    turns = [(turn.role, turn.text) for turn in dialogue.turns]
    return PromptAssembler().assemble(dialogue.question, turns, max_tokens).text


def remaining(group: str, max_tokens: int, rendered: Callable[[GivenFacts, int], str]) -> tuple[int, int]:
    """How many facts remain, and of how many."""
    given = dialogues(group)
    kept = sum(fact in rendered(dialogue, max_tokens) for dialogue in given for fact in dialogue.facts)
    return kept, sum(len(dialogue.facts) for dialogue in given)


def main() -> None:
    for group, name in (("held_out", "topics left out"), ("develop", "other topics")):
        for way, rendered in (("history", in_history), ("prompt", in_prompt)):
            for size in SIZES:
                kept, of = remaining(group, size, rendered)
                bar = f" (bar: {BARS[size]})" if way == "history" else ""
                print(f"{way} of {size} tokens, {name}: {kept / of:.2f} of {of} facts remain{bar}")


if __name__ == "__main__":
    main()
