#!/bin/sh
# without_servers.sh PROGRAM: checks what an example does if it has no servers.
#
# Without addresses it names REDLOCK_NODES. With addresses at which nobody listens, it says so. In both cases it ends
# with a failure. The ports below 1024 belong to root, and nobody listens at the first ones.
set -u
unset CDPATH
program=$1
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
failed=0

# fails WHAT TEXT: checks that the program ends with status 1 or 2, and that its output has the text.
fails() {
    timeout 120 "$program" >"$work/said" 2>&1 </dev/null && status=0 || status=$?
    case $status in
    [12]) grep -qF -e "$2" "$work/said" && return ;;
    esac
    failed=1
    echo "FAULT: $1: exit status $status; '$2' is expected in the output:"
    cat "$work/said"
}

unset REDLOCK_NODES
fails "without addresses" REDLOCK_NODES
export REDLOCK_NODES=127.0.0.1:1,127.0.0.1:2,127.0.0.1:3
fails "without servers" "127.0.0.1:1 connection failed"
exit "$failed"
