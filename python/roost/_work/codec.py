"""Python values as the bytes of a call.

A value is pickled with protocol 5, and the memory of what lends it (numpy arrays) is sent beside the
pickle instead of in it: the reader's arrays are read-only views of the message, nothing is copied.
What the other side could not import, because it is defined in the main script or inside a function,
goes by value, with cloudpickle.

    0                                  then the pickle
    1 and how many, lengths            then the pickle and the memory, each at a multiple of 64
    2                                  then a plain value, marshalled

Plain values, which are numbers, texts, bytes and containers of them, are written by the extension: for those
marshal does what pickle does, in half the time.

Bytes that come from anywhere but the inherited connection of a worker must never be read here."""

import importlib
import itertools
import marshal
import pickle
import struct
from pickle import dumps, loads
from typing import Any

from roost import _roost

PROTOCOL = 5
ALIGNMENT = 64
PICKLED, WITH_MEMORY, PLAIN = 0, 1, 2  # the first byte of a message
MARSHAL_VERSION = 4  # which every Python from 3.4 on reads
COUNT = struct.Struct("<xxxI")  # behind the first byte
MAIN = b"__main__"  # the script's own module, which is another one in each process
LARGE = 1 << 15  # bytes that are worth a part of their own

Parts = list[bytes | memoryview]


class Lent:
    """Bytes that travel beside the pickle, so that nothing copies or reads them on the way."""

    def __init__(self, data: bytes) -> None:
        self.data = data

    def __reduce_ex__(self, protocol: Any) -> Any:
        return bytes, (pickle.PickleBuffer(self.data),)


def has_large(members: tuple[Any, ...]) -> bool:
    """Whether large bytes are among the members, or the members of tuples there."""
    for member in members:
        kind = type(member)
        if (kind is bytes and len(member) >= LARGE) or (kind is tuple and has_large(member)):
            return True
    return False


def lend(value: Any) -> Any:
    """The value with large bytes lent: the value itself, or members of tuples, which are equal to their copies."""
    if type(value) is bytes and len(value) >= LARGE:
        return Lent(value)
    return tuple(map(lend, value)) if type(value) is tuple else value


class ByValue:
    """The module that pickles what goes by value. It knows a class again that it has sent or got before: both sides of a
    call have the same one, and Ray has its own."""

    module = "cloudpickle"


def pickle_value(value: Any, buffers: list[pickle.PickleBuffer] | None, module: str | None = None) -> bytes:
    """The pickle; `buffers` takes the memory that is not in it, None has everything in it."""
    take = None if buffers is None else buffers.append
    try:
        data = dumps(value, PROTOCOL, buffer_callback=take)
        if data.find(MAIN) < 0:  # quicker than `in`
            return data
    except Exception:  # classes may raise anything; cloudpickle tells what cannot be sent at all
        pass
    if buffers is not None:
        buffers.clear()
    by_value = importlib.import_module(module or ByValue.module)
    return by_value.dumps(value, PROTOCOL, buffer_callback=take)  # type: ignore[no-any-return]


def padding(length: int) -> bytes:
    return bytes(-length % ALIGNMENT)


def encode(value: tuple[Any, ...]) -> Parts:
    """The parts of a message, which is what they are one behind the other. Raises what pickle raises."""
    buffers: list[pickle.PickleBuffer] = []
    data = pickle_value(lend(value) if has_large(value) else value, buffers)
    return with_memory(data, buffers) if buffers else [bytes([PICKLED]), data]


def with_memory(data: bytes, buffers: list[pickle.PickleBuffer]) -> Parts:
    memory = [buffer.raw() for buffer in buffers]
    lengths = [len(data), *(view.nbytes for view in memory)]
    head = bytes([WITH_MEMORY]) + COUNT.pack(len(memory)) + struct.pack(f"<{len(lengths)}Q", *lengths)
    parts: Parts = [head + padding(len(head)), data]
    for previous, view in itertools.pairwise([memoryview(data), *memory]):
        parts += [padding(previous.nbytes), view]
    return parts


def decode(message: memoryview) -> Any:
    """The value; its arrays are views of the message."""
    if message[0] == PLAIN:
        return marshal.loads(message[1:])
    if message[0] == PICKLED:
        return loads(message[1:])
    (count,) = COUNT.unpack_from(message, 1)
    lengths = struct.unpack_from(f"<{count + 1}Q", message, 1 + COUNT.size)
    at = 1 + COUNT.size + 8 * len(lengths)
    views = []
    for length in lengths:
        at += -at % ALIGNMENT
        views.append(message[at : at + length])
        at += length
    return loads(views[0], buffers=views[1:])


_roost.set_codec(encode, decode, loads, marshal.dumps, MARSHAL_VERSION, marshal.loads, LARGE)
