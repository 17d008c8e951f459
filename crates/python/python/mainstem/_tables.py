"""Tables of a program as queries read them: an adapter for each kind of frame, and where variables are found.

An adapter has ``schema`` (anything with an Arrow schema), ``rows`` (their number, or None) and ``scan(columns)``, which
gives an Arrow stream of the columns at those positions, or of all where it cannot leave any out.
"""

from __future__ import annotations

from types import FrameType
from typing import Any, Callable, Sequence

from mainstem.errors import NotSupportedError, ProgrammingError


class _Adapter:
    def __init__(self, schema: Any, rows: int | None, scan: Callable[[Sequence[int]], Any]) -> None:
        names = list(schema.names)
        for name in names:
            if not isinstance(name, str):
                raise NotSupportedError(f"a column is called {name!r}, which is no text; rename it first", "0A000")
        twice = {name for name in names if names.count(name) > 1}
        if twice:
            raise NotSupportedError(f"column {sorted(twice)[0]!r} is there twice; rename one of them first", "0A000")
        self.schema = schema
        self.rows = rows
        self.scan = scan


def _pyarrow() -> Any:
    try:
        import pyarrow
    except ImportError as missing:
        raise ImportError("queries read this kind of table through pyarrow: pip install pyarrow") from missing
    return pyarrow


def _of_pandas(frame: Any) -> _Adapter:
    pyarrow = _pyarrow()
    names = list(frame.columns)
    for name in names:
        if not isinstance(name, str):
            raise NotSupportedError(f"a column is called {name!r}, which is no text; rename it first", "0A000")
    if len(set(names)) < len(names):
        twice = next(name for name in names if names.count(name) > 1)
        raise NotSupportedError(f"column {twice!r} is there twice; rename one of them first", "0A000")
    schema = pyarrow.Schema.from_pandas(frame, preserve_index=False)

    def scan(columns: Sequence[int]) -> Any:
        wanted = pyarrow.schema([schema.field(at) for at in columns])
        if not columns:
            # How many rows there are is all that is asked for.
            return _Empty(len(frame))
        return pyarrow.Table.from_pandas(frame.iloc[:, list(columns)], schema=wanted, preserve_index=False)

    return _Adapter(schema, len(frame), scan)


class _Empty:
    """A stream of rows without columns."""

    def __init__(self, rows: int) -> None:
        self.rows = rows

    def __arrow_c_stream__(self, requested_schema: object = None) -> Any:
        pyarrow = _pyarrow()
        batch = pyarrow.RecordBatch.from_struct_array(pyarrow.array([{}] * self.rows, pyarrow.struct([])))
        return pyarrow.Table.from_batches([batch]).__arrow_c_stream__(requested_schema)


def _of_arrow_table(table: Any) -> _Adapter:
    # All columns where none is wanted, so that rows can be counted.
    return _Adapter(table.schema, table.num_rows, lambda columns: table.select(list(columns)) if columns else table)


def _of_batch(batch: Any) -> _Adapter:
    return _of_arrow_table(_pyarrow().Table.from_batches([batch]))


def _of_dataset(dataset: Any) -> _Adapter:
    names = dataset.schema.names
    return _Adapter(
        dataset.schema, None, lambda columns: dataset.scanner(columns=[names[at] for at in columns] or None).to_reader()
    )


def _without_nulls(frame: Any, types: Any) -> Any:
    """The frame with text for columns of nothing but NULLs: Polars 2.1 exports these with a buffer that Arrow has not."""
    import polars

    untyped = [name for name, kind in types.items() if kind == polars.Null]
    return frame.with_columns(polars.col(untyped).cast(polars.String)) if untyped else frame


def _of_polars(frame: Any) -> _Adapter:
    frame = _without_nulls(frame, frame.schema)
    names = frame.columns
    schema = _schema_of(frame.head(0))
    return _Adapter(schema, frame.height, lambda columns: frame.select([names[at] for at in columns]) if columns else frame)


def _of_lazy_polars(frame: Any) -> _Adapter:
    frame = _without_nulls(frame, frame.collect_schema())
    names = frame.collect_schema().names()
    schema = _schema_of(frame.head(0).collect())
    return _Adapter(schema, None, lambda columns: frame.select([names[at] for at in columns] or names).collect())


