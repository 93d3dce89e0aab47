#include "subcommands.hpp"

#include "acquisition.hpp"
#include "arguments/lock_arguments.hpp"
#include "lease_keeper.hpp"
#include "lock/lease_state.hpp"
#include "process/exit_status.hpp"
#include "process/signals.hpp"
#include "text/json.hpp"

#include <redlock/algorithm/algorithm.hpp>
#include <redlock/lock.hpp>
#include <redlock/resources.hpp>

#include <sys/types.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <csignal>
#include <iostream>
#include <limits>
#include <optional>
#include <stdexcept>
#include <stop_token>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

namespace redlock::tool {
namespace {

constexpr std::string_view owner_name = "owner=";

/// The arguments of the four subcommands.
struct LeaseArguments : LockArguments {
    std::string owner{};
    std::optional<pid_t> while_process{};
    bool json = false;

    void add_acquire(CLI::App& app) {
        add_acquisition(app);
        app.add_option("--while-pid", while_process,
                       "Extend it for as long as that process lives, then release it; $$ is a script itself")
            ->check(CLI::Range(1, std::numeric_limits<int>::max()));
        app.add_flag("--fair", lock.fair, "Wait in a queue, and be woken by the release of a fair holder");
        add_lease(app, lock);
        add_common(app);
    }

    void add_extend(CLI::App& app) {
        add_own_owner(app);
        add_lease(app, lock);
        add_common(app);
    }

    void add_release(CLI::App& app) {
        add_own_owner(app);
        add_wake(app);
        add_common(app);
    }

    void add_break(CLI::App& app) {
        app.add_option("--owner", owner, "Of the lock: one that another has got since is left alone")
            ->required()
            ->type_name("OWNER");
        add_wake(app);
        add_common(app);
    }

    std::vector<std::string> resources() const { return detail::checked_resources({resource}); }
    LockOptions options() const {
        auto options = lock;
        options.holder = holder_description(while_process.value_or(::getppid()));
        return options;
    }

private:
    void add_own_owner(CLI::App& app) {
        owner = variable("REDLOCK_OWNER");
        app.add_option("--owner", owner, "What redlock acquire printed; default: the variable REDLOCK_OWNER")
            ->type_name("OWNER");
    }

    void add_wake(CLI::App& app) {
        app.add_flag("--fair", lock.fair, "Wake the next one that waits with --fair");
    }

    void add_common(CLI::App& app) {
        app.add_option("RESOURCE", resource, "What is locked: the key on the nodes")->required();
        app.add_flag("--json", json, "One JSON object on stdout, also for a failure");
        app.add_flag("-v,--verbose", verbose, "How each node voted, on stderr");
        nodes.add_to(app);
    }
};

/// Parses the owner alone, or the whole text that tell() prints, as `$(redlock acquire ...)` has it.
Owner owner_of(const std::string& text) {
    if (text.empty())
        throw std::invalid_argument{
            "--owner is required if REDLOCK_OWNER is not set; eval \"$(redlock acquire ...)\" sets it"};
    const auto begin = text.starts_with(owner_name) ? owner_name.size() : 0;
    const auto owner = Owner::parse(text.starts_with('{') ? owner_in_json(text)
                                                          : text.substr(begin, text.find('\n') - begin));
    if (!owner)
        throw std::invalid_argument{
            "--owner must be the 40 hex digits that redlock acquire printed, or all of its output"};
    return *owner;
}

/// Prints the lease for a script: as JSON, or as commands for a shell. A script may evaluate the commands, or
/// read a value from them.
void tell(const LeaseArguments& arguments, const Lease& lease, const Result& result) {
    if (arguments.json) return print_json(std::cout, arguments.resource, lease, result);
    if (!result) return;
    const auto validity = std::chrono::floor<std::chrono::milliseconds>(result.validity());
    std::cout << owner_name << lease.owner.view() << "\nvalidity_ms=" << validity.count() << '\n';
    if (lease.fencing_token != 0) std::cout << "fencing_token=" << lease.fencing_token << '\n';
    std::cout << "export REDLOCK_OWNER=" << lease.owner.view() << '\n';  // for extend and release
}

/// A lock whose lease outlives this process. It must not be destroyed, because the destructor would release
/// the lease.
struct LastingLock : Lock {
    using Lock::Lock;
    const detail::LeaseState& state() const noexcept { return *state_; }
    /// Takes over the lease that another process has acquired.
    void take_over(const Owner& owner) {
        const auto valid_until = algorithm::valid_until(boot_clock().now(), state_->request());
        (void)state_->begin(lease_of(owner, valid_until), std::stop_source{std::nostopstate});
    }
};

int acquire(const LeaseArguments& arguments) {
    // From here on the process cannot be mistaken for a later one with the same number.
    std::optional<WatchedProcess> watched;
    if (arguments.while_process) watched.emplace(*arguments.while_process);
    auto reporter = reporter_of(arguments);
    RedisNodes nodes{arguments.nodes.endpoints(), arguments.nodes.options(&reporter)};
    static auto& lock = *new LastingLock{nodes, arguments.resources(), arguments.options()};
    const Signals signals{ending_signals};
    auto [result, interrupted] = tool::acquire(nodes, lock, arguments, signals);
    if (interrupted) {
        if (result) (void)lock.release();
        return die_of(*interrupted);
    }
    pid_t keeper = 0;  // -1 if it could not be started
    if (result && watched) keeper = keep_in_background(*watched, lock.state(), signals);
    if (keeper < 0) {
        result.conclude({errno, std::generic_category()}, result.attempts());
        (void)lock.release();
    }
    tell(arguments, lock.state().lease(), result);
    if (result && !std::cout.flush()) {
        if (keeper > 0) {
            ::kill(keeper, SIGKILL);
            ::waitpid(keeper, nullptr, 0);
        }
        (void)lock.release();
        throw std::runtime_error{
            "stdout takes nothing; the lock is released, for nobody would know its owner"};
    }
    const int status = conclude(arguments, result,
                                keeper < 0 ? "; no process could be started to keep the lock"
                                           : in_the_way(nodes, arguments.resources(), arguments, result));
    return keeper < 0 ? exit_status::no_process : status;
}

int extend(const LeaseArguments& arguments) {
    RedisNodes nodes{arguments.nodes.endpoints(), arguments.nodes.options()};
    static auto& lock = *new LastingLock{nodes, arguments.resources(), arguments.options()};
    lock.take_over(owner_of(arguments.owner));
    const auto result = repeated([] { return lock.extend(); });
    tell(arguments, lock.state().lease(), result);
    return conclude(arguments, result);
}

int release(const LeaseArguments& arguments) {
    RedisNodes nodes{arguments.nodes.endpoints(), arguments.nodes.options()};
    const auto result =
        release_lease(nodes, arguments.resources(), owner_of(arguments.owner), arguments.lock.fair);
    if (arguments.json) print_json(std::cout, arguments.resource, {}, result);
    return conclude(arguments, result);
}

}  // namespace

void add_lease_subcommands(CommandLine& line) {
    line.add("acquire", "Acquire a lock that outlives this process, and print its owner", acquire,
             &LeaseArguments::add_acquire);
    line.add("extend", "Make a lock last for at least the ttl from now on", extend,
             &LeaseArguments::add_extend);
    line.add("release", "Release a lock", release, &LeaseArguments::add_release);
    line.add("break", "Take a lock away from its holder, as redlock who has named it", release,
             &LeaseArguments::add_break);
}

}  // namespace redlock::tool
