"""The inspector in a real browser: `make browser`."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, expect

from chromium import browser, installed
from inspected import ASKED, OTHER, messages, write_run, write_threads, written_page

pytestmark = [
    pytest.mark.browser,
    pytest.mark.skipif(installed() is None, reason="there is no Chromium: apt-get install chromium"),
]


@pytest.fixture(scope="module")
def chromium() -> Iterator[Browser]:
    with browser() as started:
        yield started


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return written_page(tmp_path_factory.mktemp("inspector"))


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


@pytest.fixture
def opened(chromium: Browser, file: Path) -> Iterator[Opened]:
    context = chromium.new_context(viewport={"width": 1400, "height": 900}, color_scheme="light")
    yield Opened(context.new_page(), file.as_uri())
    context.close()


def turns(page: Page) -> list[str]:
    return page.locator("#turns .words").all_inner_texts()


def current(page: Page) -> str:
    return page.locator("#turns [aria-current=true] .words").inner_text()


def test_it_shows_every_turn_in_its_agents_lane_and_starts_at_the_first_gap(opened: Opened) -> None:
    page = opened.page

    assert len(turns(page)) == len(messages())
    assert page.locator(".heads span").all_inner_texts() == ["user", "analyst", "dev", "tester"]
    assert page.get_by_role("combobox", name="Thread").count() == 0
    lanes = [page.locator("#turns button").nth(i).bounding_box() for i in (0, 1, 2)]
    assert [box["x"] for box in lanes if box] == sorted({box["x"] for box in lanes if box})
    assert current(page) == "Which queue do refunds go to?"


def test_details_show_the_reason_the_contexts_and_the_budget(opened: Opened) -> None:
    detail = opened.page.locator("#detail")

    expect(detail).to_contain_text("clarification_requested, confidence 0.90")
    expect(detail).to_contain_text("@m2")
    expect(detail.locator("mark.need")).to_have_text("Which queue do refunds go to?")
    expect(detail.locator("#given")).to_contain_text("Refunds go to the queue refunds-v2.")
    expect(detail.locator("tbody tr")).to_have_count(2)
    expect(detail.locator("tbody")).to_contain_text("not relevant enough")
    expect(detail.get_by_role("meter", name="tokens")).to_have_attribute("aria-valuemax", "2000")


def test_cycles_are_drawn_and_listed(opened: Opened) -> None:
    flow = opened.page.locator("#flow")

    assert flow.locator("path.edge.round").count() >= 2
    expect(flow.get_by_role("img")).to_have_attribute("aria-label", re.compile("dev to tester 4"))
    expect(flow.locator("table")).to_contain_text("The refund job fails with the same error.")


def test_it_loads_nothing_and_logs_no_errors(opened: Opened, file: Path) -> None:
    assert opened.requests == [file.as_uri()]
    assert opened.errors == []


def test_messages_are_shown_as_text_and_never_run(opened: Opened) -> None:
    page = opened.page
    page.locator("#turns button").nth(1).click()

    expect(page.locator("#shown pre").first).to_contain_text("</script><script>")
    assert page.title() == "Scrum master inspector"


def test_the_keyboard_alone_will_do(opened: Opened) -> None:
    page = opened.page

    page.keyboard.press("j")
    after_j = current(page)
    page.keyboard.press("ArrowUp")
    after_up = current(page)
    page.keyboard.press("g")
    after_g = current(page)
    page.keyboard.press("/")
    page.keyboard.type("fourteen 14")
    none = page.locator("#none").is_visible()
    page.keyboard.press("Escape")

    assert after_j == "I will ask around."
    assert after_up == "Which queue do refunds go to?"
    assert after_g == "The refund job fails with the same error."
    assert none
    assert len(turns(page)) == len(messages())


def test_whoever_listens_hears_who_speaks_in_every_turn(opened: Opened) -> None:
    snapshot = opened.page.locator("#turns").aria_snapshot()

    assert 'button "analyst I will ask around."' in snapshot
    assert snapshot.count('"tester The refund job fails') == 4


def wait_until(page: Page, true: str) -> None:
    """Ask again and again from here: the page's policy lets no script of its own be made from text."""
    for _ in range(200):
        if page.evaluate(true):
            return
        page.wait_for_timeout(50)
    raise AssertionError(f"not within 10 s: {true}")


def test_arrows_scroll_the_details_once_they_are_reached(opened: Opened) -> None:
    page = opened.page
    before = current(page)

    page.keyboard.press("Tab")
    expect(page.get_by_role("link", name="Skip to the details")).to_be_in_viewport(ratio=1)
    page.keyboard.press("Enter")
    page.keyboard.press("ArrowDown")

    wait_until(page, "document.getElementById('detail').scrollTop > 0")
    assert current(page) == before


