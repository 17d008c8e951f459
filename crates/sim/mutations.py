#!/usr/bin/env python3
"""Break code on purpose, one place at a time, and see the test fail that answers for it.

    mutations.py check              each `find` occurs once, each test is there, the page is up to date; builds nothing
    mutations.py run                breaks each place in turn, runs its test, writes `seen` into mutations.toml
    mutations.py run --left         only those that were not run yet
    mutations.py run --only NAME .. only these
    mutations.py table              writes docs/broken-on-purpose.md below its marker line

The mutations stand in mutations.toml, which says what its fields mean. `run` works in the checkout itself. It wants the
files that it breaks to be as they were committed, and puts each back when its test has ended or when it is interrupted.
After a kill that nothing can catch, `git checkout FILE` does. First it runs all tests on sound code: one that fails
anyway shows nothing. A mutation that does not compile is told and left out. A test that does not end within --timeout
seconds has seen it. proptest keeps no failures: those of broken code are nobody's regressions.

Needs Python 3.11, git and cargo.
"""

import argparse
import collections
import json
import os
import pathlib
import re
import signal
import subprocess
import sys
import tomllib

FOLDER = pathlib.Path(__file__).resolve().parent
ROOT = FOLDER.parent.parent
LIST = FOLDER / "mutations.toml"
PAGE = ROOT / "docs" / "broken-on-purpose.md"
MARKER = "<!-- Written by crates/sim/mutations.py from here on. -->"
PAGE_LINES_MAX = 200
# By what a mutation's `seen` comes to.
OUTCOMES = {True: "seen", False: "NOT SEEN", None: "DOES NOT COMPILE"}
# The crates below `crates` that cargo builds alone: the workspace's default members.
WITHOUT_DATAFUSION = ("kernels", "storage", "sim")

Mutation = collections.namedtuple("Mutation", "name what file find replace package target filter seen")


def mutations():
    """The list, in its order; the exit status is 1 for one that is not well formed."""
    entries = tomllib.loads(LIST.read_text())["mutation"]
    found = []
    for entry in entries:
        test = entry.pop("test")
        fields = {"seen": None} | entry | test
        if set(fields) != set(Mutation._fields):
            sys.exit(f"{entry.get('name')}: wrong fields {sorted(set(fields) ^ set(Mutation._fields))}")
        found.append(Mutation(**fields))
    return found


def target_of(mutation):
    """Which of a package's tests cargo builds."""
    return {"lib": ["--lib"], "bins": ["--bins"]}.get(mutation.target, ["--test", mutation.target])


def packages_of(mutation):
    """What cargo builds together. A crate above DataFusion alone has other features of it, which build for minutes."""
    if mutation.package.removeprefix("mainstem-") in WITHOUT_DATAFUSION:
        return ["-p", mutation.package]
    alias = tomllib.loads((ROOT / ".cargo" / "config.toml").read_text())["alias"]["t"]
    return alias.removeprefix("test ").split()


def cargo(mutation):
    """Builds a mutation's test, and tells each binary as a line of JSON."""
    packages = packages_of(mutation)
    return ["cargo", "test", *packages, *target_of(mutation), "--no-run", "--message-format=json-render-diagnostics"]


def crate_of(package):
    return ROOT / "crates" / package.removeprefix("mainstem-")


# check


def sources_of(package):
    """The Rust sources of a package, in one text."""
    return "\n".join(path.read_text() for path in sorted(crate_of(package).rglob("*.rs")))


def test_is_there(mutation, sources):
    """Whether the test that a mutation names is there, as far as its name tells."""
    parts = mutation.filter.split("::")
    if mutation.target == "sql_it" and parts[0] == "slt" and len(parts) == 3:
        return (ROOT / "slt" / f"{parts[1]}.slt").exists() and (ROOT / "slt" / "configs" / f"{parts[2]}.json").exists()
    if mutation.package not in sources:
        sources[mutation.package] = sources_of(mutation.package)
    return re.search(rf"\bfn {re.escape(parts[-1])}\(", sources[mutation.package]) is not None


