#!/bin/sh
# check_code_blocks.sh COMPILER [FLAGS]: checks that every C++ block in README.md, docs/ and the leading comments of
# headers compiles. One run of the compiler checks all of them, without generating code.
set -eu
unset CDPATH
compiler=$1
flags=${2-}
here=$(cd -- "$(dirname -- "$0")" && pwd)
cd -- "$here/../.."
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# Headers for Asio need Asio, which may be missing. examples/asio_coroutines.cpp has the same code as asio.hpp.
headers=$(find include -name '*.hpp' -not -name 'asio*.hpp' | sort)
# shellcheck disable=SC2086  # each word is a file
awk -f "$here/code_blocks.awk" README.md docs/*.md $headers >"$work/blocks.cpp" 2>"$work/blocks"
blocks=$(cat "$work/blocks")
fences=$(cat README.md docs/*.md | grep -c '^ *```cpp')
[ "$blocks" -gt "$fences" ] || { echo "only $blocks blocks found, $fences of them in documents"; exit 1; }

warnings='-Wall -Wextra -Werror -Wno-unused -Wno-unused-parameter -Wunused-result -Wno-return-type'
# shellcheck disable=SC2086  # each word is an option
"$compiler" $flags -std=c++20 -fsyntax-only $warnings -Iinclude -I"$here" "$work/blocks.cpp"
echo "$blocks blocks compile"
