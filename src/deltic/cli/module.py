"""Python modules that define programs or functions: `deltic run shop.py` imports shop.py and takes its variable `program`.

The module is imported under the name of its file, with its folder first in sys.path, as for `python shop.py`; only its __name__ differs, so
what is below `if __name__ == "__main__":` does not run. Errors have their place in the module wherever it can be determined: SQL that
stands in the module as written, and the line that raised.
"""

from __future__ import annotations

import sys
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.machinery import ModuleSpec
from importlib.util import decode_source, find_spec, module_from_spec
from os.path import basename, dirname
from pathlib import Path
from types import ModuleType, TracebackType
from typing import Final

from deltic.errors import DelticError, ModuleFailure, Span
from deltic.frontends.python import UDF, Circuit
from deltic.session import Program

VARIABLE: Final = "program"
OURS: Final = __name__.partition(".")[0]
_EXPECTED: Final = "a module-level variable: program = deltic.Program(…)"


@dataclass(frozen=True, slots=True)
class ProgramFile:
    """What a file defines. helpers: of a module, itself and what it imported from its folder: modules that workers do not have."""

    program: Program
    helpers: tuple[ModuleType, ...]


@dataclass(frozen=True, slots=True)
class FunctionFile:
    """The functions that a module defines. helpers: as of ProgramFile."""

    functions: tuple[UDF, ...]
    helpers: tuple[ModuleType, ...]


@contextmanager
def imported(path: Path) -> Iterator[ProgramFile]:
    """Imports the module for the block, and gives the errors of its program their place in it.

    Raises ModuleFailure if it cannot be imported or has no program, and DelticErrors that it raises itself.
    """
    with _executed(path) as (module, helpers):
        yield ProgramFile(_program(path, module), helpers)


@contextmanager
def imported_functions(path: Path) -> Iterator[FunctionFile]:
    """Imports the module for the block. Raises ModuleFailure if it cannot be imported or has no functions."""
    with _executed(path) as (module, helpers):
        functions = tuple(value for value in vars(module).values() if isinstance(value, UDF))
        if not functions:
            raise ModuleFailure(f"{path} has no functions", expected='module-level variables: double = deltic.UDF("double", …, int)')
        yield FunctionFile(functions, helpers)


@contextmanager
def _executed(path: Path) -> Iterator[tuple[ModuleType, tuple[ModuleType, ...]]]:
    source = _source(path)
    _check_name(path)
    modules, paths = dict(sys.modules), list(sys.path)
    try:
        with _placed(path, source):
            module = _run(path, source)
            yield module, _helpers(path, modules)
    finally:
        sys.path[:] = paths
        for module in _helpers(path, modules):
            sys.modules.pop(module.__name__, None)


def _source(path: Path) -> str:
    try:
        return decode_source(path.read_bytes())
    except (UnicodeDecodeError, SyntaxError) as error:
        raise ModuleFailure(f"{path}: {error}", expected="a Python module in UTF-8, or with a declared encoding") from error


def _check_name(path: Path) -> None:
    """Raises ModuleFailure if Python cannot import the file by its name, or imports something else by it."""
    name = path.stem
    if not name.isidentifier():
        message = f"Python cannot import {path} by the name {name!r}"
        raise ModuleFailure(message, expected="a name of letters, digits and _", remedy="rename the file")
    spec = sys.modules[name].__spec__ if name in sys.modules else find_spec(name)
    if name in sys.modules or (spec is not None and not _is_same(spec, path)):
        origin = "" if spec is None or not spec.origin else f", {spec.origin}"
        raise ModuleFailure(f"{path} has the name of another module{origin}", remedy="rename the file")


def _is_same(spec: ModuleSpec, path: Path) -> bool:
    return bool(spec.origin) and Path(str(spec.origin)).resolve() == path.resolve()


