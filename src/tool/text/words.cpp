#include "words.hpp"

#include "escaped.hpp"
#include "lock_status.hpp"
#include "span.hpp"

#include <poll.h>
#include <unistd.h>

#include <iostream>
#include <string>

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

void say_votes(const Result& result) {
    for (const auto& node : result.nodes()) {
        auto line = "  " + std::string{node.name} + "  " + name_of(node.vote) + ", " + text_of(node.took);
        if (node.cause) line += ": " + node.cause.message();
        if (!node.detail.empty()) line += " (" + node.detail + ")";
        say(line);
    }
}

}  // namespace redlock::tool
