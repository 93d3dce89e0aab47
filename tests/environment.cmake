# The environment of the tests. No test uses the home directory, the configuration or the environment of the person who
# runs it. ctest reads this file before it looks for tests, so that all of them inherit the result. A GoogleTest
# program, which people also start by hand, does the same for itself, see support/environment.cpp.
#
# Only variables whose names match are kept. They serve to find programs and temporary files, to configure sanitizers
# and GoogleTest, and to let npm reach its registry.
set(redlock_kept_variables
    "^(PATH|TMPDIR|TERM|CI|LD_LIBRARY_PATH|LD_PRELOAD|(A|L|T|UB)SAN_OPTIONS|GTEST_.*|REDLOCK_INTEROP|"
    "REDLOCK_LOOP_WAITERS|REDLOCK_WAITING_DEFAULTS|NODE_EXTRA_CA_CERTS|(http|https|no|HTTP|HTTPS|NO)_(proxy|PROXY))$"
)
string(CONCAT redlock_kept_variables ${redlock_kept_variables})
if(NOT redlock_test_home)  # CMake is configuring, and needs only the names
    return()
endif()

execute_process(COMMAND env -0 COMMAND tr "\\n\\0" " \\n" COMMAND cut -d= -f1 OUTPUT_VARIABLE names)
string(REGEX MATCHALL "[^\n]+" names "${names}")
foreach(name IN LISTS names)
    if(NOT name MATCHES "${redlock_kept_variables}")
        unset(ENV{${name}})
    endif()
endforeach()
set(ENV{HOME} "${redlock_test_home}")

# Temporary files go into a directory that is removed when ctest has ended, because a killed test leaves its files
# behind.
execute_process(
    COMMAND sh "${CMAKE_CURRENT_LIST_DIR}/scratch_directory.sh"
    OUTPUT_VARIABLE scratch
    OUTPUT_STRIP_TRAILING_WHITESPACE COMMAND_ERROR_IS_FATAL ANY
)
set(ENV{TMPDIR} "${scratch}")
