#!/bin/zsh -f
# complete.zsh COMPLETION WORD...: what zsh would offer for the last of the words, which may be empty: one a line.
# A shell at a terminal of its own is typed to; a widget there writes down what the completion adds.
emulate -L zsh
setopt err_exit
zmodload zsh/zpty
directory=${1:A:h}
shift
offers=$(mktemp -d)
trap 'rm -rf -- $offers; zpty -d shell 2>/dev/null || true' EXIT

cat >$offers/setup <<'SETUP'
PS1= RPS1=
autoload -Uz compinit && compinit -u -D
compadd() {
    # What only counts or filters matches is let through, see zshcompwid(1).
    local flags=("${(@)argv[1,(i)(-|--)]}")
    if (( ${flags[(I)-*[OAD]]} )); then builtin compadd "$@"; return; fi
    local -a found
    builtin compadd -O found "$@"
    offered+=($found)
    builtin compadd "$@"
}
tell() {
    offered=()
    _main_complete
    print -rl -- $offered >$offers/unfinished
    mv $offers/unfinished $offers/list
}
zle -C tell complete-word tell
bindkey '^T' tell
print ready >$offers/ready
SETUP

# wait_for FILE: what the shell reports to its terminal is read meanwhile, lest it wait for its reader.
wait_for() {
    local heard
    integer tries=0
    until [[ -e $1 ]]; do
        while zpty -r -t shell heard; do :; done
        if (( ++tries > 400 )); then print -u2 "complete.zsh: $1 did not come"; exit 1; fi
        sleep 0.05
    done
}

zpty -b shell zsh -f -i
zpty -w shell "offers=${(q)offers} fpath=(${(q)directory} \$fpath); source ${(q)offers}/setup"
wait_for $offers/ready
zpty -w -n shell "${(j: :)${(@q)argv[1,-2]}} ${argv[-1]}"$'\C-t'
wait_for $offers/list
cat $offers/list
