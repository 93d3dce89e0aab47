# Defines what `cmake --install` places: the library, the headers, the CMake package and the pkg-config file. The
# installed tree can be moved as a whole, because both packages find their files relative to themselves. Each file
# belongs to a component: runtime, development, or the command.
include(CMakePackageConfigHelpers)

get_target_property(redlock_type redlock TYPE)
set(package_dir "${CMAKE_INSTALL_LIBDIR}/cmake/redlock")
install(
    TARGETS redlock_core redlock redlock_asio redlock_headers
    EXPORT redlockTargets
    LIBRARY COMPONENT runtime NAMELINK_COMPONENT development
    ARCHIVE COMPONENT development
    FILE_SET HEADERS COMPONENT development
)
install(
    DIRECTORY src/
    DESTINATION "${CMAKE_INSTALL_INCLUDEDIR}/redlock/src"
    COMPONENT development
    FILES_MATCHING PATTERN "*.[ch]pp" PATTERN lua EXCLUDE PATTERN tool EXCLUDE
)
install(
    FILES "${PROJECT_BINARY_DIR}/headers/generated/redlock/src/scripts.cpp"
    DESTINATION "${CMAKE_INSTALL_INCLUDEDIR}/redlock/src"
    COMPONENT development
)
install(
    EXPORT redlockTargets
    NAMESPACE redlock::
    DESTINATION "${package_dir}"
    COMPONENT development
)

set(hiredis_mode MODULE)
if(hiredis_CONFIG)  # a user must find hiredis in the same way as this build
    set(hiredis_mode CONFIG)
endif()
string(REGEX MATCH "^[0-9]+" hiredis_major "${hiredis_VERSION}")
configure_package_config_file(cmake/redlockConfig.cmake.in redlockConfig.cmake INSTALL_DESTINATION "${package_dir}")
write_basic_package_version_file(redlockConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(
    FILES "${CMAKE_CURRENT_BINARY_DIR}/redlockConfig.cmake" "${CMAKE_CURRENT_BINARY_DIR}/redlockConfigVersion.cmake"
          cmake/Findhiredis.cmake
    DESTINATION "${package_dir}"
    COMPONENT development
)

# redlock.pc has directories relative to the file itself, unless the packager set absolute ones.
if(IS_ABSOLUTE "${CMAKE_INSTALL_LIBDIR}")
    set(pc_prefix "${CMAKE_INSTALL_PREFIX}")
else()
    string(REGEX REPLACE "[^/]+" ".." pc_up "${CMAKE_INSTALL_LIBDIR}/pkgconfig")
    set(pc_prefix "\${pcfiledir}/${pc_up}")
endif()
cmake_path(APPEND pc_libdir "\${prefix}" "${CMAKE_INSTALL_LIBDIR}")
cmake_path(APPEND pc_includedir "\${prefix}" "${CMAKE_INSTALL_INCLUDEDIR}")
# A program that links the static library also links its dependencies. A shared library in a standard directory of the
# linker is named directly, so that `--static` applies only to redlock's own libraries. The .pc file of OpenSSL would
# ask for the dependencies of libcrypto (Debian 13: -lz -lzstd), which nothing installs. Any other dependency is found
# by its own .pc file.
set(pc_requires "")
set(pc_needed_libs "")
function(redlock_pc_needs target package name)
    get_target_property(imported ${target} IMPORTED)
    if(imported)
        get_target_property(location ${target} LOCATION)
        cmake_path(GET location PARENT_PATH directory)
        if(directory IN_LIST CMAKE_CXX_IMPLICIT_LINK_DIRECTORIES AND location MATCHES "\\.(so|dylib)(\\.|$)")
            set(pc_needed_libs "${pc_needed_libs} -l${name}" PARENT_SCOPE)
            return()
        endif()
    endif()
    set(pc_requires "${pc_requires} ${package}" PARENT_SCOPE)
endfunction()
redlock_pc_needs(hiredis::hiredis hiredis hiredis)
if(redlock_has_tls)
    redlock_pc_needs(OpenSSL::SSL libssl ssl)
    redlock_pc_needs(OpenSSL::Crypto libcrypto crypto)
endif()
if(redlock_type STREQUAL "STATIC_LIBRARY")
    set(pc_needs "Requires:${pc_requires}")
    set(pc_libs "-lredlock -lredlock-core${pc_needed_libs} -pthread")
else()
    set(pc_needs "Requires.private:${pc_requires}")
    set(pc_libs "-lredlock -lredlock-core\nLibs.private:${pc_needed_libs} -pthread")
endif()
configure_file(cmake/redlock.pc.in redlock.pc @ONLY)
install(
    FILES "${CMAKE_CURRENT_BINARY_DIR}/redlock.pc"
    DESTINATION "${CMAKE_INSTALL_LIBDIR}/pkgconfig"
    COMPONENT development
)

if(TARGET redlock_tool)
    install(FILES src/tool/man/redlock.1 DESTINATION "${CMAKE_INSTALL_MANDIR}/man1" COMPONENT tool)
    install(
        FILES src/tool/completion/redlock.bash
        DESTINATION "${CMAKE_INSTALL_DATADIR}/bash-completion/completions"
        RENAME redlock
        COMPONENT tool
    )
    # zsh searches for completions in share/zsh/site-functions of its own prefix and, on Debian, of /usr/local. A Debian
    # package must install them elsewhere.
    set(zsh_completions site-functions)
    if(REDLOCK_DEBIAN_PACKAGES)
        set(zsh_completions vendor-completions)
    endif()
    install(
        FILES src/tool/completion/_redlock
        DESTINATION "${CMAKE_INSTALL_DATADIR}/zsh/${zsh_completions}"
        COMPONENT tool
    )
endif()
