#!/usr/bin/env python3
"""What `redlock run` costs around a command that does nothing, beside flock(1) around the same one.

    with_redis_nodes tests/bench/command_cost.py build/release/src/tool/redlock

CPU time of the command and all its children, user and system, medians of runs that alternate; system calls where strace is
installed. The guardian and the command itself are included.
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


def system_calls(command):
    with tempfile.NamedTemporaryFile() as table:
        subprocess.run(["strace", "-f", "-c", "-o", table.name, *command], check=True)
        total = re.search(r"(\d+)(?: +\d+)? total", open(table.name).read())
    return total[1]


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
    for name, command in commands.items():
        calls = system_calls(command) if shutil.which("strace") else "?"
        print(f"{name:12} {statistics.median(times[name]):5.2f} ms of CPU, {calls} system calls")
    ratio = statistics.median(a / b for a, b in zip(*times.values()))
    print(f"redlock run to flock: {ratio:.2f}")
