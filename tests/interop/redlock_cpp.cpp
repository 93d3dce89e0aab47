// This library, as a client of the interop tests (see interop_test.cpp).
//
//     redlock_cpp [--fair | --shared | --semaphore] redis://127.0.0.1:6379 ...
//
// With --fair it waits in the queue while it contends, with a time limit. With --shared it is a reader. With
// --semaphore it uses a semaphore with one slot, which has the resource's name.
#include <redlock/redlock.hpp>

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <iostream>
#include <optional>
#include <random>
#include <sstream>
#include <stdexcept>
#include <string>
#include <string_view>
#include <system_error>
#include <thread>
#include <vector>

namespace {

using namespace std::chrono_literals;
using std::chrono::milliseconds;

class Client {
public:
    Client(const std::vector<std::string>& uris, std::string_view kind)
        : fair_(kind == "--fair"),
          shared_(kind == "--shared"),
          semaphore_of_one_(kind == "--semaphore"),
          nodes_(uris, {.node_timeout = 700ms}) {}

    std::string perform(const std::string& line) {
        std::istringstream words{line};
        std::string verb, resource, directory;
        milliseconds::rep number = 0;
        words >> verb;
        if (verb == "acquire" && words >> resource >> number) return acquire(resource, milliseconds{number});
        if (verb == "extend" && words >> number) return extend(milliseconds{number});
        if (verb == "release") return release();
        if (verb == "contend" && words >> directory >> resource >> number)
            return contend(directory + "/held", resource, milliseconds{number});
        throw std::runtime_error("cannot do: " + line);
    }

private:
    std::string acquire(const std::string& resource, milliseconds ttl) {
        if (semaphore_of_one_) return acquire_slot(resource, ttl);
        lock_.emplace(nodes_, resource, redlock::LockOptions{.ttl = ttl, .shared = shared_});
        const auto result = lock_->try_acquire();
        if (!result && result.error() != redlock::Errc::held_by_other) return result.message();
        return result ? "held" : "taken";
    }

    std::string acquire_slot(const std::string& resource, milliseconds ttl) {
        const std::string_view slot = ":slot:0";
        if (!resource.ends_with(slot)) throw std::runtime_error("no slot: " + resource);
        semaphore_.emplace(nodes_, resource.substr(0, resource.size() - slot.size()), 1,
                           redlock::LockOptions{.ttl = ttl});
        const auto result = semaphore_->try_acquire();
        if (!result && result.error() != redlock::Errc::held_by_other) return result.message();
        return result ? "held" : "taken";
    }

    std::string wait(const std::string& resource, milliseconds ttl) {
        lock_.emplace(nodes_, resource, redlock::LockOptions{.ttl = ttl, .fair = true});
        const auto result = lock_->acquire_for(15s);
        return result ? "held" : result.message();
    }

    std::string extend(milliseconds ttl) {
        const auto result = lock_->extend(ttl);
        if (!result && result.error() != redlock::Errc::lost) return result.message();
        return result ? "held" : "lost";
    }

    std::string release() {
        const auto result = semaphore_ ? semaphore_->release() : lock_->release();
        if (!result && result.error() != redlock::Errc::lost) return result.message();
        return result ? "released" : "lost";
    }

    std::string contend(const std::string& witness, const std::string& resource, milliseconds span) {
        std::uniform_real_distribution<double> pause{1, 10};
        int holds = 0;
        int overlaps = 0;
        redlock::Clock::duration longest_wait{};
        for (const auto end = redlock::boot_clock().now() + span; redlock::boot_clock().now() < end;) {
            const auto begun = redlock::boot_clock().now();
            const auto held = fair_ ? wait(resource, 30s) : acquire(resource, 30s);
            longest_wait = std::max(longest_wait, redlock::boot_clock().now() - begun);
            if (fair_ && held != "held") throw std::runtime_error("waited in vain: " + held);
            if (held == "held") {
                (hold(witness) ? holds : overlaps) += 1;
                if (release() != "released") throw std::runtime_error("a hold has lapsed");
            }
            std::this_thread::sleep_for(std::chrono::duration<double, std::milli>{pause(random_)});
        }
        auto answer = std::to_string(holds) + " holds " + std::to_string(overlaps) + " overlaps";
        if (fair_) answer += ", at most " + std::to_string(longest_wait / 1ms) + " ms of waiting";
        return answer;
    }

    /// Returns false if another client that must not holds the lock at the same time.
    bool hold(const std::string& witness) const {
        return shared_ ? hold_as_reader(witness) : hold_alone(witness);
    }

    static bool hold_as_reader(const std::string& witness) {
        const bool alone_before = ::access(witness.c_str(), F_OK) != 0;
        std::this_thread::sleep_for(2ms);
        return alone_before && ::access(witness.c_str(), F_OK) != 0;
    }

    static bool hold_alone(const std::string& witness) {
        const int file = ::open(witness.c_str(), O_CREAT | O_EXCL | O_WRONLY | O_CLOEXEC, 0600);
        if (file < 0 && errno == EEXIST) return false;
        if (file < 0) throw std::system_error{errno, std::generic_category(), witness};
        ::close(file);
        std::this_thread::sleep_for(2ms);
        ::unlink(witness.c_str());
        return true;
    }

    const bool fair_;
    const bool shared_;
    const bool semaphore_of_one_;
    redlock::RedisNodes nodes_;
    std::optional<redlock::Lock> lock_{};
    std::optional<redlock::Semaphore> semaphore_{};
    std::minstd_rand random_{std::random_device{}()};
};

}  // namespace

int main(int argc, char** argv) {
    try {
        const std::string_view kind = argc > 1 && argv[1][0] == '-' ? argv[1] : "";
        Client client{{argv + (kind.empty() ? 1 : 2), argv + argc}, kind};
        std::cout << "ready" << std::endl;
        for (std::string line; std::getline(std::cin, line);) std::cout << client.perform(line) << std::endl;
    } catch (const std::exception& error) {
        std::cerr << error.what() << '\n';
        return 1;
    }
}
