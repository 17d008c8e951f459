"""What other programs' tests say of the module: ``cargo compat [CASE ...]``.

It builds the module, makes a virtual environment with the packages that the cases need, and runs

    sqlalchemy   SQLAlchemy's own tests for dialects
    logic        the logic tests of slt/ through the module
    threads      64 threads, 10,000 statements each
    soak         everything again and again, for SOAK_SECONDS (60): memory must not grow
    shell        the tests of the command line, run against the wheel's `mainstem`
    adbc         ADBC's validation suite, if ARROW_ADBC names a checkout of arrow-adbc (CMake and GoogleTest are needed)
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]
COMPAT = ROOT / "crates/python/compat"
TARGET = Path(os.environ.get("CARGO_TARGET_DIR") or ROOT / "target")
VENV = TARGET / "compat"
PYTHON = VENV / "bin/python"
# Without a test among them the features of shared crates are others, and all of them are built anew.
TARGETS = ("--lib", "--bin", "mainstem", "--test", "sql_it")


def run(*command: object, **options: object) -> None:
    subprocess.run([str(part) for part in command], check=True, **options)


def prepare() -> None:
    aliases = (ROOT / ".cargo/config.toml").read_text()
    packages = re.search(r'^t = "test (.*)"$', aliases, re.M).group(1).split()
    # The same packages as everywhere: Cargo unites their features, and builds once.
    run("cargo", "build", *packages, "-p", "mainstem-python", *TARGETS, cwd=ROOT)
    if not PYTHON.exists():
        run(sys.executable, "-m", "venv", VENV)
    run(PYTHON, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "-r", ROOT / "crates/python/tests/requirements.txt")
    # The package as a wheel would install it.
    folder = Path(subprocess.check_output([PYTHON, "-c", "import sysconfig; print(sysconfig.get_path('purelib'))"], text=True).strip())
    shutil.rmtree(folder / "mainstem", ignore_errors=True)
    shutil.copytree(ROOT / "crates/python/python/mainstem", folder / "mainstem")
    shutil.copy(TARGET / "debug/libmainstem_python.so", folder / "mainstem/_mainstem.abi3.so")
    script = VENV / "bin/mainstem"
    script.write_text(f"#!{PYTHON}\nimport sys, mainstem\nsys.exit(mainstem.main())\n")
    script.chmod(0o755)


def sqlalchemy() -> None:
    folder = TARGET / "compat-sqlalchemy"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    url = f"mainstem:///{folder}/db?omit=foreign_keys,indexes&synchronous=off"
    run(PYTHON, "-m", "pytest", "-c", "setup.cfg", "--rootdir", ".", "-q", "--dburi", url, cwd=COMPAT / "sqlalchemy")


def logic() -> None:
    run(PYTHON, COMPAT / "logic_tests.py")


def threads() -> None:
    run(PYTHON, COMPAT / "threads.py")


def soak() -> None:
    run(PYTHON, COMPAT / "soak.py", "--seconds", os.environ.get("SOAK_SECONDS", "60"))


def shell() -> None:
    run("cargo", "t", "--test", "cli_it", cwd=ROOT, env={**os.environ, "MAINSTEM_PROGRAM": str(VENV / "bin/mainstem")})


def adbc() -> None:
    checkout = os.environ.get("ARROW_ADBC")
    if not checkout:
        print("left out: ARROW_ADBC names no checkout of arrow-adbc")
        return
    build = TARGET / "compat-adbc"
    run("cmake", "-S", ROOT / "crates/adbc/validation", "-B", build, f"-DARROW_ADBC={checkout}")
    run("cmake", "--build", build)
    run(build / "mainstem_validation", env={**os.environ, "MAINSTEM_ADBC": str(TARGET / "debug/libmainstem_adbc.so")})


CASES = {case.__name__: case for case in (sqlalchemy, logic, threads, soak, shell, adbc)}


def main() -> int:
    wanted = sys.argv[1:] or list(CASES)
    if not set(wanted) <= set(CASES):
        print(__doc__, file=sys.stderr)
        return 2
    prepare()
    failed = []
    for name in wanted:
        print(f"=== {name}", flush=True)
        began = time.monotonic()
        try:
            CASES[name]()
        except subprocess.CalledProcessError as error:
            failed.append(name)
            print(error, file=sys.stderr)
        print(f"=== {name}: {'failed after ' if name in failed else ''}{time.monotonic() - began:.0f} s", flush=True)
    print(f"{len(wanted) - len(failed)} of {len(wanted)} cases pass" + "".join(f", {name} fails" for name in failed))
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
