#!/bin/sh
# sh tests/scratch_directory.sh: makes a directory for temporary files, prints its name, and removes it when the process
# that called this script has ended. A test that exceeds its limit is killed and cannot clean up after itself.
set -eu
directory=$(mktemp -d "${TMPDIR:-/tmp}/redlock-XXXXXX")
chmod 711 "$directory" # a test that gives up root's rights goes on finding its files
(
    trap '' HUP INT QUIT TERM
    exec </dev/null >/dev/null 2>&1
    while kill -0 "$PPID"; do sleep 1; done
    rm -rf "$directory"
) &
echo "$directory"
