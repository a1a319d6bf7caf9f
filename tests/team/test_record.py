from __future__ import annotations

import json
import threading
from pathlib import Path
from typing import Any

from builders import Given, a_context, a_result, a_state
from langgraph_scrum_master import InjectionResult, ScrumMaster
from langgraph_scrum_master.team import JsonlRecorder

STUCK = a_state(("dev", "Which store do we use?"))


def test_each_result_is_a_line_that_reads_back_equal(tmp_path: Path) -> None:
    log = tmp_path / "logs" / "audit.jsonl"
    master = ScrumMaster(sources=[Given(a_context())], recorder=JsonlRecorder(log))

    results = [master.evaluate(STUCK), master.evaluate(STUCK)]

    lines = [json.loads(line) for line in log.read_text(encoding="utf-8").splitlines()]
    assert [InjectionResult.from_dict(line) for line in lines] == results
    assert {line["schema"] for line in lines} == {1}


def test_lines_of_several_threads_do_not_mix(tmp_path: Path) -> None:
    record = JsonlRecorder(tmp_path / "audit.jsonl")

    def write() -> None:
        for _ in range(50):
            record(a_result())

    threads = [threading.Thread(target=write) for _ in range(4)]

    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert all(json.loads(line) for line in (tmp_path / "audit.jsonl").read_text().splitlines())
    assert len((tmp_path / "audit.jsonl").read_text().splitlines()) == 200


def test_a_recorder_that_fails_costs_the_agent_nothing(logged: list[dict[str, Any]]) -> None:
    def full_disk(result: InjectionResult) -> None:
        raise OSError(28, "No space left on device")

    result = ScrumMaster(sources=[Given(a_context())], recorder=full_disk).evaluate(STUCK)

    assert result is not None
    assert result.injected
    assert [entry["event"] for entry in logged] == ["context.injected", "recorder.failed"]


def test_the_same_state_and_clock_give_the_same_bytes(tmp_path: Path) -> None:
    for name in ("a", "b"):
        master = ScrumMaster(sources=[Given(a_context())], recorder=JsonlRecorder(tmp_path / name), clock=lambda: 0.0)
        master.evaluate(STUCK)

    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()
