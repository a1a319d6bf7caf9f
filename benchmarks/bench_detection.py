"""Quality of detection, on turns that the model was not trained on and on team scenarios. The turns were written by a
separate author and are harder than real logs: half of those that do not ask contain a question mark. Both sets were
scored while settings were chosen, and the scenarios set thresholds. Not covered: real logs, speech, and languages other
than these eleven.
"""

from __future__ import annotations

from langgraph_scrum_master.team.observe.asking.dataset import read_labelled_turns
from langgraph_scrum_master.team.observe.asking.model import shipped
from train_asking import DATA, TEST, figures
from train_circles import FILES, noticed


def main() -> None:
    model = shipped()
    turns = read_labelled_turns(DATA / "asking" / TEST)
    found = [model.read(turn.text).probability >= model.upper for turn in turns]
    print(f"asking, all languages: {figures(found, [turn.asks for turn in turns])}")
    for language in sorted({turn.language for turn in turns}):
        chosen = [i for i, turn in enumerate(turns) if turn.language == language]
        print(f"asking, {language}: {figures([found[i] for i in chosen], [turns[i].asks for i in chosen])}")
    for kind in sorted({turn.kind for turn in turns}):
        chosen = [i for i, turn in enumerate(turns) if turn.kind == kind]
        print(f"classified as asking, turns of kind {kind}: {sum(found[i] for i in chosen)} of {len(chosen)}")
    for name in ("teams", *FILES):
        print(f"scenarios, {name}: {noticed(name)}")


if __name__ == "__main__":
    main()
