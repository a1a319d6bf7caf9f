"""The inspector in a real browser: `make browser`."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, Locator, Page, expect

from bench_inspector import AGENTS, TURNS, write_messages, write_page
from chromium import browser, installed
from inspected import (
    ASKED,
    KNOWN,
    OTHER,
    TEAM_RUNS,
    messages,
    write_database,
    write_run,
    write_threads,
    written_page,
)
from langgraph_scrum_master.testing import a_memory

pytestmark = [
    pytest.mark.browser,
    pytest.mark.skipif(installed() is None, reason="there is no Chromium: apt-get install chromium"),
]

COMMAND = str(Path(sys.executable).with_name("scrum-master"))


@pytest.fixture(scope="module")
def chromium() -> Iterator[Browser]:
    with browser() as started:
        yield started


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run without a scrum master."""
    return written_page(tmp_path_factory.mktemp("inspector"))


@pytest.fixture(scope="module")
def team(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two threads of a graph with a scrum master, replayed without the memory that it had."""
    return written_page(tmp_path_factory.mktemp("team"), write_database)


@pytest.fixture(scope="module")
def long(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("long")
    write_page(write_messages(folder), folder / "inspector.html")
    return folder / "inspector.html"


class Opened:
    """A page, with all that it asked for and complained about."""

    def __init__(self, page: Page, address: str) -> None:
        self.page = page
        self.requests: list[str] = []
        self.errors: list[str] = []
        page.on("request", lambda request: self.requests.append(request.url))
        page.on("pageerror", lambda error: self.errors.append(str(error)))
        page.on("console", lambda message: self.errors.append(message.text) if message.type == "error" else None)
        page.goto(address)


@contextmanager
def opening(chromium: Browser, file: Path | str, width: int = 1400, **options: Any) -> Iterator[Page]:
    context = chromium.new_context(viewport={"width": width, "height": 900}, **options)
    opened = Opened(context.new_page(), file.as_uri() if isinstance(file, Path) else file)
    yield opened.page
    assert opened.errors == []
    context.close()


@pytest.fixture
def page(chromium: Browser, file: Path) -> Iterator[Page]:
    with opening(chromium, file, color_scheme="light") as opened:
        yield opened


@pytest.fixture
def recorded(chromium: Browser, team: Path) -> Iterator[Page]:
    """The page of the team's runs, at the question for the queue of refunds."""
    with opening(chromium, team, color_scheme="light") as opened:
        select(opened, "Thread", "refunds")
        choose(opened, "which queue do refunds go to?")
        yield opened


def turns(page: Page) -> list[str]:
    """The turns that are in the document."""
    return page.locator("#rows .turn .words").all_inner_texts()


def current(page: Page) -> str:
    return page.locator("#rows [aria-selected=true] .words").inner_text()


def select(page: Page, name: str, words: str) -> None:
    options = page.get_by_role("combobox", name=name).locator("option")
    index = next(i for i, text in enumerate(options.all_inner_texts()) if words in text)
    page.get_by_role("combobox", name=name).select_option(index=index)


def choose(page: Page, words: str) -> None:
    page.locator("#rows .turn", has_text=words).first.click()


def wait_until(page: Page, true: str) -> None:
    """Ask again and again from here: the page's policy lets no script of its own be made from text."""
    for _ in range(200):
        if page.evaluate(true):
            return
        page.wait_for_timeout(50)
    raise AssertionError(f"not within 10 s: {true}")


def lane_of(page: Page, agent: str) -> float:
    row = page.locator("#rows .turn", has_text=agent).first.get_attribute("data-row") or "0"
    box = page.locator("#rows circle").nth(int(row)).bounding_box()
    assert box is not None
    return box["x"]


def test_it_shows_every_turn_with_its_agents_lane_and_starts_at_the_first_gap(page: Page) -> None:
    assert turns(page) == [each["content"] for each in messages()]
    assert page.locator("#lanes text").evaluate_all("all => all.map(each => each.firstChild.data)") == [
        *("user", "analyst", "dev", "tester")
    ]
    assert page.get_by_role("combobox", name="Thread").count() == 0
    lanes = [lane_of(page, name) for name in ("user", "analyst", "dev", "tester")]
    assert lanes == sorted(set(lanes))
    assert current(page) == "Which queue do refunds go to?"


def test_what_was_recorded_comes_before_what_a_replay_would_do(recorded: Page) -> None:
    then, now = recorded.locator("#recorded"), recorded.locator("#hypothetical")

    expect(then).to_contain_text("What happened")
    expect(then.locator(".tag.injected")).to_have_text("injected")
    expect(now.locator(".tag").first).to_have_text("hypothetical")
    expect(now).to_contain_text("differs: it would have abstained")
    assert then.bounding_box()["y"] < now.bounding_box()["y"]  # type: ignore[index]
    expect(recorded.locator("#rows [aria-selected=true] .tag").first).to_have_text("injected")


def test_the_injected_text_comes_first_with_the_agents_next_turn_beside_it(recorded: Page) -> None:
    given, after = recorded.locator("#given"), recorded.locator("#recorded .pair > div").nth(1)

    expect(given).to_contain_text("refunds-v2, decided by the architect in ADR-10")
    expect(after).to_contain_text("The worker reads refunds-v2 now")
    expect(after.locator(".tag")).to_have_text("used it")
    left, right = given.bounding_box(), after.bounding_box()
    assert left is not None
    assert right is not None
    assert left["x"] + left["width"] <= right["x"]
    assert abs(left["y"] - right["y"]) < 60


def test_the_asking_words_are_highlighted_in_the_turn(recorded: Page) -> None:
    mark = recorded.locator("#shown mark.need").first

    expect(mark).to_contain_text("which queue do refunds go to?")
    assert "skeleton" not in mark.inner_text()


def test_a_step_without_a_record_says_so_and_the_replay_is_marked_as_hypothetical(page: Page) -> None:
    expect(page.locator("#recorded .tag")).to_have_text("no record")
    expect(page.locator("#hypothetical .tag").first).to_have_text("hypothetical")
    expect(page.locator("#hypothetical #given")).to_contain_text("Refunds go to the queue refunds-v2.")
    expect(page.locator("#hypothetical")).to_contain_text("clarification requested, confidence 0.90")
    expect(page.locator("#rows [aria-selected=true] .tag")).to_have_text("would have injected")
    expect(page.locator("#summary")).to_contain_text("these figures are hypothetical")
    expect(page.get_by_role("meter", name="tokens")).to_have_attribute("aria-valuemax", "2000")


def test_the_summary_counts_gaps_outcomes_and_tokens_of_the_thread(recorded: Page) -> None:
    figures = recorded.locator("#figures")

    expect(figures.locator(".numbers")).to_contain_text(re.compile(r"17\s*turns.*4\s*injected", re.S))
    expect(figures.locator(".key")).to_contain_text("2 helped")
    expect(figures.locator(".key")).to_contain_text("1 asked again")
    expect(figures.locator("table")).to_contain_text("clarification requested")
    select(recorded, "Thread", "invoices")
    expect(figures.locator(".key")).to_have_text("1 ignored")


def test_candidates_are_bars_against_the_bar_line_with_plain_labels(chromium: Browser, tmp_path: Path) -> None:
    with opening(chromium, written_page(tmp_path, write_database, a_memory(*KNOWN))) as page:
        choose(page, "which queue do refunds go to?")
        found = page.locator("#recorded .candidates li")
        kept, line = found.first.locator(".candidate .track"), found.first.locator(".candidate u")
        found.first.locator("summary").click()
        words = found.first.locator(".alike").inner_text()

        assert found.count() >= 2
        expect(found.first).to_contain_text("kept")
        expect(found.nth(1)).to_contain_text(re.compile("not relevant enough|far below"))
        expect(line).to_have_attribute("data-label", "bar 0.70")
        track, bar = kept.bounding_box(), line.bounding_box()
        assert track is not None
        assert bar is not None
        assert abs((bar["x"] - track["x"]) / track["width"] - 0.7) < 0.03
        assert not re.search(r"\bE\d+", words)
        assert "meaning" in words
        expect(found.first.locator(".alike span").first).to_have_attribute("title", re.compile(r"^E\d+ \w+"))


def test_cycles_are_drawn_as_arcs_on_the_timeline_and_listed(recorded: Page) -> None:
    recorded.locator("#turns").evaluate("box => box.scrollTo(0, 6 * 52)")
    arcs = recorded.locator("#rows path.arc")
    expect(arcs.first).to_be_attached()
    tall = arcs.evaluate_all("all => all.map(each => each.getBBox().height)")

    assert len(tall) >= 4
    assert min(tall) >= 52
    expect(recorded.locator("#cycles")).to_contain_text("dev ↔ tester")
    recorded.locator("#cycles button").first.click()
    assert recorded.locator("#rows [aria-selected=true]").count() == 1


def test_it_loads_nothing_and_logs_no_errors(chromium: Browser, file: Path) -> None:
    opened = Opened(chromium.new_page(), file.as_uri())
    opened.page.wait_for_timeout(500)

    assert opened.requests == [file.as_uri()]
    assert opened.errors == []
    opened.page.close()


def test_messages_are_shown_as_text_and_never_run(chromium: Browser, file: Path, team: Path) -> None:
    for each in (file, team):
        with opening(chromium, each) as page:
            choose(page, "</script>")

            expect(page.locator("#shown pre").first).to_contain_text("</script><script>")
            assert "attacked" not in page.title()
            assert page.locator("img").count() == 0


def test_names_threads_and_contexts_are_text_too(chromium: Browser, tmp_path: Path) -> None:
    evil = "<img src=x onerror=\"document.title='attacked'\">"
    said = [{"role": "assistant", "name": evil, "content": f"{evil} says. Which queue do refunds go to?", "id": evil}]
    decisions = [{"agent": evil, "summary": f"Refunds go to the queue refunds-v2. {evil}"}]
    state = {"schema": 2, "thread": evil, "state": {"messages": said, "decisions": decisions}}

    def write(folder: Path) -> Path:
        (folder / "evil.jsonl").write_text(json.dumps(state) + "\n" + json.dumps({**state, "thread": "b"}) + "\n")
        return folder / "evil.jsonl"

    with opening(chromium, written_page(tmp_path, write)) as page:
        page.locator("#hypothetical details").first.locator("summary").click()
        page.get_by_role("button", name="This was wrong").click()

        expect(page.locator("#shown")).to_contain_text("refunds-v2. <img")
        assert page.locator("img").count() == 0
        assert "attacked" not in page.title()


def test_a_script_that_got_into_the_page_would_not_run(chromium: Browser, file: Path) -> None:
    opened = Opened(chromium.new_page(), file.as_uri())

    bad = '<b id=bad onclick="document.title = 1">x</b>'
    opened.page.locator("main").evaluate(f"main => main.insertAdjacentHTML('afterbegin', '{bad}')")
    opened.page.locator("#bad").click()

    assert opened.page.title() != "1"
    assert ["Content Security Policy" in error for error in opened.errors] == [True]
    opened.page.close()


def test_the_keyboard_alone_will_do(page: Page) -> None:
    page.keyboard.press("j")
    after_j = current(page)
    page.keyboard.press("ArrowUp")
    after_up = current(page)
    page.keyboard.press("g")
    after_g = current(page)
    page.keyboard.press("Home")
    after_home = current(page)
    page.keyboard.press("/")
    page.keyboard.type("fourteen 14")
    none = page.locator("#none").is_visible()
    page.keyboard.press("Escape")

    assert after_j == "I will ask around."
    assert after_up == "Which queue do refunds go to?"
    assert after_g == "The refund job fails with the same error."
    assert after_home == messages()[0]["content"]
    assert none
    assert len(turns(page)) == len(messages())
    assert page.evaluate("document.activeElement.id") == "turns"
    assert page.evaluate("getComputedStyle(document.activeElement).outlineStyle") == "solid"


def test_whoever_listens_hears_who_speaks_and_which_turn_is_chosen(page: Page) -> None:
    snapshot = page.locator("#turns").aria_snapshot()

    assert 'listbox "Timeline"' in snapshot
    assert 'option "analyst I will ask around."' in snapshot
    assert snapshot.count('option "tester') == 4
    assert page.locator("#turns").get_attribute("aria-activedescendant") == "turn-2"


def test_arrows_scroll_the_details_once_they_are_reached(page: Page) -> None:
    before = current(page)

    page.keyboard.press("Tab")
    expect(page.get_by_role("link", name="Skip to the details")).to_be_in_viewport(ratio=1)
    page.keyboard.press("Enter")
    page.keyboard.press("ArrowDown")

    wait_until(page, "document.getElementById('detail').scrollTop > 0")
    assert current(page) == before


def test_search_and_filters_narrow_the_timeline(page: Page) -> None:
    page.get_by_role("searchbox", name="Search").fill("teal header")
    searched = turns(page)
    page.get_by_role("searchbox", name="Search").fill("")
    page.get_by_role("combobox", name="Agent").select_option("tester")
    by_agent = turns(page)
    page.get_by_role("combobox", name="Agent").select_option("")
    page.get_by_role("combobox", name="Outcome").select_option("injected")
    by_outcome = turns(page)

    assert "Which queue do refunds go to?" in searched
    assert len(searched) < len(messages())
    assert by_agent.count("The refund job fails with the same error.") == 4
    assert "Which queue do refunds go to?" in by_outcome
    assert "I will ask around." not in by_outcome


def test_dark_and_light_follow_the_reader(chromium: Browser, file: Path) -> None:
    with opening(chromium, file, color_scheme="dark") as page:
        dark = page.evaluate("getComputedStyle(document.body).backgroundColor")

        page.get_by_role("button", name="Dark or light").click()

        assert dark == "rgb(17, 21, 24)"
        assert page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(246, 247, 247)"


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_all_text_stands_out_from_its_background(chromium: Browser, team: Path, scheme: str) -> None:
    with opening(chromium, team, color_scheme=scheme) as page:
        select(page, "Thread", "refunds")
        page.locator("#settings > summary").click()

        assert page.evaluate(Path(__file__).parents[1].joinpath("contrast.js").read_text("utf-8")) == []


@pytest.fixture(scope="module")
def two_threads(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return written_page(tmp_path_factory.mktemp("threads"), write_threads)


def test_threads_are_not_mixed_and_each_has_lanes_of_its_own(chromium: Browser, two_threads: Path) -> None:
    with opening(chromium, two_threads) as page:
        names = page.get_by_role("combobox", name="Thread").locator("option").all_inner_texts()
        first = turns(page)
        select(page, "Thread", OTHER)
        lanes = page.locator("#lanes text").evaluate_all("all => all.map(each => each.firstChild.data)")

        assert names == ["refunds · 12 steps, 6 gaps", f"{OTHER} · 3 steps, 2 gaps"]
        assert first == [each["content"] for each in messages()]
        assert turns(page) == list(ASKED)
        assert lanes == ["pm", "ops"]
        assert page.locator("#cycles").inner_text() == ""


def test_all_threads_of_a_database_are_in_the_picker_latest_first(chromium: Browser, team: Path) -> None:
    with opening(chromium, team) as page:
        options = page.get_by_role("combobox", name="Thread").locator("option").all_inner_texts()

        assert [option.split(" · ")[0] for option in options] == ["refunds", "invoices"]
        expect(page.locator("#source")).to_have_text("team.sqlite: SQLite checkpoint database, 2 threads, 44 steps")
        select(page, "Thread", "invoices")
        assert turns(page) == ["Please go on.", *(text for _, text in TEAM_RUNS["invoices"])]


def test_one_thread_is_chosen_by_keyboard_and_all_else_follows(chromium: Browser, two_threads: Path) -> None:
    with opening(chromium, two_threads) as page:
        page.get_by_role("combobox", name="Thread").focus()
        page.keyboard.press("End")

        assert turns(page) == list(ASKED)
        assert current(page) == "Which queue do invoices go to?"
        expect(page.locator("#detail")).to_contain_text(OTHER)


def test_a_thread_that_grows_moves_nobodys_choice(chromium: Browser, two_threads: Path) -> None:
    with opening(chromium, two_threads) as page:
        page.locator("#rows .turn").last.click()
        chosen = current(page)

        page.evaluate("data.steps.splice(2, 0, {...data.steps[1], step: 99}); draw()")

        assert len(turns(page)) == len(messages()) + 1
        assert current(page) == chosen


def test_the_header_covers_nothing_however_many_lines_it_takes(chromium: Browser, two_threads: Path) -> None:
    with opening(chromium, two_threads, width=1000) as page:
        page.mouse.move(500, 200)
        page.mouse.wheel(0, 300)

        wait_until(page, "scrollY > 0")
        head, detail = page.locator("header").bounding_box(), page.locator("#detail").bounding_box()
        assert head is not None
        assert detail is not None
        assert detail["y"] >= head["y"] + head["height"]


@pytest.mark.parametrize("width", [320, 400, 700])
def test_a_narrow_window_needs_no_sideways_scrolling(chromium: Browser, team: Path, width: int) -> None:
    with opening(chromium, team, width=width) as page:
        page.locator("#settings > summary").click()
        choose(page, "which queue do refunds go to?")

        assert page.evaluate("document.documentElement.scrollWidth") <= width
        expect(page.locator("#detail")).to_be_in_viewport()
        page.get_by_role("button", name="Back to the timeline").click()
        expect(page.locator("#rows [aria-selected=true]")).to_be_in_viewport()
        expect(page.locator("#rows .who").first).to_be_visible()


def test_of_a_long_run_only_what_is_in_view_is_in_the_document(chromium: Browser, long: Path) -> None:
    with opening(chromium, long) as page:
        ready = int(page.evaluate("document.documentElement.dataset.ready"))
        height = page.locator("#rows").evaluate("each => each.offsetHeight")
        seen: list[int] = []
        for place in (0, 1000, 1999):
            page.locator("#turns").evaluate(f"box => box.scrollTo(0, {place} * 52)")
            page.wait_for_timeout(100)
            assert page.locator(f'#rows [data-row="{place}"]').is_visible()
            seen.append(page.locator("#rows .turn").count())

        assert height == TURNS * 52
        assert max(seen) < 60
        assert page.locator("#lanes text").count() == len(AGENTS)
        assert ready < 5_000


TIMED = """() => {
  const start = performance.now();
  move(1);
  document.body.offsetHeight;
  return performance.now() - start;
}"""
"""How long it takes to go to the next turn, in milliseconds."""

PAINTED = "new Set(c.getContext('2d').getImageData(0, 0, c.width, c.height).data).size"


def test_a_long_run_stays_responsive(chromium: Browser, long: Path) -> None:
    with opening(chromium, long) as page:
        took = sorted(page.evaluate(TIMED) for _ in range(30))[15]
        page.get_by_role("searchbox", name="Search").fill("queue")
        found = page.locator("#status").inner_text()

        assert took < 50
        assert re.fullmatch(r"\d+ turns shown", found)
        assert page.locator("#rows .turn").count() < 60


def test_the_minimap_shows_where_one_is_and_takes_one_elsewhere(chromium: Browser, long: Path) -> None:
    with opening(chromium, long) as page:
        page.locator("#view").scroll_into_view_if_needed()
        box = page.locator("#minimap").bounding_box()
        assert box is not None
        page.mouse.click(box["x"] + 20, box["y"] + box["height"] * 0.75)

        wait_until(page, "document.getElementById('turns').scrollTop > 1000 * 52")
        view = page.locator("#minimap i").bounding_box()
        assert view is not None
        assert abs((view["y"] - box["y"]) / box["height"] - 0.75) < 0.05
        assert page.locator("#minimap canvas").evaluate(f"c => {PAINTED}") > 5


TEST = """
import pytest
from langgraph_scrum_master import ScrumMaster
from langgraph_scrum_master.testing import a_memory

KNOWN = {known!r}


@pytest.mark.scrum_master_snapshots("snapshots")
def test_as_it_should_be(scrum_master_snapshot):
    scrum_master_snapshot.check(memory=a_memory(*KNOWN), config={{"min_relevance_score": {bar}}})
"""


def run_pytest(folder: Path, bar: float) -> subprocess.CompletedProcess[str]:
    """Run the exported step as the documentation says, with settings of one's own."""
    (folder / "test_exported.py").write_text(TEST.format(known=KNOWN, bar=bar), encoding="utf-8")
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "test_exported.py"]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)


