#!/bin/sh
# src_hpp.sh CXX: checks redlock/src.hpp, with which a program compiles the library: it includes the same sources as the
# build, and stops the compiler with an #error if something is missing or if the program also links the library.
set -u
unset CDPATH
compiler=$1
cd "$(dirname -- "$0")/.." || exit 2
work=$(mktemp -d) || exit 2
trap 'rm -rf "$work"' EXIT
failed=0

# The scripts are generated, and the build has their path in a variable.
grep -oE '[a-z_/]+\.cpp' src/CMakeLists.txt | grep -v '/scripts\.cpp$' | sort -u >"$work/build"
sed -n 's,^#include <redlock/src/\(.*\.cpp\)>$,\1,p' include/redlock/src.hpp | grep -vx 'scripts\.cpp' | sort >"$work/header"
[ -s "$work/build" ] || { echo "no sources in src/CMakeLists.txt"; failed=1; }
diff "$work/build" "$work/header" || { echo "src/CMakeLists.txt (<) and include/redlock/src.hpp (>) differ"; failed=1; }

# expect MESSAGE OPTION...: the header, with these options and without the directories of the system, is an error that
# contains the message.
expect() {
    message=$1
    shift
    said=$(echo '#include <redlock/src.hpp>' |
        LC_ALL=C "$compiler" -std=c++20 -nostdinc -nostdinc++ -E "$@" -Iinclude -x c++ - 2>&1 >/dev/null)
    if ! printf '%s\n' "$said" | grep -q "error: .*$message"; then
        printf '%s: no error "%s":\n%s\n' "$*" "$message" "$(printf '%s\n' "$said" | head -n 20)"
        failed=1
    fi
}
mkdir "$work/hiredis" "$work/openssl"
touch "$work/hiredis/hiredis.h"
expect 'needs hiredis' -DREDLOCK_WITHOUT_TLS
expect 'needs OpenSSL' -I"$work"
touch "$work/openssl/ssl.h"
expect 'needs exceptions' -I"$work" -fno-exceptions
expect 'link redlock::headers alone' -I"$work" -DREDLOCK_LINKED
expect 'flow/acquire\.cpp' -I"$work" # nothing is missing but the sources, which are not in include/
rm -r "$work/openssl"
expect 'flow/acquire\.cpp' -I"$work" -DREDLOCK_WITHOUT_TLS
exit "$failed"
