#!/bin/sh
# check_shell_blocks.sh TOOL: checks that everything which the ```sh blocks of documents call exists: scripts, presets,
# and the options of the command redlock, of our scripts and of our test programs.
set -u
unset CDPATH
tool=$1
cd "$(dirname -- "$0")/../.." || exit 2
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
failed=0

fault() {
    echo "$document: $*"
    failed=1
}

# Prints the long and short options among the words, up to a "--".
options() {
    for word; do
        case $word in
        --) return ;;
        --help | --gtest_*) ;;
        --* | -[a-zA-Z]) printf '%s\n' "${word%%=*}" ;;
        esac
    done
}

check_redlock() {
    command=$1
    shift
    "$tool" "$command" --help >"$work/help" 2>&1 || fault "no redlock $command"
    for option in $(options "$@"); do
        grep -qE -e "^ *(-[A-Za-z], ?)?$option([ ,]|\$)" "$work/help" || fault "redlock $command has no $option"
    done
}

# check_ours PATH WORD...: checks a script, or build/PRESET/tests/sim/sim, whose source is in tests/sim.
check_ours() {
    path=$1
    shift
    directory=$(dirname -- "$path" | sed 's,^build/[a-z]*/,,')
    [ -e "$path" ] || [ "$directory" != "$(dirname -- "$path")" ] || fault "no $path"
    [ -d "$directory" ] || { fault "no $directory"; return; }
    for option in $(options "$@"); do
        grep -rqF --exclude='*.md' -e "$option" "$directory" || fault "$path has no $option"
    done
}

check_preset() {
    while [ $# -gt 1 ] && [ "$1" != --preset ]; do shift; done
    [ $# -lt 2 ] || grep -qF -e "\"name\": \"$2\"" CMakePresets.json || fault "no preset $2"
}

for document in README.md docs/*.md tests/*/README.md; do
    awk '/^ *```/ { inside = /```sh$/; next } inside' "$document" >"$work/block"
    sh -n "$work/block" || fault "not a shell script"
    # Removes comments and joins continued lines. Quotes remain, because no option has any.
    sed -E 's/(^| +)# .*//' "$work/block" | sed -E ':a; /\\$/ { N; s/\\\n//; ba; }' >"$work/lines"
    set -f
    # shellcheck disable=SC2086  # each word is an argument
    while read -r first second rest; do
        case $first in
        redlock) check_redlock "$second" $rest ;;
        sh) check_ours "$second" $rest ;;
        build/*) check_ours "$first" $second $rest ;;
        cmake | ctest) check_preset $second $rest ;;
        esac
    done <"$work/lines"
    set +f
done
exit "$failed"
