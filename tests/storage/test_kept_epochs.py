"""The note that keeps epochs readable."""

from __future__ import annotations

from pathlib import Path

from deltic.storage.manifest import KEEP, NO_TICK, Change
from deltic.storage.reader import StateReader
from deltic.storage.state import State
from stored import append, keys_of


def test_an_epoch_is_readable_while_a_note_names_it(tmp_path: Path) -> None:
    state = State.open(tmp_path, retain=1, whole_every=2)
    append(state, 1)
    state.commit(Change(notes={KEEP: (kept := state.epoch)}))
    for key in range(2, 9):
        append(state, key)
    with StateReader.open(tmp_path, kept) as reader:
        assert reader.epochs()[0] == kept
        assert keys_of(reader) == [1]
    state.commit(Change(notes={KEEP: None}))
    with StateReader.open(tmp_path) as reader:
        assert reader.epochs()[0] == state.epoch - 1
    state.close()


def test_the_last_tick_is_readable_until_the_next_one(tmp_path: Path) -> None:
    state = State.open(tmp_path, retain=0)
    append(state, 1)
    ticked = state.epoch
    for _ in range(3):
        state.commit(Change(notes={NO_TICK: [state.epoch + 1, ticked]}))
    assert state.manifest.last_tick == state.manifest.oldest == ticked
    append(state, 2)
    assert state.manifest.last_tick == state.manifest.oldest == state.epoch
    state.close()
