"""The shell of `deltic edn` in a terminal: history, completion of attributes, variables and commands, help, and errors in colour."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final

from prompt_toolkit.completion import CompleteEvent, Completer, Completion
from prompt_toolkit.document import Document
from prompt_toolkit.history import History
from prompt_toolkit.input import Input
from prompt_toolkit.output import Output

from deltic.cli.edn_commands import COMMANDS, FormRunner
from deltic.cli.terminal import converse_by
from deltic.frontends.edn.bind_query import AGGREGATES
from deltic.frontends.edn.functions import FUNCTION_NAMES
from deltic.frontends.edn.read import is_open

KEYWORDS: Final = (":find", ":keys", ":in", ":with", ":where", ":order-by", ":limit", ":offset", ":db/id", ":db/add", ":db/retract")
OPERATIONS: Final = (":db/retractEntity", ":db/cas")
CALLS: Final = ("pull", "not", "not-join", "or", "or-join", "and")
_WORD: Final = re.compile(r"[^\s,()\[\]{}\"]*$")
_VARIABLE: Final = re.compile(r"\?[^\s,()\[\]{}\"]+")


def converse(runner: FormRunner, *, history: History | None = None, input: Input | None = None, output: Output | None = None) -> None:
    """Reads forms, each until its brackets are closed, until `exit` or the end of the input. An error ends no session."""
    prompt = f"{runner.store.name}=> "
    converse_by(
        lambda text: runner.run_text(text, "<terminal>"),
        "edn",
        prompt,
        FormCompleter(runner),
        is_open,
        continuation=" " * len(prompt),
        history=history,
        input=input,
        output=output,
    )


class FormCompleter(Completer):
    """Completes attributes and keywords after a colon, variables after a question mark, and after ( what may be called."""

    def __init__(self, runner: FormRunner) -> None:
        self._runner = runner

    def get_completions(self, document: Document, complete_event: CompleteEvent) -> Iterable[Completion]:
        """The names that the word before the cursor begins; none within a string."""
        before = document.text_before_cursor
        if len(re.findall(r'(?<!\\)"', before)) % 2:
            return
        match = _WORD.search(before)
        word = match[0] if match else ""
        yield from (Completion(name, -len(word)) for name in self._names(word, before[: len(before) - len(word)], document.text))

    def _names(self, word: str, before: str, text: str) -> list[str]:
        if word.startswith(":"):
            names = [*self._attributes(), *KEYWORDS, *OPERATIONS]
        elif word.startswith("?"):
            names = sorted({one for one in _VARIABLE.findall(text) if one != word})
        elif before.endswith("("):
            names = [*COMMANDS] if before.strip() == "(" else [*self._rules(), *CALLS, *FUNCTION_NAMES, *AGGREGATES]
        else:
            names = [*COMMANDS] if word and not before.strip() else []
        return [one for one in dict.fromkeys(names) if one.startswith(word)]

    def _attributes(self) -> list[str]:
        attributes = self._runner.store.schema.attributes.values()
        reverse = (one.name.rpartition("/") for one in attributes if one.is_ref)
        return [f":{one.name}" for one in attributes] + [f":{space}{slash}_{name}" for space, slash, name in reverse]

    def _rules(self) -> list[str]:
        return self._runner.rule_names