def wrong_entries(entries):
    """What is wrong with the list, as lines."""
    wrong, sources = [], {}
    for name, times in collections.Counter(entry.name for entry in entries).items():
        if times > 1:
            wrong.append(f"{name}: {times} mutations of this name")
    for entry in entries:
        path = ROOT / entry.file
        times = path.read_text().count(entry.find) if path.exists() else 0
        if times != 1:
            wrong.append(f"{entry.name}: `find` occurs {times} times in {entry.file}")
        if entry.find == entry.replace:
            wrong.append(f"{entry.name}: changes nothing")
        if not test_is_there(entry, sources):
            wrong.append(f"{entry.name}: there is no test {entry.filter} in {entry.package}")
    return wrong


def check(entries):
    wrong = wrong_entries(entries)
    if PAGE.read_text() != page_of(entries):
        wrong.append(f"{PAGE.relative_to(ROOT)} is not what `table` writes")
    print("\n".join(wrong) or f"{len(entries)} mutations fit")
    return 1 if wrong else 0


# run


def started(command, folder=ROOT):
    """A command in a session of its own, so that all of it can be stopped."""
    environment = os.environ | {"PROPTEST_DISABLE_FAILURE_PERSISTENCE": "1"}
    if folder != ROOT:
        environment["CARGO_MANIFEST_DIR"] = str(folder)
    return subprocess.Popen(
        command,
        cwd=folder,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
        start_new_session=True,
    )


def stop(process):
    os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def ended(command, timeout, folder):
    """Exit status and output of a command; the status is None if it had to be stopped."""
    process = started(command, folder)
    try:
        output, _ = process.communicate(timeout=timeout)
        return process.returncode, output
    except subprocess.TimeoutExpired:
        stop(process)
        return None, ""
    except BaseException:
        stop(process)
        raise


def is_binary_of(mutation, artifact):
    """Whether cargo tells of the binary with a mutation's test."""
    kind = {"lib": "lib", "bins": "bin"}.get(mutation.target, "test")
    target = artifact["target"]
    return (
        artifact.get("executable")
        and artifact["manifest_path"] == str(crate_of(mutation.package) / "Cargo.toml")
        and kind in target["kind"]
        and (kind != "test" or target["name"] == mutation.target)
    )


def built(mutation):
    """The binary with a mutation's test; None if it does not compile, and says why. Cargo builds the unit tests of all
    packages: it is stopped when the wanted ones are there."""
    process, output = started(cargo(mutation)), []
    try:
        for line in process.stdout:
            if not line.startswith("{"):
                output.append(line)
            elif (told := json.loads(line))["reason"] == "compiler-artifact" and is_binary_of(mutation, told):
                return told["executable"]
        print("".join(output), flush=True)
        return None
    finally:
        if process.poll() is None:
            stop(process)


def runs_well(mutation, binary, timeout):
    """Whether the test passes; None if it does not end. With no test of that name there is nothing to see."""
    status, output = ended([binary, mutation.filter], timeout, crate_of(mutation.package))
    if status is None:
        return None
    if status == 0 and sum(int(count) for count in re.findall(r"^running (\d+) tests?$", output, re.M)) == 0:
        sys.exit(f"{mutation.name}: no test is called {mutation.filter}")
    return status == 0


def baseline(entries, timeout):
    """Runs each test once on sound code."""
    for key, group in by_test(entries).items():
        binary = built(group[0])
        if binary is None or runs_well(group[0], binary, timeout) is not True:
            sys.exit(f"{key} fails, or does not end, on sound code")
        print(f"sound: {key}", flush=True)


def by_test(entries):
    groups = {}
    for entry in entries:
        groups.setdefault(f"{entry.package} {entry.filter}", []).append(entry)
    return groups


def is_seen(mutation, timeout):
    """Breaks the code, runs the test, and puts the code back whatever happens. None if it does not compile."""
    path = ROOT / mutation.file
    sound = path.read_bytes()
    try:
        path.write_bytes(sound.replace(mutation.find.encode(), mutation.replace.encode()))
        binary = built(mutation)
        return runs_well(mutation, binary, timeout) is not True if binary else None
    finally:
        path.write_bytes(sound)


