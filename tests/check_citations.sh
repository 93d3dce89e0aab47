#!/bin/sh
# Checks that every cited requirement (S14) and rule (A3) has exactly one entry in docs/requirements.md or
# docs/rules.md, and that a test names every rule.
set -u
unset CDPATH
cd "$(dirname -- "$0")/.." || exit 2
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
failed=0

# entries FILE LETTERS: prints the numbers defined in FILE, as in "- **A3** text".
entries() {
    sed -nE "s/^- \*\*([$2][0-9]*)\*\* .*/\1/p" "$1"
}
entries docs/requirements.md S >"$work/requirements"
entries docs/rules.md A-E >"$work/rules"
sort "$work/requirements" "$work/rules" >"$work/defined"
if [ ! -s "$work/requirements" ] || [ ! -s "$work/rules" ]; then
    echo "no entries found in docs/requirements.md or docs/rules.md"
    failed=1
fi
if twice=$(uniq -d "$work/defined") && [ -n "$twice" ]; then
    printf 'defined more than once:\n%s\n' "$twice"
    failed=1
fi

# citations DIRECTORY-OR-FILE...: prints the citations as lines of FILE:LINE:NUMBER.
citations() {
    grep -rnowE --exclude=check_citations.sh --include='*.?pp' --include='*.md' --include='*.sh' \
        --include='*.txt' --include='*.cmake' --include='*.pml' --include='*.lua' --include='*.1' \
        --include='*.py' --include='*.js' \
        '(S|[A-D])[1-9][0-9]?' "$@"
}
citations include src tests examples docs cmake README.md CHANGELOG.md CMakeLists.txt >"$work/cited"
[ -s "$work/cited" ] || { echo "no citations found"; failed=1; }
awk -F: 'NR == FNR { defined[$1] = 1; next } !($3 in defined) { print; found = 1 } END { exit !found }' \
    "$work/defined" "$work/cited" >"$work/undefined" && {
    echo "cited, but defined in neither docs/requirements.md nor docs/rules.md:"
    cat "$work/undefined"
    failed=1
}

citations tests | sed 's/.*://' | sort -u >"$work/tested"
if untested=$(grep -E '[0-9]' "$work/rules" | grep -vxF -f "$work/tested"); then
    printf 'rules that no test names:\n%s\n' "$untested"
    failed=1
fi
exit "$failed"
