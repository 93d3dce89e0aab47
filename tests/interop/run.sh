#!/bin/sh
# sh tests/interop/run.sh [WITH_REDIS_NODES INTEROP_TESTS]: this library beside node-redlock and redis-py.
#
# The two programs are those of a build, as ctest knows them; without them, those of the release build. node-redlock
# is installed by npm into a cache outside this tree, in the versions of package-lock.json.
#
# Where node, npm or redis-py is not to be had, it says so and exits with 77: skipped. Not so if
# REDLOCK_INTEROP=required: then that is an error. `sh cmake/install-packages.sh interop` installs all three.
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
# Debian's own python has Debian's redis-py; the first one in the PATH may be another.
for python in python3 /usr/bin/python3; do
    if "$python" -c 'import redis.lock' 2>/dev/null; then
        REDLOCK_INTEROP_PYTHON=$python
        break
    fi
done
[ -n "$REDLOCK_INTEROP_PYTHON" ] || skip "no redis-py"
export REDLOCK_INTEROP_PYTHON

# One directory for each set of versions, put in its place whole: two runs at once do not meet in a half of it.
cache=${XDG_CACHE_HOME:-$HOME/.cache}/redlock
modules=$cache/interop-$(cksum <"$here/package-lock.json" | tr ' ' '-')
if [ ! -d "$modules" ]; then
    mkdir -p "$cache"
    work=$(mktemp -d "$cache/interop-XXXXXX")
    trap 'rm -rf "$work"' EXIT
    trap 'exit 130' INT
    trap 'exit 143' TERM
    cp "$here/package.json" "$here/package-lock.json" "$work/"
    (cd -- "$work" && npm ci --no-audit --no-fund) >"$work/log" 2>&1 </dev/null || {
        cat "$work/log"
        skip "npm could not install node-redlock"
    }
    mv -T "$work" "$modules" 2>/dev/null || [ -d "$modules" ] # another run was faster
    rm -rf "$work"
    trap - EXIT
fi
NODE_PATH=$modules/node_modules
export NODE_PATH
exec "$with_redis_nodes" "$interop_tests"
