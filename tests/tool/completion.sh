#!/bin/sh
# completion.sh bash|zsh FILE: what the completion offers as one types, see complete.bash and complete.zsh.
set -u
unset CDPATH
shell=$1 file=$2
# zsh completes at a terminal only.
if [ "$shell" = zsh ] && ! zsh -f -c 'zmodload zsh/zpty && zpty terminal true' 2>/dev/null; then
    echo "skipped: no pseudo-terminals on this machine"
    exit 77
fi
here=$(cd -- "$(dirname -- "$0")" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work" || exit 2
touch nodes.txt
failed=0

# typed WORD...: what is offered for the last one.
typed() {
    said=$*
    offered=$("$shell" "$here/complete.$shell" "$file" redlock "$@") || offered="(it failed)"
}

offers() {
    for wanted; do
        printf '%s\n' "$offered" | grep -Fqx -e "$wanted" || fault "does not offer $wanted"
    done
}

keeps_back() {
    for unwanted; do
        ! printf '%s\n' "$offered" | grep -Fqx -e "$unwanted" || fault "offers $unwanted"
    done
}

fault() {
    echo "redlock $said: $*, but: $(printf '%s' "$offered" | tr '\n' ' ')"
    failed=1
}

# What commands there are, and their options: documented.sh.
typed re
offers release
keeps_back run
typed extend --ttl 5s --
offers --owner
keeps_back --wait
typed bench --node redis://10.0.0.1:6379 --
offers --seconds
typed acquire --ttl=5s --
offers --json
keeps_back --grace

typed status --nodes-file no
offers nodes.txt
typed status --nodes-file=no
offers nodes.txt
typed run --on-lost ''
offers stop term ignore
typed run --on-lost=t
offers term
keeps_back stop

typed run orders:42 -- gre
offers grep
typed run orders:42 gre
offers grep
typed run -n -w 5s orders:42 -- cat no
offers nodes.txt
typed run orders:42 cat no
offers nodes.txt
typed run orders:42 -- cat --
keeps_back --ttl --node
typed run -c gre
offers grep
exit "$failed"
