#!/bin/sh
# needs_cxx20.sh CXX: checks that each public header gives a program in C++17 a single #error, which names C++20.
set -u
unset CDPATH
compiler=$1
cd "$(dirname -- "$0")/.." || exit 2
failed=0

for header in include/redlock/*.hpp include/redlock/algorithm/*.hpp; do
    name=${header#include/}
    [ "$name" != redlock/version.hpp ] || continue # macros for any language
    said=$(printf '#include <%s>\nredlock::Lock* lock;\nint main() {}\n' "$name" |
        LC_ALL=C "$compiler" -std=c++17 -fsyntax-only -Iinclude -x c++ - 2>&1)
    # The compiler stops after the #error because of a second one, a file that does not exist.
    errors=$(printf '%s\n' "$said" | grep -c 'error:')
    if [ "$errors" -gt 2 ] || ! printf '%s\n' "$said" | grep -q 'error: .*needs C++20'; then
        printf '%s: %s errors:\n%s\n' "$name" "$errors" "$(printf '%s\n' "$said" | head -n 20)"
        failed=1
    fi
done
exit "$failed"
