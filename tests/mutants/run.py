#!/usr/bin/env python3
"""Builds each mutant of the library in turn, and fails if the tests do not find one.

The field "Found by" of a rule in rules.txt names the test that must find the mutant:

    Found by: sim halves: two holders
    Found by: pure: NodeHealth.*

The form "sim WORLD: VIOLATION" means that a schedule of this world (tests/sim/presets.hpp) must violate an invariant,
and the first violation must be this one. Several permitted violations are separated by "or". The form "pure: FILTER"
means that a pure test selected by this filter must fail. For such a mutant, run.py compiles the sources that the rule
changes and those in its field "With". If the rule changes a header, it also compiles the file of the test.
"""
import argparse
import concurrent.futures
import json
import os
import pathlib
import re
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
import time

sys.dont_write_bytecode = True  # no __pycache__ beside the sources
from rules import DoesNotApply, HERE, ROOT, read_mutants, read_tree

ENGINE = HERE / "engine.cpp"
STANDARD_HEADERS = ("algorithm", "array", "atomic", "chrono", "condition_variable", "deque", "functional", "iostream",
                    "map", "memory", "mutex", "optional", "random", "ranges", "set", "span", "stop_token", "string",
                    "system_error", "thread", "variant", "vector")
TEST_HEADERS = ("gmock/gmock.h", "gtest/gtest.h")
MOST_SEEDS = 2000
MOST_SECONDS = 300


class Red(Exception):
    """The mutant was not found, or could not be built."""


def run(command, seconds=MOST_SECONDS, **options):
    """Calls subprocess.run() with both outputs in one text. Raises Red after the time limit."""
    try:
        return subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                              timeout=seconds, check=False, **options)
    except subprocess.TimeoutExpired as late:
        raise Red(f"took longer than {seconds} s") from late


class Build:
    """Compiles and links with the commands of a build directory."""

    def __init__(self, directory, scratch):
        self.directory = directory
        self.scratch = pathlib.Path(scratch)
        self.preludes = {}
        entries = json.loads((directory / "compile_commands.json").read_text())
        self.compile_commands = {entry["file"]: entry for entry in entries}
        if str(ROOT / "tests/mutants/engine.cpp") not in self.compile_commands:
            raise SystemExit(f"{directory} compiles several sources together: run \"cmake --preset release\", and build")

    def command(self, source):
        """Returns the command that compiles `source` unoptimised, by clang++ if found: it is twice as fast."""
        words = shlex.split(self.compile_commands[str(ROOT / source)]["command"])
        if pathlib.Path(words[0]).name in ("ccache", "sccache"):
            del words[0]
        words[0] = shutil.which("clang++") or words[0]
        if "-include" in words:  # a precompiled header; compile() adds another one
            at = words.index("-include")
            del words[at:at + 2]
        return [word for word in words if not word.startswith("-W")] + ["-O0", "-w"]

    def object_of(self, source):
        """Returns the object file of `source` in the build directory."""
        words = shlex.split(self.compile_commands[str(ROOT / source)]["command"])
        return self.directory / words[words.index("-o") + 1]

    def compile_prelude(self, source, headers):
        """Precompiles the headers, which take most of the time, for all sources in the directory of `source`."""
        prelude = self.scratch / f"prelude_of_{pathlib.Path(source).parent.name}.hpp"
        prelude.write_text("".join(f"#include <{it}>\n" for it in headers))
        words = self.command(source)
        words[words.index("-o") + 1] = f"{prelude}.gch"
        words = [word for word in words if word not in ("-c", str(ROOT / source))] + ["-x", "c++-header", str(prelude)]
        run(words, cwd=self.directory)  # a failure only makes the compilations slower
        self.preludes[str(pathlib.Path(source).parent)] = prelude

    def compile(self, source, copy, target, text=None):
        """Compiles `source`, or `text` instead of it, with the headers and sources of `copy`."""
        words = self.command(source)
        if text is not None:
            written = target.with_suffix(".cpp")
            written.write_text(text)
            words = [str(written) if word == str(ROOT / source) else word for word in words]
        for room in ("include", "src"):
            words = [word.replace(f"{ROOT}/{room}", f"{copy}/{room}") for word in words]
        words[words.index("-o") + 1] = str(target)
        if prelude := self.preludes.get(str(pathlib.Path(source).parent)):
            words += ["-include", str(prelude)]
        done = run(words, cwd=self.directory)
        if done.returncode:
            raise Red("does not compile:\n" + done.stdout)

    def compile_scripts(self, copy, target):
        """Embeds the Lua scripts of `copy` as the build does, and compiles the result."""
        written = target.with_suffix(".cpp")
        embedded = self.directory / "headers/generated/redlock/src/scripts.cpp"
        line = run(["ninja", "-C", str(self.directory), "-t", "commands", "-s", str(embedded)]).stdout.strip()
        command = line.splitlines()[-1].replace(f"{ROOT}/src", f"{copy}/src").replace(str(embedded), str(written))
        done = run(command, cwd=self.directory, shell=True)
        if done.returncode:
            raise Red("the scripts cannot be embedded:\n" + done.stdout)
        self.compile(str(embedded), copy, target, written.read_text())

    def link(self, program, objects, target, left_out="no such directory"):
        """Links `program` with `objects`, which replace those of the libraries, and without those in `left_out`."""
        line = run(["ninja", "-C", str(self.directory), "-t", "commands", "-s", program]).stdout.strip()
        line = line.splitlines()[-1].removeprefix(": && ").removesuffix(" && :")
        words = [word for word in shlex.split(line) if left_out not in word]
        words[words.index("-o") + 1] = str(target)
        done = run(words[:1] + [str(it) for it in objects] + words[1:], cwd=self.directory)
        if done.returncode:
            raise Red("does not link:\n" + done.stdout)


