# Configures `cpack` to make three Debian packages of an installation in /usr, split as Debian does. Included if
# REDLOCK_DEBIAN_PACKAGES is ON, see cmake/make-packages.sh. cmake/install.cmake assigns each file to a package.
if(NOT REDLOCK_INSTALL OR NOT BUILD_SHARED_LIBS)
    message(FATAL_ERROR "REDLOCK_DEBIAN_PACKAGES is ON: it needs REDLOCK_INSTALL=ON and BUILD_SHARED_LIBS=ON")
endif()

get_target_property(soversion redlock SOVERSION)
set(runtime_package "libredlock${soversion}")
set(revision 1)
set(same_version "= ${PROJECT_VERSION}-${revision}")
set(development_needs "${runtime_package} (${same_version}), libhiredis-dev")
set(tool_needs "")
if(redlock_has_tls)
    string(APPEND development_needs ", libssl-dev")
    set(tool_needs "libssl3 | libssl3t64")
endif()

# The static library, of the same objects. Users link it with -static, and pkg-config --static lists its dependencies.
foreach(library IN ITEMS redlock_core redlock)
    add_library(${library}_archive STATIC $<TARGET_OBJECTS:${library}>)
    get_target_property(name ${library} OUTPUT_NAME)
    if(NOT name)
        set(name ${library})
    endif()
    set_target_properties(${library}_archive PROPERTIES OUTPUT_NAME ${name} LINKER_LANGUAGE CXX)
    install(TARGETS ${library}_archive ARCHIVE COMPONENT development)
endforeach()

# Each package has a licence and a changelog. The maintainer can be set with the variables that Debian's tools use.
set(maintainer_name "The redlock authors")
set(maintainer_address "redlock@localhost")
if(DEFINED ENV{DEBFULLNAME})
    set(maintainer_name "$ENV{DEBFULLNAME}")
endif()
if(DEFINED ENV{DEBEMAIL})
    set(maintainer_address "$ENV{DEBEMAIL}")
endif()
set(maintainer "${maintainer_name} <${maintainer_address}>")
string(TIMESTAMP packaged_at "%a, %d %b %Y %H:%M:%S +0000" UTC)  # or SOURCE_DATE_EPOCH if it is set
configure_file(cmake/changelog.Debian.in changelog.Debian @ONLY)

# debian_package(COMPONENT NAME SECTION DEPENDS SUMMARY DESCRIPTION)
function(debian_package component name section depends summary description)
    set(documents "${CMAKE_INSTALL_DATAROOTDIR}/doc/${name}")
    install(FILES LICENSE DESTINATION "${documents}" RENAME copyright COMPONENT ${component})
    install(FILES CHANGELOG.md DESTINATION "${documents}" RENAME changelog COMPONENT ${component})
    install(FILES "${PROJECT_BINARY_DIR}/changelog.Debian" DESTINATION "${documents}" COMPONENT ${component})
    string(TOUPPER ${component} upper)
    set(CPACK_DEBIAN_${upper}_PACKAGE_NAME "${name}" PARENT_SCOPE)
    set(CPACK_DEBIAN_${upper}_PACKAGE_SECTION "${section}" PARENT_SCOPE)
    set(CPACK_DEBIAN_${upper}_PACKAGE_DEPENDS "${depends}" PARENT_SCOPE)
    set(CPACK_DEBIAN_${upper}_DESCRIPTION "${summary}\n${description}" PARENT_SCOPE)
    list(APPEND CPACK_COMPONENTS_ALL ${component})
    set(CPACK_COMPONENTS_ALL ${CPACK_COMPONENTS_ALL} PARENT_SCOPE)
endfunction()

set(about
"Redlock is the algorithm of the page \"Distributed Locks with Redis\": a
lock that N independent Redis masters grant by majority, so that a minority
of them may be down, frozen or cut off.
.
"
)
debian_package(
    runtime "${runtime_package}" libs "" "distributed locks with Redis - shared library"
    "${about}This package holds the library that programs run with."
)
debian_package(
    development libredlock-dev libdevel "${development_needs}" "distributed locks with Redis - development files"
    "${about}This package holds the headers of C++20, the library to link, the CMake
package and the pkg-config file."
)
if(TARGET redlock_tool)
    # The command contains the library. It loads OpenSSL when an address requires TLS, so no tool can detect this
    # dependency.
    debian_package(
        tool redlock database "${tool_needs}" "run a command while holding a distributed lock"
        "${about}The command redlock runs others under such a lock, takes and gives locks in
scripts, tells who holds one, checks the nodes and measures them."
    )
endif()

set(CPACK_VERBATIM_VARIABLES ON)
set(CPACK_GENERATOR DEB)
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "")  # each package has its own
set(CPACK_PACKAGE_DIRECTORY "${PROJECT_BINARY_DIR}")
set(CPACK_PACKAGING_INSTALL_PREFIX "${CMAKE_INSTALL_PREFIX}")
set(CPACK_PACKAGE_VERSION "${PROJECT_VERSION}")
set(CPACK_STRIP_FILES ON)
set(CPACK_PRE_BUILD_SCRIPTS "${PROJECT_SOURCE_DIR}/cmake/compress_documents.cmake")
set(CPACK_DEB_COMPONENT_INSTALL ON)
set(CPACK_COMPONENTS_GROUPING IGNORE)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_RELEASE ${revision})
set(CPACK_DEBIAN_PACKAGE_MAINTAINER "${maintainer}")
set(CPACK_DEBIAN_PACKAGE_PRIORITY optional)
set(CPACK_DEBIAN_PACKAGE_CONTROL_STRICT_PERMISSION ON)
# dpkg-shlibdeps finds the dependencies of the library, and the shlibs file tells dependents what they need. While the
# version is 0.x, a patch release may add symbols. Therefore a dependent needs at least the version it was built
# against.
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS_PRIVATE_DIRS "${PROJECT_BINARY_DIR}")
set(CPACK_DEBIAN_PACKAGE_GENERATE_SHLIBS ON)
set(CPACK_DEBIAN_PACKAGE_GENERATE_SHLIBS_POLICY ">=")
file(WRITE "${PROJECT_BINARY_DIR}/triggers" "activate-noawait ldconfig\n")
set(CPACK_DEBIAN_RUNTIME_PACKAGE_CONTROL_EXTRA "${PROJECT_BINARY_DIR}/triggers")
include(CPack)
