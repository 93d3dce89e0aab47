#!/bin/sh
# What a reader may rely on without looking: hiredis is included by exactly one source file, and no header of
# include/ opens a socket or a thread.
set -u
unset CDPATH
cd "$(dirname -- "$0")/.." || exit 2
failed=0

users=$(grep -rlE --include='*.[ch]pp' '#[[:space:]]*include[[:space:]]*[<"](hiredis/|hiredis\.h)' include src)
case $users in
src/*.cpp) [ "$(printf '%s\n' "$users" | wc -l)" -eq 1 ] || failed=1 ;;
*) failed=1 ;;
esac
[ "$failed" -eq 0 ] || printf 'hiredis must be included by one .cpp in src/, and is by:\n%s\n' "${users:-nobody}"

if grep -rnE '#[[:space:]]*include[[:space:]]*<(sys/|netinet/|arpa/|netdb\.h|poll\.h|unistd\.h|openssl/)' include; then
    echo 'the headers of include/ do no I/O: the above belongs in src/'
    failed=1
fi

exit "$failed"
