"""Runs the logic tests of ``slt/`` through the module: ``python logic_tests.py [FILE ...]``. Rows are compared as slt/README.md
says that values are printed; which file fails, and where, is told at the end.

What is left out: files about one placement configuration alone, whose statements need its settings.
"""

from __future__ import annotations

import datetime
import decimal
import re
import sys
import tempfile
import uuid
from pathlib import Path
from typing import Any, Iterator

import mainstem

FOLDER = Path(__file__).resolve().parents[3] / "slt"
# This runner has no configuration; records and files for others are skipped.
NAME = "python"


def records(text: str) -> Iterator[tuple[int, list[str]]]:
    """Records: the number of their first line, and their lines."""
    lines: list[str] = []
    first = 0
    for number, line in enumerate(text.split("\n"), 1):
        if line.strip() == "" and lines:
            yield first, lines
            lines = []
        elif line.strip() != "" and not (line.startswith("#") and not lines):
            first = first if lines else number
            lines.append(line)
    if lines:
        yield first, lines


def double(value: float) -> str:
    """As Rust's {:?}."""
    if value != value:
        return "NaN"
    if value in (float("inf"), float("-inf")):
        return "Infinity" if value > 0 else "-Infinity"
    if value == 0:
        return "0.0"
    if 1e-5 <= abs(value) < 1e16:
        text = repr(decimal.Decimal(repr(value)).normalize())
        plain = format(decimal.Decimal(repr(value)), "f")
        return plain if "." in plain else plain + ".0" if text else plain
    mantissa, exponent = re.match(r"(.*)e(.*)", format(decimal.Decimal(repr(value)).normalize(), "e")).groups()
    return f"{mantissa.removesuffix('.0')}e{int(exponent)}"


def fraction(micros: int) -> str:
    return f".{micros:06}".rstrip("0") if micros else ""


def time_text(value: Any) -> str:
    return value.strftime("%H:%M:%S") + fraction(value.microsecond)


def date_text(value: datetime.date) -> str:
    return f"{value.year:04}-{value.month:02}-{value.day:02}"


def interval_text(value: datetime.timedelta) -> str:
    return str(mainstem.Interval(0, value.days, value.seconds * 1_000_000 + value.microseconds))


def printed(value: Any, sql_type: str) -> str:
    if value is None:
        return "NULL"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int):
        return str(value)
    if isinstance(value, float):
        if str(sql_type).lower() == "real":
            import numpy

            value = float(str(numpy.float32(value)))
        return double(value)
    if isinstance(value, decimal.Decimal):
        return format(value, "f")
    if isinstance(value, (bytes, bytearray)):
        return "\\x" + value.hex()
    if isinstance(value, datetime.datetime):
        text = f"{date_text(value)} {time_text(value)}"
        return text + "+00" if value.tzinfo else text
    if isinstance(value, datetime.date):
        return date_text(value)
    if isinstance(value, datetime.time):
        return time_text(value)
    if isinstance(value, uuid.UUID):
        return str(value)
    if isinstance(value, str):
        if value == "":
            return "(empty)"
        return value.replace("\n", "\\n").replace("\r", "\\r").replace("\t", "\\t")
    raise Unprintable(type(value).__name__)


class Unprintable(Exception):
    """A value that has a Python type of its own, and no text: arrays, rows, intervals."""


def squeezed(text: str) -> str:
    return re.sub(r"\s+", " ", text).strip()


def applies(head: str) -> bool:
    return "# only-configs" not in head or "generic_plans" in head or "delta_only" in head


class File:
    def __init__(self, path: Path) -> None:
        self.path = path
        self.failures: list[str] = []
        self.passed = 0
        self.left_out = 0

    def run(self) -> None:
        text = self.path.read_text()
        head = "\n".join(line for line in text.split("\n\n")[0].split("\n") if line.startswith("#"))
        if not applies(head):
            return
        with tempfile.TemporaryDirectory() as folder:
            first = mainstem.connect(replacement_scans=False)
            sessions = {"default": first}
            for line, lines in records(text):
                name = "default"
                skip = False
                while lines and re.match(r"(connection|skipif|onlyif|hash-threshold|control)\b", lines[0]):
                    words = lines.pop(0).split()
                    if words[0] == "connection":
                        name = words[1]
                    skip |= words[0] == "onlyif" and words[1] != NAME
                if not lines or skip:
                    continue
                if name not in sessions:
                    sessions[name] = first.session()
                lines = [part.replace("__TEST_DIR__", folder) for part in lines]
                self.record(sessions[name], line, lines)
            for session in sessions.values():
                session.close()

    def record(self, con: mainstem.Connection, line: int, lines: list[str]) -> None:
        head, body = lines[0].split(), lines[1:]
        expected: list[str] | None = None
        if "----" in body:
            at = body.index("----")
            body, expected = body[:at], body[at + 1 :]
        sql = "\n".join(body)
        try:
            cursor = con.execute(sql)
            rows = cursor.fetchall() if cursor.description else []
        except mainstem.Error as error:
            wanted = re.search(r"error\s*(.*)", lines[0])
            told = f"{error.sqlstate}: {error}"
            if not wanted:
                # Python has no such years, nor such texts.
                if error.sqlstate == "22008" and "Python" in str(error):
                    self.left_out += 1
                else:
                    self.fail(line, told)
            elif wanted.group(1) and not re.search(wanted.group(1), told):
                self.fail(line, f"{told!r} is not /{wanted.group(1)}/")
            else:
                self.passed += 1
            return
        if "error" in head[:2]:
            self.fail(line, "it succeeds")
            return
        if head[:2] == ["statement", "count"] and cursor.rowcount != int(head[2]):
            self.fail(line, f"{cursor.rowcount} rows written, not {head[2]}")
            return
        if expected is not None:
            types = cursor.types
            try:
                got = [squeezed(" ".join(map(printed, row, types))) for row in rows]
            except Unprintable:
                self.left_out += 1
                return
            expected = [squeezed(row) for row in expected]
            if "rowsort" in head:
                got, expected = sorted(got), sorted(expected)
            if got != expected:
                self.fail(line, f"got {got[:4]}, not {expected[:4]}")
                return
        self.passed += 1

    def fail(self, line: int, what: str) -> None:
        self.failures.append(f"{self.path.name}:{line}: {what}")


def main() -> int:
    paths = [Path(name) for name in sys.argv[1:]] or sorted(FOLDER.glob("*.slt"))
    passed = left_out = 0
    failures: list[str] = []
    for path in paths:
        file = File(path)
        file.run()
        passed, left_out = passed + file.passed, left_out + file.left_out
        failures += file.failures
    print("\n".join(failures[:200]))
    print(f"{passed} records of {len(paths)} files pass, {len(failures)} fail, {left_out} have no text in Python")
    return 1 if failures or not passed else 0


if __name__ == "__main__":
    sys.exit(main())
