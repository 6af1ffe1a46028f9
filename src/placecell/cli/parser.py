"""argparse, with mistakes as `InputError`."""

from __future__ import annotations

import argparse
from typing import Any, NoReturn

from placecell.errors import InputError, unknown


class Parser(argparse.ArgumentParser):
    """argparse, but a mistake is an `InputError`: one sentence that says what to do."""

    def __init__(self, **kwargs: Any) -> None:
        kwargs["formatter_class"] = argparse.RawDescriptionHelpFormatter
        super().__init__(**kwargs, allow_abbrev=False)

    def error(self, message: str) -> NoReturn:
        """Raise an InputError, so that all bad input is reported alike.

        Parameters
        ----------
        message : str
            What argparse says.
        """
        raise InputError(f"{message}; see `{self.prog} --help`.")

    def options(self) -> list[str]:
        """Return every option that this parser knows, as it is written.

        Returns
        -------
        list of str
        """
        return [text for action in self._actions for text in action.option_strings]

    def _check_value(self, action: argparse.Action, value: Any) -> None:
        if isinstance(action, argparse._SubParsersAction) and value not in action.choices:
            raise unknown("command", value, action.choices)
        super()._check_value(action, value)
