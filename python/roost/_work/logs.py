"""How workers write their log: ``[INFO 12:34:56 group-Rank-0][train.py:12] text`` on their stdout; and how a
driver shows what they write."""

import logging
import os
import sys
from collections.abc import Mapping
from typing import Any

from roost import _roost
from roost._plan.errors import fault

LEVELS = {
    "DEBUG": logging.DEBUG,
    "INFO": logging.INFO,
    "WARN": logging.WARNING,
    "WARNING": logging.WARNING,
    "ERROR": logging.ERROR,
    "CRITICAL": logging.CRITICAL,
}


def log_level(environ: Mapping[str, str]) -> int:
    """The level that RLINF_LOG_LEVEL names, INFO by default."""
    word = environ.get("RLINF_LOG_LEVEL") or "INFO"
    if word.upper() not in LEVELS:
        raise fault(
            _roost.Error, f"RLINF_LOG_LEVEL is {word!r}, which is no level", hint=f"use one of {', '.join(LEVELS)}"
        )
    return LEVELS[word.upper()]


def has_color(screen: Any) -> bool:
    """Whether colours are on for a stream, by the rule of the program's `--color auto`."""
    try:
        is_terminal = screen.isatty()
    except (ValueError, AttributeError):
        return False  # closed, or no stream
    return _roost.color_is_on(is_terminal, os.environ.get("NO_COLOR"), os.environ.get("TERM"))


class Screen(logging.StreamHandler[Any]):
    """Writes to the sys.stdout of the moment: a program may replace it."""

    def __init__(self) -> None:
        logging.Handler.__init__(self)

    @property
    def stream(self) -> Any:
        return sys.stdout


def worker_logger(group: str, rank: int, environ: Mapping[str, str]) -> logging.Logger:
    """A logger of its own: what the program does to logging changes nothing of it."""
    logger = logging.Logger(f"{group}-Rank-{rank}", log_level(environ))
    screen = Screen()
    screen.setFormatter(
        logging.Formatter("[%(levelname)s %(asctime)s %(name)s][%(filename)s:%(lineno)d] %(message)s", "%H:%M:%S")
    )
    logger.addHandler(screen)
    return logger
