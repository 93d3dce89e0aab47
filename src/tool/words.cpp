#include "words.hpp"

#include <poll.h>
#include <unistd.h>

#include <string>

namespace redlock::tool {

void say_without_waiting(std::string_view line) {
    pollfd writable{STDERR_FILENO, POLLOUT, 0};
    if (::poll(&writable, 1, 0) <= 0 || (writable.revents & POLLOUT) == 0) return;
    const auto text = "redlock: " + std::string{line} + "\n";
    [[maybe_unused]] const auto written = ::write(STDERR_FILENO, text.data(), text.size());
}

}  // namespace redlock::tool
