"""The ADBC driver, which is in the same library as this module.

>>> import mainstem.adbc
>>> con = mainstem.adbc.connect()  # doctest: +SKIP
>>> con.execute("SELECT 6 * 7 AS answer").fetch_arrow_table()  # doctest: +SKIP

``connect`` needs the package ``adbc-driver-manager``. Programs in Python find the driver by the name ``mainstem`` once
``python -m mainstem.adbc --install`` has written a manifest; other languages need ``libmainstem_adbc.so`` (docs/adbc.md).
"""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

__all__ = ["ENTRYPOINT", "connect", "driver_path", "install_manifest", "manifest"]

ENTRYPOINT = "AdbcMainstemAdbcInit"


def driver_path() -> str:
    """The library that has the driver."""
    from mainstem import _mainstem

    path = _mainstem.__file__
    assert path is not None
    return path


def connect(
    path: str | os.PathLike[str] = ":memory:",
    *,
    autocommit: bool = False,
    read_only: bool = False,
    options: dict[str, str] | None = None,
) -> Any:
    """A connection of ``adbc_driver_manager.dbapi`` to the database in folder ``path``, or to one in memory.

    It shares the database with connections of ``mainstem.connect`` in the same process. ``options`` are the
    driver's, ``{"mainstem.synchronous": "normal"}``.
    """
    from adbc_driver_manager import dbapi

    options = {"mainstem.read_only": "true" if read_only else "false", **(options or {})}
    return dbapi.connect(
        driver=driver_path(),
        entrypoint=ENTRYPOINT,
        uri=os.fspath(path),
        db_kwargs=options,
        autocommit=autocommit,
    )


def manifest() -> str:
    """What driver managers read to find the driver by its name."""
    from mainstem import __version__

    return (
        "manifest_version = 1\n"
        'name = "Mainstem"\n'
        f'version = "{__version__}"\n'
        'publisher = "Mainstem"\n'
        'license = "Apache-2.0"\n\n'
        "[ADBC]\n"
        'version = "1.1.0"\n\n'
        "[Driver]\n"
        f'entrypoint = "{ENTRYPOINT}"\n'
        f"shared = '{driver_path()}'\n"
    )


def install_manifest(folder: str | os.PathLike[str] | None = None) -> Path:
    """Writes the manifest into ``folder``, where driver managers look for it; returns its path. By default that is the
    virtual environment's folder inside one, the user's otherwise."""
    if folder is None:
        if sys.prefix != sys.base_prefix:
            folder = Path(sys.prefix) / "etc/adbc/drivers"
        else:
            folder = Path(os.environ.get("XDG_CONFIG_HOME") or Path.home() / ".config") / "adbc/drivers"
    path = Path(folder) / "mainstem.toml"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(manifest(), encoding="utf-8")
    return path


def _main(arguments: list[str]) -> int:
    if arguments == ["--install"]:
        print(f"wrote {install_manifest()}; from now on driver = \"mainstem\" is found")
    elif not arguments:
        print(driver_path())
    else:
        print("python -m mainstem.adbc [--install]", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(_main(sys.argv[1:]))
