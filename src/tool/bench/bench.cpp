#include "subcommands.hpp"

#include "arguments/lock_arguments.hpp"
#include "arguments/node_arguments.hpp"
#include "bench_report.hpp"
#include "process/exit_status.hpp"
#include "process/signals.hpp"
#include "text/json.hpp"
#include "text/lock_status.hpp"
#include "workload.hpp"

#include <redlock/error.hpp>
#include <redlock/redis_nodes.hpp>

#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <iomanip>
#include <iostream>
#include <optional>
#include <set>
#include <stdexcept>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

namespace redlock::tool {
namespace {

using namespace std::chrono_literals;

struct BenchArguments {
    NodeArguments nodes{};
    Workload workload{.prefix = "redlock:bench", .lock = LockArguments{}.lock};
    std::chrono::nanoseconds seconds = 5s;
    bool json = false;

    void add_to(CLI::App& app) {
        add_span(app, "--seconds", seconds, "How long each kind of round is measured (5s)");
        app.add_option("--threads", workload.threads, "How many threads acquire at the same time (1)")
            ->type_name("INT")
            ->check(CLI::Range(1, 1000));
        app.add_option("--resource", workload.prefix,
                       "The prefix of the names of the resources (redlock:bench)")
            ->type_name("PREFIX");
        app.add_flag("--json", json, "One JSON object on stdout");
        add_lease(app, workload.lock);
        nodes.add_to(app);
    }
};

/// Shows a line on stderr in place of the last one, if stderr is a terminal. An empty line wipes it.
void show_in_place(const std::string& line) {
    constexpr int longest = 70;
    if (::isatty(STDERR_FILENO) == 1)
        std::cerr << '\r' << std::left << std::setw(longest) << line << '\r' << std::flush;
}

/// Measures until the time is over or one of `signals` arrives, which is stored in `interrupted`.
Measurement measure(const BenchArguments& arguments, const Workload& workload, Round round,
                    const std::string& title, const Signals& signals, std::optional<int>& interrupted) {
    Meter meter;
    auto options = arguments.nodes.options(workload.threads > 1 ? &meter : nullptr);
    options.round = round;
    options.max_idle = std::max(options.max_idle, workload.threads);
    RedisNodes nodes{arguments.nodes.endpoints(), options};
    const auto start = boot_clock().now();
    auto measurement = meter.run(nodes, workload, [&](std::uint64_t acquired) {
        const auto now = boot_clock().now();
        const auto rate =
            acquired * std::chrono::nanoseconds{1s} / std::max<Clock::duration>(now - start, 1ms);
        show_in_place(title + ": " + std::to_string(acquired) + " acquired, " + std::to_string(rate) +
                      " a second");
        if (now - start >= arguments.seconds) return false;
        const auto signal = signals.wait(now + 200ms);
        if (signal && signal != SIGCHLD) interrupted = signal;
        return !interrupted;
    });
    show_in_place({});
    measurement.round = round;
    return measurement;
}

int bench(const BenchArguments& arguments) {
    if (arguments.seconds <= 0ns) throw std::invalid_argument{"--seconds must be positive"};
    auto workload = arguments.workload;
    workload.prefix += ":" + random_owner();
    workload.lock.retry.attempts = 1;
    const Signals signals{SIGINT, SIGTERM};
    // While it measures, it writes to a terminal only. When it prints, it holds no lock.
    signals.end_on_broken_pipe();
    std::optional<int> interrupted;
    std::vector<Measurement> rounds;
    for (const auto& [round, title] : {std::pair{Round::sequential, "one after the other"},
                                       std::pair{Round::all_at_once, "all at once"}}) {
        if (interrupted) break;
        rounds.push_back(measure(arguments, workload, round, title, signals, interrupted));
        if (arguments.json) continue;
        if (round == Round::all_at_once) std::cout << '\n';
        print(std::cout, title, rounds.back());
        std::cout << std::flush;
    }
    const bool acquired =
        std::ranges::any_of(rounds, [](const Measurement& it) { return it.acquire.count() > 0; });
    const auto error = interrupted ? Errc::cancelled : acquired ? std::error_code{} : Errc::no_quorum;
    if (arguments.json) print_json(std::cout, rounds, error);
    if (interrupted) return exit_status::signalled + *interrupted;
    if (acquired) return 0;
    const auto nodes = arguments.nodes.endpoints().size();
    std::set<std::string> refusing;
    for (const auto& [failure, times] : rounds.back().node_causes)
        if (exit_status::is_refusal(failure.second)) refusing.insert(failure.first);
    return exit_status::without_quorum(nodes, refusing.size());
}

}  // namespace

void add_bench(CommandLine& line) {
    line.add("bench", "Measure how fast locks are on these nodes", bench);
}

}  // namespace redlock::tool
