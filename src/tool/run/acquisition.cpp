#include "acquisition.hpp"

#include "process/exit_status.hpp"
#include "text/lock_status.hpp"
#include "text/words.hpp"

#include <redlock/algorithm/acquire.hpp>
#include <redlock/algorithm/algorithm.hpp>
#include <redlock/entropy.hpp>
#include <redlock/query.hpp>

#include <algorithm>
#include <array>
#include <cstddef>
#include <fstream>
#include <future>
#include <system_error>
#include <thread>

namespace redlock::tool {
namespace {

using namespace std::chrono_literals;

/// Returns true if the attempt was refused, but some nodes failed and fewer than a majority voted. Nobody
/// knows then whether the nodes that were not asked work.
bool is_doubtful(const Result& result) {
    const auto voted =
        std::ranges::count_if(result.nodes(), [](const auto& node) { return node.vote != Vote::unknown; });
    return result.error() == Errc::held_by_other &&
           std::ranges::any_of(result.nodes(), detail::failed_to_vote) &&
           static_cast<std::size_t>(voted) < quorum(result.nodes().size());
}

/// Makes one attempt. If its refusal is doubtful, asks all nodes, and makes another attempt, which knows
/// which of them have failed.
Result try_once(Nodes& nodes, Lock& lock) {
    auto result = lock.try_acquire();
    if (!is_doubtful(result)) return result;
    (void)query(nodes, lock.resource());
    return lock.try_acquire();
}

/// If it must not wait for another holder, still makes several attempts, so that a free lock is not refused
/// because nodes were slow once.
Result acquire_as_told(Nodes& nodes, Lock& lock, const LockArguments& arguments,
                       const std::stop_token& stop) {
    if (!arguments.once()) return lock.acquire_for(arguments.wait.value_or(Clock::duration::max()), stop);
    for (int attempts = 0;;) {
        auto result = try_once(nodes, lock);
        attempts += result.attempts();
        result.conclude(result.error(), attempts);
        const bool again = result.error() != Errc::held_by_other && attempts < Retry{}.attempts &&
                           algorithm::worth_retrying(result);
        if (!again || stop.stop_requested()) return result;
        const auto pause = random_pause(arguments.lock.retry.delay, os_entropy());
        boot_clock().sleep_until(boot_clock().now() + pause, stop);
    }
}

}  // namespace

Acquisition acquire(Nodes& nodes, Lock& lock, const LockArguments& arguments, const Signals& signals) {
    std::packaged_task<Result(const std::stop_token&)> task{
        [&](const std::stop_token& stop) { return acquire_as_told(nodes, lock, arguments, stop); }};
    auto result = task.get_future();
    std::jthread worker;
    try {
        worker = std::jthread{[&](const std::stop_token& stop) {
            task(stop);
            Signals::wake();
        }};
    } catch (const std::system_error& error) {
        throw std::system_error{error.code(), "no thread to acquire the lock"};
    }
    std::optional<int> interrupted;
    for (;;) {
        const int signal = signals.wait().value_or(SIGCHLD);
        if (signal != SIGCHLD) {
            interrupted = signal;
            worker.request_stop();
        } else if (result.wait_for(0s) == std::future_status::ready) {
            break;  // otherwise: a child that we were started with, or the loss of what is held by now
        }
    }
    return {result.get(), interrupted};
}

Result repeated(const std::function<Result()>& operation) {
    auto result = operation();
    for (int calls = 1; calls < Retry{}.attempts; ++calls) {
        if (result.error() != Errc::no_quorum || !algorithm::worth_retrying(result)) break;
        result = operation();
    }
    return result;
}

Lease lease_of(const Owner& owner, Clock::time_point valid_until) {
    return {.owner = owner, .valid_until = valid_until, .may_hold_key = NodeSet{}.set()};
}

Result release_lease(Nodes& nodes, Resources resources, const Owner& owner, bool fair) {
    auto lease = lease_of(owner);
    auto result = repeated([&] { return algorithm::release(nodes, boot_clock(), resources, lease, fair); });
    if (result || result.error() == Errc::lost)
        algorithm::describe_holder(nodes, resources, lease_of(owner), "released", {});
    return result;
}

std::string holder_description(pid_t process, std::string_view program) {
    std::array<char, 256> host{};
    if (::gethostname(host.data(), host.size() - 1) != 0) host.front() = '?';
    constexpr std::size_t longest = 500;
    return std::string{"host="} + host.data() + " pid=" + std::to_string(process) +
           " program=" + std::string{program.substr(0, longest)};
}

std::string holder_description(pid_t process) {
    std::ifstream file{"/proc/" + std::to_string(process) + "/comm"};
    std::string name;
    if (!std::getline(file, name)) name = "?";
    return holder_description(process, name);
}

std::string resource_of_caller(const LockArguments& arguments) {
    const bool has_slot = !variable("REDLOCK_SLOT").empty();
    return has_slot || arguments.quiet ? "" : variable("REDLOCK_RESOURCE");
}

WaitReporter reporter_of(const LockArguments& arguments) {
    const bool says = arguments.verbose || (!arguments.quiet && ::isatty(STDERR_FILENO) != 0);
    return {arguments.resource, says, !arguments.once(), resource_of_caller(arguments)};
}

std::string in_the_way(Nodes& nodes, Resources resources, const LockArguments& arguments,
                       const Result& result) {
    if (result.error() != Errc::held_by_other || !arguments.is_worth_a_word(result)) return {};
    for (const auto& resource : resources) {
        const auto status = query(nodes, resource);
        if (status.kind == LockStatus::Kind::no_quorum) return {};
        if (status.kind == LockStatus::Kind::free) continue;
        const bool only = resources.size() == 1 && resource == arguments.resource;
        return "; now " + (only ? "" : resource + ": ") + summary_of(status);
    }
    return "; now free";
}

int conclude(const LockArguments& arguments, const Result& result, const std::string& in_the_way) {
    if (arguments.is_worth_a_word(result)) say(arguments.resource + ": " + result.message() + in_the_way);
    if (arguments.verbose) say_votes(result);
    return exit_status::of(result, arguments.conflict_exit_code);
}

}  // namespace redlock::tool
