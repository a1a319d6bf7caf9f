"""A recorded day with a coding agent: prompts, a failed tool, the end of the session, and the next session."""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from agent_hooks import Answer, hook, run
from langgraph_scrum_master import ChromaMemory, Memory
from langgraph_scrum_master.learning import Experience, Searcher

KEYS = "Idempotency keys are kept in Redis for 24 hours."
SECRET = "sk-live-4f9a8b7c6d5e4f3a2b1c0d9e8f7a6b5c"


def filled(root: Path, *texts: str) -> Path:
    asyncio.run(ChromaMemory(root / ".scrum-master" / "memory").store_many([Memory(content=text) for text in texts]))
    return root


@pytest.fixture
def project(tmp_path: Path) -> Path:
    return filled(tmp_path / "shop", KEYS, "Refunds above 500 euros need a second approval by the finance team.")


def event(project: Path, name: str, session: str, **fields: Any) -> dict[str, Any]:
    return {"session_id": session, "cwd": str(project), "hook_event_name": name, "permission_mode": "default", **fields}


def prompt(project: Path, session: str, text: str, *options: str, **environment: str) -> Answer:
    given = event(project, "UserPromptSubmit", session, prompt=text)
    return hook("user-prompt-submit", given, *options, **environment)


def stop(project: Path, session: str, *options: str, name: str = "stop", **fields: Any) -> Answer:
    answer = hook(name, event(project, "Stop", session, **fields), *options)
    assert answer.silent, answer
    return answer


def transcript(file: Path, *said: tuple[str, str], at: datetime | None = None, more: Iterable[Any] = ()) -> str:
    """A transcript as Claude Code writes it, with the entries that are no turns."""
    at = at or datetime.now(UTC)
    entries: list[Any] = [{"type": "summary", "summary": "A title"}, *more]
    for i, (role, text) in enumerate(said):
        content: Any = text if role == "user" else [{"type": "text", "text": text}]
        message = {"role": role, "content": content}
        entries.append({"type": role, "timestamp": (at + timedelta(seconds=i)).isoformat(), "message": message})
    file.write_text("".join(f"{json.dumps(entry)}\n" for entry in entries) + '{"type": "user", "mess')
    return str(file)


def kept(project: Path, kind: str = "memory") -> list[str]:
    done = run("memory", "list", "--shelf", "sessions", "--limit", "999", "--kind", kind, "--json", cwd=project)
    return [row["content"] for row in json.loads(done.out)["records"]] if done.code == 0 else []


def test_a_day_with_a_coding_agent(project: Path) -> None:
    """The prompts are noted, the failure is warned of, and the next session gets what this one came to."""
    flaky = Experience(
        domain="testing",
        strategy="read-the-error",
        goal="Make the payment tests pass",
        outcome_status="falsified",
        surprise="The fixture is made once a week",
    )
    asyncio.run(Searcher(ChromaMemory(project / ".scrum-master" / "memory")).keep_experience(flaky))
    said = [
        ("user", "Where are the idempotency keys kept, and for how long?"),
        ("assistant", "Let me look."),
        ("assistant", "In Redis, for 24 hours."),
        ("user", f"use the api key {SECRET} and extend the expiry of idempotency keys to 48 hours"),
        ("assistant", "The expiry of the idempotency keys is now 48 hours; the tests pass."),
    ]
    noise = [
        {"type": "user", "isMeta": True, "message": {"content": "A note of the host."}},
        {"type": "user", "message": {"content": "<command-name>/compact</command-name>"}},
        {"type": "user", "message": {"content": [{"type": "tool_result", "content": "15 passed"}]}},
        {"type": "assistant", "isSidechain": True, "message": {"content": [{"type": "text", "text": "A subagent."}]}},
        "no entry",
    ]
    path = transcript(project / "s1.jsonl", *said, at=datetime.now(UTC) - timedelta(days=1), more=noise)

    first = prompt(project, "s1", said[0][1])
    unrelated = prompt(project, "s1", "fix the typo in README")
    failed = hook(
        "post-tool-failure",
        event(project, "PostToolUseFailure", "s1", tool_name="Bash", tool_input={"command": "npm test"}, error="1"),
    )
    stop(project, "s1", transcript_path=path)
    stop(project, "s1", name="session-end", transcript_path=path, reason="other")
    related = prompt(project, "s2", "shorten the expiry of the idempotency keys again")
    elsewhere = prompt(project, "s3", "who is on call this weekend")
    goes_on = prompt(project, "s4", "continue where we left off")

    assert KEYS in first.context
    assert unrelated.silent
    assert "The fixture is made once a week" in failed.context
    turns = "\n".join(kept(project))
    assert "fix the typo in README" in turns
    assert "In Redis, for 24 hours." in turns
    assert not any(each in turns for each in ("Let me look", "A note of", "/compact", "15 passed", "A subagent"))
    assert SECRET not in turns + "".join(kept(project, "session"))
    assert "[redacted]" in turns
    assert "### Session Context" in related.context
    assert "The last answer: The expiry of the idempotency keys is now 48 hours; the tests pass." in related.context
    assert "- Continues from yesterday's session on" in related.context
    assert elsewhere.silent
    assert "### Session Context" in goes_on.context
    # One summary per session, however often it ends.
    assert len(kept(project, "session")) == 1


