"""Turns: how long loops of the native body let other threads run."""

from __future__ import annotations


def give_turn() -> None:
    """Do nothing. As at the beginning of every function of Python's, a thread that has waited for its turn gets it
    here, and a signal's handler is called.
    """
