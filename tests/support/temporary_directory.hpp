// A private directory that goes away with its object.
#pragma once

#include <sys/types.h>

#include <filesystem>

namespace redlock::support {

/// Under $TMPDIR or /tmp, readable by this user only. The process that made it removes it; a child made by
/// fork() leaves it alone.
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
