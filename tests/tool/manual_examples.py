#!/usr/bin/env python3
"""manual_examples.py REDLOCK WITH_REDIS_NODES MANUAL RENDERER...

Runs each example of the manual as RENDERER shows it: what people copy from their terminal must work. The programs that
the examples call are stubs, which print their names, what they run under, and their arguments."""
import functools
import json
import os
import pathlib
import re
import shlex
import subprocess
import sys
import tempfile

redlock, with_nodes, manual, *renderer = sys.argv[1:]
work = tempfile.TemporaryDirectory()
programs = pathlib.Path(work.name, "bin")
faults = []


def rendered():
    """Returns the lines of the section EXAMPLES."""
    page = subprocess.run([*renderer, manual], check=True, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                          env={**os.environ, "LC_ALL": "C.UTF-8", "MANWIDTH": "80"}).stdout.decode()
    plain = re.sub(r"\x1b\[[0-9;]*m", "", re.sub(r".\x08", "", page))
    section = re.search(r"^EXAMPLES\n(.*?)^\S", plain, re.MULTILINE | re.DOTALL)
    return section.group(1).expandtabs().splitlines()


def examples():
    """Returns the blocks that are indented deeper than the text, without the indentation."""
    blocks = [[]]
    for line in rendered():
        if line.startswith(" " * 8):
            blocks[-1].append(line)
        elif blocks[-1]:
            blocks.append([])
    indents = [min(len(line) - len(line.lstrip()) for line in block) for block in blocks if block]
    return ["\n".join(line[indent:] for line in block) for block, indent in zip(blocks, indents)]


def run(words):
    """Runs the words with Redis servers of their own, and the stubs in PATH. Returns status and output."""
    environment = {**os.environ, "PATH": f"{programs}:{os.environ['PATH']}", "HOME": work.name, "SHELL": "/bin/sh"}
    done = subprocess.run([with_nodes, *words], env=environment, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, timeout=120, check=False)
    return done.returncode, done.stdout.decode()


def run_shell(text):
    """Runs the text as a shell does, with the stubs in place of the programs that have a path."""
    return run(["sh", "-c", re.sub(r"/usr/(local/)?bin/", f"{programs}/", text)])


def expect(example, run_example, pattern, statuses=(0,)):
    """Runs the example up to five times: on a busy machine, a node can be late for the node_timeout of an example."""
    for _ in range(5):
        status, output = run_example()
        if status in statuses and re.search(pattern, output, re.MULTILINE):
            return
    faults.append(f"{example}\n    ended with {status} and printed, where {pattern} was expected:\n{output}")


def check_commands(example):
    """Of lines that follow a prompt. The addresses in it are those of nobody here."""
    for command in re.split(r"^\$ ", example, flags=re.MULTILINE)[1:]:
        shell = functools.partial(run_shell, command)
        if "publish" in command:
            expect(command, shell, r"^publish of report with [0-9a-f]{40}: --token [1-9]\d*$")
        elif "doctor" in command:
            expect(command, shell, r"5 of 5 nodes have a vote", (0, 1))
        elif "status" in command:
            expect(command, shell, r"^free$", (1,))
        elif "export" in command:
            shell = functools.partial(run_shell, command + "echo $REDLOCK_NODES")
            expect(command, shell, r"^10\.0\.0\.1,10\.0\.0\.2,10\.0\.0\.3$")
        else:
            expect(command, shell, r"^backup of backup:nightly with [0-9a-f]{40}: $")


def check_script(example):
    script = pathlib.Path(work.name, "script")
    script.write_text("#!/bin/sh\n" + example + '\necho "runs under $REDLOCK_RESOURCE: $*"\n')
    script.chmod(0o755)
    expect(example, lambda: run([str(script), "one two", "three"]), r"\Aruns under deploy: one two three\n\Z")


def check(example):
    if example.startswith("$ "):
        check_commands(example)
    elif re.match(r"[\d*]+ [\d*]+ [\d*]+ [\d*]+ [\d*]+ .+\Z", example):
        expect(example, lambda: run_shell(example.split(" ", 5)[5]), r"^backup of backup:nightly with [0-9a-f]{40}: $")
    elif example.startswith("[Service]\n"):
        command = dict(line.split("=", 1) for line in example.splitlines()[1:])["ExecStart"]
        words = [re.sub("^/usr/bin/", f"{programs}/", word) for word in shlex.split(command)]
        expect(example, lambda: run(words), r"^worker of worker with [0-9a-f]{40}: $")
    elif example.startswith("command: "):
        words = json.loads(example[len("command: "):])
        expect(example, lambda: run(words), r"^report of report with [0-9a-f]{40}: $")
    else:
        check_script(example)


programs.mkdir()
pathlib.Path(programs, "redlock").symlink_to(redlock)
for name in ("backup", "worker", "report", "publish"):
    stub = pathlib.Path(programs, name)
    stub.write_text('#!/bin/sh\necho "${0##*/} of $REDLOCK_RESOURCE with $REDLOCK_OWNER: $*"\n')
    stub.chmod(0o755)
found = examples()
for found_example in found:
    try:
        check(found_example)
    except (ValueError, KeyError) as error:
        faults.append(f"{found_example}\n    cannot be read: {error!r}")
if len(found) < 8:
    faults.append(f"{len(found)} examples were found, there are more")
for fault in faults:
    print("FAULT:", fault)
sys.exit(bool(faults))
