#include "run_command.hpp"

#include "acquisition.hpp"
#include "alarm.hpp"
#include "command_words.hpp"
#include "exit_status.hpp"
#include "lock_arguments.hpp"
#include "node_arguments.hpp"
#include "process_group.hpp"
#include "report.hpp"
#include "span.hpp"
#include "supervisor.hpp"
#include "terminal.hpp"

#include <redlock/redlock.hpp>

#include <csignal>
#include <iostream>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <stdexcept>
#include <utility>

namespace redlock::tool {
namespace {

struct Request {
    NodeArguments nodes{};
    LeaseArguments lease{};
    AcquireArguments acquire{};
    Supervisor::Policy policy{};
    std::chrono::nanoseconds max_hold = std::chrono::nanoseconds::max();
    std::string resource{};
    std::string shell_command{};
    std::vector<std::string> words{};
    bool verbose = false;

    void add_to(CLI::App& app);
    std::vector<std::string> command() const;
};

void Request::add_to(CLI::App& app) {
    static const std::map<std::string, OnLost> ends{
        {"stop", OnLost::stop}, {"term", OnLost::term}, {"ignore", OnLost::ignore}};
    app.add_option("RESOURCE", resource, "What is locked: the key on the nodes")->required();
    app.add_option("-c,--command", shell_command, "A command for /bin/sh -c, in place of COMMAND");
    app.add_flag("-v,--verbose", verbose, "How long it took and how each node voted, on stderr");
    acquire.add_to(app);
    lease.add_to(app);
    add_span(app, "--max-hold", max_hold, "Extend the lock no longer than that (default: no limit)");
    app.add_option_function<std::string>(
           "--on-lost",
           [this](const std::string& text) {
               const auto it = ends.find(text);
               if (it == ends.end())
                   throw CLI::ValidationError("--on-lost", "\"" + text + "\" is not stop, term or ignore");
               policy.on_lost = it->second;
           },
           "When the lock is lost: stop (SIGTERM, grace, SIGKILL), term (SIGTERM only) or ignore (stop)")
        ->type_name("POLICY");
    add_span(app, "--grace", policy.grace, "From SIGTERM to SIGKILL (5s)");
    nodes.add_to(app);
}

std::vector<std::string> Request::command() const {
    if (!shell_command.empty() && !words.empty())
        throw std::invalid_argument{"both --command and COMMAND are given"};
    if (!shell_command.empty()) return {"/bin/sh", "-c", shell_command};
    if (words.empty())
        throw std::invalid_argument{"no COMMAND: redlock run [OPTIONS] RESOURCE -- COMMAND [ARG...]"};
    return words;
}

/// What the watchdog said of the loss. It rings, and the supervisor asks.
class Loss {
public:
    void tell(const std::string& why) {
        {
            const std::lock_guard guard{mutex_};
            why_ = why;
        }
        Alarm::ring(Alarm::loss);
    }
    std::optional<std::string> why() const {
        const std::lock_guard guard{mutex_};
        return why_;
    }

private:
    mutable std::mutex mutex_;
    std::optional<std::string> why_{};  // guarded by mutex_
};

LockOptions options_of(const Request& request, Watchdog& watchdog, Loss& loss) {
    return {.ttl = request.lease.ttl,
            .retry = {.delay = request.acquire.retry_delay},
            .drift_factor = request.lease.drift_factor,
            .fencing = request.acquire.fencing,
            .watchdog = &watchdog,
            .max_hold = request.max_hold,
            .on_lost = [&](const Result& why) { loss.tell(request.resource + ": " + why.message()); }};
}

std::vector<std::string> environment_of(const Request& request, const Lock& lock) {
    std::vector<std::string> result{"REDLOCK_RESOURCE=" + request.resource,
                                    "REDLOCK_OWNER=" + std::string{lock.owner()},
                                    "REDLOCK_TTL_MS=" + std::to_string(request.lease.ttl.count())};
    if (request.acquire.fencing)
        result.push_back("REDLOCK_FENCING_TOKEN=" + std::to_string(lock.fencing_token()));
    return result;
}

void say_acquired(const Request& request, const Lock& lock, const Result& result, Clock::duration took) {
    if (!request.verbose) return;
    std::cerr << "redlock: " << request.resource << ": acquired after " << text_of(took) << ", "
              << result.attempts() << (result.attempts() == 1 ? " attempt" : " attempts") << ", valid for "
              << text_of(result.validity());
    if (request.acquire.fencing) std::cerr << ", fencing token " << lock.fencing_token();
    std::cerr << '\n';
    print_votes(std::cerr, result);
}

/// A release that fails harms nobody, but costs the others the rest of the ttl.
void say_released(const Request& request, const Result& result, Clock::duration held) {
    if (request.verbose)
        std::cerr << "redlock: " << request.resource << ": released after " << text_of(held) << '\n';
    if (!result) std::cerr << "redlock: " << request.resource << ": release: " << result.message() << '\n';
    if (request.verbose) print_votes(std::cerr, result);
}

int run_locked(const Request& request, const Lock& lock, Alarm& alarm, const Loss& loss) {
    alarm.catch_signals({SIGCHLD, SIGTSTP, SIGCONT, SIGUSR1, SIGUSR2});
    Terminal terminal;
    const bool in_foreground = terminal.free_to_give();
    ProcessGroup command{{.words = request.command(),
                          .environment = environment_of(request, lock),
                          .in_foreground = in_foreground,
                          .dies_with_us = request.policy.on_lost != OnLost::ignore},
                         alarm,
                         terminal};
    const auto why_lost = [&] {
        auto why = loss.why();
        if (!why && !lock.valid()) why = request.resource + ": lost";  // the watchdog, too, is just waking up
        return why;
    };
    return Supervisor{command, alarm, terminal, in_foreground, request.policy, why_lost}.run();
}

/// Ends as a command without a handler would have: whoever started us sees the signal.
int die_of(int signal) {
    (void)::signal(signal, SIG_DFL);
    (void)::raise(signal);
    return exit_status::signalled + signal;
}

int run(const Request& request) {
    (void)request.command();  // before anything is locked
    RedisNodes nodes{request.nodes.endpoints(), request.nodes.options()};
    Loss loss;
    Alarm alarm;
    Watchdog watchdog;
    Lock lock{nodes, request.resource, options_of(request, watchdog, loss)};
    alarm.catch_signals({SIGTERM, SIGINT, SIGHUP, SIGQUIT});

    const auto start = boot_clock().now();
    const auto acquired = acquire(lock, request.acquire, alarm);
    const auto since = boot_clock().now();
    if (acquired.interrupted) {
        if (acquired.result) (void)lock.release();
        return die_of(*acquired.interrupted);
    }
    if (!acquired.result) {
        std::cerr << "redlock: " << request.resource << ": " << acquired.result.message() << '\n';
        if (request.verbose) print_votes(std::cerr, acquired.result);
        return exit_status::of(acquired.result.error(), request.acquire.conflict_exit_code);
    }
    say_acquired(request, lock, acquired.result, since - start);
    const int status = run_locked(request, lock, alarm, loss);
    const auto released = lock.release();
    if (!loss.why()) say_released(request, released, boot_clock().now() - since);
    return status;
}

}  // namespace

Subcommand add_run(CLI::App& app, std::vector<std::string>& words) {
    auto request = std::make_shared<Request>();
    auto* const arguments = app.add_subcommand("run", "Run a command while holding a lock");
    arguments->footer(
        "redlock run [OPTIONS] RESOURCE [--] COMMAND [ARG...]\n"
        "redlock run [OPTIONS] RESOURCE -c STRING");
    request->add_to(*arguments);
    if (!words.empty() && words.front() == "run") {
        std::vector<std::string> rest{words.begin() + 1, words.end()};
        request->words = take_command(*arguments, rest);
        words.resize(1);
        words.insert(words.end(), rest.begin(), rest.end());
    }
    return {arguments, [request] { return run(*request); }};
}

}  // namespace redlock::tool
