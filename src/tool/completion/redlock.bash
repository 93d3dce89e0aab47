# Completion of redlock(1) for bash. It needs only bash itself. If the package bash-completion is loaded, the words of
# the user's command are completed as for that command.

_redlock_commands='run acquire extend release break status who doctor bench'

# _redlock_options COMMAND: prints the long options of COMMAND.
_redlock_options() {
    local nodes='--node --nodes-file --node-timeout --all-at-once --quarantine'
    local lease='--ttl --drift-factor'
    local waiting='--nonblock --wait --conflict-exit-code --quiet --retry-delay --fencing'
    case $1 in
    run) echo "$nodes $lease $waiting --fair --shared --exclusive --close --no-fork --also --holders --min-hold --command --verbose --max-hold --on-lost --grace --hide-nodes --help" ;;
    acquire) echo "$nodes $lease $waiting --while-pid --fair --json --verbose --help" ;;
    extend) echo "$nodes $lease --owner --json --verbose --help" ;;
    release) echo "$nodes --owner --fair --json --verbose --help" ;;
    break) echo "$nodes --owner --fair --json --verbose --help" ;;
    status) echo "$nodes --json --help" ;;
    who) echo "$nodes --json --help" ;;
    doctor) echo "$nodes $lease --probe --fencing --fair --mark --json --help" ;;
    bench) echo "$nodes $lease --seconds --threads --resource --json --help" ;;
    *) echo '--help --version' ;;
    esac
}

# _redlock_takes_value OPTION: succeeds if the next word is the value of OPTION. Short flags may be combined, as in
# -nw.
_redlock_takes_value() {
    case $1 in
    --all-at-once | --close | --exclusive | --fair | --fencing | --help | --hide-nodes | --json | --mark | --no-fork | --nonblock | --quiet | --shared | --verbose | --version) return 1 ;;
    --*=*) return 1 ;;
    --*) return 0 ;;
    -*[wEc]) [[ $1 != -*[wEc]*[wEc] ]] ;;
    *) return 1 ;;
    esac
}

# Splits the line up to the cursor into `words`, and stores in `places` the index in COMP_WORDS at which each word
# begins. This is necessary because bash splits resources and addresses at their colons, and --ttl=5s at the equals
# sign.
_redlock_words() {
    local i glued=
    words=() places=()
    for ((i = 0; i <= COMP_CWORD; i++)); do
        if [[ ${#words[@]} -gt 0 && (-n $glued || ${COMP_WORDS[i]} == [:=]*) && ${COMP_WORDS[i]} != '' ]]; then
            words[-1]+=${COMP_WORDS[i]}
        else
            words+=("${COMP_WORDS[i]}") places+=("$i")
        fi
        glued=
        [[ ${COMP_WORDS[i]} != [:=]* ]] || glued=yes
    done
}

# Parses `words`. Sets `command` to the subcommand, `resource` if the resource was given, `option` to the option whose
# value is being typed, and `foreign` to the index of the first word of the user's command.
_redlock_read() {
    local i last=$((${#words[@]} - 1))
    command='' resource='' option='' foreign=''
    for ((i = 1; i < last; i++)); do
        if [[ ${words[i]} == -- && $command == run && -n $resource ]]; then
            foreign=$((i + 1))
            return
        elif [[ ${words[i]} == -- ]]; then
            continue
        elif [[ ${words[i]} == -?* ]]; then
            option=
            if _redlock_takes_value "${words[i]}"; then
                option=${words[i]}
                ((++i))
            fi
            ((i == last)) || option=
        elif [[ -z $command ]]; then
            command=${words[i]}
        elif [[ -z $resource ]]; then
            resource=${words[i]}
        elif [[ $command == run ]]; then
            foreign=$i
            return
        fi
    done
    if [[ $command == run && -n $resource && -z $option && ${words[last]} != -* ]]; then foreign=$last; fi
}

_redlock_files() {
    mapfile -t COMPREPLY < <(compgen -f -- "$1")
    compopt -o filenames 2>/dev/null || true # fails where a test calls us
}

_redlock_value() {
    case $1 in
    --nodes-file) _redlock_files "$2" ;;
    --on-lost) mapfile -t COMPREPLY < <(compgen -W 'stop term ignore' -- "$2") ;;
    -c | --command) mapfile -t COMPREPLY < <(compgen -c -- "$2") ;;
    esac
}

_redlock_foreign() {
    if declare -F _comp_command_offset >/dev/null; then
        _comp_command_offset "$1"
    elif declare -F _command_offset >/dev/null; then
        _command_offset "$1"
    elif ((COMP_CWORD == $1)); then
        mapfile -t COMPREPLY < <(compgen -c -- "${COMP_WORDS[COMP_CWORD]}")
    else
        _redlock_files "${COMP_WORDS[COMP_CWORD]}"
    fi
}

_redlock() {
    local words places command resource option foreign
    COMPREPLY=()
    _redlock_words
    _redlock_read
    local current=${words[-1]}
    if [[ $current == --*=* ]]; then
        option=${current%%=*} current=${current#*=}
    fi
    if [[ -n $foreign ]]; then
        _redlock_foreign "${places[foreign]}"
    elif [[ -n $option ]]; then
        _redlock_value "$option" "$current"
    elif [[ $current == -* ]]; then
        mapfile -t COMPREPLY < <(compgen -W "$(_redlock_options "$command")" -- "$current")
    elif [[ -z $command ]]; then
        mapfile -t COMPREPLY < <(compgen -W "$_redlock_commands" -- "$current")
    fi
}

complete -F _redlock redlock
