#!/usr/bin/env python3
"""Checks that two versions of the command, and of a program with the library, exclude each other on the same servers.

    with_redis_nodes tests/mixed/mixed_versions.py EARLIER/redlock LATER/redlock EARLIER/program LATER/program

For each kind of lock, each version in turn holds the lock while the other version tries to get it. Then three clients
of each version compete for the lock, together with a program of each version. At no time may two of them hold it, and
each must get it within its time. At the end every key must have an expiry.
"""
import os
import re
import socket
import subprocess
import sys
import tempfile
import time

EARLIER, LATER = sys.argv[1:3]
PROGRAMS = sys.argv[3:5]
VERSIONS = {"earlier": EARLIER, "later": LATER}
MIN_HOLD = {EARLIER: "--at-least", LATER: "--min-hold"}
KINDS = {
    "plain": [],
    "fair": ["--fair"],
    "shared": [],  # the holder is a reader, the other is a writer
    "several": ["--also", "several:2"],
    "fencing": ["--fencing"],
    "quarantine": ["--quarantine", "2s", "--ttl", "2s"],
    "minimum hold": [],
}
ROUNDS = 8  # acquisitions of each competing client
SECONDS = 60  # in which all of them must be done
faults = []


def fault(words):
    faults.append(words)
    print("FAULT:", words)


def run(version, *words, **options):
    return subprocess.run([version, "run", *words], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                          timeout=SECONDS, check=False, **options)


def holds_while_the_other_tries(kind, holder, other):
    """One version holds the lock. The other must be refused, and must get the lock after the release."""
    resource = f"{kind}:hold".replace(" ", "-")
    extra = KINDS[kind]
    held = extra + (["--shared"] if kind == "shared" else [])
    with subprocess.Popen([holder, "run", *held, resource, "--", "sh", "-c", "echo held; read -r end"],
                          stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        if process.stdout.readline() != "held\n":
            fault(f"{kind}: the first client did not get the lock")
        refused = run(other, "-n", *extra, resource, "--", "true")
        if refused.returncode != 1:
            fault(f"{kind}: status {refused.returncode} in place of 1 while the other version holds: {refused.stderr}")
        process.communicate("end\n")
    got = run(other, "-w", "10s", *extra, resource, "--", "true")
    if got.returncode != 0:
        fault(f"{kind}: status {got.returncode} after the release by the other version: {got.stderr}")


def keeps_for_the_minimum_hold_time(holder, other):
    resource = "minimum"
    begin = time.monotonic()
    run(holder, MIN_HOLD[holder], "1s", resource, "--", "true")
    refused = run(other, "-n", resource, "--", "true")
    if refused.returncode != 1:
        fault(f"minimum hold: status {refused.returncode} in place of 1 before its end")
    status = subprocess.run([LATER, "status", resource], stdout=subprocess.PIPE, text=True, check=False).stdout
    if "released, and kept from everybody" not in status and time.monotonic() - begin < 0.9:
        fault(f"minimum hold: redlock status does not recognise it: {status}")
    run(other, "-w", "10s", resource, "--", "true")
    if time.monotonic() - begin < 0.9:
        fault("minimum hold: the other version got the lock before its end")


def shows_the_description(holder, other):
    resource = "described"
    script = f"'{other}' status {resource}"
    shown = run(holder, resource, "--", "sh", "-c", script).stdout
    if "program=sh" not in shown:
        fault(f"description: the other version does not show the holder: {shown}")


def numbers_grow(versions):
    last = 0
    for version in versions:
        words = run(version, "--fencing", "numbered", "--", "sh", "-c", "env | grep -i fenc").stdout
        number = int(re.search(r"=(\d+)", words)[1])
        if number <= last:
            fault(f"fencing: token {number} after {last}")
        last = number


def compete(kind):
    """The clients check with a directory, which cannot be made twice, that they are alone."""
    resource = f"{kind}:compete".replace(" ", "-")
    with tempfile.TemporaryDirectory() as directory:
        alone = f"mkdir {directory}/held || echo TWO >>{directory}/two; sleep 0.01; rmdir {directory}/held"
        loop = 'i=0; while [ $i -lt "$1" ]; do "$0" run -w 30s $2 "$3" -c "$4" || exit; i=$((i + 1)); done'
        clients = [subprocess.Popen(["sh", "-c", loop, version, str(ROUNDS), " ".join(KINDS[kind]), resource, alone])
                   for version in (EARLIER, LATER) * 3]
        clients += [subprocess.Popen([program, kind, directory]) for program in PROGRAMS]
        end = time.monotonic() + SECONDS
        for client in clients:
            try:
                if client.wait(max(0.1, end - time.monotonic())) != 0:
                    fault(f"{kind}: a client did not get the lock within 30 s")
            except subprocess.TimeoutExpired:
                fault(f"{kind}: a client was not done after {SECONDS} s")
                client.kill()
                client.wait()
        if os.path.exists(f"{directory}/two"):
            fault(f"{kind}: two holders at once")


def ask(port, *words):
    """Returns the reply as a list of lines, without the lengths."""
    with socket.create_connection(("127.0.0.1", port)) as connection:
        connection.sendall("".join([f"*{len(words)}\r\n"] + [f"${len(it)}\r\n{it}\r\n" for it in words]).encode())
        connection.sendall(b"*1\r\n$4\r\nQUIT\r\n")
        data = b""
        while chunk := connection.recv(65536):
            data += chunk
    return [it for it in data.decode().split("\r\n")[:-2] if it[:1] not in ("$", "*")]


def every_key_has_an_expiry():
    for port in map(int, re.findall(r":(\d+)", os.environ["REDLOCK_NODES"])):
        for key in ask(port, "KEYS", "*"):
            # The marker of the quarantine stays, so that the node remembers since when it has its data.
            if key != "redlock:since" and ask(port, "PTTL", key) == [":-1"]:
                fault(f"{key} has no expiry on port {port}")


def main():
    for kind in KINDS:
        begin = time.monotonic()
        if kind == "minimum hold":
            keeps_for_the_minimum_hold_time(EARLIER, LATER)
            keeps_for_the_minimum_hold_time(LATER, EARLIER)
        else:
            holds_while_the_other_tries(kind, EARLIER, LATER)
            holds_while_the_other_tries(kind, LATER, EARLIER)
            compete(kind)
        print(f"{kind}: {time.monotonic() - begin:.1f} s")
    shows_the_description(EARLIER, LATER)
    shows_the_description(LATER, EARLIER)
    numbers_grow((EARLIER, LATER) * 2)
    every_key_has_an_expiry()
    sys.exit(1 if faults else 0)


main()
