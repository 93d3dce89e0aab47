// The limit of the descriptors of a child of fork(), and whom the library blames for it.
#pragma once

#include <redlock/observer.hpp>

#include <fcntl.h>
#include <sys/resource.h>
#include <unistd.h>

#include <array>
#include <stdexcept>

namespace redlock::test {

/// Lets this process open no more than `further` descriptors, fewer than 16.
inline void limit_descriptors(rlim_t further) {
    std::array<int, 16> lowest;  // the free descriptors below the limit, and the limit itself
    for (auto& it : lowest) it = ::open("/dev/null", O_RDONLY | O_CLOEXEC);
    for (const int it : lowest) ::close(it);
    rlimit limit{};
    (void)::getrlimit(RLIMIT_NOFILE, &limit);
    limit.rlim_cur = static_cast<rlim_t>(lowest.at(further));
    if (lowest.at(further) < 0 || ::setrlimit(RLIMIT_NOFILE, &limit) != 0)
        throw std::runtime_error{"no limit"};
}

class FailureCount final : public Observer {
public:
    void backing_off(std::string_view, std::error_code, std::string_view,
                     std::chrono::nanoseconds) noexcept override {
        ++failures;
    }

    int failures = 0;
};

}  // namespace redlock::test