def test_search_and_filters_narrow_the_timeline(opened: Opened) -> None:
    page = opened.page

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
    context = chromium.new_context(color_scheme="dark")
    page = context.new_page()
    page.goto(file.as_uri())
    dark = page.evaluate("getComputedStyle(document.body).backgroundColor")

    page.get_by_role("button", name="Dark or light").click()

    assert dark == "rgb(20, 24, 27)"
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(251, 251, 250)"
    context.close()


@pytest.fixture(scope="module")
def two_threads(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return written_page(tmp_path_factory.mktemp("threads"), write_threads)


def test_threads_are_not_mixed_and_each_has_lanes_of_its_own(chromium: Browser, two_threads: Path) -> None:
    page = chromium.new_page()
    page.goto(two_threads.as_uri())

    assert page.locator("#turns h3").all_inner_texts() == ["refunds 12 turns", f"{OTHER} 3 turns"]
    assert turns(page)[11:] == [messages()[11]["content"], *ASKED]
    assert [each.inner_text().split() for each in page.locator(".heads").all()] == [
        ["user", "analyst", "dev", "tester"],
        ["pm", "ops"],
    ]
    drawn = page.locator("#flow").get_by_role("img").get_attribute("aria-label") or ""
    assert "dev to tester 4" in drawn
    assert "tester to pm" not in drawn
    page.close()


def test_one_thread_is_chosen_by_keyboard_and_all_else_follows(chromium: Browser, two_threads: Path) -> None:
    page = chromium.new_page()
    page.goto(two_threads.as_uri())

    page.get_by_role("combobox", name="Thread").focus()
    page.keyboard.press("End")

    assert turns(page) == list(ASKED)
    assert current(page) == "Which queue do invoices go to?"
    expect(page.locator("#detail")).to_contain_text(OTHER)
    expect(page.locator("#flow").get_by_role("img")).to_have_attribute(
        "aria-label", re.compile("pm to ops 1, ops to pm 1$")
    )
    snapshot = page.locator("#turns").aria_snapshot()
    assert f'list "{OTHER} 3 turns"' in snapshot
    page.close()


def test_a_thread_that_grows_moves_nobodys_choice(chromium: Browser, two_threads: Path) -> None:
    page = chromium.new_page()
    page.goto(two_threads.as_uri())
    page.locator("#turns button").last.click()

    page.evaluate("data.steps.splice(12, 0, {...data.steps[11], step: 13}); draw()")

    assert len(turns(page)) == len(messages()) + 4
    assert current(page) == "Let me look."
    page.close()


def test_the_header_covers_nothing_however_many_lines_it_takes(chromium: Browser, two_threads: Path) -> None:
    page = chromium.new_page(viewport={"width": 1000, "height": 600})
    page.goto(two_threads.as_uri())

    page.locator("#turns button").last.focus()
    page.keyboard.press("j")
    page.mouse.wheel(0, 300)

    wait_until(page, "scrollY > 0")
    head, detail = page.locator("header").bounding_box(), page.locator("#detail").bounding_box()
    assert head is not None
    assert detail is not None
    assert detail["y"] >= head["y"] + head["height"]
    page.close()


def test_a_narrow_window_needs_no_sideways_scrolling(chromium: Browser, two_threads: Path) -> None:
    context = chromium.new_context(viewport={"width": 390, "height": 800})
    page = context.new_page()
    page.goto(two_threads.as_uri())

    assert page.evaluate("document.documentElement.scrollWidth") <= 390
    fate = page.get_by_role("cell", name="not relevant enough").first.bounding_box()
    assert fate is not None
    assert fate["height"] < 60
    expect(page.locator("#turns .who").first).to_be_visible()
    page.locator("#turns button").nth(1).click()
    expect(page.locator("#detail")).to_be_in_viewport()
    page.get_by_role("button", name="Back to the timeline").click()
    expect(page.locator("#turns button").nth(1)).to_be_in_viewport()
    context.close()


def test_a_served_page_follows_the_source(chromium: Browser, tmp_path: Path) -> None:
    source = write_run(tmp_path)
    lines = source.read_text(encoding="utf-8").splitlines(keepends=True)
    source.write_text("".join(lines[:2]), encoding="utf-8")
    command = [str(Path(sys.executable).with_name("scrum-master")), "inspect", str(source), "--serve"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as served:
        try:
            address = (served.stdout.readline() if served.stdout else "").split()[0]
            page = chromium.new_page()
            page.goto(address)
            expect(page.locator("#turns button")).to_have_count(2)

            source.write_text("".join(lines), encoding="utf-8")

            expect(page.locator("#turns button")).to_have_count(len(lines), timeout=20_000)
            page.close()
        finally:
            served.terminate()
