"""Memory that is lent again: never while an array refers to it, and not more of it than the limit is kept."""

from __future__ import annotations

from threading import Thread

import numpy as np

from deltic.kernels.recycled import LEAST, Recycler

WORDS = LEAST // 8


def test_memory_is_lent_again_when_nothing_refers_to_it() -> None:
    recycler = Recycler()
    first = recycler.words(WORDS)
    place = first.ctypes.data
    part = first.reshape(4, -1)[2, 5:9]
    del first
    assert recycler.nbytes == 0  # the part refers to it
    other = recycler.words(WORDS)
    assert other.ctypes.data != place
    del part
    assert recycler.nbytes == LEAST
    assert (again := recycler.words(WORDS - 100)).ctypes.data == place and len(again) == WORDS - 100
    assert recycler.nbytes == 0


def test_memory_of_another_size_is_not_lent() -> None:
    recycler = Recycler()
    recycler.words(WORDS)
    assert recycler.nbytes == LEAST
    kept = recycler.words(2 * WORDS)
    assert recycler.nbytes == LEAST and len(kept) == 2 * WORDS


def test_the_oldest_memory_is_given_up_beyond_the_limit() -> None:
    recycler = Recycler(most=3 * LEAST)
    arrays = [recycler.words(WORDS) for _ in range(3)]
    large = recycler.words(8 * WORDS)
    places = [array.ctypes.data for array in arrays]
    while arrays:
        del arrays[0]
    assert recycler.nbytes == 3 * LEAST
    two = recycler.words(2 * WORDS)
    del two
    assert recycler.nbytes == 3 * LEAST
    assert recycler.words(WORDS).ctypes.data == places[2]
    del large
    assert recycler.nbytes <= 3 * LEAST


def test_threads_have_memory_of_their_own() -> None:
    recycler = Recycler()
    wrong: list[int] = []

    def work(number: int) -> None:
        for _ in range(300):
            words = recycler.words(WORDS)
            words[::512] = number
            if not np.all(words[::512] == number):
                wrong.append(number)

    threads = [Thread(target=work, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong and recycler.nbytes <= 4 * LEAST
