"""A line on the terminal, or a bar in a notebook, for what takes longer than a second."""

from __future__ import annotations

import sys
from typing import Any

WIDTH = 30

enabled: bool | None = None
_handle: Any = None


def _in_notebook() -> bool:
    shell = sys.modules.get("IPython")
    if shell is None:
        return False
    current = shell.get_ipython()
    return current is not None and type(current).__name__ == "ZMQInteractiveShell"


def is_wanted() -> bool:
    """Whether somebody looks: at a terminal, or in a notebook; ``enabled`` decides it where it is not None."""
    if enabled is not None:
        return enabled
    return sys.stderr.isatty() or _in_notebook()


def _text(seconds: float, done: int, total: int) -> str:
    if total <= 0:
        return f"{seconds:.0f} s"
    part = min(done / total, 1.0)
    left = f", {seconds * (1 - part) / part:.0f} s left" if part > 0.02 else ""
    full = "█" * round(WIDTH * part)
    return f"{part:4.0%} |{full:<{WIDTH}}| {done / 1e6:,.0f} of {total / 1e6:,.0f} MB, {seconds:.0f} s{left}"


def show(seconds: float, done: int, total: int) -> None:
    """Shows how far a statement is."""
    global _handle
    text = _text(seconds, done, total)
    if not _in_notebook():
        sys.stderr.write(f"\r\x1b[K{text}")
        sys.stderr.flush()
        return
    from IPython.display import HTML, display

    bar = f"<progress value='{done}' max='{total}'></progress> " if total > 0 else ""
    if _handle is None:
        _handle = display(HTML(f"{bar}<code>{text}</code>"), display_id=True)
    else:
        _handle.update(HTML(f"{bar}<code>{text}</code>"))


def clear() -> None:
    """Takes it away."""
    global _handle
    if _handle is None:
        sys.stderr.write("\r\x1b[K")
        sys.stderr.flush()
        return
    from IPython.display import HTML

    _handle.update(HTML(""))
    _handle = None
