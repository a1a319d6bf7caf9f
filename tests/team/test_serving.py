"""The scenarios over this project's own documents, and what they are measured by."""

from __future__ import annotations

from serving import Served, figures, holds, own_project, served


async def test_every_answer_is_in_a_record_and_in_no_conversation() -> None:
    project = await own_project()
    texts = [text for _, text, _ in project.records]

    for row in project.scenarios:
        said = "\n".join(message["content"] for message in row["messages"])
        if row["kind"] == "answerable":
            assert any(holds(text, row["answer_keys"]) for text in texts), f"{row['id']}: no record answers it any more"
            assert not holds(said, row["answer_keys"]), f"{row['id']}: its conversation answers it"
        if row["kind"] in ("answerable", "unanswerable"):
            assert row["asker"] in {message["agent"] for message in row["messages"]}, row["id"]
    kinds = [row["kind"] for row in project.scenarios]
    assert len(kinds) >= 60
    assert {"answerable", "unanswerable", "healthy", "circular"} == set(kinds)


async def test_one_scenario_goes_through_the_whole_chain() -> None:
    project = await own_project()
    memory = await project.memory()
    rows = [row for row in project.scenarios if row["kind"] == "answerable"]

    found = [await served(row, memory, recorded=True) for row in rows[:12]]

    assert sum(each.right > 0 for each in found) >= 4, "with the need written out, a third at least is served"


def test_figures_are_shares_of_their_own_cases() -> None:
    def one(kind: str, given: int = 0, right: int = 0, noticed: bool = True) -> Served:
        return Served(kind, noticed, noticed, False, given, right, 100 * given)

    found = figures(
        [
            one("answerable", 2, 1),
            one("answerable", noticed=False),
            one("unanswerable", 1),
            one("healthy", noticed=False),
        ]
    )

    assert (found.noticed, found.served, found.precision, found.items) == (2 / 3, 0.5, 0.5, 2.0)
    assert (found.noise, found.alarmed, found.intruded) == (1.0, 0.0, 0.0)
