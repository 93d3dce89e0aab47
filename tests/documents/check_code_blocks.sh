#!/bin/sh
# check_code_blocks.sh COMPILER [FLAGS]: checks that every C++ block in README.md, docs/ and the leading comments of
# headers compiles with the headers that its document names.
set -eu
unset CDPATH
compiler=$1
flags=${2-}
here=$(cd -- "$(dirname -- "$0")" && pwd)
cd -- "$here/../.."
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# Headers for Asio need Asio, which may be missing. examples/asio_coroutines.cpp has the same code as asio.hpp.
headers=$(find include src/round -name '*.hpp' -not -name 'asio*.hpp' | sort)
warnings='-Wall -Wextra -Werror -Wno-unused -Wno-unused-parameter -Wunused-result -Wno-return-type'
blocks=0
for document in README.md docs/*.md $headers; do
    awk -f "$here/code_blocks.awk" "$document" >"$work/blocks.cpp" 2>"$work/blocks"
    [ "$(cat "$work/blocks")" -gt 0 ] || continue
    case $document in
        *.md) grep -q '#include <redlock/' "$document" || { echo "$document names no header"; exit 1; } ;;
    esac
    # shellcheck disable=SC2086  # each word is an option
    "$compiler" $flags -std=c++20 -fsyntax-only $warnings -Iinclude -Isrc -I"$here" "$work/blocks.cpp"
    blocks=$((blocks + $(cat "$work/blocks")))
done
fences=$(cat README.md docs/*.md | grep -c '^ *```cpp')
[ "$blocks" -gt "$fences" ] || { echo "only $blocks blocks found, $fences of them in documents"; exit 1; }
echo "$blocks blocks compile"
