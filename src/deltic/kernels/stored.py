"""Compiled kernels as bytes: machine code and what numba needs to call it. Nothing of it is a pickle, so reading it runs nothing.

The bytes are the digest of the rest, the length of a header in JSON, the header, the object code, and LLVM's bitcode, which is read only
when a kernel that calls this one by its name is compiled. What can be derived from the function and its declared signature is not stored.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from typing import Any, Final

import llvmlite.binding as llvm
import numpy as np
from numba.core import typing
from numba.core.codegen import JITCodeLibrary
from numba.core.compiler import CompileResult
from numba.core.environment import Environment, lookup_environment
from numba.core.funcdesc import PythonFunctionDescriptor
from numba.core.runtime import rtsys

_DIGEST: Final = hashlib.sha256().digest_size
_LENGTH: Final = 4


class Unstorable(Exception):
    """A compiled function that holds more than a kernel does."""


class _Library(JITCodeLibrary):  # type: ignore[misc]
    """Code that was read. Its bitcode is parsed when another function is linked with it."""

    bitcode: bytes
    _shared_module: Any  # of numba's class, None at first

    def _get_module_for_linking(self) -> Any:
        if self._shared_module is None:
            self._shared_module = llvm.parse_bitcode(self.bitcode)
        return self._shared_module


def encoded(result: Any, returns: Any) -> bytes:
    """A compiled kernel that is declared to return `returns`."""
    about = result.fndesc
    if result.signature.return_type != returns:
        raise Unstorable(f"it is declared to return {returns} and returns {result.signature.return_type}")
    if result.objectmode or result.lifted or result.reload_init or about.global_dict is not None:
        raise Unstorable("it is not compiled machine code alone")
    code: bytes
    bitcode: bytes
    _, _, (code, bitcode) = result.library.serialize_using_object_code()
    header = {
        "tags": list(about.abi_tags),
        "uid": about.uid,
        "noalias": about.noalias,
        "constants": _constants(result.environment),
        "environments": {each.env_name: _constants(each) for each in result._find_referenced_environments()},
        "code": len(code),
    }
    text = json.dumps(header).encode()
    content = len(text).to_bytes(_LENGTH, "little") + text + code + bitcode
    return hashlib.sha256(content).digest() + content


def checked(stored: bytes) -> bytes | None:
    """What `decoded` takes; None if a byte is not as it was written."""
    digest, content = stored[:_DIGEST], stored[_DIGEST:]
    return content if hashlib.sha256(content).digest() == digest else None


def decoded(content: bytes, function: Callable[..., Any], arguments: tuple[Any, ...], returns: Any, target: Any) -> Any:
    """The compiled kernel, callable. numba's declarations of what can be compiled, which take long to load, are not needed for it."""
    rtsys.initialize(target)
    start = _LENGTH + int.from_bytes(content[:_LENGTH], "little")
    header = json.loads(content[_LENGTH:start])
    end = start + header["code"]
    about = _descriptor(function, arguments, returns, header)
    library = _loaded(target.codegen(), about, content[start:end], content[end:])
    environment = _environment(about.env_name, function, header["constants"])
    entry = target.get_executable(library, about, environment)
    others = [_environment(name, function, constants) for name, constants in header["environments"].items() if name != about.env_name]
    for each in others:
        library.codegen.set_env(each.env_name, each)
    fields = {
        "typing_context": target.typing_context,
        "target_context": target,
        "entry_point": entry,
        "type_annotation": "",
        "signature": typing.signature(returns, *arguments),
        "objectmode": False,
        "lifted": (),
        "fndesc": about,
        "library": library,
        "environment": environment,
        "reload_init": (),
        "referenced_envs": others,
    }
    return CompileResult(**{field: fields.get(field) for field in CompileResult._fields})


def _descriptor(function: Callable[..., Any], arguments: tuple[Any, ...], returns: Any, header: dict[str, Any]) -> Any:
    code = function.__code__
    return PythonFunctionDescriptor(
        native=True,
        modname=function.__module__,
        qualname=function.__qualname__,
        unique_name=f"{function.__qualname__}${header['uid']}",
        doc=function.__doc__ or "",
        typemap=None,
        restype=returns,
        calltypes=None,
        args=code.co_varnames[: code.co_argcount],
        kws=(),
        argtypes=arguments,
        noalias=header["noalias"],
        abi_tags=tuple(header["tags"]),
        uid=header["uid"],
    )


def _loaded(codegen: Any, about: Any, code: bytes, bitcode: bytes) -> Any:
    """The library of machine code. Raises KeyboardInterrupt also for an interrupt that came in the call by which LLVM fetches the code.

    Python prints an exception in such a call and drops it, and LLVM then has a library without code, whose first call would be a crash.
    """
    library = _Library(codegen, about.qualname)
    library.bitcode = bitcode
    library.enable_object_caching()
    library._set_compiled_object(code)
    library._finalize_final_module()
    names = about.llvm_func_name, about.llvm_cpython_wrapper_name
    if not all(map(codegen._engine._ee.get_function_address, names)):
        raise KeyboardInterrupt("while a kernel was loaded")
    codegen._engine._defined_symbols.update(names)
    return library


def _constants(environment: Any) -> list[str]:
    """The Python objects that machine code refers to: of kernels, the types of the arrays that they return."""
    for each in environment.consts:
        if not isinstance(each, np.dtype) or each.hasobject or each.names:
            raise Unstorable(f"it refers to {each!r}")
    return [each.str for each in environment.consts]


def _environment(name: str, function: Callable[..., Any], constants: list[str]) -> Any:
    """One for each name, as numba has it: code that is compiled later shares it."""
    if (known := lookup_environment(name)) is not None:
        return known
    environment = Environment._memo[name] = Environment(function.__globals__)
    environment.env_name = name
    environment.consts.extend(np.dtype(each) for each in constants)
    return environment
