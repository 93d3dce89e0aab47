#!/bin/sh
# sh tests/torture/run.sh [OPTION...]: installs missing packages, builds, and runs the torture test.
#
#     sh tests/torture/run.sh --minutes 10
#     sh tests/torture/run.sh --minutes 2 --no-quarantine     the control: finds violations
#     sh tests/torture/run.sh --minutes 5 --failover 3        three nodes; the first fails over between a master and a
#                                                             replica with three Sentinels; --failover 1: one node
#     sh tests/torture/run.sh --minutes 3 --cluster          one Redis Cluster, whose slots are moved
#
# The exit status is 0 if nothing was found, 1 after a violation, and 2 if the test could not run. Options: --help.
set -eu
unset CDPATH
cd -- "$(dirname -- "$0")/../.."
log=build/torture.log
mkdir -p build
sh cmake/install-packages.sh build tool run test >&2
{ cmake --preset release && cmake --build --preset release --target torture; } >"$log" 2>&1 || {
    cat "$log" >&2
    exit 2
}
exec build/release/tests/torture/torture "$@"
