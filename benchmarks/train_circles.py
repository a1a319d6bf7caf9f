"""Fit the model of talk in circles (`observe/talk.py`) and print how detection does on scenarios of teams at work.

    python benchmarks/train_circles.py           prints the weights, fitted on all and with each file left out
    python benchmarks/train_circles.py --figures prints what the product notices in each file

Scenarios: `benchmarks/data/scenarios`. A conversation that is not circular counts at each of its positions, a circular
one at its end; the threshold is where 1.5 % of the healthy positions would raise an alarm.
"""

from __future__ import annotations

import argparse
from typing import Any

import numpy as np

from langgraph_scrum_master import ScrumMaster
from langgraph_scrum_master.messages import read_turns
from langgraph_scrum_master.team.observe.acts import acts_of
from langgraph_scrum_master.team.observe.talk import Talk
from langgraph_scrum_master.team.tuning import DEFAULT_DETECTION
from scenarios import agent_name, messages, scenarios

NAMES = ("known", "own", "again", "new_name", "done", "failures")
FILES = ("mixed", "healthy", "circular")
ALARMS = 0.015
PENALTY = 1 / 3


def positions(scenario: dict[str, Any]) -> list[list[float]]:
    talk, found = Talk(), []
    for turn in read_turns(messages(scenario)):
        talk.add(turn, tuple(acts_of(turn)) if turn.kind == "agent" else ())
        if len(talk) >= DEFAULT_DETECTION.talk_fewest:
            features = talk.features()
            found.append([features[name] for name in NAMES])
    return found


def fitted(given: list[dict[str, Any]]) -> dict[str, float]:
    """Logistic regression by Newton's method; `bias` is less the threshold."""
    rows, labels = [], []
    for scenario in given:
        found = positions(scenario)
        circular = scenario["kind"] == "circular"
        chosen = found[-1:] if circular else found
        rows += chosen
        labels += [float(circular)] * len(chosen)
    x, y = np.hstack([np.array(rows), np.ones((len(rows), 1))]), np.array(labels)
    weights = np.zeros(x.shape[1])
    ridge = PENALTY * np.diag([1.0] * len(NAMES) + [0.0])
    for _ in range(50):
        p = 1 / (1 + np.exp(-x @ weights))
        slope = x.T @ (p - y) + ridge @ weights
        weights -= np.linalg.solve((x.T * (p * (1 - p))) @ x + ridge, slope)
    threshold = float(np.quantile((x @ weights)[y == 0], 1 - ALARMS))
    return {
        **dict(zip(NAMES, weights[:-1].round(2).tolist(), strict=True)),
        "bias": round(float(weights[-1]) - threshold, 2),
    }


def circular(weights: dict[str, float], scenario: dict[str, Any]) -> bool:
    scores = [sum(weights[n] * v for n, v in zip(NAMES, row, strict=True)) for row in positions(scenario)]
    return any(score + weights["bias"] > 0 for score in scores)


def noticed(name: str) -> str:
    """What the product makes of the scenarios of a file."""
    counts: dict[str, list[bool]] = {}
    for scenario in scenarios(name):
        gaps = ScrumMaster().detect({"messages": messages(scenario)})
        match scenario["kind"]:
            case "circular":
                right = any(gap.reason == "circular_logic" for gap in gaps)
            case "stuck":
                right = any(gap.agent == agent_name(scenario["asker"]) for gap in gaps)
            case _:
                right = bool(gaps)
        counts.setdefault(scenario["kind"], []).append(right)
    told = {
        "circular": "circles detected",
        "stuck": "stuck agents detected",
        "healthy": "false alarms in healthy teams",
    }
    return ", ".join(f"{told[kind]} {np.mean(found):.2f} of {len(found)}" for kind, found in sorted(counts.items()))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--figures", action="store_true")
    if not parser.parse_args().figures:
        files = {name: scenarios(name) for name in FILES}
        print("fitted on all:", fitted([each for given in files.values() for each in given]))
        for name, given in files.items():
            weights = fitted([each for other in files if other != name for each in files[other]])
            hits = [circular(weights, each) for each in given if each["kind"] == "circular"]
            alarms = [circular(weights, each) for each in given if each["kind"] != "circular"]
            found = f"{np.mean(hits):.2f} of {len(hits)}" if hits else "-"
            false = f"{np.mean(alarms):.2f} of {len(alarms)}" if alarms else "-"
            print(f"{name} left out: found {found}, alarms {false}, by talk alone")
    for name in (*FILES, "teams"):
        print(f"{name}: {noticed(name)}")


if __name__ == "__main__":
    main()
