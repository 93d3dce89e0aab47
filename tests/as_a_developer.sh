#!/bin/sh
# sh tests/as_a_developer.sh COMMAND...: runs the command as a person with a home directory, a configuration and an
# environment of their own. Fails if the command changes the home directory.
#
# The home has a long history of the shell, files that the shells would read, and a list of nodes. All of it is
# misleading: a test that used it would fail, or leave a file here. The exit status is the command's, or 1.
#
# BASH_ENV is not set, because CMake may find a python3 that is a bash script (pyenv installs one). That script would
# read the file while the project is configured. environment_test.sh checks that no test sees the variable.
set -eu
unset CDPATH
home=$(mktemp -d "${TMPDIR:-/tmp}/redlock-home-XXXXXX")
before=$(mktemp "${TMPDIR:-/tmp}/redlock-home-XXXXXX")
trap 'rm -rf "$home" "$before"' EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

mkdir -p "$home/.config/redlock"
line=0
while [ "$line" -lt 3000 ]; do
    line=$((line + 1))
    echo "echo line $line of what somebody typed"
done >"$home/.bash_history"
cp "$home/.bash_history" "$home/.zsh_history"
for file in .bashrc .bash_profile .profile .zshenv .zshrc; do
    echo "touch '$home/$file.was-read'" >"$home/$file"
done
echo "redis://127.0.0.1:1" >"$home/.config/redlock/nodes"
echo "MANDATORY_MANPATH /nonexistent" >"$home/.manpath"

# Prints the names, kinds, permissions and contents of all files in the home.
state() {
    (cd -- "$home" && find . -printf '%p %y %m\n' | sort && find . -type f -exec cksum {} + | sort -k 3)
}

state >"$before"
env HOME="$home" HISTFILE="$home/.bash_history" HISTSIZE=500 HISTFILESIZE=500 SHELL=/bin/bash \
    PROMPT_COMMAND="touch '$home/prompt-command-was-run'" ENV="$home/.profile" \
    ZDOTDIR="$home" XDG_CONFIG_HOME="$home/.config" XDG_CACHE_HOME="$home/.cache" XDG_DATA_HOME="$home/.local/share" \
    REDLOCK_NODES=redis://127.0.0.1:1 REDLOCK_OWNER=somebody DESTDIR="$home/destination" "$@" && status=0 || status=$?
if ! state | diff "$before" - >&2; then
    echo "as_a_developer: the home directory has changed: see above" >&2
    exit 1
fi
exit "$status"
