"""Writing records: one transaction, in which everything that depends on a record changes with it."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

from langgraph_scrum_master.errors import StoreError
from langgraph_scrum_master.memory.database import Counted, Database, Entry, Kept, ShelfRow, Statements
from langgraph_scrum_master.memory.records import SEARCHED, Kind, Record, agent_of, created_of, linked, session_of
from langgraph_scrum_master.memory.shelf import Shelf, count_new, facets_of, words_of, wrong_dimensions
from langgraph_scrum_master.memory.statistics import SAVED_EVERY, Statistics
from langgraph_scrum_master.protocols import Embedder
from langgraph_scrum_master.rank.corpus import CorpusCounts
from langgraph_scrum_master.rank.embedders import static_model
from langgraph_scrum_master.rank.features import Array, Features, features_of, number, static_tokens
from langgraph_scrum_master.rank.query import document_vectors, meaning_vectors, packed_vector
from langgraph_scrum_master.rank.relevance import CONTEXT, context_vectors
from langgraph_scrum_master.text.references import canonical

REACH = max(off for off, _ in CONTEXT)
"""How many positions away a neighbour counts."""


READ_AT_ONCE = 1_000
"""Records that are read at once where all are."""


class _Prepared(NamedTuple):
    """A record with what is computed of it before the transaction."""

    record: Record
    features: Features
    vector: Array
    meaning: Array
    data: str


class Writer:
    """Writes to the shelves of one database."""

    def __init__(self, database: Database, most_records: int | None = None) -> None:
        self._database = database
        self._most_records = most_records

    def put(
        self, shelf: Shelf, records: Sequence[Record], embedder: Embedder, name: str = ""
    ) -> list[tuple[int, Kind]]:
        """Write the records that are new or changed; gives their ids and kinds. One with the same key is replaced.

        The shelf notes the embedder by its class, or by the `name` that is given.
        """
        changed = _changed(shelf, records)
        if not changed:
            return []
        # Before the transaction: an embedder may take long, and must hold up nobody.
        prepared = _prepared(shelf, changed, embedder)
        with self._database.writing(shelf.tenant, shelf.name) as (statements, row):
            row = _with_embedder(row, name or type(embedder).__name__, prepared)
            before = _before(statements, row.id, prepared)
            self._check_quota(statements, shelf.tenant, len(prepared) - len(before))
            places = _places(statements, row.id, prepared, before)
            lost = self._removed(statements, row, list(before.values()))
            contexts = _contexts(statements, row.id, prepared, places)
            entries = [
                _entry(each, place, contexts.new[i])
                for i, (each, place) in enumerate(zip(prepared, places, strict=True))
            ]
            ids = statements.insert(row.id, entries)
            statements.set_contexts(row.id, contexts.changed)
            _link(statements, row.id, list(zip(ids, prepared, strict=True)), lost)
            written = row._replace(
                last=ids[-1],
                epoch=row.epoch + bool(before),
                pending=row.pending + len(ids),
                records=row.records + len(ids) - len(before),
            )
            statements.touch(_with_saved_statistics(statements, written))
        return [(each, one.record.kind) for each, one in zip(ids, prepared, strict=True)]

    def remove(self, shelf: Shelf, kinds: Sequence[Kind], keys: Sequence[str]) -> int:
        """Remove the records with these keys; gives how many there were."""
        with self._database.writing(shelf.tenant, shelf.name) as (statements, row):
            gone = [kept for kind in kinds for kept in statements.kept(row.id, kind, keys).values()]
            self._remove(statements, row, gone)
        return len(gone)

    def remove_ids(self, shelf: Shelf, ids: Sequence[int]) -> int:
        """Remove the records with these ids; gives how many there were."""
        with self._database.writing(shelf.tenant, shelf.name) as (statements, row):
            gone = statements.kept_by_id(row.id, ids)
            self._remove(statements, row, gone)
        return len(gone)

    def save_notes(self, shelf: Shelf, book: str, notes: Mapping[str, object]) -> None:
        """Write notes into a book of the shelf; those that are None are removed."""
        with self._database.writing(shelf.tenant, shelf.name) as (statements, row):
            statements.save_notes(row.id, book, notes)

    def _check_quota(self, statements: Statements, tenant: str, more: int) -> None:
        if self._most_records is None or more <= 0:
            return
        there = sum(row.records for _, row in statements.shelves(tenant))
        if there + more > self._most_records:
            raise StoreError(
                f"{tenant!r} has {there} records and may have {self._most_records}: {more} more do not fit. Forget "
                "some, or raise most_records"
            )

    def _remove(self, statements: Statements, row: ShelfRow, gone: Sequence[Kept]) -> None:
        if not gone:
            return
        lost = self._removed(statements, row, gone)
        for session in {kept.session for kept in gone if kept.session}:
            around = [kept.position for kept in gone if kept.session == session]
            statements.set_contexts(row.id, _contexts_of(statements, row.id, session, around))
        _link(statements, row.id, [], lost)
        statements.touch(row._replace(epoch=row.epoch + 1, records=row.records - len(gone)))

    def _removed(self, statements: Statements, row: ShelfRow, gone: Sequence[Kept]) -> set[int]:
        """Remove records and take them out of the saved statistics; gives the names that they linked."""
        if not gone:
            return set()
        features = [Features.unpack(kept.features) for kept in gone]
        bodies = [
            (each.terms.tolist() if kept.kind in SEARCHED else [], facets_of(json.loads(kept.data)))
            for kept, each in zip(gone, features, strict=True)
        ]
        saved = statements.statistics(row.id)
        if saved is not None:
            statistics = Statistics(lambda ids: words_of(statements, row.id, ids))
            statistics.load(saved)
            counted = [
                Counted(kept.id, kept.kind, kept.features, kept.vector) for kept in gone if kept.id <= statistics.saved
            ]
            if counted:
                statistics.count_records(counted, -1)
                statements.save_statistics(row.id, statistics.snapshot())
        statements.delete(row.id, gone, bodies)
        return statements.remove_edges(row.id, [kept.id for kept in gone if kept.kind == "relationship"])


def rebuild(database: Database) -> None:
    """Make everything again that is derived from records, of all tenants."""
    with database.transaction() as statements:
        statements.clear_derived()
        for tenant in statements.tenants():
            for _, row in statements.shelves(tenant):
                _rebuild_shelf(statements, row)


def _rebuild_shelf(statements: Statements, row: ShelfRow) -> None:
    row = row._replace(last=max(row.last, statements.greatest_id(row.id)))
    for kind in SEARCHED:
        ids = statements.ids(row.id, kind)
        for start in range(0, len(ids), READ_AT_ONCE):
            kept = statements.kept_by_id(row.id, ids[start : start + READ_AT_ONCE])
            statements.index(row.id, kept, [facets_of(json.loads(each.data)) for each in kept])
    statistics = Statistics(lambda ids: words_of(statements, row.id, ids))
    count_new(statistics, statements, row)
    statements.save_statistics(row.id, statistics.snapshot())
    rebuilt = row._replace(epoch=row.epoch + 1, pending=0, records=sum(statistics.kinds.values()))
    statements.pack(rebuilt)
    statements.touch(rebuilt)


def _changed(shelf: Shelf, records: Sequence[Record]) -> list[tuple[Record, str]]:
    """The records that are not kept word for word already, with their data as it is written."""
    written = [(record, json.dumps(record.data, sort_keys=True)) for record in records]
    known = {
        (record.kind, record.key): (record.text, json.dumps(record.data, sort_keys=True))
        for kind in {record.kind for record in records}
        for record in shelf.keyed(kind, [each.key for each in records if each.kind == kind])
    }
    return [(record, data) for record, data in written if known.get((record.kind, record.key)) != (record.text, data)]


def _prepared(shelf: Shelf, changed: Sequence[tuple[Record, str]], embedder: Embedder) -> list[_Prepared]:
    records = [record for record, _ in changed]
    tokens = static_tokens([record.text for record in records])
    features = features_of(
        [record.text for record in records],
        [linked(record) for record in records],
        [record.key for record in records],
        tokens,
    )
    searched = [i for i, record in enumerate(records) if record.kind in SEARCHED]
    nothing: Array = np.zeros(0, "<f2")
    vectors, meanings = [nothing] * len(records), [nothing] * len(records)
    if searched:
        texts = [records[i].text for i in searched]
        corpus = _corpus(shelf.statistics, [features[i] for i in searched])
        own = [tokens[i] for i in searched]
        made = document_vectors(texts, corpus, embedder, own)
        by_static = made if embedder is static_model() else meaning_vectors(texts, corpus, embedder, own)
        for i, vector, meaning in zip(searched, made, by_static, strict=True):
            vectors[i], meanings[i] = vector, meaning
    return [
        _Prepared(record, each, vector, meaning, data)
        for (record, data), each, vector, meaning in zip(changed, features, vectors, meanings, strict=True)
    ]


def _corpus(statistics: Statistics, new: Sequence[Features]) -> CorpusCounts:
    """The counts that weigh the tokens of new records: of those that are there, and of themselves."""
    corpus = CorpusCounts()
    corpus.size, corpus.length, corpus.tokens = statistics.size, statistics.length, statistics.tokens.copy()
    for features in new:
        corpus.size += 1
        corpus.tokens[features.tokens] += 1
    return corpus


def _with_embedder(row: ShelfRow, name: str, prepared: Sequence[_Prepared]) -> ShelfRow:
    """The shelf with what makes its vectors; raises if that is something else."""
    dimensions = next((len(each.vector) for each in prepared if len(each.vector)), 0)
    if not dimensions:
        return row
    if row.embedder and row.embedder != name:
        raise StoreError(other_embedder(row.embedder, name))
    if row.dimensions not in (0, dimensions):
        raise wrong_dimensions(row.dimensions, dimensions)
    return row._replace(embedder=name, dimensions=dimensions)


def other_embedder(kept: str, given: str) -> str:
    """That a memory was filled with another embedder."""
    return f"the memory was filled with {kept!r}: open it with that embedder, not {given!r}"


def _before(statements: Statements, shelf: int, prepared: Sequence[_Prepared]) -> dict[tuple[Kind, str], Kept]:
    """The records that are replaced."""
    return {
        (kind, key): kept
        for kind in {each.record.kind for each in prepared}
        for key, kept in statements.kept(
            shelf, kind, [each.record.key for each in prepared if each.record.kind == kind]
        ).items()
    }


def _places(
    statements: Statements, shelf: int, prepared: Sequence[_Prepared], before: Mapping[tuple[Kind, str], Kept]
) -> list[tuple[str, int]]:
    """The session and position of each record: that of the record it replaces, or the next."""
    sessions = [session_of(each.record) for each in prepared]
    last = statements.last_positions(shelf, sorted({session for session in sessions if session}))
    places: list[tuple[str, int]] = []
    for each, session in zip(prepared, sessions, strict=True):
        known = before.get((each.record.kind, each.record.key))
        if not session:
            places.append(("", 0))
        elif known is not None and known.session == session:
            places.append((session, known.position))
        else:
            last[session] = last.get(session, -1) + 1
            places.append((session, last[session]))
    return places


class _Contexts(NamedTuple):
    new: list[bytes]
    """Of the new records."""
    changed: list[tuple[int, bytes]]
    """Of their neighbours, by id."""


def _contexts(
    statements: Statements, shelf: int, prepared: Sequence[_Prepared], places: Sequence[tuple[str, int]]
) -> _Contexts:
    """The vectors of records in the light of their neighbours: of the new ones, and of those around them."""
    new: list[bytes] = [b""] * len(prepared)
    changed: list[tuple[int, bytes]] = []
    by_session: dict[str, list[int]] = {}
    for i, (session, _) in enumerate(places):
        if session and len(prepared[i].meaning):
            by_session.setdefault(session, []).append(i)
    for session, own in by_session.items():
        positions = [places[i][1] for i in own]
        low, high = min(positions) - REACH, max(positions) + REACH
        there = statements.meanings(shelf, session, low - REACH, high + REACH)
        vectors = [np.frombuffer(vector, "<f2") for *_, vector in there] + [prepared[i].meaning for i in own]
        where = [(session, position) for _, position, _ in there] + [(session, position) for position in positions]
        added = context_vectors(np.stack(vectors).astype("float32"), where)
        for (each, position, _), context in zip(there, added, strict=False):
            if low <= position <= high:
                changed.append((each, packed_vector(context)))
        for i, context in zip(own, added[len(there) :], strict=True):
            new[i] = packed_vector(context)
    return _Contexts(new, changed)


def _contexts_of(statements: Statements, shelf: int, session: str, positions: Sequence[int]) -> list[tuple[int, bytes]]:
    """The context vectors of the records around positions that are empty now."""
    low, high = min(positions) - REACH, max(positions) + REACH
    there = statements.meanings(shelf, session, low - REACH, high + REACH)
    if not there:
        return []
    vectors = np.stack([np.frombuffer(vector, "<f2") for *_, vector in there]).astype("float32")
    added = context_vectors(vectors, [(session, position) for _, position, _ in there])
    return [
        (each, packed_vector(context))
        for (each, position, _), context in zip(there, added, strict=True)
        if low <= position <= high
    ]


def _entry(prepared: _Prepared, place: tuple[str, int], context: bytes) -> Entry:
    record, features = prepared.record, prepared.features
    vector, meaning = packed_vector(prepared.vector), packed_vector(prepared.meaning)
    searched = record.kind in SEARCHED
    return Entry(
        kind=record.kind,
        key=record.key,
        session=place[0],
        position=place[1],
        created=created_of(record),
        agent=agent_of(record),
        own=features.own if searched else 0,
        alias=features.alias,
        features=features.pack(),
        vector=vector,
        meaning=b"" if meaning == vector else meaning,
        context=b"" if context in (vector, meaning) else context,
        text=record.text,
        data=prepared.data,
        terms=tuple(features.terms.tolist()) if searched else (),
        facets=tuple(facets_of(record.data)),
    )


def _link(statements: Statements, shelf: int, written: Sequence[tuple[int, _Prepared]], lost: set[int]) -> None:
    """Write what relationships link, and into the records that are known by these names what they are linked with."""
    edges = [(*_ends(each.record), i) for i, each in written if each.record.kind == "relationship"]
    both = [edge for one, other, i in edges if one != other for edge in ((one, other, i), (other, one, i))]
    statements.add_edges(shelf, both)
    names = {name for _, each in written for name in (each.features.own, each.features.alias)} - {0}
    linked_now = statements.linked(shelf, sorted({*names, *(one for one, _, _ in both)}))
    touched = sorted({*linked_now, *lost})
    if not touched:
        return
    known = statements.known_by(shelf, touched)
    links = statements.linked(shelf, sorted({name for _, own, alias in known for name in (own, alias)} - {0}))
    statements.set_links(
        shelf, [(each, _packed_names([*links.get(own, ()), *links.get(alias, ())])) for each, own, alias in known]
    )


def _ends(record: Record) -> tuple[int, int]:
    return number(canonical(str(record.data.get("source")))), number(canonical(str(record.data.get("target"))))


def _packed_names(names: Sequence[int]) -> bytes:
    return np.array(list(dict.fromkeys(names)), dtype="<u4").tobytes()


def _with_saved_statistics(statements: Statements, row: ShelfRow) -> ShelfRow:
    """Save the statistics if enough was written since, and let the database pack what it derives."""
    if row.pending < SAVED_EVERY:
        return row
    statistics = Statistics(lambda ids: words_of(statements, row.id, ids))
    if (saved := statements.statistics(row.id)) is not None:
        statistics.load(saved)
    count_new(statistics, statements, row)
    statements.save_statistics(row.id, statistics.snapshot())
    statements.pack(row)
    return row._replace(pending=0)
