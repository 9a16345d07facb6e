"""What the collector of cycles leaves alone, and when."""

from __future__ import annotations

import gc

import pytest

from deltic.session.collector import set_aside, without_collector


def test_what_was_set_aside_comes_back_also_after_an_error() -> None:
    held = [[0]]
    with pytest.raises(KeyError), set_aside():
        assert not any(each is held for each in gc.get_objects())
        raise KeyError
    assert any(each is held for each in gc.get_objects())


@pytest.mark.parametrize("enabled", [True, False])
def test_a_function_without_the_collector_leaves_it_as_it_was(enabled: bool) -> None:
    before = gc.isenabled()
    try:
        (gc.enable if enabled else gc.disable)()
        assert without_collector(gc.isenabled)() is False
        with pytest.raises(ZeroDivisionError):
            without_collector(lambda: 1 // 0)()
        assert gc.isenabled() is enabled
    finally:
        (gc.enable if before else gc.disable)()
