#!/usr/bin/env python3
"""Install the peers from PyPI into a virtual environment, once, and print the path of its interpreter.

    bench/peers/install.py

The environment stands in $XDG_CACHE_HOME/mainstem/peers, or ~/.cache/mainstem/peers, in a folder named after
requirements.txt: another set of versions is another folder. `mainstem-bench` calls this by itself.
"""

import hashlib
import os
import pathlib
import shutil
import subprocess
import sys
import venv

REQUIREMENTS = pathlib.Path(__file__).resolve().with_name("requirements.txt")


def folder():
    cache = os.environ.get("XDG_CACHE_HOME") or pathlib.Path.home() / ".cache"
    wanted = REQUIREMENTS.read_bytes() + sys.version.encode()
    return pathlib.Path(cache) / "mainstem" / "peers" / hashlib.sha256(wanted).hexdigest()[:12]


def interpreter(environment):
    windows = os.name == "nt"
    return environment / ("Scripts" if windows else "bin") / ("python.exe" if windows else "python")


def main():
    environment = folder()
    complete = environment / "complete"
    python = interpreter(environment)
    if not complete.exists():
        # What an earlier call left half done is of no use.
        shutil.rmtree(environment, ignore_errors=True)
        venv.create(environment, with_pip=True)
        subprocess.run(
            [python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--only-binary", ":all:",
             "--requirement", REQUIREMENTS],
            check=True, stdout=sys.stderr)
        complete.touch()
    print(python)


if __name__ == "__main__":
    main()