def mark_wrong(page: Page, outcome: str, note: str = "") -> None:
    page.get_by_role("button", name="This was wrong").click()
    dialog: Locator = page.get_by_role("dialog")
    dialog.get_by_role("radio", name=outcome).check()
    dialog.get_by_role("textbox", name="Note").fill(note)
    dialog.get_by_role("button", name="Export test").click()


def test_a_step_that_was_wrong_becomes_a_test_that_pytest_runs(recorded: Page, tmp_path: Path) -> None:
    with recorded.expect_download() as downloaded:
        mark_wrong(recorded, "A gap, but nothing to inject", "the ADR is outdated")
    file = tmp_path / "snapshots" / downloaded.value.suggested_filename
    file.parent.mkdir()
    downloaded.value.save_as(file)

    wrong, right = run_pytest(tmp_path, bar=0.5), run_pytest(tmp_path, bar=1.0)

    assert file.name == "refunds-team.sqlite-step-7.snapshot.json"
    assert json.loads(file.read_text())["result"]["injected"]
    assert wrong.returncode == 1, wrong.stdout + wrong.stderr
    assert "outcome: 'injected', expected 'abstained' (the ADR is outdated)" in wrong.stdout
    assert right.returncode == 0, right.stdout + right.stderr


@contextmanager
def served(source: Path, *options: str) -> Iterator[str]:
    command = [COMMAND, "inspect", str(source), "--serve", *options]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            yield (process.stdout.readline() if process.stdout else "").split()[0]
        finally:
            process.terminate()


