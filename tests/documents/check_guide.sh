#!/bin/sh
# Checks that docs/guide.md has every error, every cause and every option: the enumerators of Errc, the members of the
# options.
set -u
unset CDPATH
cd "$(dirname -- "$0")/../.." || exit 2
failed=0

# body "enum class Errc": prints the text between its braces, without comments.
body() {
    find include -name '*.hpp' -exec cat {} + | sed 's,//.*,,' |
        awk -v head="^$1 *(: *[a-z0-9_:]* *)?{" '$0 ~ head { inside = 1; next } /^};/ { inside = 0 } inside'
}

# listed WHAT NAME...: checks that the guide has each name, formatted as code.
listed() {
    what=$1
    shift
    [ $# -gt 1 ] || { echo "found no $what in the headers"; failed=1; }
    for name; do
        grep -qE "\`([a-z_]+\.)?$name(\`|\.)" docs/guide.md || { echo "docs/guide.md lacks $what $name"; failed=1; }
    done
}

# shellcheck disable=SC2046  # each word is a name
listed Errc $(body 'enum class Errc' | grep -oE '[a-z_]{2,}')
for options in LockOptions NodesOptions LeaderOptions; do
    # shellcheck disable=SC2046
    listed "$options" $(body "struct $options" | grep ';' | sed -E 's/ *(=|\{).*//; s/;.*//; s/.*[ *&]//')
done
exit "$failed"
