#!/bin/sh
# environment_test.sh CTEST ENVIRONMENT: checks what environment.cmake does for each test that ctest runs. ENVIRONMENT
# is the file of that name in the build directory.
set -u
unset CDPATH
ctest=$1
environment=$2
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir "$work/tmp" "$work/project"
failed=0

fault() {
    echo "FAULT: $*"
    failed=1
}

# run_ctest TEST...: runs a project with these lines of CMake as a person with an environment and a home of their own.
run_ctest() {
    printf '%s\n' "include(\"$environment\")" "$@" >"$work/project/CTestTestfile.cmake"
    env HOME="$work/home-of-somebody" TMPDIR="$work/tmp" REDLOCK_NODES=redis://127.0.0.1:1 BASH_ENV=/nonexistent \
        ODD="two
LINES=x" "$ctest" --test-dir "$work/project" --verbose >"$work/output" 2>&1
}

run_ctest 'add_test(Variables env)'
home=$(sed -n 's/^1: HOME=//p' "$work/output")
case $home in
'' | "$work"/*) fault "HOME is '$home'" ;;
*) [ -d "$home" ] || fault "HOME is no directory: $home" ;;
esac
! grep -E 'REDLOCK_NODES|BASH_ENV|LINES=' "$work/output" || fault "a test sees variables of the person who runs it"

# shellcheck disable=SC2016  # the variable is for the inner shell
run_ctest 'add_test(Hangs sh -c "mkdir $TMPDIR/left && exec sleep 1000")' 'set_tests_properties(Hangs PROPERTIES TIMEOUT 2)'
grep -q '\*\*\*Timeout' "$work/output" || fault "the test has not hung: $(cat "$work/output")"
attempts=0
while [ -n "$(ls "$work/tmp")" ] && [ "$attempts" -lt 300 ]; do
    attempts=$((attempts + 1))
    sleep 0.2
done
[ -z "$(ls "$work/tmp")" ] || fault "a test that was killed leaves $(find "$work/tmp")"
exit "$failed"