def test_a_served_page_follows_the_source(chromium: Browser, tmp_path: Path) -> None:
    source = write_run(tmp_path)
    lines = source.read_text(encoding="utf-8").splitlines(keepends=True)
    source.write_text("".join(lines[:2]), encoding="utf-8")
    with served(source) as address, opening(chromium, address) as page:
        expect(page.locator("#rows .turn")).to_have_count(2)

        source.write_text("".join(lines), encoding="utf-8")

        expect(page.locator("#rows .turn")).to_have_count(len(lines), timeout=20_000)


def test_sliders_run_the_replay_again(chromium: Browser, tmp_path: Path) -> None:
    source = write_run(tmp_path)
    with served(source) as address, opening(chromium, address) as page:
        expect(page.locator("#hypothetical > p")).to_have_text("would have injected")
        page.locator("#settings > summary").click()
        slider = page.get_by_role("slider", name="Bar: least relevance")

        slider.focus()
        page.keyboard.press("End")

        expect(page.locator("#hypothetical > p")).to_have_text("would have abstained", timeout=20_000)
        expect(page.locator("#changed")).to_contain_text("0 injected")
        expect(page.locator(".candidates .track u").first).to_have_attribute("data-label", "bar 1.00")
        page.wait_for_timeout(2_500)
        expect(page.locator("#hypothetical > p")).to_have_text("would have abstained")
        page.get_by_role("button", name="As recorded").click()
        expect(page.locator("#hypothetical > p")).to_have_text("would have injected", timeout=20_000)


def test_the_sliders_of_a_file_are_off_and_say_why(page: Page) -> None:
    page.locator("#settings > summary").click()

    expect(page.get_by_role("slider", name="Bar: least relevance")).to_be_disabled()
    expect(page.locator("#sliders")).to_contain_text("--serve")


def test_a_served_page_writes_the_step_that_was_wrong(chromium: Browser, tmp_path: Path) -> None:
    source, folder = write_run(tmp_path), tmp_path / "snapshots"
    with served(source, "--tests", str(folder)) as address, opening(chromium, address) as page:
        mark_wrong(page, "Silence")
        expect(page.locator("#shown")).to_contain_text(f"Exported as a snapshot test: {folder}")

    done = run_pytest(tmp_path, bar=0.7)

    assert done.returncode == 1, done.stdout + done.stderr
    assert "outcome: 'injected', expected 'silent'" in done.stdout
