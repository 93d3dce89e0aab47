#!/bin/sh
# reference_filter.sh FILE: prints the file as doxygen must read it, without changing the number of lines. The comment
# at the beginning of a header becomes the description of that file, verbatim from its second paragraph on. A link of a
# document to a file outside of the reference becomes text, and a picture becomes its description.
case $1 in
*.hpp)
    awk '
        past { print; next }
        /^#pragma once/ { print (typed ? "\\endverbatim " : "") "\\file */"; past = 1; next }
        { sub(/^\/\/ ?/, "") }
        NR == 1 { print "/*! " $0; next }
        !typed && /^$/ { print "\\verbatim"; typed = 1; next }
        { print }
    ' "$1"
    ;;
*) sed -E 's/!?\[([^]]*)\]\((#|(\.\.\/)?(tests|examples|src)\/)[^)]*\)/\1/g; s/(\.md)#[^)]*\)/\1)/g' "$1" ;;
esac
