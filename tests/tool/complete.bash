#!/bin/bash
# complete.bash COMPLETION WORD...: what bash would offer for the last of the words, which may be empty: one a
# line. The words are taken apart as bash does.
set -euo pipefail
# shellcheck disable=SC1090
source "$1"
shift
COMP_WORDS=()
for word; do
    mapfile -t -O "${#COMP_WORDS[@]}" COMP_WORDS < <(grep -oE '[^:=]+|[:=]+' <<<"$word")
done
[[ -n $word ]] || COMP_WORDS+=('')
COMP_CWORD=$((${#COMP_WORDS[@]} - 1))
COMP_LINE=$*
COMP_POINT=${#COMP_LINE}
_redlock
printf '%s\n' "${COMPREPLY[@]}"
