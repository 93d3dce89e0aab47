// Prints how long a process pauses between its attempts on a resource that another holds, in nanoseconds and
// on one line:
//
//     pauses BOARD ATTEMPTS DELAY CHILDREN NODE...
//
// With children, those print a line each, and the process that forked them none.
#include <redlock/redlock.hpp>

#include "board.hpp"

#include "support/wait_until.hpp"

#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <exception>
#include <iostream>
#include <string>
#include <vector>

namespace {

using namespace std::chrono_literals;

/// The system's, but it notes the pauses.
class NotingClock final : public redlock::Clock {
public:
    time_point now() noexcept override { return redlock::boot_clock().now(); }
    void sleep_until(time_point until, std::stop_token stop) override {
        pauses_ += std::to_string((until - now()).count()) + ' ';
        redlock::boot_clock().sleep_until(until, std::move(stop));
    }
    const std::string& pauses() const noexcept { return pauses_; }

private:
    std::string pauses_{};
};

/// RedisNodes go by the system's clock and refuse another: this one differs from it in its notes alone.
class NodesOfAnyClock final : public redlock::Nodes {
public:
    explicit NodesOfAnyClock(redlock::RedisNodes& nodes) : Nodes(names_of(nodes)), nodes_(nodes) {}
    void ask(std::span<const redlock::Request> requests, const redlock::RoundLimits& limits,
             std::span<redlock::Tally> tallies) override {
        nodes_.ask(requests, limits, tallies);
    }

private:
    static std::vector<std::string> names_of(const redlock::RedisNodes& nodes) {
        std::vector<std::string> names;
        for (std::size_t node = 0; node < nodes.size(); ++node) names.emplace_back(nodes.name(node));
        return names;
    }

    redlock::RedisNodes& nodes_;
};

/// One write() of a short line is not torn apart by those of others.
void print(const std::string& line) {
    std::cout << line + '\n' << std::flush;
}

void attempt(redlock::RedisNodes& nodes, const redlock::Retry& retry) {
    NotingClock clock;
    NodesOfAnyClock any_clock{nodes};
    redlock::Lock lock{any_clock, "resource", {.ttl = 60s, .retry = retry}, clock};
    (void)lock.acquire();
    print(clock.pauses());
}

int wait_for_children() {
    int failed = 0;
    for (int status = 0; ::wait(&status) > 0;) failed += status == 0 ? 0 : 1;
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}

int run(const std::vector<std::string>& words) {
    redlock::exclusion::Board board{words.at(0)};
    const redlock::Retry retry{.attempts = std::stoi(words.at(1)),
                               .delay = std::chrono::milliseconds{std::stoi(words.at(2))}};
    redlock::RedisNodes nodes{std::vector<std::string>(words.begin() + 4, words.end())};
    board.report_ready();
    (void)redlock::support::wait_until([&] { return board.started(); }, 60s);
    const int children = std::stoi(words.at(3));
    if (children == 0) {
        attempt(nodes, retry);
        return EXIT_SUCCESS;
    }
    // Randomness has been drawn: a generator of the library's own would now be copied.
    redlock::Lock lock{nodes, "resource", {.ttl = 60s, .retry = {.attempts = 2, .delay = 1ms}}};
    (void)lock.acquire();
    for (int child = 0; child < children; ++child) {
        if (::fork() != 0) continue;
        attempt(nodes, retry);
        ::_exit(EXIT_SUCCESS);
    }
    return wait_for_children();
}

}  // namespace

int main(int argc, char** argv) {
    try {
        return run({argv + 1, argv + argc});
    } catch (const std::exception& error) {
        std::cerr << "pauses: " << error.what() << '\n';
        return EXIT_FAILURE;
    }
}
