# Combines the C++ in a document into one translation unit: the ```cpp blocks of *.md, or the indented examples in the
# leading comment of a header. Each block becomes a function, or a namespace if it defines main(). #line directives make
# the compiler name the document and its line. The unit includes the headers that the document names, in its blocks or in
# its text, or the header itself.

function begin(line) {
    open = 1
    first = line
    body = ""
    defines_main = 0
    is_code = 0
}

function add(line, text) {
    if (text ~ /^ *#include/) text = ""
    if (text ~ /^int main\(/) defines_main = 1
    if (text ~ /^ *\.\.\.$/) text = ""  # an omission
    plain = text
    sub(/ *\/\/.*/, "", plain)
    if (plain ~ /[;{}] *$/) is_code = 1
    body = body text "\n"
}

function end() {
    if (!open) return
    open = 0
    if (!is_code) return
    ++blocks
    scope = defines_main ? "namespace" : "[[maybe_unused]] static void"
    all = all "namespace documents {\n" scope " block_" blocks (defines_main ? "" : "()") " {\n" \
        "#line " first " \"" FILENAME "\"\n" body "}\n}\n"
}

# Also names the part of the prelude that the header needs.
function include(header) {
    includes = includes "#line " FNR " \"" FILENAME "\"\n#include <" header ">\n"
    if (header ~ /async|event_loop/) preludes = preludes "#include \"prelude_for_loops.hpp\"\n"
    if (header ~ /^round/) preludes = preludes "#include \"prelude_for_details.hpp\"\n"
}

FNR == 1 {
    fenced = 0
    comment = 1
    header = FILENAME
    if (sub(/^(include|src)\//, "", header)) include(header)
}

(comment || FILENAME ~ /\.md$/) && match($0, /#include <[^>]*>/) {
    include(substr($0, RSTART + 10, RLENGTH - 11))
}

FILENAME ~ /\.md$/ {
    if (!fenced && $0 ~ /^ *```cpp$/) {
        fenced = 1
        begin(FNR + 1)
    } else if (fenced && $0 ~ /^ *```$/) {
        fenced = 0
        is_code = 1
        end()
    } else if (fenced) {
        add(FNR, $0)
    }
    next
}

# In a header, blank lines inside an indented example belong to the example.
comment && !/^\/\// {
    end()
    comment = 0
}
comment && /^\/\/     / {
    if (!open && $0 !~ /^\/\/     [^ ]/) next
    if (!open) begin(FNR)
    add(FNR, substr($0, 8))
    next
}
comment && open {
    if ($0 == "//") add(FNR, "")
    else end()
}

END {
    printf "%s", includes
    print "#include \"prelude.hpp\""
    printf "%s", preludes
    printf "%s", all
    print blocks + 0 >"/dev/stderr"
}
