import os

from conan import ConanFile
from conan.errors import ConanInvalidConfiguration
from conan.tools.build import check_min_cppstd
from conan.tools.cmake import CMake, CMakeDeps, CMakeToolchain, cmake_layout
from conan.tools.files import copy, get, rmdir

required_conan_version = ">=2.1"


class RedlockConan(ConanFile):
    name = "redlock"
    description = "Distributed locks with Redis (Redlock) for C++20"
    license = "MIT"
    url = "https://github.com/conan-io/conan-center-index"
    homepage = "https://github.com/OWNER/redlock"
    topics = ("redis", "lock", "distributed-lock", "mutex")
    package_type = "library"
    settings = "os", "arch", "compiler", "build_type"
    options = {
        "shared": [True, False],
        "fPIC": [True, False],
        "with_tls": [True, False],
    }
    default_options = {
        "shared": False,
        "fPIC": True,
        "with_tls": True,
    }
    implements = ["auto_shared_fpic"]

    def layout(self):
        cmake_layout(self, src_folder="src")

    def requirements(self):
        # No header of redlock includes these libraries, so users only link them.
        self.requires("hiredis/1.2.0")
        if self.options.with_tls:
            self.requires("openssl/[>=1.1.1 <4]")

    def build_requirements(self):
        self.tool_requires("cmake/[>=3.23]")

    def validate(self):
        if self.settings.os != "Linux":
            raise ConanInvalidConfiguration(f"{self.ref} supports Linux only")
        check_min_cppstd(self, 20)

    def source(self):
        get(self, **self.conan_data["sources"][self.version], strip_root=True)

    def generate(self):
        toolchain = CMakeToolchain(self)
        toolchain.cache_variables["REDLOCK_TLS"] = "ON" if self.options.with_tls else "OFF"
        toolchain.cache_variables["REDLOCK_BUILD_EXAMPLES"] = False
        toolchain.cache_variables["REDLOCK_BUILD_TESTS"] = False
        toolchain.cache_variables["REDLOCK_BUILD_TOOL"] = "OFF"
        toolchain.cache_variables["REDLOCK_INSTALL"] = True
        toolchain.generate()
        CMakeDeps(self).generate()

    def build(self):
        cmake = CMake(self)
        cmake.configure()
        cmake.build()

    def package(self):
        copy(self, "LICENSE", src=self.source_folder, dst=os.path.join(self.package_folder, "licenses"))
        cmake = CMake(self)
        cmake.install()
        rmdir(self, os.path.join(self.package_folder, "lib", "cmake"))
        rmdir(self, os.path.join(self.package_folder, "lib", "pkgconfig"))

    def package_info(self):
        self.cpp_info.set_property("cmake_file_name", "redlock")
        self.cpp_info.set_property("cmake_target_name", "redlock::redlock")
        self.cpp_info.set_property("pkg_config_name", "redlock")
        self.cpp_info.libs = ["redlock", "redlock-core"]
        self.cpp_info.requires = ["hiredis::hiredislib"]
        if self.options.with_tls:
            self.cpp_info.requires.append("openssl::ssl")
        self.cpp_info.system_libs = ["pthread"]
