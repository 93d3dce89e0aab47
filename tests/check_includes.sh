#!/bin/sh
# Checks the include rules of the architecture: exactly one source file includes hiredis; no header of include/ opens a
# socket; only src/os reads a real clock; the decisions include nothing that does I/O. Checks also that verbs are compared
# in one file: everything that the library knows about a verb stands in the table of verbs. Checks that all headers of
# include/ are installed.
set -u
unset CDPATH
cd "$(dirname -- "$0")/.." || exit 2
failed=0

# none MESSAGE PATTERN FILE...: reports each line that matches PATTERN.
none() {
    message=$1 pattern=$2
    shift 2
    grep -nE -e "$pattern" -- "$@" /dev/null || return 0
    printf '%s\n\n' "$message"
    failed=1
}

headers=$(find include -name '*.hpp')
users_of_verbs=$(find include src -name '*.[ch]pp' -not -name verbs.hpp -not -name nodes.hpp)
core=$(find include/redlock/detail src/lock src/flow src/round src/wire -name '*.[ch]pp')
# The decisions: the algorithm, what stands below it, and the flows. The scripts and the table of verbs are among them,
# and the headers of src/lock, which the flows include.
decisions=$(find include/redlock/algorithm include/redlock/detail src/flow src/round src/wire -name '*.[ch]pp'
    find src/lock -name '*.hpp')
outside_os=$(find include src -maxdepth 4 -name '*.[ch]pp' -not -path 'src/os/*' -not -path 'src/tool/*')

for header in $headers; do
    grep -qF "$header" CMakeLists.txt && continue
    printf '%s is not installed: list it in CMakeLists.txt\n\n' "$header"
    failed=1
done

users=$(grep -rlE --include='*.[ch]pp' '#[[:space:]]*include[[:space:]]*[<"](hiredis/|hiredis\.h)' include src)
case $users in
src/*.cpp) [ "$(printf '%s\n' "$users" | wc -l)" -eq 1 ] || failed=1 ;;
*) failed=1 ;;
esac
[ "$failed" -eq 0 ] || printf 'hiredis must be included by one .cpp in src/, and is by:\n%s\n' "${users:-none}"

# shellcheck disable=SC2086  # words
{
    none 'the headers of include/ do no I/O: the above belongs in src/' \
        '#[[:space:]]*include[[:space:]]*<(sys/|netinet/|arpa/|netdb\.h|poll\.h|unistd\.h|openssl/)' $headers
    none 'frames of coroutines do not cross compilers: the flows are compiled in src/' \
        '#[[:space:]]*include[[:space:]]*<coroutine>' $headers
    none 'only src/os reads a real clock: elsewhere time is an argument' \
        'clock_gettime|gettimeofday|_clock::now\(|boot_clock\(\)\.(now|sleep)' $outside_os
    none 'what decides knows no network: include redis/ in src/redis alone' \
        '#[[:space:]]*include[[:space:]]*[<"](redlock/|\.\./)*(redis/|redis_nodes\.hpp|endpoint\.hpp)' $core
    none 'decisions do no I/O: they include no file of src/redis, src/loop or src/os' \
        '#[[:space:]]*include[[:space:]]*[<"](([^>"]*/)?(redis|loop|os)/|redlock/(src|asio(_[a-z]+)?)\.hpp)' $decisions
    none 'decisions do no I/O: they include no header of the operating system, hiredis or OpenSSL' \
        '#[[:space:]]*include[[:space:]]*[<"](sys/|netinet/|arpa/|hiredis|openssl/|(netdb|poll|unistd|fcntl|pthread)\.h)' \
        $decisions
    none 'decisions do no I/O: they use no stream and no signal of the standard library' \
        '#[[:space:]]*include[[:space:]]*<((io|f)stream|c?(stdio|signal)(\.h)?)>' $decisions
    none 'what the library knows about a verb is a row of the table in src/wire/verbs.hpp' \
        '[=!]= *Verb::|case Verb::' $users_of_verbs
}

exit "$failed"