def _run(path: Path, source: str) -> ModuleType:
    """The module, executed. Its code is compiled from the source each time: cached code may be older than it looks."""
    module = module_from_spec(ModuleSpec(path.stem, None, origin=str(path)))
    module.__file__ = str(path.absolute())
    sys.modules[path.stem] = module
    sys.path.insert(0, str(path.absolute().parent))
    try:
        exec(compile(source, str(path), "exec", dont_inherit=True), vars(module))
    except DelticError as error:
        if error.span is None:
            error.move(_raised_at(error.__traceback__, path, source))
        raise
    except SyntaxError as error:
        raise _syntax_failure(error, path, source) from error
    except (Exception, SystemExit) as error:
        raise _import_failure(error, path, source) from error
    return module


def _program(path: Path, module: ModuleType) -> Program:
    program = getattr(module, VARIABLE, None)
    if isinstance(program, Program):
        return program
    if isinstance(program, Circuit):
        raise ModuleFailure(f"{VARIABLE} in {path} is a deltic.Circuit", expected=_EXPECTED, remedy=f"{VARIABLE} = deltic.Program(circuit)")
    if hasattr(module, VARIABLE):
        raise ModuleFailure(f"{VARIABLE} in {path} is {_described(program)}", expected=_EXPECTED)
    named = [name for name, value in vars(module).items() if isinstance(value, Program)]
    remedy = f"rename {named[0]} to {VARIABLE}" if len(named) == 1 else None
    raise ModuleFailure(f"{path} has no variable {VARIABLE}", expected=_EXPECTED, remedy=remedy)


def _described(value: object) -> str:
    return "None" if value is None else f"of class {type(value).__qualname__}"


def _helpers(path: Path, before: dict[str, ModuleType]) -> tuple[ModuleType, ...]:
    """The module, and the modules and packages of its folder, that have been imported since `before`."""
    folder = str(path.absolute().parent)
    return tuple(module for name, module in list(sys.modules.items()) if name not in before and _is_beside(name, folder))


def _is_beside(name: str, folder: str) -> bool:
    """Whether a module, or the package that it is part of, lies directly in the folder. Deltic's own modules may be imported late."""
    top = name.partition(".")[0]
    package = sys.modules.get(top)
    file = getattr(package, "__file__", None) or next(iter(getattr(package, "__path__", ())), None)
    if top == OURS or not isinstance(file, str):
        return False
    return dirname(dirname(file) if hasattr(package, "__path__") and basename(file).startswith("__init__.") else file) == folder


@contextmanager
def _placed(path: Path, source: str) -> Iterator[None]:
    """Errors in SQL that the module contains as written are errors at its place in the module."""
    try:
        yield
    except DelticError as error:
        span = error.span
        if span is not None and span.name == "<sql>" and source.count(span.text) == 1:
            offset = source.index(span.text)
            error.move(Span(source, offset + span.start, offset + span.end, str(path)))
        raise


def _syntax_failure(error: SyntaxError, path: Path, source: str) -> ModuleFailure:
    if error.filename != str(path):  # of a module that this one imports
        return _import_failure(error, path, source)
    start = _line_start(source, error.lineno or 1) + max(0, (error.offset or 1) - 1)
    return ModuleFailure(f"the module has a syntax error: {error.msg}", span=Span(source, start, start + 1, str(path)))


def _import_failure(error: BaseException, path: Path, source: str) -> ModuleFailure:
    frames = traceback.extract_tb(error.__traceback__)
    elsewhere = f", in {frames[-1].filename}:{frames[-1].lineno}" if frames and frames[-1].filename != str(path) else ""
    message = f"importing the module raised {type(error).__qualname__}: {error}{elsewhere}"
    return ModuleFailure(message, span=_raised_at(error.__traceback__, path, source))


def _raised_at(trace: TracebackType | None, path: Path, source: str) -> Span:
    """The line of the module that raised, or called what raised."""
    numbers = [frame.lineno or 1 for frame in traceback.extract_tb(trace) if frame.filename == str(path)]
    start = _line_start(source, numbers[-1] if numbers else 1)
    line = source[start:].split("\n", 1)[0]
    start += len(line) - len(line.lstrip())
    return Span(source, start, start + len(line.strip()), str(path))


def _line_start(source: str, number: int) -> int:
    """The position of a line, counted from 1."""
    return sum(len(line) + 1 for line in source.split("\n")[: number - 1])