def includes_of(path, seen):
    """Adds a file of this project to `seen`, and all files of the project that it includes, directly or indirectly."""
    if path in seen:
        return seen
    seen.add(path)
    for name in re.findall(r'^#include ["<]([^">]+)[">]', path.read_text(), re.MULTILINE):
        for room in (path.parent, ROOT / "include", ROOT / "src", ROOT / "tests"):
            if (room / name).is_file():
                includes_of((room / name).resolve(), seen)
                break
    return seen


def engine_with(touched):
    """Returns the part of engine.cpp that includes one of these files."""
    text = ""
    for name in re.findall(r'^#include "([^"]+)"', ENGINE.read_text(), re.MULTILINE):
        source = next(it for it in (ROOT / "src" / name, HERE / name) if it.is_file()).resolve()
        if includes_of(source, set()) & {ROOT / it for it in touched}:
            text += f'#include "{name if source.is_relative_to(ROOT / "src") else source}"\n'
    if not text:
        raise Red(f"engine.cpp has nothing of {touched}")
    return text


def pure_tests_of(pattern):
    """Returns the test files that define a suite of the filter."""
    suites = {part.split(".")[0].split("/")[-1].strip("*") for part in pattern.split(":")}
    tests = []
    for test in sorted((ROOT / "tests/pure").glob("*_test.cpp")):
        found = re.findall(r"^TEST(?:_[FP])?\((\w+),", test.read_text(), re.MULTILINE)
        if suites & set(found):
            tests.append(str(test.relative_to(ROOT)))
    if not tests:
        raise Red(f"no pure test is called {pattern}")
    return tests


def find_in_sim(mutant, touched, objects, build, folder):
    world, claims = re.fullmatch(r"sim (\S+): (.*)", mutant.found_by).groups()
    if touched:
        objects.append(folder / "engine.o")
        build.compile("tests/mutants/engine.cpp", folder, objects[-1], engine_with(touched))
    build.link("tests/sim/sim", objects, folder / "sim")
    done = run([str(folder / "sim"), "--world", world, "--seeds", str(MOST_SEEDS), "--threads", "1"])
    found = re.search(r"^seed (\d+): (.*?) at ", done.stdout, re.MULTILINE)
    if not found:
        raise Red(f"not found in {MOST_SEEDS} schedules; the last words:\n" + done.stdout[-500:])
    if found[2] not in claims.split(" or "):
        raise Red(f"found as '{found[2]}' by seed {found[1]}")
    return f"seed {found[1]}: {found[2]}"


