#include "words.hpp"

#include "escaped.hpp"

#include <poll.h>
#include <unistd.h>

#include <iostream>

namespace redlock::tool {

void say(std::string_view line) {
    std::cerr << "redlock: " + escaped(line) + "\n";
}

void say_without_waiting(std::string_view line) {
    pollfd writable{STDERR_FILENO, POLLOUT, 0};
    if (::poll(&writable, 1, 0) <= 0 || (writable.revents & POLLOUT) == 0) return;
    const auto text = "redlock: " + escaped(line) + "\n";
    [[maybe_unused]] const auto written = ::write(STDERR_FILENO, text.data(), text.size());
}

}  // namespace redlock::tool
