"""What must not leave does not leave; the agent gets it all the same."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, strategies as st
from langgraph.graph import START, MessagesState, StateGraph

from builders import Given, a_context, a_state
from langgraph_scrum_master import ConfigError, InjectionResult, ScrumMaster, ScrumMasterState
from langgraph_scrum_master.team import JsonlRecorder
from langgraph_scrum_master.text.redact import REDACTED, redactor

KEY = "sk-" + "proj-" + "a1B2c3D4" * 4
ANSWER = f"The queue is reached with {KEY}; ask ann.lee@example.com for more of it."
STUCK = a_state(("dev", f"Which queue do refunds go to, with the token {KEY}?"))


class State(MessagesState, ScrumMasterState):
    """A team's."""


class Leaky:
    """A source that fails with what it should not say."""

    name = "wiki"

    async def find(self, query: Any, state: Any) -> list[Any]:
        raise OSError(f"no route to https://ann:{KEY}@wiki.example.com")


def a_master(**options: Any) -> ScrumMaster:
    source = Given(a_context(ANSWER, title="Mail of ann.lee@example.com", metadata={"by": ["ann.lee@example.com"]}))
    return ScrumMaster(sources=[source, Leaky()], **options)


@pytest.mark.parametrize(
    ("text", "left"),
    [
        (f"use {KEY} now", f"use {REDACTED} now"),
        ("AKIA" + "ABCDEFGHIJKLMNOP is the id", f"{REDACTED} is the id"),
        ("token ghp_" + "a" * 36, f"token {REDACTED}"),
        ("Authorization: Bearer abcdefgh12345678", f"Authorization: Bearer {REDACTED}"),
        ("postgresql://app:s3cret@db/x", f"postgresql://{REDACTED}@db/x"),
        ('{"api_key": "abc-123-xyz"}', '{"api_key": "' + REDACTED + '"}'),
        ("password=hunter22 and more", f"password={REDACTED} and more"),
        ("eyJhbGciOiJI.eyJzdWIiOiIx.c2lnbmF0dXJl is one", f"{REDACTED} is one"),
        ("-----BEGIN RSA PRIVATE KEY-----\nMIIE\n-----END RSA PRIVATE KEY-----", REDACTED),
        (
            "The token budget is 2000, the secret of it: be brief.",
            "The token budget is 2000, the secret of it: be brief.",
        ),
        ("Keep each key for 24 hours, see sk-eletons.", "Keep each key for 24 hours, see sk-eletons."),
    ],
)
def test_secrets_are_taken_out_and_the_rest_stays(text: str, left: str) -> None:
    redact = redactor("secrets")

    assert redact is not None
    assert redact(text) == left


def test_several_redactions_are_made_in_order() -> None:
    redact = redactor(["emails", lambda text: text.upper()])

    assert redact is not None
    assert redact("ann@example.com has it") == "[REDACTED] HAS IT"


@pytest.mark.parametrize("broken", [lambda text: 1 / 0, lambda text: None])
def test_a_text_that_cannot_be_redacted_does_not_leave(broken: Any) -> None:
    redact = redactor(broken)

    assert redact is not None
    assert redact("secret") == REDACTED


def test_a_redaction_that_there_is_not_is_refused() -> None:
    with pytest.raises(ConfigError, match=r"redact must be among \('all', 'secrets', 'emails'\).*got 'phones'"):
        ScrumMaster(redact="phones")  # type: ignore[arg-type]


@given(st.text())
def test_all_leaves_no_word_of_any_text(text: str) -> None:
    redact = redactor("all")

    assert redact is not None
    assert redact(text) == (REDACTED if text else "")


@pytest.mark.parametrize("redact", ["all", ("secrets", "emails")])
def test_logs_and_audit_log_do_not_get_it_and_the_agent_does(
    redact: Any, tmp_path: Path, logged: list[dict[str, Any]]
) -> None:
    log = tmp_path / "audit.jsonl"
    master = a_master(recorder=JsonlRecorder(log), redact=redact)

    update = master.node.invoke(STUCK)

    text = update["injected_context"]["text"]
    assert KEY in text
    assert "ann.lee@example.com" in text
    left = log.read_text(encoding="utf-8") + str(logged)
    assert "source.failed" in left
    assert KEY not in left
    assert "ann.lee@example.com" not in left


def test_the_redacted_line_of_the_audit_log_still_tells_what_happened(tmp_path: Path) -> None:
    log = tmp_path / "audit.jsonl"

    result = a_master(recorder=JsonlRecorder(log), redact="all").evaluate(STUCK)

    kept = InjectionResult.from_dict(json.loads(log.read_text(encoding="utf-8")))
    assert result is not None
    assert kept.gap.gap_id == result.gap.gap_id
    assert kept.gap.agent == "dev"
    assert kept.total_tokens == result.total_tokens
    assert [context.key for context in kept.contexts_retrieved] == [c.key for c in result.contexts_retrieved]
    assert (kept.text, kept.gap.context_query) == (REDACTED, REDACTED)


@pytest.mark.parametrize("redact", ["all", ("secrets", "emails")])
def test_snapshots_do_not_get_it(redact: Any, tmp_path: Path) -> None:
    a_master(snapshots=tmp_path, redact=redact).evaluate(STUCK)

    (kept,) = tmp_path.iterdir()
    left = kept.read_text(encoding="utf-8")
    assert KEY not in left
    assert "ann.lee@example.com" not in left
    assert '"agent": "dev"' in left


def test_what_a_watcher_of_the_graph_is_reported_is_redacted() -> None:
    builder = StateGraph(State)
    builder.add_node(a_master(redact="secrets").node)
    builder.add_edge(START, "scrum_master")

    events = list(builder.compile().stream(STUCK, stream_mode="custom"))  # type: ignore[call-overload]

    assert events[0]["query"].startswith("Which queue do refunds go to")
    assert KEY not in str(events)


def test_without_redaction_all_is_kept(tmp_path: Path) -> None:
    log = tmp_path / "audit.jsonl"

    a_master(recorder=JsonlRecorder(log)).evaluate(STUCK)

    assert KEY in log.read_text(encoding="utf-8")


def test_the_environment_can_say_what_is_redacted(tmp_path: Path) -> None:
    environ = {"SCRUM_MASTER_AUDIT_LOG": str(tmp_path / "a.jsonl"), "SCRUM_MASTER_REDACT": "secrets, emails"}
    state = {**STUCK, "decisions": [{"agent": "architect", "summary": f"Refunds go to the queue refunds-v2, {KEY}."}]}

    result = ScrumMaster.from_env(environ).evaluate(state)

    assert result is not None
    assert KEY in result.text
    assert KEY not in (tmp_path / "a.jsonl").read_text(encoding="utf-8")
