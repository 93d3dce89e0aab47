#include "subcommands.hpp"

#include "acquisition.hpp"
#include "guardian.hpp"
#include "process/exit_status.hpp"
#include "process/secrets.hpp"
#include "process/signals.hpp"
#include "process_group.hpp"
#include "run_arguments.hpp"
#include "supervisor.hpp"
#include "terminal.hpp"
#include "text/span.hpp"
#include "text/words.hpp"

#include <redlock/redlock.hpp>

#include <unistd.h>

#include <chrono>
#include <csignal>
#include <future>
#include <memory>
#include <new>
#include <optional>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

namespace redlock::tool {
namespace {

using namespace std::chrono_literals;

/// What the watchdog says about the loss of the lock.
using Loss = std::shared_future<std::string>;

std::optional<std::string> words_of(const Loss& loss) {
    if (loss.wait_for(0s) != std::future_status::ready) return std::nullopt;
    return loss.get();
}

/// The watchdog may still report a loss when the lock has gone. Therefore the callback refers to nothing
/// here.
LockOptions options_of(const RunArguments& arguments, Watchdog& watchdog,
                       const std::shared_ptr<std::promise<std::string>>& loss) {
    auto options = arguments.lock;
    options.ttl = arguments.ttl();
    options.holder = holder_description(::getpid(), arguments.program().front());
    options.watchdog = &watchdog;
    options.on_lost = [loss, resource = arguments.resource](const Result& it) {
        try {
            loss->set_value(resource + ": " + it.message());
        } catch (const std::bad_alloc&) {  // NOLINT(bugprone-empty-catch): lost, without words
        }
        Signals::wake();
    };
    return options;
}

/// A semaphore whose slot can be used like any other lock.
struct SlotLock : Semaphore {
    using Semaphore::Semaphore;
    Lock& lock_of_slot() noexcept { return *this; }
};

std::vector<std::string> environment_of(const RunArguments& arguments, const Lock& lock) {
    std::vector<std::string> result{"REDLOCK_RESOURCE=" + arguments.resource,
                                    "REDLOCK_OWNER=" + std::string{lock.owner()},
                                    "REDLOCK_TTL_MS=" + std::to_string(arguments.ttl().count())};
    if (arguments.lock.fencing)
        result.push_back("REDLOCK_FENCING_TOKEN=" + std::to_string(lock.fencing_token()));
    if (arguments.holders > 0)  // the resource is the key of the slot, such as "{job}:slot:0"
        result.push_back("REDLOCK_SLOT=" + lock.resource().substr(lock.resource().rfind(':') + 1));
    return result;
}

void say_acquired(const RunArguments& arguments, const Lock& lock, const Result& result,
                  Clock::duration took) {
    if (!arguments.verbose) return;
    auto line = arguments.resource + ": acquired after " + text_of(took) + ", " +
                std::to_string(result.attempts()) + (result.attempts() == 1 ? " attempt" : " attempts") +
                ", valid for " + text_of(result.validity());
    if (arguments.lock.fencing) line += ", fencing token " + std::to_string(lock.fencing_token());
    say(line);
    say_votes(result);
}

/// Reports the release. A failed one is harmless, but other clients then have to wait for the rest of the
/// ttl.
void say_released(const RunArguments& arguments, const Result& result, Clock::duration held) {
    if (arguments.verbose) say(arguments.resource + ": released after " + text_of(held));
    if (!result) say(arguments.resource + ": release: " + result.message());
    if (arguments.verbose) say_votes(result);
}

Ending run_locked(const RunArguments& arguments, const Lock& lock, Signals& signals, const Loss& loss) {
    std::optional<Guardian> guardian;
    auto policy = arguments.policy;
    policy.look_every = arguments.ttl() / 6;
    policy.look_at = deadline_after(boot_clock().now(), arguments.lock.max_hold);
    if (policy.on_lost != OnLost::ignore) guardian.emplace(policy.on_lost == OnLost::stop, policy.grace);
    policy.look_at_lock = [&] {
        const auto now = boot_clock().now();  // first, because a pause in between shortens what remains
        if (guardian) guardian->lease_ends(now + lock.remaining());
        auto why = words_of(loss);
        if (!why && now >= policy.look_at) why = arguments.resource + ": held for as long as --max-hold says";
        if (!why && !lock.valid()) why = arguments.resource + ": lost";  // the watchdog is about to report it
        return why;
    };
    signals.add({SIGTSTP, SIGCONT, SIGTTIN, SIGTTOU, SIGWINCH});
    (void)policy.look_at_lock();
    Terminal terminal;
    policy.has_terminal = terminal.free_to_give();
    ProcessGroup program{{.words = arguments.program(),
                          .environment = environment_of(arguments, lock),
                          .in_foreground = policy.has_terminal,
                          .guardian = guardian ? &*guardian : nullptr},
                         signals,
                         terminal};
    const auto ending = supervise(program, signals, terminal, policy);
    const auto error = std::generic_category().message(program.failure());
    if (!ending.has_run) say(arguments.program().front() + ": " + error);
    return ending;
}

/// Releases a lock under which no program has run. Then nobody has to wait for the end of --min-hold, so the
/// first release is the one of `redlock release`, which knows the owner only. The second one finds no key any
/// more, and ends the work of the watchdog.
Result release_unused(const RunArguments& arguments, Lock& lock, Nodes& nodes) {
    if (arguments.lock.min_hold == arguments.lock.min_hold.zero()) return lock.release();
    const auto owner = Owner::parse(lock.owner()).value_or(Owner{});
    auto result = release_lease(nodes, lock.resources(), owner, arguments.lock.fair);
    (void)lock.release();
    return result;
}

/// Runs the program and releases the lock, whatever happens.
int run_and_release(const RunArguments& arguments, Lock& lock, Nodes& nodes, Signals& signals,
                    const Loss& loss) {
    const auto since = boot_clock().now();
    Ending ending{exit_status::lost, {}, false};
    try {
        if (lock.valid())
            ending = run_locked(arguments, lock, signals, loss);
        else
            say(arguments.resource + ": lost before the command was started");
    } catch (const std::system_error& error) {
        say(std::string{"no process for the command: "} + error.what());
        ending.status = exit_status::no_process;
    }
    const auto released =
        ending.has_run ? repeated([&] { return lock.release(); }) : release_unused(arguments, lock, nodes);
    if (!words_of(loss)) say_released(arguments, released, boot_clock().now() - since);
    if (!ending.interrupted_by) return ending.status;
    ::kill(0, *ending.interrupted_by);  // for a script around us, which has not got Ctrl-C
    return die_of(*ending.interrupted_by);
}

int acquire_and_run(const RunArguments& arguments, Lock& lock, Nodes& nodes, Signals& signals,
                    const Loss& loss) {
    const auto start = boot_clock().now();
    const auto acquired = acquire(nodes, lock, arguments, signals);
    if (acquired.interrupted) {
        if (acquired.result) (void)release_unused(arguments, lock, nodes);
        return die_of(*acquired.interrupted);
    }
    if (!acquired.result)
        return conclude(arguments, acquired.result,
                        in_the_way(nodes, lock.resources(), arguments, acquired.result));
    say_acquired(arguments, lock, acquired.result, boot_clock().now() - start);
    return run_and_release(arguments, lock, nodes, signals, loss);
}

int run(const RunArguments& arguments) {
    (void)arguments.program();  // before anything is locked
    auto reporter = reporter_of(arguments);
    RedisNodes nodes{arguments.nodes.endpoints(), arguments.nodes.options(&reporter)};
    // The program must not inherit these of an outer `redlock run`. Most of them it gets from us.
    for (const auto* const name :
         {"REDLOCK_RESOURCE", "REDLOCK_OWNER", "REDLOCK_TTL_MS", "REDLOCK_FENCING_TOKEN", "REDLOCK_SLOT"})
        erase_variable(name);
    if (arguments.hide_nodes) erase_variable(nodes_variable);
    const auto promise = std::make_shared<std::promise<std::string>>();
    const Loss loss = promise->get_future();
    Signals signals{ending_signals};
    // Never destroyed, because it has nothing to do once the lock is released, and its destructor would wait
    // for its thread.
    static auto* const watchdog = new Watchdog;
    auto options = options_of(arguments, *watchdog, promise);
    if (arguments.holders > 0) {
        SlotLock semaphore{nodes, arguments.resource, arguments.holders, std::move(options)};
        return acquire_and_run(arguments, semaphore.lock_of_slot(), nodes, signals, loss);
    }
    auto resources = arguments.also;
    resources.push_back(arguments.resource);
    Lock lock{nodes, std::move(resources), std::move(options)};
    return acquire_and_run(arguments, lock, nodes, signals, loss);
}

}  // namespace

void add_run(CommandLine& line) {
    line.add("run", "Run a command while holding a lock", run);
}

}  // namespace redlock::tool
