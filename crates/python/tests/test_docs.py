"""What the documents say runs."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]


@pytest.mark.parametrize("path", ["docs/python.md", "crates/python/README.md", "README.md"])
def test_examples(path, tmp_path, monkeypatch, capsys):
    pytest.importorskip("polars")
    monkeypatch.chdir(tmp_path)
    blocks = re.findall(r"```python\n(.*?)```", (ROOT / path).read_text(), re.S)
    assert blocks
    for block in blocks:
        exec(compile(block.replace("1_000_000", "10_000"), path, "exec"), {"__name__": "example"})
    assert "Jena" in capsys.readouterr().out
