# What `cmake --install` places: library, headers, the CMake package and the pkg-config file. The tree can be
# moved as a whole: both packages find their files from where they are themselves. Each piece belongs to a
# component: what programs run with, what they are built with, the command.
include(CMakePackageConfigHelpers)

get_target_property(redlock_type redlock TYPE)
set(package_dir "${CMAKE_INSTALL_LIBDIR}/cmake/redlock")
install(
    TARGETS redlock
    EXPORT redlockTargets
    LIBRARY COMPONENT runtime NAMELINK_COMPONENT development
    ARCHIVE COMPONENT development
    FILE_SET HEADERS COMPONENT development
)
install(
    EXPORT redlockTargets
    NAMESPACE redlock::
    DESTINATION "${package_dir}"
    COMPONENT development
)

set(hiredis_mode MODULE)
if(hiredis_CONFIG)  # who found it by its config has users find it so
    set(hiredis_mode CONFIG)
endif()
configure_package_config_file(cmake/redlockConfig.cmake.in redlockConfig.cmake INSTALL_DESTINATION "${package_dir}")
write_basic_package_version_file(redlockConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(
    FILES "${CMAKE_CURRENT_BINARY_DIR}/redlockConfig.cmake" "${CMAKE_CURRENT_BINARY_DIR}/redlockConfigVersion.cmake"
          cmake/Findhiredis.cmake
    DESTINATION "${package_dir}"
    COMPONENT development
)

# redlock.pc: directories relative to the file itself, unless the packager gave absolute ones.
if(IS_ABSOLUTE "${CMAKE_INSTALL_LIBDIR}")
    set(pc_prefix "${CMAKE_INSTALL_PREFIX}")
else()
    string(REGEX REPLACE "[^/]+" ".." pc_up "${CMAKE_INSTALL_LIBDIR}/pkgconfig")
    set(pc_prefix "\${pcfiledir}/${pc_up}")
endif()
cmake_path(APPEND pc_libdir "\${prefix}" "${CMAKE_INSTALL_LIBDIR}")
cmake_path(APPEND pc_includedir "\${prefix}" "${CMAKE_INSTALL_INCLUDEDIR}")
# Who links a static library links what it needs as well; a shared one brings that along.
set(pc_packages "hiredis")
if(redlock_has_tls)
    string(APPEND pc_packages " libssl libcrypto")
endif()
if(redlock_type STREQUAL "STATIC_LIBRARY")
    set(pc_needs "Requires: ${pc_packages}")
    set(pc_libs "-lredlock -pthread")
else()
    set(pc_needs "Requires.private: ${pc_packages}")
    set(pc_libs "-lredlock\nLibs.private: -pthread")
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
    install(
        FILES src/tool/completion/_redlock
        DESTINATION "${CMAKE_INSTALL_DATADIR}/zsh/vendor-completions"
        COMPONENT tool
    )
endif()