def find_in_pure_tests(mutant, touched, objects, build, folder):
    pattern = mutant.found_by.removeprefix("pure: ")
    tests = pure_tests_of(pattern)
    if all(it.endswith(".cpp") for it in touched):
        objects += [build.object_of(it) for it in tests]
        tests = []
    for source in tests + [it for it in touched if it.endswith(".cpp")] + mutant.sources:
        objects.append(folder / (source.replace("/", "_") + ".o"))
        build.compile(source, folder, objects[-1])
    build.link("tests/pure/pure_test", objects, folder / "pure_test", left_out="/pure_test.dir/")
    done = run([str(folder / "pure_test"), "--gtest_brief=1", f"--gtest_filter={pattern}"])
    found = re.findall(r"^\[  FAILED  \] (\S+?)[,.]? ", done.stdout + " ", re.MULTILINE)
    if not found and done.returncode < 0:
        return f"ended by {signal.Signals(-done.returncode).name}"
    if not found:
        raise Red(f"{pattern} does not fail:\n" + done.stdout[-500:])
    return found[0]


def find(mutant, build, scratch):
    """Builds the mutant and returns what found it."""
    with tempfile.TemporaryDirectory(dir=scratch) as name:
        folder = pathlib.Path(name)
        for room in ("include", "src"):
            shutil.copytree(ROOT / room, folder / room)
        changed = mutant.changed_files(read_tree())
        for path, text in changed.items():
            (folder / path).write_text(text)
        objects = []
        if any(it.endswith(".lua") for it in changed):
            objects.append(folder / "scripts.o")
            build.compile_scripts(folder, objects[-1])
        touched = [it for it in changed if it.endswith((".hpp", ".cpp"))]
        search = find_in_sim if mutant.found_by.startswith("sim ") else find_in_pure_tests
        return search(mutant, touched, objects, build, folder)


def try_out(mutant, build, scratch):
    start = time.monotonic()
    try:
        result, red = find(mutant, build, scratch), False
    except (DoesNotApply, Red) as why:
        result, red = str(why), True
    took = time.monotonic() - start
    print(f"{'NOT FOUND' if red else 'found'}  {mutant.name:28} {took:5.1f} s  {result}", flush=True)
    return not red


def main():
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    arguments.add_argument("--build", type=pathlib.Path, default=ROOT / "build/release")
    arguments.add_argument("--jobs", type=int, default=min(2, os.cpu_count() or 1))
    arguments.add_argument("--part", default="1of1", help="2of6: of six equal parts of the mutants the second")
    arguments.add_argument("names", nargs="*", help="of mutants; default: all")
    options = arguments.parse_args()
    part, parts = map(int, options.part.split("of"))
    mutants = [it for it in read_mutants()[part - 1::parts] if not options.names or it.name in options.names]
    if not mutants:
        raise SystemExit("no such mutant")
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    start = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="redlock-mutants-") as scratch, \
            concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        build = Build(options.build.resolve(), scratch)
        try:
            list(pool.map(build.compile_prelude, ("tests/pure/lock_test.cpp", "tests/mutants/engine.cpp"),
                          (TEST_HEADERS + STANDARD_HEADERS, STANDARD_HEADERS)))
            results = list(pool.map(lambda it: try_out(it, build, scratch), mutants))
        except BaseException:
            pool.shutdown(wait=True, cancel_futures=True)
            raise
    print(f"{sum(results)} of {len(results)} mutants were found in {time.monotonic() - start:.0f} s")
    return 0 if all(results) else 1


if __name__ == "__main__":
    sys.exit(main())
