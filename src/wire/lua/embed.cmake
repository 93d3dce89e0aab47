# cmake -D "SCRIPTS=<name>..." -D FOLDER=<directory of the .lua files> -D OUTPUT=<file.cpp> -P embed.cmake
#
# Writes the definitions of the scripts that src/wire/scripts.hpp declares. Each text is the script in one line
# without comments, behind the functions of prelude.lua and quarantine.lua that it calls. Each digest is the SHA-1 of exactly this text.
cmake_minimum_required(VERSION 3.23...3.31)

# Sets `result` to the Lua of a file without comments, indentation and empty lines.
function(read_lua file result)
    file(READ "${file}" text)
    string(REGEX REPLACE "--[^\n]*" "" text "\n${text}")
    string(REGEX REPLACE "\n[ \n]*" "\n" text "${text}")
    string(REGEX REPLACE "^\n" "" text "${text}")
    set(${result} "${text}" PARENT_SCOPE)
endfunction()

read_lua("${FOLDER}/prelude.lua" prelude)
read_lua("${FOLDER}/quarantine.lua" quarantine)
string(APPEND prelude "${quarantine}")
string(REGEX MATCHALL "local function [a-z_]+" functions "\n${prelude}")
list(TRANSFORM functions REPLACE "local function " "")
list(REVERSE functions)  # a function calls only functions above it

# Sets `result` to the text of one function of the prelude, which ends where the next one begins.
function(text_of_function name result)
    string(FIND "${prelude}" "local function ${name}(" begin)
    string(SUBSTRING "${prelude}" ${begin} -1 text)
    string(FIND "${text}" "\nlocal function " end)
    if(NOT end EQUAL -1)
        math(EXPR end "${end} + 1")
        string(SUBSTRING "${text}" 0 ${end} text)
    endif()
    set(${result} "${text}" PARENT_SCOPE)
endfunction()

set(definitions "")
set(pointers "")
separate_arguments(SCRIPTS)
foreach(name IN LISTS SCRIPTS)
    read_lua("${FOLDER}/${name}.lua" text)
    foreach(function IN LISTS functions)
        if("\n${text}" MATCHES "[^a-z_]${function}[(]")
            text_of_function("${function}" called)
            string(PREPEND text "${called}")
        endif()
    endforeach()
    string(STRIP "${text}" text)
    string(REPLACE "\n" " " text "${text}")  # one line, so that it is one in the server's logs, too
    string(SHA1 digest "${text}")
    string(APPEND definitions "constexpr Script ${name}{R\"lua(${text})lua\",\n    \"${digest}\"};\n")
    string(APPEND pointers " &${name},")
endforeach()

file(WRITE "${OUTPUT}.new" "// Written by src/wire/lua/embed.cmake.
#include <redlock/src/wire/scripts.hpp>

namespace redlock::detail::scripts {

${definitions}
constexpr std::array<const Script*, count> all{${pointers}};

}  // namespace redlock::detail::scripts
")
file(COPY_FILE "${OUTPUT}.new" "${OUTPUT}")
file(REMOVE "${OUTPUT}.new")
