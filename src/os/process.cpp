#include <redlock/process.hpp>

#include <unistd.h>

namespace redlock {

std::int64_t this_process() noexcept {
    return ::getpid();
}

}  // namespace redlock
