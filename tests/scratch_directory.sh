#!/bin/sh
# sh tests/scratch_directory.sh: creates a directory for temporary files, prints its name, and removes it when the
# process that called this script has ended. This is for tests that exceed their time limit: they are killed and cannot
# clean up.
set -eu
directory=$(mktemp -d "${TMPDIR:-/tmp}/redlock-XXXXXX")
chmod 711 "$directory" # lets a test that gives up root's rights find its files
(
    trap '' HUP INT QUIT TERM
    exec </dev/null >/dev/null 2>&1
    while kill -0 "$PPID"; do sleep 1; done
    rm -rf "$directory"
) &
echo "$directory"
