"""``%load_ext mainstem``: the magic ``%sql``."""

from __future__ import annotations

from typing import Any

import mainstem


def register(shell: Any) -> None:
    """Registers ``%sql`` and ``%%sql``.

    ``%sql SELECT ...`` runs on the database in memory, ``%sql NAME: SELECT ...`` on the connection in variable ``NAME``. What it
    gives is the cell's value; ``%%sql [NAME] [<< RESULT]`` has the statement below, and may keep the result in a variable.
    """

    def connection_of(name: str | None) -> mainstem.Connection:
        if name is None:
            return mainstem.default_connection()
        found = shell.user_ns.get(name)
        if not isinstance(found, mainstem.Connection):
            raise mainstem.ProgrammingError(f"there is no connection in a variable {name!r}", "42704")
        return found

    def read(shell_variables: dict[str, Any], connection: mainstem.Connection, sql: str) -> Any:
        # Queries see the notebook's variables.
        run = eval("lambda con, sql: con.sql(sql)", shell_variables)
        result = run(connection, sql)
        return result if result.columns else None

    def magic(line: str, cell: str | None = None) -> Any:
        if cell is None:
            head, colon, rest = line.partition(":")
            if colon and head.strip().isidentifier() and not rest.startswith(":"):
                return read(shell.user_ns, connection_of(head.strip()), rest)
            return read(shell.user_ns, connection_of(None), line)
        name, arrow, target = line.partition("<<")
        result = read(shell.user_ns, connection_of(name.strip() or None), cell)
        if arrow:
            shell.user_ns[target.strip()] = result
            return None
        return result

    shell.register_magic_function(magic, "line_cell", "sql")
