// How do I hold thousands of locks without thousands of threads?
//
// Use an event loop. This program acquires 10,000 locks and holds them for a while in one thread. The
// watchdog of the loop extends them, many in one round. The loop is a small one with poll(), see
// poll_loop.hpp. If there are arguments, the last one is the number of locks, and those before it are the
// nodes. Without nodes, the program takes those in REDLOCK_NODES: `many_locks 1000`.
#include "node_list.hpp"
#include "poll_loop.hpp"

#include <redlock/async_lock.hpp>
#include <redlock/redlock.hpp>

#include <chrono>
#include <cstddef>
#include <cstdlib>
#include <exception>
#include <fstream>
#include <iostream>
#include <stdexcept>
#include <string>
#include <vector>

using namespace std::chrono_literals;

/// Returns the memory of this process in MiB.
std::size_t memory() {
    std::ifstream status{"/proc/self/status"};
    for (std::string word; status >> word;)
        if (std::size_t kib = 0; word == "VmRSS:" && status >> kib) return kib / 1024;
    return 0;
}

class ManyLocks {
public:
    ManyLocks(redlock::Nodes& nodes, std::size_t count) : loop_nodes_(nodes, loop_) {
        // The watchdog extends each lock after a third of its ttl.
        const redlock::LockOptions options{.ttl = 15s, .watchdog = redlock::loop_watchdog()};
        for (std::size_t i = 0; i < count; ++i)
            locks_.emplace_back(loop_nodes_, "session:" + std::to_string(i), options);
    }

    /// Returns true if all locks were acquired, held and released.
    bool run() {
        for (auto& lock : locks_)
            lock.acquire([this](const redlock::Result& result) { count("acquired", result); });
        run_while([this] { return ended_ < locks_.size(); });
        hold_until(std::chrono::steady_clock::now() + 8s);
        for (auto& lock : locks_)
            lock.release([this](const redlock::Result& result) { count("released", result); });
        ended_ = succeeded_ = 0;
        run_while([this] { return ended_ < locks_.size(); });
        return failed_ == 0;
    }

private:
    template <class Condition>
    void run_while(Condition condition) {
        while (condition() && loop_.run_once()) {
        }
    }

    void hold_until(std::chrono::steady_clock::time_point end) {
        for (auto next = std::chrono::steady_clock::now(); next < end; next += 2s) {
            std::size_t valid = 0;
            for (const auto& lock : locks_) valid += lock.valid() ? 1U : 0U;
            std::cout << valid << " locks are held, " << memory() << " MiB\n";
            failed_ += locks_.size() - valid;
            run_while([next] { return std::chrono::steady_clock::now() < next + 2s; });
        }
    }

    void count(const char* what, const redlock::Result& result) {
        ++ended_;
        if (result) ++succeeded_;
        if (!result && ++failed_ == 1) std::cerr << result.message() << '\n';
        if (ended_ % 2000 == 0)
            std::cout << succeeded_ << " of " << ended_ << ' ' << what << ", " << memory() << " MiB\n";
    }

    // The members are destroyed in reverse order: first the locks, and the loop at the end.
    PollLoop loop_{};
    redlock::AsyncNodes loop_nodes_;
    std::vector<redlock::AsyncLock> locks_{};
    std::size_t ended_ = 0;
    std::size_t succeeded_ = 0;
    std::size_t failed_ = 0;
};

int main(int argc, char** argv) try {
    const std::size_t count = argc > 1 ? std::strtoul(argv[argc - 1], nullptr, 10) : 10'000;
    if (count == 0) throw std::invalid_argument{"the last argument must be the number of locks"};
    // The thread is busy with all these operations, and may read a reply late on a machine with other load.
    redlock::RedisNodes nodes{node_list(argc > 1 ? argc - 1 : argc, argv), {.node_timeout = 2s}};
    // Before thousands of locks wait for the nodes, one lock finds out whether the nodes answer.
    redlock::Lock first{nodes, "session:first"};
    if (const auto acquired = first.acquire(); !acquired) {
        std::cerr << acquired.message() << '\n';
        return 1;
    }
    ManyLocks locks{nodes, count};
    return locks.run() ? 0 : 1;
} catch (const std::exception& error) {
    std::cerr << error.what() << '\n';
    return 2;
}
