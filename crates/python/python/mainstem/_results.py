"""What a result can be turned into: the rest of ``Cursor``, as far as it can be said in Python."""

from __future__ import annotations

import html as _html
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from mainstem._mainstem import Cursor

ROWS_SHOWN = 10
WIDTH_SHOWN = 40


def _needs(module: str, name: str) -> Any:
    import importlib

    try:
        return importlib.import_module(module)
    except ImportError as missing:
        raise ImportError(f"{name}() needs {module}: pip install {module}") from missing


def arrow(cursor: Cursor) -> Any:
    """All rows that are left as a ``pyarrow.Table``."""
    pyarrow = _needs("pyarrow", "arrow")
    cursor.buffer()
    return pyarrow.table(cursor)


def reader(cursor: Cursor, rows: int | None = None) -> Any:
    """The rows that are left as a ``pyarrow.RecordBatchReader``, which reads them while the query runs."""
    pyarrow = _needs("pyarrow", "reader")
    stream = pyarrow.RecordBatchReader.from_stream(cursor)
    if rows is None:
        return stream

    def batches() -> Any:
        for batch in stream:
            for at in range(0, batch.num_rows, rows):
                yield batch.slice(at, rows)

    return pyarrow.RecordBatchReader.from_batches(stream.schema, batches())


def pl(cursor: Cursor) -> Any:
    """All rows that are left as a ``polars.DataFrame``."""
    polars = _needs("polars", "pl")
    cursor.buffer()
    return polars.DataFrame(cursor)


def df(cursor: Cursor) -> Any:
    """All rows that are left as a ``pandas.DataFrame``."""
    _needs("pandas", "df")
    return arrow(cursor).to_pandas()


def numpy(cursor: Cursor) -> dict[str, Any]:
    """All rows that are left as a NumPy array for each column, masked where there are NULLs."""
    np, pyarrow = _needs("numpy", "numpy"), _needs("pyarrow", "numpy")
    table = arrow(cursor)
    arrays = {}
    views = {pyarrow.string_view(): pyarrow.string(), pyarrow.binary_view(): pyarrow.binary()}
    for name, column in zip(cursor.columns, table.columns):
        # Most of Arrow's functions do not know them yet.
        column = column.cast(views.get(column.type, column.type))
        values = column.to_numpy(zero_copy_only=False)
        if column.null_count:
            valid = column.is_valid().to_numpy(zero_copy_only=False)
            filled = column.drop_null().to_numpy(zero_copy_only=False)
            whole = np.zeros(len(column), dtype=filled.dtype)
            whole[valid] = filled
            values = np.ma.masked_array(whole, mask=~valid)
        arrays[name] = values
    return arrays


def dicts(cursor: Cursor) -> list[dict[str, Any]]:
    """All rows that are left as dictionaries."""
    names = cursor.columns
    return [dict(zip(names, row)) for row in cursor.fetchall()]


def schema(cursor: Cursor) -> dict[str, str]:
    """Names and SQL types of the columns."""
    return dict(zip(cursor.columns, cursor.types))


def _cells(cursor: Cursor) -> tuple[int, list[str], list[str], list[list[str]]]:
    rows = cursor.count_rows()

    def cell(value: Any) -> str:
        if value is None:
            return "NULL"
        text = str(value).replace("\n", "\\n")
        return text if len(text) <= WIDTH_SHOWN else text[: WIDTH_SHOWN - 1] + "…"

    return rows, cursor.columns, cursor.types, [[cell(value) for value in row] for row in cursor.peek(ROWS_SHOWN)]


def text(cursor: Cursor) -> str:
    """A result for people: ten rows, and the shape."""
    if not cursor.columns:
        return f"<mainstem.Cursor: {cursor.statusmessage or 'nothing ran'}>"
    rows, names, types, cells = _cells(cursor)
    widths = [
        max([len(name), len(kind)] + [len(row[at]) for row in cells]) for at, (name, kind) in enumerate(zip(names, types))
    ]

    def line(parts: list[str]) -> str:
        return "│ " + " │ ".join(part.ljust(width) for part, width in zip(parts, widths)) + " │"

    def rule(left: str, middle: str, right: str) -> str:
        return left + middle.join("─" * (width + 2) for width in widths) + right

    lines = [rule("┌", "┬", "┐"), line(names), line(types), rule("├", "┼", "┤")]
    lines += [line(row) for row in cells]
    lines.append(rule("└", "┴", "┘"))
    lines.append(_size(rows, names, cells))
    return "\n".join(lines)


def _size(rows: int, names: list[str], cells: list[list[str]]) -> str:
    more = f", {len(cells)} shown" if rows > len(cells) else ""
    return f"{rows} row{'' if rows == 1 else 's'} x {len(names)} column{'' if len(names) == 1 else 's'}{more}"


def html(cursor: Cursor) -> str | None:
    """A result for a notebook."""
    if not cursor.columns:
        return None
    rows, names, types, cells = _cells(cursor)
    head = "".join(f"<th>{_html.escape(name)}<br><small>{_html.escape(kind)}</small></th>" for name, kind in zip(names, types))
    body = "".join("<tr>" + "".join(f"<td>{_html.escape(value)}</td>" for value in row) + "</tr>" for row in cells)
    size = _size(rows, names, cells)
    return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table><p>{size}</p>"
