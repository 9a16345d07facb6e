"""Strings as ids: keyed 64-bit hashes, the same on every shard, with a table id → bytes against which every use is verified.

Always: an id in use can be decoded, and stands for one string. A string whose hash collides with another's gets another id; a table that
may not choose one raises CollidingStrings.
NULL is the marker INT64_MIN, which no string has. Ids have no order: `order_words` returns words that have.
One thread at a time adds strings; others read concurrently without waiting, in arrays that are only added to, or replaced as a whole.
"""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import AbstractContextManager
from threading import RLock
from typing import Final, Protocol

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from deltic.errors import CorruptState
from deltic.kernels import export, text
from deltic.kernels.table import address
from deltic.trace.entries import MARKER, Entries, ExportedStrings, Located, Words, distinct_ids
from deltic.trace.identity import Identity, StringColumn

ENTRY_BYTES: Final = 32
"""Per string, besides its own bytes: its id, its start, and two slots."""
SPARE: Final = 1 << 28
"""Bytes of strings up to which they get four times their room, not twice: memory that is not used yet is only addresses."""
ONE_BY_ONE: Final = 8
"""So many strings are compared by Python: Arrow's calls would take longer."""
PREFIX_BYTES: Final = text.PREFIX_BYTES
LONG: Final = text.LONG


class StringSource(Protocol):
    """Strings that are kept elsewhere (on Spark, in the files of a shard)."""

    def find(self, ids: Words) -> tuple[npt.NDArray[np.bool_], pa.BinaryArray]:
        """(bool[n] whether id i is present, the bytes of those that are, in order)."""
        ...


class CollidingStrings(Exception):
    """Strings whose ids collide and which need other ids. Caught within Deltic; never a user's error."""

    def __init__(self, strings: frozenset[bytes]) -> None:
        super().__init__(f"the ids of {len(strings)} strings collide")
        self.strings = strings


class UnknownString(CorruptState):
    """An id that was never assigned, or whose string has been dropped since."""


