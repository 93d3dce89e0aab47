#include "support/temporary_directory.hpp"

#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <system_error>

namespace redlock::support {

namespace {

std::filesystem::path make_directory() {
    auto name = (std::filesystem::temp_directory_path() / "redlock-XXXXXX").string();
    if (::mkdtemp(name.data()) == nullptr) throw std::system_error(errno, std::generic_category(), name);
    return name;
}

}  // namespace

TemporaryDirectory::TemporaryDirectory() : path_(make_directory()), maker_(::getpid()) {}

TemporaryDirectory::~TemporaryDirectory() {
    if (::getpid() != maker_) return;
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
}

}  // namespace redlock::support
