#!/bin/sh
# old_asio.sh CXX: checks that each header for Asio stops the compiler with an #error that says what to install, if
# the only Asio is too old, and with another one, if the program has selected both Asios.
set -u
unset CDPATH
compiler=$1
cd "$(dirname -- "$0")/.." || exit 2
old=$(mktemp -d) || exit 2
trap 'rm -rf "$old"' EXIT
mkdir -p "$old/boost/asio" "$old/asio"
echo '#define BOOST_ASIO_VERSION 102401' >"$old/boost/asio/version.hpp" # of Boost 1.74
echo '#define ASIO_VERSION 101802' >"$old/asio/version.hpp"
# The compiler stops there, because of a file that does not exist.
echo '#include <asio_is_too_old>' | tee "$old/boost/asio/any_io_executor.hpp" >"$old/asio/any_io_executor.hpp"
failed=0

# expect HEADER MESSAGE DEFINITION...: a program with these macros must get an error that contains the message.
expect() {
    header=$1 message=$2
    shift 2
    said=$(echo "#include <$header>" |
        LC_ALL=C "$compiler" -std=c++20 -E "$@" "-I$old" -Iinclude -x c++ - 2>&1 >/dev/null)
    if ! printf '%s\n' "$said" | grep -q "error: .*$message"; then
        printf '%s %s: no error "%s":\n%s\n' "$header" "$*" "$message" "$(printf '%s\n' "$said" | head -n 20)"
        failed=1
    fi
}

for path in include/redlock/asio*.hpp; do
    name=${path#include/}
    expect "$name" 'needs Boost.Asio 1.81 or later; .*libboost1.81-dev'
    expect "$name" 'needs Boost.Asio 1.81 or later; .*libboost1.81-dev' -DREDLOCK_ASIO_BOOST
    expect "$name" 'needs Asio 1.22 or later; .*libasio-dev' -DREDLOCK_ASIO_STANDALONE
    expect "$name" 'not both' -DREDLOCK_ASIO_BOOST -DREDLOCK_ASIO_STANDALONE
done
exit "$failed"