class StringTable:
    """Grows by interning. One thread may intern while others decode.

    identity: how strings get ids, common to all tables of a state; None if strings are only decoded. parent: where absent ids are looked
    up; what it has of them is kept here too. resolves: whether a string whose hash collides with another's gets another id here; if not,
    that raises CollidingStrings, and the table must not be used afterwards.
    """

    def __init__(self, identity: Identity | None, parent: StringSource | None = None, *, resolves: bool = True) -> None:
        self._identity, self.parent, self._resolves = identity, parent, resolves
        self._colliding: set[bytes] = set()
        self._collections = 0
        self.lock = RLock()
        """Held while strings are added."""
        self._entries = Entries.with_room(1 << 9, 1 << 13)
        self._exported: tuple[Entries, Words] | None = None
        self._inherited: list[tuple[int, int]] = []
        """Ranges of entries that were copied from the parent."""

    @property
    def identity(self) -> Identity:
        """How strings get ids here; replaced when a collision is resolved."""
        assert self._identity is not None, "strings are only decoded here"
        return self._identity

    @property
    def version(self) -> tuple[int, Identity]:
        """Ids that a string had under the same version are still its ids."""
        return self._collections, self.identity

    def __len__(self) -> int:
        """How many strings the table has, those copied from the parent included."""
        return int(self._entries.used[text.ENTRIES])

    @property
    def entries(self) -> Entries:
        """The strings that are here, for kernels that read while others add."""
        return self._entries

    @property
    def exported(self) -> tuple[Entries, Words]:
        """The strings that are here, and where the kernel that writes frames finds them, as long as these entries are kept."""
        entries, held = self._entries, self._exported
        if held is None or held[0] is not entries:
            held = self._exported = entries, np.array((*export.MEMORY, *entries.located), np.int64)
        return held

    @property
    def used_bytes(self) -> int:
        """Bytes of memory that the strings take, without spare room."""
        count = len(self)
        return int(self._entries.starts[count]) + ENTRY_BYTES * count

    def intern(self, array: pa.Array) -> Words:
        """The ids of strings (string or binary, large or not, or a dictionary of them), int64[n]; NULL gives the marker. O(bytes).

        Raises CollidingStrings.
        """
        if pa.types.is_dictionary(array.type):
            return self._intern_dictionary(array)
        return self._intern(array)

    def _intern_dictionary(self, array: pa.DictionaryArray) -> Words:
        if len(array.dictionary) > len(array):
            return self._intern(array.dictionary.take(array.indices))
        ids = np.append(self._intern(array.dictionary), MARKER)
        result: Words = ids[pc.fill_null(array.indices.cast(pa.int64()), len(array.dictionary)).to_numpy()]
        return result

    def _intern(self, array: pa.Array) -> Words:
        run = StringColumn.of(array)
        identity = self.identity
        ids, firsts = identity.ids_and_firsts(run)
        with self.lock:
            if self._identity is not identity:  # another thread has resolved a collision
                identity = self.identity
                ids, firsts = identity.ids_and_firsts(run)
            if self.parent is not None:
                self._inherit(firsts)
            self._insert(run, firsts)
            if self._colliding:
                raise CollidingStrings(frozenset(self._colliding))
            return ids if self._identity is identity else self.identity.ids(run)

    def intern_frame(self, frame: int, plan: Words, target: int, total: int, row: int) -> int:
        """`intern` for several columns of an Arrow frame, as for the kernel: how many of them are done; `intern` must do the others.

        text.INVALID if a string is no value of its column.
        """
        with self.lock:
            identity, done = self.identity, 0
            if self.parent is not None or identity.overrides:
                return 0
            while True:
                entries = self._entries
                room = np.array([len(entries.ids), len(entries.arena)], np.int64)
                arguments = (frame, plan, done, target, total, row, *identity.halves, identity.bits)
                done = text.intern_frame(*arguments, *entries[:3], room, entries.arena, entries.used)
                if done == text.COLLISION:
                    return int(entries.used[text.NEW])
                if done >= text.INVALID:
                    return done
                done = text.FULL - done
                self._grow(int(entries.used[text.NEEDED]), 0)

    def _insert(self, run: StringColumn, ids: Words) -> None:
        """Enters the first strings under these ids, but those whose id is the marker, and replaces in `ids` those that collide."""
        done = 0
        while done < len(ids):
            entries = self._entries
            room = np.array([len(entries.ids), len(entries.arena)], np.int64)
            done = text.insert(*run.place, done, ids, *entries[:3], room, entries.arena, entries.used)
            if done == text.COLLISION:
                done = int(entries.used[text.NEW])
                ids[done] = self._resolved(run.bytes_of(done), int(ids[done]))
            elif done < 0:
                done = text.FULL - done
                self._grow(run.size(done, done + 1), run.size(done, len(ids)))

    def _grow(self, needed: int, expected: int) -> None:
        """Makes room for `needed` more bytes, of `expected` to come. Readers keep the arrays that they hold.

        What is about to be full grows too: entries and bytes are seldom copied twice.
        """
        old, n = self._entries, len(self)
        entries, size = len(old.ids), int(old.starts[n])
        if 2 * n >= entries:
            entries *= 4
        room = len(old.arena)
        if 2 * (size + needed) > room:
            more = max(4 * room, size + needed) if room < SPARE else max(2 * room, size + needed)
            room = max(more, size + min(expected, 1 << 26))
        new = Entries.with_room(entries, room)
        new.ids[:n], new.starts[: n + 1], new.arena[:size] = old.ids[:n], old.starts[: n + 1], old.arena[:size]
        new.used[:] = old.used
        if len(new.slots) == len(old.slots):
            new.slots[:] = old.slots
        else:
            text.rehash(new.slots, new.ids, n)
        self._entries, self._exported = new, None

    def _inherit(self, ids: Words) -> None:
        """Copies the strings of absent ids that the parent has, so that strings are verified against them."""
        assert self.parent is not None
        own = self._look_up(ids)
        if not own.missing:
            return
        absent = np.unique(ids[own.places < -1])
        present, values = self.parent.find(absent)
        if len(inherited := absent[present]):
            start = len(self)
            self._insert(StringColumn.of(values), np.ascontiguousarray(inherited))
            self._inherited.append((start, len(self)))

    def _resolved(self, string: bytes, colliding: int) -> int:
        """Another id for a string whose id collides; the marker if this table does not resolve collisions."""
        if not self._resolves:
            self._colliding |= {string, self._entry(colliding)}
            return int(MARKER)
        if (override := self.identity.overrides.get(string, colliding)) != colliding:
            return override
        unused = self._unused(string)
        self._identity = self.identity.overridden(string, unused)
        return unused

    def _unused(self, string: bytes) -> int:
        """An id that no string has, for a string whose hash collides."""
        return next(id_ for id_ in self.identity.candidates(string) if self._is_free(id_))

    def _entry(self, id_: int) -> bytes:
        value: bytes = self._look_up(np.array([id_])).texts(pa.binary())[0].as_py()
        return value

    def _is_free(self, id_: int) -> bool:
        ids = np.array([id_])
        held = self._look_up(ids).missing == 0 or (self.parent is not None and bool(self.parent.find(ids)[0][0]))
        return not held and id_ not in self.identity.overrides.values()

    def clashing(self, ids: Words, values: pa.LargeBinaryArray) -> frozenset[bytes]:
        """Those of these strings that cannot have these ids, since others of them, or strings here or in the parent, have them.

        Keeps none of them. O(n log n) and the cost of the parent's `find`.
        """
        order = np.argsort(ids, kind="stable")
        ids, values = ids[order], values.take(pa.array(order))
        repeated = np.flatnonzero(ids[1:] == ids[:-1])
        clashing = _differing(values.take(pa.array(repeated)), values.take(pa.array(repeated + 1)))
        with self.lock:
            present, texts = self.find(ids)
            clashing |= _differing(values.filter(pa.array(present)), texts)
            if self.parent is not None:
                ids, values = ids[~present], values.filter(pa.array(~present))
                present, texts = self.parent.find(ids)
                clashing |= _differing(values.filter(pa.array(present)), texts)
        return frozenset(clashing)

    def _look_up(self, ids: Words) -> Located:
        entries = self._entries
        places, offsets = np.empty(len(ids), np.int64), np.empty(len(ids) + 1, np.int64)
        missing = text.locate(address(ids), *entries[:4], places, offsets)
        return Located(entries, places, offsets, missing)

    def located(self, ids: Words) -> Located:
        """The entries of ids; copies strings that only the parent has. Raises UnknownString for an absent id."""
        ids = np.ascontiguousarray(ids)
        located = self._look_up(ids)
        if located.missing and self.parent is not None:
            with self.lock:
                self._inherit(ids)
                located = self._look_up(ids)
        if located.missing:
            raise UnknownString(f"string ids that are not, or no longer, in the dictionary: {located.missing}")
        return located

    def known(self, array: pa.Array) -> Words:
        """The ids by which strings are looked up: their own if they are here or in the parent, else ids that no string has.

        Keeps none of them.
        """
        run = StringColumn.of(array)
        with self.lock:
            ids = self.identity.ids(run)
            if self.parent is not None:
                self._inherit(ids)
            for i in self._differing(run, ids):
                ids[i] = self._unused(run.bytes_of(i))
        return ids

    def _differing(self, run: StringColumn, ids: Words) -> list[int]:
        """The positions of strings that are not what is stored under these ids."""
        located = self._look_up(ids)
        if run.n > ONE_BY_ONE:
            same = pc.fill_null(pc.equal(located.texts(pa.large_binary()), run.array.cast(pa.large_binary())), False)
            return np.flatnonzero(~np.asarray(same) & (ids != MARKER)).tolist()
        stored, ends = located.joined()[0].tobytes(), located.offsets.tolist()
        places = enumerate(located.places.tolist())
        return [i for i, place in places if place < -1 or (place >= 0 and stored[ends[i] : ends[i + 1]] != run.bytes_of(i))]

    def find(self, ids: Words) -> tuple[npt.NDArray[np.bool_], pa.BinaryArray]:
        """(bool[n] whether id i is present, the bytes of those that are, in order): a table can be another's parent."""
        located = self._look_up(np.ascontiguousarray(ids))
        return located.places >= 0, located.texts(pa.binary()).drop_null()

    def decode(self, ids: Words) -> pa.StringArray:
        """The strings of ids, int64[n]; NULL for the marker. O(bytes). Raises UnknownString for an absent id.

        Raises CorruptState for bytes that are not UTF-8, which only a dictionary can have that Deltic did not write.
        """
        texts = self.located(ids).texts(pa.string())
        try:
            texts.validate(full=True)
        except pa.ArrowInvalid:
            raise CorruptState("a string of the state is not UTF-8", expected="a dictionary that Deltic wrote") from None
        return texts

    def bytes_of(self, ids: Words) -> pa.BinaryArray:
        """As `decode`, but the bytes, unchecked."""
        return self.located(ids).texts(pa.binary())

    def order_words(self, ids: Words) -> tuple[Words, Words, Words]:
        """Three signed words that sort like the bytes: the first 23, zero-padded, then a byte, the length + 1 (25 for all longer strings).

        NULL has the marker in each, and so sorts before every string.
        """
        entries, places, _, _ = self.located(ids)
        first, second, third = (np.empty(len(places), np.int64) for _ in range(3))
        text.prefixes(places, entries.starts, entries.arena, first, second, third)
        return first, second, third

    def exceeds_prefix(self, ids: Words) -> npt.NDArray[np.bool_]:
        """Whether a string has PREFIX_BYTES or more, so that its order words do not tell it from all others; False for NULL."""
        sizes = np.diff(self.located(ids).offsets)
        long: npt.NDArray[np.bool_] = sizes >= PREFIX_BYTES
        return long

    def export(self, ids: Words) -> ExportedStrings:
        """The strings of these ids; NULL has none. Raises UnknownString for an absent id."""
        distinct = distinct_ids(ids)
        located = self.located(distinct)
        return ExportedStrings(distinct, located.offsets, located.joined()[0])

    def absorb(self, exported: ExportedStrings) -> None:
        """Adds strings that another table of the same identity exported. Raises CollidingStrings."""
        ids = self._intern(exported.values)
        assert np.array_equal(ids, exported.ids), "ids of another state"

    def fresh(self) -> ExportedStrings:
        """The strings that were added here and are not in the parent, as from `export`."""
        entries, start, parts = self._entries, 0, []
        for inherited, end in [*self._inherited, (len(self), len(self))]:
            parts.append(entries.ids[start:inherited])
            start = end
        return self.export(np.concatenate(parts))

    def stable(self) -> AbstractContextManager[None]:
        """For code that interns strings and decodes them while other threads may drop some. Raises UnknownString if strings were dropped.

        An id from before may then stand for another string.
        """
        return _Stable(self)

    def retain(self, parts: Iterable[Words], least: int = 0) -> int:
        """Drops all strings but those whose ids are in these parts, if they take `least` bytes or more; ignores absent ids.

        Returns the bytes of those whose ids are in the parts. O(ids + bytes kept), O(ids) if none are dropped.
        """
        with self.lock:
            entries, marks = self._entries, np.zeros(len(self), np.uint8)
            for ids in parts:
                text.mark(address(np.ascontiguousarray(ids)), len(ids), *entries[:2], marks)
            live = marks.view(bool)
            dead = np.flatnonzero(~live)
            dropped = int((entries.starts[dead + 1] - entries.starts[dead]).sum()) + ENTRY_BYTES * len(dead)
            if dropped < max(least, 1):
                return self.used_bytes - dropped
            inherited = np.zeros(len(live), bool)
            for start, end in self._inherited:
                inherited[start:end] = True
            rest = np.concatenate((np.flatnonzero(live & inherited), np.flatnonzero(live & ~inherited)))  # the parent's become one range
            offsets = np.append(0, np.cumsum(entries.starts[rest + 1] - entries.starts[rest]))
            kept = StringTable(None)
            kept._entries = Entries.with_room(max(1 << 9, 1 << int(2 * len(rest)).bit_length()), max(1 << 13, 2 * int(offsets[-1])))
            kept._insert(StringColumn.of(Located(entries, rest, offsets, 0).texts(pa.large_binary())), entries.ids[rest])
            self._inherited = [(0, int((live & inherited).sum()))]
            self._entries, self._exported = kept._entries, None
            self._collections += 1
            return self.used_bytes


