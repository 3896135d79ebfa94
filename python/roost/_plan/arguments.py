"""Arguments: a wrong type is a TypeError, a value that cannot be is a roost.Error; both name it."""

import math
import operator
import os
from numbers import Integral, Real
from typing import Any

from roost import _roost

RANK_MAX = 2**31 - 1


def is_int(value: Any) -> bool:
    """Whether it is a number as ints are: numpy's too, a bool not."""
    return isinstance(value, Integral) and not isinstance(value, bool)


def is_bool(value: Any) -> bool:
    """Whether it is True or False, or numpy's."""
    dtype = getattr(value, "dtype", None)
    return isinstance(value, bool) or (getattr(dtype, "kind", "") == "b" and getattr(value, "ndim", 1) == 0)


def as_bool(name: str, value: Any) -> bool:
    if not is_bool(value):
        raise TypeError(f"{name} must be a bool, not {value!r}")
    return bool(value)


def as_int(name: str, value: Any) -> int:
    """Any int, whatever its size."""
    try:
        if not isinstance(value, bool):
            return operator.index(value)
    except TypeError:
        pass
    raise TypeError(f"{name} must be an int, not {value!r}")


def as_number(name: str, value: Any, least: int, kind: type[_roost.Error]) -> int:
    """An int from `least` to the largest that the planner counts with."""
    number = as_int(name, value)
    if number < least:
        raise kind(f"{name} must not be negative" if least == 0 else f"{name} must be at least {least}")
    if number > RANK_MAX:
        raise kind(f"{name} is out of range: it is larger than {RANK_MAX}")
    return number


def as_count(name: str, value: Any, least: int = 0) -> int:
    return as_number(name, value, least, _roost.Error)


def as_rank(name: str, value: Any) -> int:
    return as_number(name, value, 0, _roost.RankError)


def as_text(name: str, value: Any) -> str:
    if not isinstance(value, str):
        raise TypeError(f"{name} must be a str, not {value!r}")
    return value


def as_path(name: str, value: Any, what: str = "a path") -> bytes:
    """The bytes of a path, or of a text that may be one."""
    if not isinstance(value, str | os.PathLike):
        raise TypeError(f"{name} must be {what}, not {value!r}")
    try:
        path = os.fsencode(value)
    except UnicodeEncodeError:
        raise _roost.Error(f"{name} must be text that a file name can hold, not {value!a}") from None
    if not path or b"\0" in path:
        raise _roost.Error(f"{name} must be {what}, not {value!a}")
    return path


def check_seconds(name: str, value: Any) -> None:
    if isinstance(value, bool) or not isinstance(value, Real):
        raise TypeError(f"{name} must be a number of seconds, not {value!r}")
    if math.isnan(value) or value < 0:
        raise _roost.Error(f"{name} must be a number of seconds, not {value!r}")