def test_what_the_user_typically_does_at_this_time_of_day_is_told_with_topic_and_age(project: Path) -> None:
    for days in (2, 3, 5):
        path = transcript(
            project / f"{days}.jsonl",
            ("user", f"look at the idempotency keys of service {days}"),
            at=datetime.now(UTC) - timedelta(days=days),
        )
        stop(project, f"s{days}", transcript_path=path)

    hour = datetime.now().astimezone().hour
    part = "night" if hour < 5 or hour >= 22 else "morning" if hour < 12 else "afternoon" if hour < 17 else "evening"
    context = prompt(project, "now", "where are the idempotency keys kept?").context

    assert "- You typically work on" in context
    (hint,) = [line for line in context.split("\n") if "You typically" in line]
    assert "idempotency keys" in hint
    assert f"{part} (last: 2 days ago)" in hint


def test_alerts_are_off_unless_a_setting_turns_them_on_and_compare_with_the_own_session_only(project: Path) -> None:
    other = "Draw the moon over the harbour in watercolour with a broad brush"
    for text in ("Extend the expiry of the idempotency keys", "Where does Redis keep the idempotency keys?"):
        prompt(project, "s1", text)
        prompt(project, "s1", f"{text} in the payment service")

    assert prompt(project, "s1", other).silent
    assert prompt(project, "s9", f"{other}!", SCRUM_MASTER_HOOK_ALERTS="true").silent
    alert = prompt(
        project, "s1", "Bake a plum cake with cinnamon and a crisp crust", SCRUM_MASTER_HOOK_ALERTS="true"
    ).context

    assert "⚠️ DIVERGENCE DETECTED" in alert
    assert alert.count("This may indicate a context switch to a new topic.") == 1


def test_only_the_latest_sessions_and_turns_are_kept(project: Path) -> None:
    for i in range(4):
        prompt(project, f"s{i}", f"Question number {i} about the keys", "--sessions", "2")
        stop(project, f"s{i}", "--sessions", "2", last_assistant_message=f"Answer number {i}.")
    long = [("user", f"Step {i} of the long session") for i in range(60)]
    stop(project, "long", "--sessions", "2", transcript_path=transcript(project / "long.jsonl", *long))

    turns = kept(project)

    assert len(kept(project, "session")) == 2
    assert len([turn for turn in turns if turn.startswith("Step")]) == 40
    assert "Step 59 of the long session" in turns
    assert {turn for turn in turns if not turn.startswith("Step")} == {
        "Question number 3 about the keys",
        "Answer number 3.",
    }


def test_no_sessions_are_kept_if_none_should_be(project: Path) -> None:
    prompt(project, "s1", "Where are the idempotency keys kept?", "--sessions", "0")
    stop(project, "s1", "--sessions", "0", last_assistant_message="In Redis.")

    assert kept(project) == []


def test_what_else_is_to_be_redacted_is_not_kept(project: Path) -> None:
    prompt(project, "s1", "write to ada@example.org about the keys", SCRUM_MASTER_REDACT="emails")
    prompt(project, "s2", "anything", SCRUM_MASTER_REDACT="all")

    assert kept(project) == ["write to [redacted] about the keys"]


@pytest.mark.parametrize("name", ["stop", "pre-compact", "session-end"])
def test_an_unreadable_transcript_is_reported_and_what_is_known_is_kept(project: Path, name: str) -> None:
    pipe = project / "pipe.jsonl"
    os.mkfifo(pipe)
    prompt(project, "s1", "Where are the idempotency keys kept?")

    answer = stop(project, "s1", name=name, transcript_path=str(pipe), last_assistant_message="In Redis.")

    assert "not a regular file" in answer.log
    assert "In Redis." in kept(project)
    assert len(kept(project, "session")) == 1


def test_a_large_transcript_is_read_from_its_end(project: Path) -> None:
    huge = [{"type": "user", "message": {"content": f"Old {i} " + "x" * 10_000}} for i in range(400)]
    path = transcript(project / "huge.jsonl", ("user", "The last prompt of the day"), more=huge)

    stop(project, "s1", transcript_path=path)

    assert "The last prompt of the day" in kept(project)
    assert len(kept(project)) == 40


@pytest.mark.parametrize("name", ["stop", "pre-compact", "session-end", "user-prompt-submit"])
def test_a_project_without_a_memory_is_left_alone(tmp_path: Path, name: str) -> None:
    answer = hook(name, event(tmp_path, "Stop", "s1", prompt="Hello there", last_assistant_message="Hello."))

    assert answer.silent
    assert "does not exist" in answer.log
    assert list(tmp_path.iterdir()) == []


def test_the_memory_of_a_folder_above_is_found(project: Path) -> None:
    below = project / "src" / "payments"
    below.mkdir(parents=True)

    assert KEYS in prompt(below, "s1", "Where are the idempotency keys kept?").context


def test_past_failures_are_shown_where_only_experiences_were_recorded(tmp_path: Path) -> None:
    start = ("--domain", "testing", "--strategy", "read-the-error", "--goal", "Pass")
    identity = run("experience", "start", *start, cwd=tmp_path).out.strip()
    outcome = ("--outcome", "falsified", "--surprise", "It was the clock")
    run("experience", "resolve", identity, *outcome, cwd=tmp_path)
    failure = {"tool_name": "Bash", "tool_input": {"command": "pytest"}, "error": "Exit code 1"}

    answer = hook("post-tool-failure", event(tmp_path, "PostToolUseFailure", "s1", **failure))

    assert "It was the clock" in answer.context


def test_a_session_can_be_forgotten(project: Path) -> None:
    prompt(project, "s1", "Where are the idempotency keys kept?")
    stop(project, "s1", last_assistant_message="In Redis.")

    done = run("memory", "forget", "--session", "s1", "--json", cwd=project)

    assert json.loads(done.out)["forgotten"] == 3
    assert kept(project) + kept(project, "session") == []
