# What our own targets are compiled with and no user is asked to put up with: a private target, never installed.
# It exists also as somebody's subproject, but then says nothing.
add_library(redlock_developer INTERFACE)
if(PROJECT_IS_TOP_LEVEL)
    target_compile_options(
        redlock_developer
        INTERFACE -Wall
                  -Wextra
                  -Wpedantic
                  -Wconversion
                  -Wsign-conversion
                  -Wshadow
                  -Wnon-virtual-dtor
                  -Woverloaded-virtual
                  # g++ 12 sees memcpy overlap in `"literal" + std::string{}` (GCC bug 105651).
                  $<$<AND:$<CXX_COMPILER_ID:GNU>,$<VERSION_LESS:$<CXX_COMPILER_VERSION>,13>>:-Wno-restrict>
                  $<$<BOOL:${REDLOCK_WARNINGS_AS_ERRORS}>:-Werror>
    )
endif()
