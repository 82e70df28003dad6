"""A parser of command lines that says what a misspelt word may have meant."""

from __future__ import annotations

import argparse
import difflib
from collections.abc import Iterable, Sequence
from typing import Any


class Parser(argparse.ArgumentParser):
    """An `ArgumentParser` for commands, their parts and their options; those of commands are of this class as well."""

    shows_words = True
    """False where a word on the command line may be part of a password, and is not repeated."""

    def has_option(self, flag: str) -> bool:
        """True if `flag` is an option here."""
        return flag in self._option_string_actions

    def parse_known_args(  # type: ignore[override]  # typeshed has overloads for a namespace of any type
        self, args: Sequence[str] | None = None, namespace: Any = None
    ) -> tuple[Any, list[str]]:
        """As argparse's, but what is left over is an error here, where the options are known."""
        options, left = super().parse_known_args(args, namespace)
        if left:
            words = [word.partition("=")[0] for word in left]
            wrong = next((word for word in words if word.startswith("-")), words[0])
            meant = _nearest(wrong, self._option_string_actions)
            if not (self.shows_words or meant):
                self.error("a word belongs to no option; a value with blanks needs quotes")
            self.error(f"{wrong} is not known here{meant}")
        return options, left

    def _check_value(self, action: argparse.Action, value: Any) -> None:
        if action.choices is not None and value not in action.choices and isinstance(value, str):
            names = [str(choice) for choice in action.choices]
            raise argparse.ArgumentError(
                action, f"{value!r} is none of {', '.join(names)}{_nearest(value, names)}"
            )


def _nearest(word: str, names: Iterable[str]) -> str:
    found = difflib.get_close_matches(word, list(names), n=1, cutoff=0.6)
    return f"; did you mean {found[0]}?" if found else ""
