#!/usr/bin/env python3
"""Compares the cost of `redlock run` around a command that does nothing with that of flock(1) around the same command.

    with_redis_nodes tests/bench/command_cost.py build/release/src/tool/redlock [MOST]

It prints the CPU time of the command and all its children, user and system, as medians of alternating runs. If strace
is installed and permitted, it also prints the system calls. Both include the guardian and the command itself. With
MOST, it fails if `redlock run` makes more system calls.
"""
import os
import re
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile


def cpu_ms(command):
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(command, check=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return 1e3 * (after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime)


def may_trace():
    return shutil.which("strace") and subprocess.run(["strace", "-o", "/dev/null", "true"]).returncode == 0


def system_calls(command):
    """Returns the smallest of 20 counts, because waits on a busy machine take some more calls."""
    counts = []
    for _ in range(20):
        with tempfile.NamedTemporaryFile() as table:
            subprocess.run(["strace", "-f", "-c", "-o", table.name, *command], check=True)
            total = re.search(r"(\d+)(?: +\d+)? total", open(table.name).read())
        counts.append(int(total[1]))
    return min(counts)


with tempfile.NamedTemporaryFile() as lock:
    commands = {
        "redlock run": [os.path.abspath(sys.argv[1]), "run", "command_cost", "/bin/true"],
        "flock": ["flock", lock.name, "/bin/true"],
    }
    for _ in range(3):
        for command in commands.values():
            cpu_ms(command)
    times = {name: [] for name in commands}
    for _ in range(100):
        for name, command in commands.items():
            times[name].append(cpu_ms(command))
    calls = {name: system_calls(command) for name, command in commands.items()} if may_trace() else {}
    for name, series in times.items():
        print(f"{name:12} {statistics.median(series):5.2f} ms of CPU, {calls.get(name, 'unknown')} system calls")
    ratio = statistics.median(a / b for a, b in zip(*times.values()))
    print(f"redlock run to flock: {ratio:.2f}")
    if sys.argv[2:] and calls.get("redlock run", 0) > int(sys.argv[2]):
        sys.exit(f"redlock run makes more than {sys.argv[2]} system calls")
