"""Modules that exist on the driver alone: functions in them travel to the workers with their code, instead of by name."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager
from types import ModuleType

from pyspark import cloudpickle


@contextmanager
def pickled_by_value(modules: Iterable[ModuleType]) -> Iterator[None]:
    """For the block, cloudpickle writes the functions and classes of these modules, which are in sys.modules, with their code."""
    with ExitStack() as stack:
        for module in modules:
            cloudpickle.register_pickle_by_value(module)  # type: ignore[no-untyped-call]
            stack.callback(cloudpickle.unregister_pickle_by_value, module)
        yield
