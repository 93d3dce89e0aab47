# Inside the source tree of redlock the port builds that tree: vcpkg install redlock --overlay-ports=cmake/vcpkg.
# Elsewhere it builds the release. Whoever copies the port must then fill in the owner and the SHA512 that vcpkg prints.
cmake_path(SET tree NORMALIZE "${CMAKE_CURRENT_LIST_DIR}/../../..")
if(EXISTS "${tree}/include/redlock/version.hpp")
    set(SOURCE_PATH "${tree}")
else()
    vcpkg_from_github(
        OUT_SOURCE_PATH SOURCE_PATH
        REPO OWNER/redlock
        REF "v${VERSION}"
        SHA512 0
        HEAD_REF main
    )
endif()

vcpkg_check_features(
    OUT_FEATURE_OPTIONS FEATURE_OPTIONS
    FEATURES
        tls REDLOCK_TLS
)
vcpkg_cmake_configure(
    SOURCE_PATH "${SOURCE_PATH}"
    OPTIONS
        ${FEATURE_OPTIONS}
        "-Dhiredis_DIR=${CURRENT_INSTALLED_DIR}/share/hiredis"
        -DREDLOCK_BUILD_EXAMPLES=OFF
        -DREDLOCK_BUILD_TESTS=OFF
        -DREDLOCK_BUILD_TOOL=OFF
        -DREDLOCK_INSTALL=ON
)
vcpkg_cmake_install()
vcpkg_cmake_config_fixup(CONFIG_PATH lib/cmake/redlock)
vcpkg_fixup_pkgconfig()

file(REMOVE_RECURSE "${CURRENT_PACKAGES_DIR}/debug/include")
file(INSTALL "${CMAKE_CURRENT_LIST_DIR}/usage" DESTINATION "${CURRENT_PACKAGES_DIR}/share/${PORT}")
vcpkg_install_copyright(FILE_LIST "${SOURCE_PATH}/LICENSE")
