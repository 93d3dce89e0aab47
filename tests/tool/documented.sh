#!/bin/sh
# documented.sh TOOL: every command and every long option that --help tells of stands in the manual and in both
# completions, and the other way round.
set -u
unset CDPATH
tool=$1
# zsh completes at a terminal only.
if ! zsh -f -c 'zmodload zsh/zpty && zpty terminal true' 2>/dev/null; then
    echo "skipped: no pseudo-terminals on this machine"
    exit 77
fi
here=$(cd -- "$(dirname -- "$0")" && pwd)
source=$here/../../src/tool
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
failed=0

# The words at the beginnings of lines; what a description mentions does not count.
options_of_help() {
    "$tool" "$@" --help >"$work/help" || fault "redlock $* --help fails"
    sed -nE 's/^ +(-[A-Za-z], ?)*(--[a-z][a-z-]*).*/\2/p' "$work/help" | sort -u
}

# Of the help that was printed last: the type of a value stands directly behind the names of its option.
options_with_value() {
    sed -nE 's/^ +(-[A-Za-z], ?)*(--[a-z][a-z-]*)(,--[a-z-]+)* [A-Z]{3,}.*/\2/p' "$work/help" | sort -u
}

# options_before_value COMMAND: those behind which bash offers no option, but awaits a value.
options_before_value() {
    while read -r option; do
        offered bash "$1" "$option" -- | grep -q . || printf '%s\n' "$option"
    done <"$work/options"
}

commands_of_help() {
    "$tool" --help | sed -nE '/^[A-Za-z ]*[Cc]ommands:$/,/^[^ ]/s/^ +([a-z]+)( .*)?$/\1/p' | sort -u
}

options_of_manual() {
    sed -n 's/^\.It Fl//p' "$source/man/redlock.1" | grep -oE '(^| )-[a-z][a-z-]+' | sed 's/^ */-/' | sort -u
}

commands_of_manual() {
    sed -nE 's/^\.It Cm ([a-z]+)$/\1/p' "$source/man/redlock.1" | sort -u
}

# offered SHELL WORD...: by its completion, for the last of the words.
offered() {
    shell=$1
    shift
    case $shell in
    bash) bash "$here/complete.bash" "$source/completion/redlock.bash" redlock "$@" ;;
    zsh) zsh -f "$here/complete.zsh" "$source/completion/_redlock" redlock "$@" ;;
    esac | sort -u
}

fault() {
    echo "FAULT: $*"
    failed=1
}

# same WHERE COMMAND...: what the command prints is what --help tells, $work/told.
same() {
    where=$1
    shift
    "$@" >"$work/stands"
    diff "$work/told" "$work/stands" >"$work/diff" && return
    fault "$where differs from --help ('<' is told by --help alone):"
    grep '^[<>]' "$work/diff"
}

commands_of_help >"$work/told"
commands=$(cat "$work/told")
[ -n "$commands" ] || fault "redlock --help tells of no command"
same "the manual" commands_of_manual
same "the completion of bash" offered bash ''
same "the completion of zsh" offered zsh ''

options_of_help >"$work/told"
same "the completion of bash" offered bash --
same "the completion of zsh" offered zsh --
cp "$work/told" "$work/all"
for command in $commands; do
    options_of_help "$command" >"$work/told"
    cat "$work/told" >>"$work/all"
    same "redlock $command: the completion of bash" offered bash "$command" --
    same "redlock $command: the completion of zsh" offered zsh "$command" --
    cp "$work/told" "$work/options"
    options_with_value >"$work/told"
    same "redlock $command: the values in the completion of bash" options_before_value "$command"
done
sort -u "$work/all" >"$work/told"
same "the manual" options_of_manual
exit "$failed"
