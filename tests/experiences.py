"""Experiences of three kinds, eight of each, and some of none."""

from __future__ import annotations

from dataclasses import replace

from langgraph_scrum_master.learning import Experience, Searcher

THEMES = {
    ("debugging", "read-the-error"): [
        "The price cache kept stale entries because a timer cleared it, not the event",
        "Invalidation of the cache ran on a timer, two seconds late",
        "The session cache was never invalidated after the update",
        "A stale entry stayed in the cache since its key lacked the tenant",
        "The cache returned old prices until its time to live had passed",
        "The product cache was filled before the write had been committed",
        "Cached totals were wrong: the cache key left out the currency",
        "Two caches held the same price and only one was cleared",
    ],
    ("testing", "systematic-elimination"): [
        "The test failed only after another test had left rows in the database",
        "Tests shared a global registry, so their order mattered",
        "A fixture of the whole module kept state between tests",
        "The environment variable set by one test leaked into the next test",
        "The tests passed alone and failed together: a singleton kept its state",
        "A temporary folder was shared by parallel tests",
        "The clock that a test had replaced was not restored after the test",
        "Tests wrote to the same file when run in parallel",
    ],
    ("configuration", "check-assumptions"): [
        "The report was off by one day because dates were local, not UTC",
        "Daylight saving made the job run twice in October",
        "Timestamps without a time zone were compared with UTC ones",
        "The server used local time for midnight while clients sent UTC",
        "A date without a time zone was read back in another time zone",
        "The billing day began at midnight of the wrong time zone",
        "Dates were parsed as local time on the laptop and as UTC on the server",
        "The weekly report skipped an hour when summer time began",
    ],
    ("documentation", "ask-user"): [
        "The logo was too large",
        "Documentation named the port 8080",
    ],
}


def some_experiences() -> list[Experience]:
    """Resolved, a minute apart, captured in all four ways."""
    said = [(domain, strategy, text) for (domain, strategy), texts in THEMES.items() for text in texts]
    return [
        Experience(
            id=f"experience-{i:02}",
            domain=domain,
            strategy=strategy,
            goal=f"Find out what is wrong: {text}",
            outcome_status="confirmed" if i % 3 else "falsified",
            outcome_result=text,
            surprise="It failed only when run together" if domain == "testing" else "",
            root_cause=text,
            root_cause_category="oversight",
            takeaway=text,
            confidence_tier=("gold", "silver", "bronze", "abandoned")[i % 4],
            created_at=f"2026-01-01T00:{i:02}:00+00:00",
        )
        for i, (domain, strategy, text) in enumerate(said)
    ]


async def learned(searcher: Searcher) -> list[Experience]:
    """Keep them, and one that is still open."""
    every = some_experiences()
    opened = replace(every[0], id="open", outcome_status="", surprise="")
    await searcher.keep_experience(*every, opened)
    return every
