# Finds hiredis and creates the target hiredis::hiredis, for #include <hiredis/hiredis.h>.
#
# hiredis has a CMake config since 1.0. Debian 12 has 0.14.1 without one, and the configs of some releases require
# further packages. Therefore this module searches for the header and the library itself, in the same way for all
# releases. It uses a config in two cases: if the caller's locations (CMAKE_PREFIX_PATH, a toolchain) have nothing else,
# or if the caller asks for the config, with hiredis_DIR or, like package managers, with
# CMAKE_FIND_PACKAGE_PREFER_CONFIG. It sets hiredis_FOUND and hiredis_VERSION. redlock installs this file, because its
# own config uses it.

# Sets hiredis_VERSION to the version in a hiredis.h.
function(hiredis_read_version header)
    file(STRINGS "${header}" version REGEX "^#define HIREDIS_(MAJOR|MINOR|PATCH) [0-9]+$")
    list(TRANSFORM version REPLACE "^.* ([0-9]+)$" "\\1")
    list(JOIN version "." version)
    set(hiredis_VERSION "${version}" PARENT_SCOPE)
endfunction()

if(TARGET hiredis::hiredis)  # from an earlier call, or built by the surrounding project
    # The source tree of hiredis has the header in its root. Without a directory with the expected name, the compiler
    # would find the header of another hiredis, whose structures may be different.
    get_target_property(hiredis_target hiredis::hiredis ALIASED_TARGET)
    if(NOT hiredis_target)
        set(hiredis_target hiredis::hiredis)
    endif()
    get_target_property(hiredis_imported ${hiredis_target} IMPORTED)
    get_target_property(hiredis_source ${hiredis_target} SOURCE_DIR)
    if(NOT hiredis_imported AND EXISTS "${hiredis_source}/hiredis.h")
        hiredis_read_version("${hiredis_source}/hiredis.h")
        set(hiredis_link "${CMAKE_CURRENT_BINARY_DIR}/hiredis_headers")
        file(MAKE_DIRECTORY "${hiredis_link}")
        file(CREATE_LINK "${hiredis_source}" "${hiredis_link}/hiredis" SYMBOLIC)
        target_include_directories(${hiredis_target} BEFORE INTERFACE "$<BUILD_INTERFACE:${hiredis_link}>")
    endif()
    include(FindPackageHandleStandardArgs)
    if(hiredis_VERSION)
        find_package_handle_standard_args(hiredis REQUIRED_VARS hiredis_target VERSION_VAR hiredis_VERSION)
    else()  # a target that somebody else has imported
        set(hiredis_FOUND TRUE)
    endif()
    return()
endif()

# Configs of 1.x reject a request for 0.14 or later, and a find_package() inside this function inherits the requested
# version. Therefore the version is unset for the search, and compared afterwards.
function(hiredis_find_config)
    unset(hiredis_FIND_VERSION)
    unset(hiredis_FIND_VERSION_COMPLETE)
    find_package(hiredis CONFIG QUIET ${ARGN})
    set(hiredis_CONFIG "${hiredis_CONFIG}" PARENT_SCOPE)
    set(hiredis_VERSION "${hiredis_VERSION}" PARENT_SCOPE)
endfunction()

set(hiredis_callers_places NO_CMAKE_SYSTEM_PATH NO_SYSTEM_ENVIRONMENT_PATH)
if(NOT hiredis_DIR AND NOT CMAKE_FIND_PACKAGE_PREFER_CONFIG)
    find_path(hiredis_INCLUDE_DIR hiredis/hiredis.h ${hiredis_callers_places})
    find_library(hiredis_LIBRARY hiredis ${hiredis_callers_places})
endif()
if(NOT hiredis_INCLUDE_DIR OR NOT hiredis_LIBRARY)
    hiredis_find_config(${hiredis_callers_places})
endif()
unset(hiredis_callers_places)
if(TARGET hiredis::hiredis)
    include(FindPackageHandleStandardArgs)
    find_package_handle_standard_args(hiredis REQUIRED_VARS hiredis_CONFIG VERSION_VAR hiredis_VERSION)
    return()
endif()

# Helps with unusual prefixes. hiredis.pc names .../include/hiredis, the directory that contains the header.
find_package(PkgConfig QUIET)
if(PkgConfig_FOUND)
    pkg_check_modules(PC_hiredis QUIET hiredis)
    set(hiredis_include_hints ${PC_hiredis_INCLUDE_DIRS})
    list(TRANSFORM hiredis_include_hints APPEND "/..")
endif()

find_path(hiredis_INCLUDE_DIR hiredis/hiredis.h HINTS ${hiredis_include_hints})
find_library(hiredis_LIBRARY hiredis HINTS ${PC_hiredis_LIBRARY_DIRS})
mark_as_advanced(hiredis_INCLUDE_DIR hiredis_LIBRARY)
unset(hiredis_include_hints)

if(hiredis_INCLUDE_DIR)
    hiredis_read_version("${hiredis_INCLUDE_DIR}/hiredis/hiredis.h")
endif()

include(FindPackageHandleStandardArgs)
find_package_handle_standard_args(
    hiredis
    REQUIRED_VARS hiredis_LIBRARY hiredis_INCLUDE_DIR
    VERSION_VAR hiredis_VERSION
)

if(hiredis_FOUND)
    add_library(hiredis::hiredis UNKNOWN IMPORTED)
    set_target_properties(
        hiredis::hiredis
        PROPERTIES IMPORTED_LOCATION "${hiredis_LIBRARY}" INTERFACE_INCLUDE_DIRECTORIES "${hiredis_INCLUDE_DIR}"
    )
endif()
