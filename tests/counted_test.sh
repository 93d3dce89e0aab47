#!/bin/sh
# counted_test.sh: checks what cmake/counted.sh shows of the output of ctest without a terminal.
set -u
unset CDPATH
counted=$(cd -- "$(dirname -- "$0")/../cmake" && pwd)/counted.sh
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
failed=0

fault() {
    echo "FAULT: $*"
    cat "$work/shown"
    failed=1
}

dots=$(printf '%0378d' 0 | tr 0 .)
cat >"$work/ctest" <<END
echo 'Test project /somewhere'
echo '        Start   1: Quick'
echo '  1/120 Test   #1: Quick $dots   Passed    0.10 sec'
echo '        Start  12: NeedsNode'
echo ' 12/120 Test  #12: NeedsNode $dots***Skipped   0.10 sec'
echo '        Start 113: Mutants.1of6'
echo '113/120 Test #113: Mutants.1of6 $dots   Passed  100.00 sec'
echo '114/120 Test #114: Broken $dots***Failed    0.10 sec'
echo 'why it is broken'
echo '119/120 Test #115: Mutants.2of6 $dots   Passed  100.00 sec'
echo '99% tests passed, 1 tests failed out of 120'
exit 8
END
cat >"$work/LastTest.log.tmp" <<END
7/120 Test: Other
/tests/other_test.cpp:12: Skipped
another reason
8/120 Test: NeedsNode
Output:
interop: skipped: there is no Node.js
END
CTEST_LOG=$work/LastTest.log sh "$counted" "$work/log" sh "$work/ctest" >"$work/shown" 2>&1
[ $? -eq 8 ] || fault "the exit status is not the command's"
! grep -q 'Start' "$work/shown" || fault "a line says which test starts"
! grep -qE '.{100}' "$work/shown" || fault "a line is longer than a screen is wide"
grep -q 'NeedsNode .*Skipped' "$work/shown" || fault "the skipped test is not named"
grep -A 1 'NeedsNode .*Skipped' "$work/shown" | grep -q '^    there is no Node.js$' || fault "the reason is not shown"
grep -q 'Broken .*Failed' "$work/shown" || fault "the failed test is not named"
grep -q 'why it is broken' "$work/shown" || fault "what the failed test says is not shown"
grep -q '^  119 of 120: Mutants.2of6 took 100 s$' "$work/shown" || fault "the end of a long test is not shown"
grep -q "Broken $dots" "$work/log" || fault "the log is not what the command has printed"
exit "$failed"
