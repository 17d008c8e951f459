"""Arrow's C stream interface by ctypes: batches come in, are counted and let go, without a library of Arrow."""

import ctypes


class Array(ctypes.Structure):
    """struct ArrowArray."""


Array._fields_ = [
    ("length", ctypes.c_int64), ("null_count", ctypes.c_int64), ("offset", ctypes.c_int64),
    ("n_buffers", ctypes.c_int64), ("n_children", ctypes.c_int64),
    ("buffers", ctypes.c_void_p), ("children", ctypes.c_void_p), ("dictionary", ctypes.c_void_p),
    ("release", ctypes.CFUNCTYPE(None, ctypes.POINTER(Array))), ("private_data", ctypes.c_void_p),
]


class Stream(ctypes.Structure):
    """struct ArrowArrayStream."""


Stream._fields_ = [
    ("get_schema", ctypes.c_void_p),
    ("get_next", ctypes.CFUNCTYPE(ctypes.c_int, ctypes.POINTER(Stream), ctypes.POINTER(Array))),
    ("get_last_error", ctypes.CFUNCTYPE(ctypes.c_char_p, ctypes.POINTER(Stream))),
    ("release", ctypes.c_void_p), ("private_data", ctypes.c_void_p),
]

POINTER_OF = ctypes.pythonapi.PyCapsule_GetPointer
POINTER_OF.restype = ctypes.c_void_p
POINTER_OF.argtypes = [ctypes.py_object, ctypes.c_char_p]


def count_rows(source):
    """Reads all batches of whatever gives a stream, which releases itself; how many rows they have."""
    capsule = source.__arrow_c_stream__()
    stream = ctypes.cast(POINTER_OF(capsule, b"arrow_array_stream"), ctypes.POINTER(Stream)).contents
    rows = 0
    while True:
        batch = Array()
        if stream.get_next(ctypes.byref(stream), ctypes.byref(batch)):
            raise RuntimeError((stream.get_last_error(ctypes.byref(stream)) or b"no message").decode())
        if not batch.release:
            return rows
        rows += batch.length
        batch.release(ctypes.byref(batch))
