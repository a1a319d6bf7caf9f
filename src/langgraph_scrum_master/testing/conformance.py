"""Conformance tests for `MemoryStore` and for each capability. Needs pytest.

Subclass it in a test file and open your store:

    class TestMyMemory(MemoryConformance):
        def open(self, namespace):
            return MyMemory(self.folder / "db", namespace=namespace)
"""

from __future__ import annotations

import asyncio
import multiprocessing
from collections.abc import Awaitable, Callable, Iterator
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from contextlib import AbstractContextManager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

import pytest

from langgraph_scrum_master.errors import StoreError
from langgraph_scrum_master.memory.records import CodePattern, Decision, DecisionFilter, Memory
from langgraph_scrum_master.protocols import Capability, JointMemory, MemoryStore, capability_problems, supports

if TYPE_CHECKING:
    from multiprocessing.connection import Connection

Opener = Callable[[str], MemoryStore]
"""Opens the store for a namespace."""

Rows = list[tuple[str, str, dict[str, Any]]]

_QUICK = 0.1
"""Seconds in which twenty calls may finish without yielding to the event loop."""

_LIMIT = "The limit of the upload service is 100 megabytes."
QUEUE = "Refunds go to the queue billing-v2."
COLOUR = "The landing page has a teal header."


class MemoryConformance:
    """Tests for the rules of `MemoryStore` and of each declared capability; the others are skipped."""

    many = 10_000
    """Number of records in the test with many records."""

    folder: Path
    """A temporary folder of this test."""

    @pytest.fixture(autouse=True)
    def _place(self, tmp_path: Path) -> Iterator[None]:
        self.folder = tmp_path
        with asyncio.Runner() as runner:
            self.run = runner.run
            yield

    def open(self, namespace: str) -> MemoryStore:
        """Open the store: empty at the start of a test, and the same one for the same namespace."""
        raise NotImplementedError("open the store under test")

    def elsewhere(self) -> Opener | None:
        """A picklable function that opens the same store in another process; None if that is impossible."""
        return None

    def broken(self, memory: MemoryStore) -> AbstractContextManager[None] | None:
        """A context manager in which writes fail halfway; None if your store does not support that."""
        return None

    def test_it_keeps_the_protocol(self) -> None:
        assert isinstance(self.open("a"), MemoryStore)

    def test_it_has_the_methods_of_what_it_declares(self) -> None:
        problems = list(capability_problems(self.open("a")))

        assert not problems, "; ".join(problems)

    def test_an_empty_store_gives_nothing(self) -> None:
        memory = self.open("a")

        async def ask() -> list[int]:
            results = (
                await memory.search_similar("anything"),
                await memory.search_decisions("anything"),
                await memory.search_patterns("anything"),
                await memory.search_patterns(),
                await memory.get_patterns_by_type("import_style"),
                await memory.get_decisions_by_agent("dev"),
            )
            return [len(each) for each in results]

        assert self.run(ask()) == [0] * 6

    def test_what_was_kept_is_found_best_first_with_scores_from_0_to_1(self) -> None:
        memory = self._filled("a")

        results = self.run(memory.search_similar("To which queue do refunds go?", k=3))

        assert results[0].key == "queue"
        assert results[0].content == QUEUE
        assert results[0].metadata["title"] == "Queue"
        scores = [result.score for result in results]
        assert scores == sorted(scores, reverse=True)
        assert all(0 <= score <= 1 for score in scores)

    def test_no_more_is_given_than_asked_for(self) -> None:
        memory = self._filled("a")

        assert [len(self.run(memory.search_similar("queue header limit", k=k))) for k in (1, 2)] == [1, 2]

    def test_keeping_again_replaces(self) -> None:
        memory = self.open("a")
        for text in (_LIMIT, _LIMIT, _LIMIT.replace("100", "500")):
            self.run(memory.store_embedding("limit", text, {"size": len(text)}))

        results = self.run(memory.search_similar("What is the limit of the upload service?", k=9))

        assert [result.content for result in results] == [_LIMIT.replace("100", "500")]

    def test_one_namespace_never_sees_another(self) -> None:
        mine, yours = self._filled("acme"), self.open("acme.eu/@ü")
        self.run(mine.store_decision(Decision(agent_type="dev", context="Ours alone.")))
        self.run(mine.store_pattern(CodePattern(pattern_type="style", name="tabs", value="Tabs, never spaces.")))

        assert not self.run(yours.search_similar("To which queue do refunds go?"))
        assert not self.run(yours.get_decisions_by_agent("dev"))
        assert not self.run(yours.search_patterns())
        assert self.run(mine.search_similar("To which queue do refunds go?"))

    def test_a_store_that_is_opened_again_has_what_was_kept(self) -> None:
        self._filled("a")

        assert self.run(self.open("a").search_similar("To which queue do refunds go?"))[0].key == "queue"

    @pytest.mark.parametrize(
        "text",
        ids=["Japanese", "Greek and Cyrillic", "NUL and surrogate", "emoji", "long", "blank"],
        argvalues=["日本語のテキストです。", "Ελληνικά και кириллица", "a\x00b \ud800 c", "🚀" * 50, "x" * 60_000, " "],
    )
    def test_odd_texts_cost_no_other_record(self, text: str) -> None:
        memory = self._filled("a")
        self.run(
            memory.store_embedding(f"odd {text[:20]}", text, {"title": text[:20], "nested": {"deep": [1, None, True]}})
        )

        assert self.run(memory.search_similar("To which queue do refunds go?"))[0].key == "queue"

    def test_unicode_comes_back_as_it_went_in(self) -> None:
        memory = self.open("a")
        text = "Die Größe der Anhänge ist auf 5 MB begrenzt — «сейчас» 🚀 日本"
        self.run(memory.store_embedding("schlüssel/é 🚀", text, {"titel": "Größe"}))

        (result,) = self.run(memory.search_similar("Größe der Anhänge"))

        assert (result.key, result.content, result.metadata["titel"]) == ("schlüssel/é 🚀", text, "Größe")

    def test_decisions_are_found_filtered_and_listed_newest_first(self) -> None:
        memory = self.open("a")
        days = ("2026-03-01", "2026-03-03", "2026-03-02")
        made = [
            Decision(
                id=f"D-{i}",
                agent_type="dev" if i else "pm",
                context=f"Cache number {i} is Redis.",
                timestamp=f"{day}T10:00:00Z",
            )
            for i, day in enumerate(days)
        ]
        for decision in made:
            self.run(memory.store_decision(decision))

        by_pm = self.run(memory.search_decisions("Which cache?", DecisionFilter(agent_type="pm")))
        late = self.run(
            memory.search_decisions("Which cache?", DecisionFilter(time_range_start="2026-03-02T00:00:00Z"))
        )

        assert [hit.decision for hit in by_pm] == made[:1]
        assert {hit.decision.id for hit in late} == {"D-1", "D-2"}
        assert [decision.id for decision in self.run(memory.get_decisions_by_agent("dev"))] == ["D-1", "D-2"]
        assert len(self.run(memory.get_decisions_by_agent("dev", limit=1))) == 1

    def test_patterns_are_found_by_words_and_by_type(self) -> None:
        memory = self.open("a")
        imports = CodePattern(pattern_type="import_style", name="absolute", value="Imports are absolute.")
        names = CodePattern(pattern_type="naming", name="snake", value="Functions are named in snake case.")
        for pattern in (imports, names):
            self.run(memory.store_pattern(pattern))

        assert self.run(memory.search_patterns("How are functions named?"))[0].pattern == names
        assert [hit.pattern for hit in self.run(memory.search_patterns(pattern_type="import_style"))] == [imports]
        assert list(self.run(memory.get_patterns_by_type("naming"))) == [names]

    def test_relationships_are_taken(self) -> None:
        memory = self._filled("a")

        for _ in range(2):
            self.run(memory.store_relationship("limit", "queue", "blocks"))

        assert self.run(memory.search_similar("To which queue do refunds go?"))[0].key == "queue"

    def test_what_is_forgotten_is_found_no_more_and_can_be_told_again(self) -> None:
        memory, other = self._filled("a"), self._filled("b")
        if not supports(memory, "deletion"):
            _skip(memory, "deletion")
        decision = self.run(memory.store_decision(Decision(agent_type="dev", context="Redis.")))

        self.run(memory.forget("queue", decision, "was never there"))
        assert not self.run(memory.get_decisions_by_agent("dev"))
        assert self.run(other.search_similar("To which queue do refunds go?"))[0].key == "queue"
        without = self.run(memory.search_similar("To which queue do refunds go?", k=9))
        self.run(memory.store_embedding("queue", QUEUE, {}))

        assert "queue" not in [result.key for result in without]
        assert self.run(memory.search_similar("To which queue do refunds go?"))[0].key == "queue"

    def test_sessions_and_what_is_recent_are_known(self) -> None:
        memory = self.open("a")
        if not supports(memory, "sessions"):
            _skip(memory, "sessions")
        hours = {"old": "08", "older": "07", "new": "11"}
        for key, hour in hours.items():
            self.run(
                memory.store_embedding(
                    key, f"The {key} note.", {"created_at": f"2026-03-02T{hour}:00:00Z", "session": key}
                )
            )

        recent = self.run(memory.recent("note", "older", "2026-03-02T10:00:00Z"))
        nothing = self.run(memory.last_session())
        self.run(memory.end_session("s1", "First.", "2026-03-02T11:00:00Z"))
        self.run(memory.end_session("s2", "Second.", "2026-03-02T12:00:00Z"))
        self.run(memory.end_session("s1", "Still first.", "2026-03-02T11:30:00Z"))
        last = self.run(memory.last_session())
        before = self.run(memory.last_session("s2"))

        two = self.open("another")
        assert supports(two, "sessions")
        assert not self.run(two.recent("note", "older", "2026-03-02T10:00:00Z"))
        assert self.run(two.last_session()) is None
        assert len(self.run(memory.recent("note", "older", "2026-03-02T00:00:00Z", k=1))) == 1
        assert [result.key for result in recent] == ["new", "older"]
        assert nothing is None
        assert last is not None
        assert last.content == "Second."
        assert before is not None
        assert before.content == "Still first."

    def test_of_texts_without_a_time_the_last_written_are_the_newest(self) -> None:
        memory = self.open("a")
        if not supports(memory, "sessions"):
            _skip(memory, "sessions")
        self.run(
            _stored(memory, [(f"n{i}", f"Note number {i} of the session.", {"session": "s"}) for i in range(1200)])
        )

        newest = self.run(memory.recent("note", "s", "2026-03-02T10:00:00Z", k=3))

        assert [result.key for result in newest] == ["n1199", "n1198", "n1197"]

    def test_a_namespace_is_opened_beside_and_sees_its_own_alone(self) -> None:
        memory = self._filled("a")
        if not supports(memory, "namespaces"):
            _skip(memory, "namespaces")
        name = f"{memory.namespace}/other ü"

        other, again = memory.for_namespace(name), memory.for_namespace(name)
        self.run(other.store_embedding("mascot", "The mascot is a badger.", {}))

        assert supports(other, "namespaces")
        assert other.namespace == name
        assert [result.key for result in self.run(again.search_similar("Which mascot?", k=9))] == ["mascot"]
        assert "mascot" not in {result.key for result in self.run(memory.search_similar("Which mascot?", k=9))}
        assert len(self.run(memory.for_namespace(memory.namespace).search_similar("queue header limit", k=9))) == 3

    def test_shelves_see_neither_the_memory_nor_each_other(self) -> None:
        memory = self._filled("a")
        if not supports(memory, "shelves"):
            _skip(memory, "shelves")
        self.run(memory.beside("code").store_embedding("mascot", "The mascot is a badger.", {}))

        results = {
            name: [result.key for result in self.run(memory.beside(name).search_similar("Which mascot?", k=9))]
            for name in ("code", "commits")
        }

        assert results == {"code": ["mascot"], "commits": []}
        assert "mascot" not in {result.key for result in self.run(memory.search_similar("Which mascot?", k=9))}
        for capability in sorted(getattr(memory, "capabilities", ())):
            assert supports(memory.beside("code"), capability), f"a shelf does not declare {capability!r}"

    def test_answers_are_found_with_what_was_said_around(self) -> None:
        memory = self._filled("a")
        if not supports(memory, "answers"):
            _skip(memory, "answers")

        results = self.run(memory.search_answers("To which queue do they go?", [("We build refunds.", 0.5)], k=2))

        assert results[0].key == "queue"
        assert len(results) <= 2
        assert all(0 <= result.score <= 1 for result in results)
        empty = self.open("b")
        assert supports(empty, "answers")
        assert not self.run(empty.search_answers("To which queue do they go?"))

    def test_a_search_by_words_finds_what_has_them(self) -> None:
        memory = self._filled("a")
        if not supports(memory, "words"):
            _skip(memory, "words")

        assert self.run(memory.search_by_words("queue of refunds", k=1))[0].key == "queue"

    def test_a_search_with_metadata_finds_only_what_has_them(self) -> None:
        memory = self._filled("a")
        if not supports(memory, "filters"):
            _skip(memory, "filters")
        for key, kind, team in (("one", "fact", "red"), ("two", "fact", "blue"), ("three", "error", "red")):
            self.run(memory.store_embedding(key, f"The badger number {key}.", {"category": kind, "team": team}))

        red = self.run(memory.search_where("badger", {"team": "red"}, k=9))
        both = self.run(memory.search_where("badger", {"team": "red", "category": "fact"}, k=9))

        assert {result.key for result in red} == {"one", "three"}
        assert [result.key for result in both] == ["one"]
        assert len(self.run(memory.search_where("badger", {"team": "red"}, k=1))) == 1
        assert not self.run(memory.search_where("badger", {"team": "green"}))

    def test_a_batch_is_stored_whole_and_replaces(self) -> None:
        memory = self._filled("a")
        if not supports(memory, "batches"):
            _skip(memory, "batches")

        self.run(memory.store_many([("limit", _LIMIT.replace("100", "500"), {}), Memory(content=COLOUR, key="header")]))
        self.run(memory.store_many([]))

        results = {result.key: result.content for result in self.run(memory.search_similar("limit header queue", k=9))}
        assert results == {"limit": _LIMIT.replace("100", "500"), "queue": QUEUE, "colour": COLOUR, "header": COLOUR}

    def test_texts_are_read_by_their_keys_and_listed(self) -> None:
        memory = self._filled("a")
        if not supports(memory, "lookup"):
            _skip(memory, "lookup")

        results = self.run(memory.get_many(["queue", "was never there"]))

        assert {key: (result.content, result.metadata["title"]) for key, result in results.items()} == {
            "queue": (QUEUE, "Queue")
        }
        assert {result.key for result in self.run(memory.every())} == {"limit", "queue", "colour"}
        assert not self.run(memory.get_many([]))

    def test_notes_are_kept_by_book_and_no_search_finds_them(self) -> None:
        memory = self._filled("a")
        if not supports(memory, "notes"):
            _skip(memory, "notes")
        self.run(memory.save_notes("index", {"a.py": {"digest": "x", "keys": [1, None]}, "b ü.py": "mascot"}))
        self.run(memory.save_notes("index", {"c.py": 3}))
        self.run(memory.save_notes("other", {"a.py": "another"}))

        some = self.run(memory.notes("index", ["a.py", "was never there"]))
        self.run(memory.save_notes("index", {"a.py": None, "c.py": 4}))

        assert some == {"a.py": {"digest": "x", "keys": [1, None]}}
        assert self.run(memory.notes("index")) == {"b ü.py": "mascot", "c.py": 4}
        assert self.run(memory.notes("other")) == {"a.py": "another"}
        assert {result.key for result in self.run(memory.search_similar("mascot", k=9))} <= {"limit", "queue", "colour"}

    def test_vectors_have_one_length_and_the_same_text_the_same_vector(self) -> None:
        memory = self.open("a")
        if not supports(memory, "vectors"):
            _skip(memory, "vectors")

        one, other, again = self.run(memory.embedded([QUEUE, COLOUR, QUEUE]))

        assert one == again != other
        assert len(one) == len(other)
        assert all(abs(sum(number * number for number in vector) - 1) < 0.01 for vector in (one, other))

    def test_the_memories_nearest_to_a_vector_come_first(self) -> None:
        memory = self._filled("a")
        if not supports(memory, "vectors"):
            _skip(memory, "vectors")

        (vector,) = self.run(memory.embedded([QUEUE]))
        first, second = self.run(memory.nearest(vector, k=2))

        assert (first.key, round(first.score, 2)) == ("queue", 1.0)
        assert first.score > second.score >= 0

    def test_a_joint_search_gives_what_each_shelf_would(self) -> None:
        memory = self._filled("a")
        if not supports(memory, "joint_search"):
            _skip(memory, "joint_search")
        query = "To which queue do refunds go?"
        shelves: dict[str, JointMemory] = {"": memory}
        if supports(memory, "shelves") and supports(shelf := memory.beside("code"), "joint_search"):
            self.run(shelf.store_embedding("mascot", "The queue of the mascot is a burrow.", {}))
            shelves["code"] = shelf

        async def joint() -> list[str]:
            async with shelves[""].joint_search(query, list(shelves), 1, 60.0):
                return [(await shelf.search_quickly(query, k=1))[0].key for shelf in shelves.values()]

        assert self.run(joint()) == ["queue", "mascot"][: len(shelves)]
        assert self.run(shelves[""].search_quickly(query, k=1))[0].key == "queue"

    def test_a_filter_finds_what_many_others_would_hide(self) -> None:
        memory = self.open("a")

        async def decide() -> None:
            many = (
                Decision(id=f"D{i}", agent_type="dev", context=f"Cache cache number {i} is Redis.") for i in range(300)
            )
            for decision in (*many, Decision(id="P", agent_type="pm", context="A cache costs money.")):
                await memory.store_decision(decision)

        self.run(decide())

        results = self.run(memory.search_decisions("Which cache is Redis?", DecisionFilter(agent_type="pm")))

        assert [hit.decision.id for hit in results] == ["P"]

    def test_a_second_handle_writes_forgets_and_lists_what_the_first_one_did(self) -> None:
        one, two = self._filled("a"), self.open("a")
        query = "What is the limit of the upload service?"
        self.run(two.search_similar(query))

        self.run(two.store_embedding("limit", _LIMIT.replace("100", "500"), {}))
        self.run(one.store_embedding("limit", _LIMIT, {}))
        rewritten = [self.run(memory.search_similar(query))[0].content for memory in (one, two)]
        self.run(one.store_decision(Decision(agent_type="dev", context="Redis.")))
        listed = self.run(two.get_decisions_by_agent("dev"))

        assert rewritten == [_LIMIT, _LIMIT]
        assert len(listed) == 1
        if supports(one, "deletion") and supports(two, "deletion"):
            self.run(one.store_embedding("mascot", "The mascot is a badger.", {}))
            self.run(two.forget("mascot"))
            assert "mascot" not in {result.key for result in self.run(one.search_similar("the mascot", k=9))}

    def test_writers_at_the_same_time_lose_nothing(self) -> None:
        memory = self.open("a")
        words = [f"zebra{i}" for i in range(24)]

        async def write() -> None:
            await asyncio.gather(
                *(memory.store_embedding(word, f"The {word} service is new.", {}) for word in words),
                *(memory.search_similar("service", k=1) for _ in words),
            )

        self.run(write())

        assert [self.run(memory.search_similar(f"What is {word}?", k=1))[0].key for word in words] == words

    def test_writers_in_several_threads_lose_nothing(self) -> None:
        memory = self.open("a")
        with ThreadPoolExecutor(3) as pool:
            list(pool.map(partial(_write, lambda _: memory, "a"), range(3)))

        self._has_all_of_three_writers(memory)

    def test_writers_in_several_processes_lose_nothing(self) -> None:
        opener = self.elsewhere()
        if opener is None:
            pytest.skip("the store lives in one process")
        memory = self.open("a")
        with ProcessPoolExecutor(3, mp_context=multiprocessing.get_context("spawn")) as pool:
            list(pool.map(partial(_write, opener, "a"), range(3)))

        self._has_all_of_three_writers(memory)

    def test_what_was_acknowledged_is_there_after_the_writer_was_killed(self) -> None:
        opener = self.elsewhere()
        if opener is None:
            pytest.skip("the store lives in one process")
        spawned = multiprocessing.get_context("spawn")
        ours, its = spawned.Pipe()
        writer = spawned.Process(target=_write_for_ever, args=(opener, "a", its))
        writer.start()
        its.close()
        kept = [ours.recv() for _ in range(12)]
        writer.kill()
        writer.join()
        try:
            while ours.poll():
                kept.append(ours.recv())
        except EOFError:
            pass

        memory = self.open("a")
        self.run(memory.store_embedding("queue", QUEUE, {}))

        results = {result.key for result in self.run(memory.search_similar("Which walrus sleeps?", k=10 * len(kept)))}
        assert set(kept) <= results
        assert self.run(memory.search_similar("To which queue do refunds go?"))[0].key == "queue"

    def test_nothing_holds_up_the_event_loop(self) -> None:
        memory = self._filled("a")

        assert self.run(lets_others_run(lambda: memory.search_similar("queue")))

    def test_a_write_that_fails_half_way_is_told_and_can_be_repeated(self) -> None:
        memory = self._filled("a")
        fault = self.broken(memory)
        if fault is None:
            pytest.skip("the store cannot be broken")
        rows: Rows = [(f"w{i}", f"The walrus number {i} sleeps.", {}) for i in range(30)]

        with fault, pytest.raises(StoreError):
            self.run(_stored(memory, rows))
        in_between = self.run(memory.search_similar("To which queue do refunds go?"))
        self.run(_stored(memory, rows))

        assert in_between[0].key == "queue"
        results = self.run(memory.search_similar("Which walrus sleeps?", k=100))
        assert sorted(result.key for result in results if result.key.startswith("w")) == sorted(
            key for key, _, _ in rows
        )

    def test_a_needle_is_found_among_many(self) -> None:
        memory = self.open("a")
        rows: Rows = [(f"m{i}", f"Service {i} writes log {i % 97} to disk {i % 13}.", {}) for i in range(self.many)]
        self.run(_stored(memory, [*rows, ("queue", QUEUE, {})]))

        assert self.run(memory.search_similar("To which queue do refunds go?", k=3))[0].key == "queue"

    def _has_all_of_three_writers(self, memory: MemoryStore) -> None:
        results = {result.key for result in self.run(memory.search_similar("Which zebra is striped?", k=200))}
        assert results == {f"{writer}-{i}" for writer in range(3) for i in range(20) if i % 5 or not self._forgets}
        searches = [self.run(memory.search_similar(f"What is zebra{writer}x19?", k=1)) for writer in range(3)]
        assert [results[0].key for results in searches] == ["0-19", "1-19", "2-19"]

    @property
    def _forgets(self) -> bool:
        return supports(self.open("a"), "deletion")

    def _filled(self, namespace: str) -> MemoryStore:
        memory = self.open(namespace)
        rows: Rows = [("limit", _LIMIT, {}), ("queue", QUEUE, {"title": "Queue"}), ("colour", COLOUR, {})]
        self.run(_stored(memory, rows))
        return memory


