#!/bin/sh
# sh tests/interop/run.sh [WITH_REDIS_NODES INTEROP_TESTS]: tests this library together with node-redlock and redis-py.
#
# ctest passes the two programs of its build. Without arguments, the script uses those of the release build.
#
# If node, npm or redis-py is missing, it prints that and exits with 77 (skipped). With REDLOCK_INTEROP=required this is
# an error. `sh cmake/install-packages.sh interop` installs all three.
set -eu
unset CDPATH
here=$(cd -- "$(dirname -- "$0")" && pwd)
build=$here/../../build/release/tests
with_redis_nodes=${1:-$build/support/with_redis_nodes}
interop_tests=${2:-$build/interop/interop_tests}

skip() {
    echo "interop: skipped: $*"
    [ "${REDLOCK_INTEROP:-}" != required ] || exit 1
    exit 77
}

command -v node >/dev/null || skip "no node"
command -v npm >/dev/null || skip "no npm"
REDLOCK_INTEROP_PYTHON=
# Debian's own python has Debian's redis-py, but the first python in PATH may be another one.
for python in python3 /usr/bin/python3; do
    if "$python" -c 'import redis.lock' 2>/dev/null; then
        REDLOCK_INTEROP_PYTHON=$python
        break
    fi
done
[ -n "$REDLOCK_INTEROP_PYTHON" ] || skip "no redis-py"
export REDLOCK_INTEROP_PYTHON

NODE_PATH=$(sh "$here/node_modules.sh") || skip "npm could not install node-redlock"
export NODE_PATH
exec "$with_redis_nodes" "$interop_tests"