class HashedStrings(StringTable):
    """Hashes strings that are only looked up, and keeps none."""

    def intern_frame(self, frame: int, plan: Words, target: int, total: int, row: int) -> int:
        return 0

    def _intern(self, array: pa.Array) -> Words:
        return self.identity.ids(StringColumn.of(array))


class SoughtStrings(HashedStrings):
    """Strings of keys that are looked up among those of a table; keeps none."""

    def __init__(self, table: StringTable) -> None:
        super().__init__(table.identity)
        self._table = table

    def _intern(self, array: pa.Array) -> Words:
        return self._table.known(array)

    def located(self, ids: Words) -> Located:
        """The entries of the table."""
        return self._table.located(ids)


class StringsBelow:
    """The strings of a table and of its parent, for a table that has both as its parent."""

    def __init__(self, table: StringTable) -> None:
        self._table = table

    def find(self, ids: Words) -> tuple[npt.NDArray[np.bool_], pa.BinaryArray]:
        """As StringTable.find; what only the parent has is kept in the table."""
        if self._table.parent is not None:
            with self._table.lock:
                self._table._inherit(np.ascontiguousarray(ids))
        return self._table.find(ids)


def _differing(left: pa.Array, right: pa.Array) -> set[bytes]:
    """The strings of unequal pairs."""
    unequal = pc.not_equal(left.cast(pa.large_binary()), right.cast(pa.large_binary()))
    return {*left.filter(unequal).to_pylist(), *right.filter(unequal).to_pylist()}


class _Stable(AbstractContextManager[None]):
    """See `StringTable.stable`."""

    __slots__ = ("_collections", "_strings")

    def __init__(self, strings: StringTable) -> None:
        self._strings, self._collections = strings, strings._collections

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if kind is None and self._strings._collections != self._collections:
            raise UnknownString("strings were dropped while their ids were read")
