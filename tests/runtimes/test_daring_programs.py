"""Programs with expressions that may fail anywhere, most of them recursive: where the oracle does not fail, engines do not either."""

from __future__ import annotations

import pytest

from deltic.errors import DelticError
from engines import embedded, run
from parts import slow
from programs import expected, succeeding
from seeds import rotating


@pytest.mark.parametrize("seeds", [range(40), *slow(rotating(1_500))], ids=len)
def test_where_the_oracle_does_not_fail_engines_do_not(seeds: range) -> None:
    ran = failing = 0
    for seed in seeds:
        try:
            drawn = succeeding(seed)
        except DelticError:
            continue  # a recursion that does not converge, a type that does not fit
        if drawn is not None:
            program, failed = drawn
            run(embedded(program.tables, program.views, 1 + 2 * (seed % 2)), program, expected(program))
            ran, failing = ran + 1, failing + failed
    assert ran > len(seeds) // 3 and failing > len(seeds) // 4