def _schema_of(empty: Any) -> Any:
    """The schema of a frame without rows that has a stream, and no schema of Arrow's."""
    from mainstem._mainstem import _schema_of_stream

    return _schema_of_stream(empty)


def _of_numpy(array: Any) -> _Adapter:
    if array.dtype.names is None:
        raise NotSupportedError("an array of NumPy needs named columns to be a table; use a structured array", "0A000")
    pyarrow = _pyarrow()
    import numpy

    columns = {name: numpy.ascontiguousarray(array[name]) for name in array.dtype.names}
    return _of_arrow_table(pyarrow.table(columns))


def _of_rows(rows: list[dict[str, Any]]) -> _Adapter:
    names = dict.fromkeys(name for row in rows for name in row)
    return _of_arrow_table(_pyarrow().table({name: [row.get(name) for row in rows] for name in names}))


def _of_columns(columns: dict[str, Any]) -> _Adapter:
    return _of_arrow_table(_pyarrow().table(columns))


def _of_stream(stream: Any) -> _Adapter:
    """Whatever has an Arrow stream. It may be there for one reading alone."""
    if hasattr(stream, "__arrow_c_schema__"):
        schema = _schema_of(stream) if not hasattr(stream, "schema") else stream.schema
    else:
        pyarrow = _pyarrow()
        stream = pyarrow.RecordBatchReader.from_stream(stream)
        schema = stream.schema
    if not hasattr(schema, "names"):
        schema = _pyarrow().schema(schema)
    spent = False

    def scan(columns: Sequence[int]) -> Any:
        nonlocal spent
        if spent:
            raise ProgrammingError("the stream was read before, and has no rows any more; make a table of it", "55000")
        spent = True
        return stream

    return _Adapter(schema, None, scan)


def _kind(value: Any) -> Callable[[Any], _Adapter] | None:
    """What makes an adapter of ``value``, if it is a table. No library is imported for that."""
    for kind in type(value).__mro__:
        place = (kind.__module__.split(".")[0], kind.__name__)
        found = {
            ("pandas", "DataFrame"): _of_pandas,
            ("polars", "DataFrame"): _of_polars,
            ("polars", "LazyFrame"): _of_lazy_polars,
            ("pyarrow", "Table"): _of_arrow_table,
            ("pyarrow", "RecordBatch"): _of_batch,
            ("pyarrow", "Dataset"): _of_dataset,
            ("numpy", "ndarray"): _of_numpy,
        }.get(place)
        if found is not None:
            return found
    if isinstance(value, list) and value and all(isinstance(row, dict) for row in value):
        return _of_rows
    if isinstance(value, dict) and value and all(isinstance(name, str) for name in value):
        if all(hasattr(column, "__len__") and not isinstance(column, (str, bytes)) for column in value.values()):
            return _of_columns
    if hasattr(value, "__arrow_c_stream__"):
        return _of_stream
    return None


def adapter(value: Any) -> _Adapter:
    """An adapter of ``value``, which is to be read as a table."""
    if isinstance(value, _Adapter):
        return value
    make = _kind(value)
    if make is None:
        raise ProgrammingError(
            f"a {type(value).__name__} is no table; give a frame, an Arrow table, or a list of dictionaries", "42809"
        )
    return make(value)


def _variables(frame: FrameType | None) -> Any:
    """Namespaces that a statement sees: of the frame that runs it, and of its callers."""
    while frame is not None:
        if not str(frame.f_globals.get("__name__", "")).startswith("mainstem."):
            yield frame.f_locals
            yield frame.f_globals
        frame = frame.f_back


def find(frame: FrameType, name: str) -> _Adapter | None:
    """The variable ``name`` as a table; None if there is none. SQL folds names, so case counts if two differ by it."""
    other = None
    for namespace in _variables(frame):
        matches = [name] if name in namespace else [key for key in namespace if key.lower() == name]
        for key in matches[:1]:
            value = namespace[key]
            make = _kind(value)
            if make is not None:
                return make(value)
            if other is None and not callable(value) and type(value).__name__ != "module":
                other = (key, type(value).__name__)
    if other is not None:
        raise ProgrammingError(
            f'table "{name}" does not exist; the variable {other[0]} is of type {other[1]}, which is no table', "42P01"
        )
    return None
