// sim: runs random schedules of the simulated world by the hundred thousand, until one violates an invariant.
//
//     sim --seeds 200000
//     sim --seed 4711                     # one schedule, printed in full
//     sim --world drifting --seeds 1000   # worlds that expose one kind of fault quickly
#include "presets.hpp"
#include "schedule.hpp"

#include <CLI/CLI.hpp>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <exception>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

namespace {

using namespace redlock::sim;
using SteadyClock = std::chrono::steady_clock;

struct Options {
    std::uint64_t from = 1;
    std::uint64_t seeds = 10'000;
    std::optional<std::uint64_t> seed{};
    double seconds = 0;
    unsigned threads = std::max(1U, std::thread::hardware_concurrency());
    std::string world = "any";
};

/// A value beyond all seeds, which ends the run.
constexpr std::uint64_t no_more = std::uint64_t{1} << 63U;

/// The sums over all threads.
struct Count {
    std::atomic<std::uint64_t> schedules{0};
    std::atomic<std::uint64_t> events{0};
    std::atomic<std::uint64_t> holds{0};
    std::atomic<std::uint64_t> extensions{0};
    std::mutex mutex{};
    std::optional<Outcome> worst{};  // guarded by mutex: the violation with the smallest seed
    std::exception_ptr failure{};    // guarded by mutex: from a world that did not end
};

void print(const Count& count, SteadyClock::duration took) {
    const auto seconds = std::chrono::duration<double>(took).count();
    std::printf("%llu schedules, %llu events, %llu holds, %llu extensions, %s, %.1f s\n",
                static_cast<unsigned long long>(count.schedules.load()),
                static_cast<unsigned long long>(count.events.load()),
                static_cast<unsigned long long>(count.holds.load()),
                static_cast<unsigned long long>(count.extensions.load()),
                count.worst ? "a violation" : "no violation", seconds);
    std::fflush(stdout);
}

void print(const Outcome& outcome) {
    for (const auto& line : outcome.schedule) std::printf("%s\n", line.c_str());
    for (const auto& [rule, when, text] : outcome.violations) {
        const auto name = std::string{name_of(rule)};
        std::printf("seed %llu: %s at %.6f ms: %s\n", static_cast<unsigned long long>(outcome.seed),
                    name.c_str(), static_cast<double>(when.count()) / 1e6, text.c_str());
    }
}

/// Takes one seed after the other from a common counter, until none is left or one violates an invariant.
void work(const Options& options, const Preset* preset, std::atomic<std::uint64_t>& next, Count& count,
          SteadyClock::time_point end) {
    while (SteadyClock::now() < end) {
        const auto seed = next++;
        if (seed >= no_more || (options.seconds <= 0 && seed >= options.from + options.seeds)) return;
        auto outcome = run_schedule(seed, preset);
        ++count.schedules;
        count.events += outcome.events;
        count.holds += outcome.holds;
        count.extensions += outcome.extensions;
        if (outcome.violations.empty()) continue;
        const std::lock_guard guard{count.mutex};
        if (!count.worst || outcome.seed < count.worst->seed) count.worst = std::move(outcome);
        next = no_more;
    }
}

int run(const Options& options, const Preset* preset) {
    const auto start = SteadyClock::now();
    const auto end = options.seconds > 0 ? start + std::chrono::duration_cast<SteadyClock::duration>(
                                                       std::chrono::duration<double>(options.seconds))
                                         : SteadyClock::time_point::max();
    std::atomic<std::uint64_t> next{options.from};
    Count count;
    {
        std::jthread herald{[&](const std::stop_token& stop) {
            for (auto at = start + 30s; !stop.stop_requested(); std::this_thread::sleep_for(20ms))
                if (SteadyClock::now() >= at) {
                    at += 30s;
                    const std::lock_guard guard{count.mutex};
                    print(count, SteadyClock::now() - start);
                }
        }};
        std::vector<std::jthread> workers;
        for (unsigned i = 0; i < options.threads; ++i)
            workers.emplace_back([&] {
                try {
                    work(options, preset, next, count, end);
                } catch (...) {
                    const std::lock_guard guard{count.mutex};
                    count.failure = std::current_exception();
                    next = no_more;
                }
            });
    }
    print(count, SteadyClock::now() - start);
    if (count.failure) std::rethrow_exception(count.failure);
    if (!count.worst) return 0;
    print(run_schedule(count.worst->seed, preset, Logging::yes));
    return 1;
}

int replay(std::uint64_t seed, const Preset* preset) {
    const auto outcome = run_schedule(seed, preset, Logging::yes);
    print(outcome);
    std::printf("seed %llu: %llu events, %zu holds, %zu violations\n", static_cast<unsigned long long>(seed),
                static_cast<unsigned long long>(outcome.events), outcome.holds, outcome.violations.size());
    return outcome.violations.empty() ? 0 : 1;
}

std::string worlds_text() {
    std::string text = "Worlds:\n";
    for (const auto& [name, description, apply, breaks] : presets())
        text +=
            "  " + std::string{name} + std::string(22 - name.size(), ' ') + std::string{description} + "\n";
    return text;
}

}  // namespace

int main(int argc, char** argv) {
    Options options;
    CLI::App app{
        "Random schedules of the simulated world; exits with 1 at the first that violates an invariant."};
    app.add_option("--seeds", options.seeds, "How many schedules")->capture_default_str();
    app.add_option("--from", options.from, "The seed of the first")->capture_default_str();
    app.add_option("--seed", options.seed, "Only this one, with its whole schedule");
    app.add_option("--seconds", options.seconds, "As many as this long allows, in place of --seeds");
    app.add_option("--threads", options.threads, "At a time")
        ->capture_default_str()
        ->check(CLI::Range(1, 256));
    app.add_option("--world", options.world, "Only worlds of this kind")->capture_default_str();
    app.footer(worlds_text());
    CLI11_PARSE(app, argc, argv);

    const auto* const preset = find_preset(options.world);
    if (!preset) {
        std::fprintf(stderr, "sim: no world is called %s\n%s", options.world.c_str(), worlds_text().c_str());
        return 2;
    }
    try {
        return options.seed ? replay(*options.seed, preset) : run(options, preset);
    } catch (const std::exception& error) {
        std::fprintf(stderr, "sim: %s\n", error.what());
        return 2;
    }
}
