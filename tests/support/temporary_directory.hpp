// A private directory that is removed with its object.
#pragma once

#include <sys/types.h>

#include <filesystem>

namespace redlock::support {

/// A directory below $TMPDIR or /tmp that only this user can read. The process that created it removes it. A
/// child made by fork() does not.
class TemporaryDirectory {
public:
    TemporaryDirectory();
    ~TemporaryDirectory();
    TemporaryDirectory(const TemporaryDirectory&) = delete;
    TemporaryDirectory& operator=(const TemporaryDirectory&) = delete;

    const std::filesystem::path& path() const noexcept { return path_; }
    std::filesystem::path operator/(const std::filesystem::path& name) const { return path_ / name; }

private:
    std::filesystem::path path_;
    pid_t maker_;
};

}  // namespace redlock::support
