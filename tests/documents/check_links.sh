#!/bin/sh
# Checks that every relative link and picture in a document names an existing file, that every #anchor names a heading
# of that file, and that every path in `code` that starts at the top of the tree exists.
set -u
unset CDPATH
cd "$(dirname -- "$0")/../.." || exit 2
failed=0
links=0

# Prints the anchors of a document: its headings in lower case, without punctuation, with hyphens for blanks.
anchors() {
    awk '/^ *```/ { fenced = !fenced } !fenced && /^#+ /' "$1" | tr '[:upper:]' '[:lower:]' |
        sed -E 's/^#+ +//; s/[^a-z0-9 _-]//g; s/ /-/g'
}

fault() {
    echo "$document: $1"
    failed=1
}

for document in README.md CHANGELOG.md docs/*.md tests/*/README.md; do
    directory=$(dirname -- "$document")
    # shellcheck disable=SC2013  # each word is a link
    for link in $(awk '/^ *```/ { fenced = !fenced } !fenced' "$document" | grep -oE '\]\([^) ]+\)' |
        sed -E 's/^\]\(//; s/\)$//' | grep -vE '^[a-z]+:'); do
        links=$((links + 1))
        path=${link%%#*}
        target=$document
        [ -z "$path" ] || target=$directory/$path
        if [ ! -e "$target" ]; then
            fault "no $link"
        elif [ "$link" != "$path" ] && ! anchors "$target" | grep -qxF -e "${link#*#}"; then
            fault "no heading for $link"
        fi
    done
    # shellcheck disable=SC2013,SC2016
    for path in $(grep -oE '`(include|src|tests|examples|docs|cmake)/[A-Za-z0-9_./-]+`' "$document" | tr -d '`'); do
        [ -e "$path" ] || fault "no $path"
    done
done
[ "$links" -gt 0 ] || { echo "no links found"; failed=1; }
exit "$failed"
