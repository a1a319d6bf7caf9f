"""Knowledge banks as people keep them, with what goes wrong in them."""

from __future__ import annotations

import os
from hashlib import sha256
from pathlib import Path

import pytest
from hypothesis import given, strategies as st

from langgraph_scrum_master.briefing import Lesson
from langgraph_scrum_master.briefing.bank import content_hash, deduplicate, parse_entries, read_bank

BANK = """# Patterns

What worked. Updated now and then.

---

## Development

### Pattern: Read real samples before parsing
Look at three real files before writing a parser for them.
- Observation count: 2
- Confidence: medium
- Last observed: 2026-01-12
- Used in: Feature #18

<!-- Example format:
### Pattern: Not an entry
Nothing.
-->

### Coverage matrix for several components
When several components change alike, draw a matrix early.
It takes two minutes.

```md
### No heading either
```
- **Confidence:** High (seen in review)
- Last observed: Feature #33
- Cases:
  - commands
  - skills

---

## Later
"""


def parsed(text: str) -> tuple[list[Lesson], list[str]]:
    warnings: list[str] = []
    return parse_entries(text, "patterns", "local", "patterns.md", warnings.append), warnings


def test_an_entry_has_its_name_its_description_and_its_figures() -> None:
    (first, second), warnings = parsed(BANK)

    assert warnings == []
    assert first == Lesson(
        name="Read real samples before parsing",
        description="Look at three real files before writing a parser for them.",
        category="patterns",
        observation_count=2,
        confidence="medium",
        last_observed="2026-01-12",
        details=("Used in: Feature #18",),
    )
    assert (second.name, second.position) == ("Coverage matrix for several components", 1)
    assert second.description.startswith("When several components change alike, draw a matrix early.\nIt takes two")
    assert (second.observation_count, second.confidence, second.last_observed) == (1, "high", "")
    assert second.details == ("Cases:", "commands", "skills")


def test_an_entry_of_points_alone_is_described_by_them() -> None:
    (entry,), _ = parsed("### Heuristic: Batch\n- Batch at most 500 rows.\n- Observation count: 4\n")

    assert (entry.name, entry.description, entry.details) == ("Batch", "Batch at most 500 rows.", ())
    assert entry.observation_count == 4


@pytest.mark.parametrize(
    ("title", "name"),
    [
        ("ANTI-PATTERN: Big bang", "Big bang"),
        ("The strategy pattern: when", "The strategy pattern: when"),
        ("C#", "C#"),
    ],
)
def test_only_a_leading_kind_is_no_part_of_the_name(title: str, name: str) -> None:
    assert [entry.name for entry in parsed(f"### {title}\nX.")[0]] == [name]


def test_a_fence_that_is_not_closed_hides_no_entries() -> None:
    assert [entry.name for entry in parsed("### One\nA.\n```\ncode\n\n### Two\nB.\n")[0]] == ["One", "Two"]


@pytest.mark.parametrize(
    ("entry", "message"),
    [
        ("### Pattern:\nSomething.", "has no name"),
        ("###\nSomething.", "has no name"),
        ("### Empty\n\n- Confidence: high", "has no description"),
        ("### Much\nX.\n- Observation count: many", "must have a whole number as its observation count, got 'many'"),
        ("### Sure\nX.\n- Confidence: total", "must have a confidence of high, medium or low, got 'total'"),
    ],
)
def test_a_malformed_entry_is_skipped_and_reported_with_its_file_and_line(entry: str, message: str) -> None:
    entries, warnings = parsed(f"# Patterns\n<!-- one\ntwo -->\n{entry}\n\n### Sound\nGood.\n")

    assert [each.name for each in entries] == ["Sound"]
    (warning,) = warnings
    assert warning.startswith("patterns.md:4: skipped, ")
    assert message in warning


def test_the_hash_is_of_the_normalised_description() -> None:
    normal = sha256(b"read it twice.").hexdigest()[:16]

    assert content_hash("Read it twice.") == content_hash("  read\n IT\ttwice. ") == normal
    assert Lesson(name="x", description="Read it  TWICE.", category="patterns").content_hash == normal


def test_of_two_that_say_the_same_the_better_observed_is_kept() -> None:
    local = Lesson(name="Own", description="Read it.", category="patterns", observation_count=2)
    shared = Lesson(name="Shared", description="read  IT.", category="heuristics", source="global", observation_count=3)
    equal = Lesson(name="Other", description="READ it.", category="patterns", observation_count=3)

    assert deduplicate([local, shared, equal]) == [shared]
    assert deduplicate([equal, local, shared]) == [equal]


entries = st.builds(
    Lesson,
    name=st.just("n"),
    description=st.sampled_from(["One.", "one. ", "Two.", "TWO.", "Three."]),
    category=st.just("patterns"),
    observation_count=st.integers(0, 5),
)


@given(st.lists(entries))
def test_what_was_deduplicated_has_no_duplicates(some: list[Lesson]) -> None:
    once = deduplicate(some)

    assert deduplicate(once) == once
    assert {each.content_hash for each in once} == {each.content_hash for each in some}
    for each in some:
        (kept,) = [one for one in once if one.content_hash == each.content_hash]
        assert kept.observation_count >= each.observation_count


@given(st.text(alphabet=st.sampled_from("#-*: \n`~<!->abc1\t"), max_size=200))
def test_no_text_breaks_the_parser(text: str) -> None:
    found, warnings = parsed(text)

    assert all(each.name and each.description for each in found)
    assert all(warning.startswith("patterns.md:") for warning in warnings)


@pytest.mark.parametrize("hostile", ["<!--" * 200_000, "### a" + " " * 900_000 + "b\nX.", "- " * 400_000])
def test_a_hostile_file_takes_no_time(hostile: str) -> None:
    assert len(parsed(f"### Sound\nGood.\n{hostile}")[0]) <= 2


def test_a_file_that_cannot_be_read_is_reported_and_the_others_are_read(tmp_path: Path) -> None:
    (tmp_path / "patterns.md").write_text("\ufeff### Sound\r\nGood.\r\n", encoding="utf-8")
    odd = tmp_path / "anti-patterns.md"
    reasons = []
    for content in (b"### A\n\0", "### Größe\nX".encode("latin-1"), b"x" * 1_000_001, None):
        if content is None:
            odd.unlink()
            os.mkfifo(odd)
        else:
            odd.write_bytes(content)
        warnings: list[str] = []
        found = read_bank(tmp_path, "global", warnings.append)
        assert [(each.name, each.source, each.category) for each in found] == [("Sound", "global", "patterns")]
        (warning,) = warnings
        reasons.append(warning.removeprefix(f"{odd} "))

    assert reasons == ["is binary", "is not UTF-8", "is larger than 1,000,000 bytes", "is not a file"]


def test_a_folder_that_is_not_there_holds_nothing(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    warnings: list[str] = []

    assert read_bank(tmp_path / "nowhere", "local", warnings.append) == []
    assert read_bank(tmp_path / "file", "local", warnings.append) == []
    assert warnings == []