def with_seen(text, name, seen):
    """The list's text where the mutation `name` says whether it was seen."""
    blocks = re.split(r"(?m)^(?=\[\[mutation\]\]$)", text)
    line = f'name = "{name}"\n'
    (at,) = (at for at, block in enumerate(blocks) if line in block)
    block = re.sub(r"(?m)^seen = (?:true|false)\n", "", blocks[at])
    blocks[at] = block.replace(line, f"{line}seen = {'true' if seen else 'false'}\n")
    return "".join(blocks)


def chosen_of(entries, only, left):
    """The mutations that `run` is asked for."""
    if unknown := set(only or ()) - {entry.name for entry in entries}:
        sys.exit(f"no mutation is called {', '.join(sorted(unknown))}")
    chosen = [entry for entry in entries if not only or entry.name in only]
    return [entry for entry in chosen if not left or entry.seen is None]


def run(chosen, timeout):
    if wrong := wrong_entries(chosen):
        sys.exit("\n".join(wrong))
    files = sorted({entry.file for entry in chosen})
    changed = subprocess.run(["git", "status", "--porcelain", "--", *files], cwd=ROOT, capture_output=True, text=True)
    if changed.returncode != 0 or changed.stdout:
        sys.exit(f"not as they were committed:\n{changed.stdout or changed.stderr}")
    # These end the script as Ctrl-C does: through `finally`.
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, lambda *_: sys.exit("interrupted"))
    baseline(chosen, timeout)
    missed = []
    for entry in chosen:
        seen = is_seen(entry, timeout)
        if seen is not None:
            LIST.write_text(with_seen(LIST.read_text(), entry.name, seen))
        print(f"{OUTCOMES[seen]}: {entry.name}: {entry.what}", flush=True)
        if not seen:
            missed.append(entry.name)
    print(f"{len(chosen) - len(missed)} of {len(chosen)} seen; write the page anew with `table`")
    return 1 if missed else 0


# table


def names(entries):
    return ", ".join(entry.name for entry in entries) if len(entries) < 9 else f"{len(entries)} rows"


def page_of(entries):
    """The page: what stands above the marker line, and the table."""
    head, marker, _ = PAGE.read_text().partition(MARKER)
    if not marker:
        sys.exit(f"no marker line in {PAGE.relative_to(ROOT)}: {MARKER}")
    rows = [
        f"| {entry.what} | `{entry.file}` | {entry.package.removeprefix('mainstem-')}: `{entry.filter}` |"
        for entry in entries
    ]
    state = []
    seen, missed = [e for e in entries if e.seen], [e for e in entries if e.seen is False]
    if not seen and not missed:
        state.append("No row has been run yet.")
    else:
        state.append(f"Seen to fail: {len(seen)} of {len(entries)}.")
        state += [f"Not seen: {names(missed)}."] if missed else []
        left = [e for e in entries if e.seen is None]
        state += [f"Not run yet: {names(left)}."] if left else []
    table = ["| what is broken | file | test that sees it |", "|---|---|---|", *rows]
    text = f"{head}{MARKER}\n\n{' '.join(state)}\n\n" + "\n".join(table) + "\n"
    lines = text.count("\n")
    if lines > PAGE_LINES_MAX:
        sys.exit(f"{PAGE.relative_to(ROOT)} would have {lines} lines, at most {PAGE_LINES_MAX}")
    return text


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    modes = parser.add_subparsers(dest="mode", required=True)
    modes.add_parser("check")
    of_run = modes.add_parser("run")
    of_run.add_argument("--only", nargs="+", metavar="NAME")
    of_run.add_argument("--left", action="store_true")
    of_run.add_argument("--timeout", type=float, default=300, metavar="SECONDS")
    modes.add_parser("table")
    arguments = parser.parse_args()
    entries = mutations()
    if arguments.mode == "check":
        return check(entries)
    if arguments.mode == "run":
        return run(chosen_of(entries, arguments.only, arguments.left), arguments.timeout)
    PAGE.write_text(page_of(entries))
    return 0


if __name__ == "__main__":
    sys.exit(main())
