#!/bin/sh
# sh cmake/counted.sh LOG COMMAND...: runs the command with its output in LOG, and counts its steps on one line. It
# recognises the steps that ninja, ctest and apt-get announce. On a terminal it rewrites the line, and names the file
# that was built last, or the test that was started last. Otherwise it prints a line for every tenth of the steps, and
# for each test that took a minute or longer.
#
# The output of ctest for a test that did not pass is shown at once. If a test was skipped, the reason is shown, which
# ctest writes only into its own log. The variable CTEST_LOG has the path of this log. If another command fails, its
# whole output is shown. The exit status is that of the command.
set -u
log=$1
shift
on_terminal=
[ ! -t 1 ] || on_terminal=yes

# show DONE TOTAL [NAME]
show() {
    if [ -n "$on_terminal" ]; then
        printf '\r\033[K  %s of %s%.40s' "$1" "$2" "${3:+: $3}"
    elif [ $(($1 * 10 / $2)) -gt "$tenths" ]; then
        tenths=$(($1 * 10 / $2))
        echo "  $1 of $2"
    fi
}

clear_line() {
    [ -z "$on_terminal" ] || printf '\r\033[K'
}

# Sets `fraction` to the first field of a text such as " 12/345 ...", without leading blanks.
fraction() {
    fraction=${1#"${1%%[! ]*}"}
    fraction=${fraction%% *}
}

# Succeeds if a line of ctest says that its test took a minute or longer. The number precedes " sec".
took_long() {
    seconds=${1% sec*}
    seconds=${seconds##* }
    [ "${seconds%.*}" -ge 60 ] 2>/dev/null
}

# reason NAME: prints why the test was skipped. ctest may write it a little later than the line for the terminal.
reason() {
    [ -n "${CTEST_LOG:-}" ] || return 0
    for _ in 1 2 3 4 5; do
        found=$(sed -n '/^[0-9]*\/[0-9]* Test: /{s///;s/ .*//;h;}
                        /^[a-z]*: skipped: /{s/^[a-z]*: skipped: //;H;x;s/\n/ /p;}
                        /^skipped: /{s///;H;x;s/\n/ /p;}
                        /: Skipped$/{n;H;x;s/\n/ /p;}' "$CTEST_LOG.tmp" "$CTEST_LOG" 2>/dev/null |
            sed -n "s|^$1 ||p" | head -n 1)
        [ -z "$found" ] || break
        sleep 0.1
    done
    echo "    ${found:-no reason is given}"
}

count() {
    tenths=0 packages=0 done=0 tests='' latest=''
    while IFS= read -r line; do
        printf '%s\n' "$line" >>"$log"
        case $line in
        '['[0-9]*/[0-9]*'] '*)
            fraction "${line#?}"
            fraction=${fraction%]}
            file=${line##*[ /]}
            show "${fraction%/*}" "${fraction#*/}" "${file%.o}"
            ;;
        *' newly installed, '*)
            packages=${line%% newly installed*}
            packages=$((${packages##* } + ${line%% *}))
            ;;
        'Get:'* | 'Unpacking '* | 'Setting up '*) # there is one line of each kind for each package
            done=$((done + 1))
            [ $done -gt $((3 * packages)) ] || show $done $((3 * packages))
            ;;
        'Test project '*) tests=yes ;;
        *[0-9]/[0-9]*' Test '*'#'*': '*)
            fraction "$line"
            case $line in
            *' Passed '*) ;;
            *) # ctest pads the name with dots
                clear_line
                printf '%s\n' "$line" | sed 's/ *\.\.\.\.*/ ... /'
                case $line in
                *'***Skipped'*)
                    name=${line#*: }
                    reason "${name%% *}"
                    ;;
                esac
                ;;
            esac
            if [ -z "$on_terminal" ] && took_long "$line"; then
                echo "  ${fraction%/*} of ${fraction#*/}: $(echo "${line#*: }" | sed 's/ .*//') took ${seconds%.*} s"
            else
                show "${fraction%/*}" "${fraction#*/}" "$latest"
            fi
            ;;
        ' '*'Start '*[0-9]': '*)
            latest=${line#*: }
            [ -z "$on_terminal" ] || [ -z "${fraction:-}" ] || show "${fraction%/*}" "${fraction#*/}" "$latest"
            ;;
        *)
            if [ -n "$tests" ]; then
                clear_line
                printf '%s\n' "$line"
            fi
            ;;
        esac
    done
    clear_line
}

: >"$log"
# Gets the exit status of the first command in a pipeline through a separate descriptor.
exec 4>&1
status=$({ { "$@" 2>&1 </dev/null 3>&- 4>&- && echo 0 >&3 || echo $? >&3; } | count >&4 3>&-; } 3>&1)
[ "$status" -eq 0 ] || grep -q '^Test project ' "$log" || cat "$log" >&2
exit "$status"