async def lets_others_run(call: Callable[[], Awaitable[object]]) -> bool:
    """Whether twenty calls yield to the event loop, or finish almost immediately."""
    ticked, started = 0, asyncio.get_running_loop().time()
    calling = asyncio.gather(*(call() for _ in range(20)))
    while not calling.done():
        await asyncio.sleep(0.001)
        ticked += 1
    await calling
    return ticked > 2 or asyncio.get_running_loop().time() - started < _QUICK


def _skip(memory: MemoryStore, capability: Capability) -> NoReturn:
    pytest.skip(f"{type(memory).__name__} does not declare the capability {capability!r}")


def _write(opener: Opener, namespace: str, writer: int) -> None:
    """Write twenty records one by one, and delete every fifth."""
    memory = opener(namespace)

    async def write() -> None:
        for i in range(20):
            key = f"{writer}-{i}"
            await memory.store_embedding(key, f"The zebra{writer}x{i} is striped.", {"writer": writer})
            if i % 5 == 0 and supports(memory, "deletion"):
                await memory.forget(key)

    asyncio.run(write())


def _write_for_ever(opener: Opener, namespace: str, acknowledged: Connection) -> None:
    memory = opener(namespace)

    async def write() -> None:
        for i in range(1_000_000):
            await memory.store_embedding(f"w{i}", f"The walrus number {i} sleeps.", {})
            acknowledged.send(f"w{i}")

    asyncio.run(write())


async def _stored(memory: MemoryStore, rows: Rows) -> None:
    if supports(memory, "batches"):
        await memory.store_many(rows)
    else:
        for row in rows:
            await memory.store_embedding(*row)
