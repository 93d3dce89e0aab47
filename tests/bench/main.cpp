// Runs the named scenarios, or all of them if none is named.
//
//     redlock_bench [--quick] [--no-peers] [--json FILE] [SCENARIO...]
#include "report.hpp"
#include "scenarios.hpp"

#include <CLI/CLI.hpp>

#include <algorithm>
#include <array>
#include <exception>
#include <iostream>
#include <string>
#include <string_view>
#include <vector>

namespace redlock::bench {
namespace {

struct Scenario {
    std::string_view name;
    void (*run)(const Effort&, Report&);
};

constexpr std::array scenarios{
    Scenario{"loopback", loopback}, Scenario{"rtt", round_trip_time},
    Scenario{"faults", faults},     Scenario{"contention", contention},
    Scenario{"work", work},         Scenario{"watchdog", watching},
    Scenario{"many", many},         Scenario{"waits", waits},
    Scenario{"cluster", cluster},
};

std::vector<std::string> names() {
    std::vector<std::string> names;
    for (const auto& scenario : scenarios) names.emplace_back(scenario.name);
    return names;
}

void run(const std::vector<std::string>& wanted, const Effort& effort, Report& report) {
    for (const auto& name : wanted) std::ranges::find(scenarios, name, &Scenario::name)->run(effort, report);
    report.print_figures();
}

}  // namespace
}  // namespace redlock::bench

int main(int argc, char** argv) {
    using namespace redlock::bench;
    CLI::App arguments{"Measures this library beside raw hiredis and its peers."};
    auto wanted = names();
    std::string json;
    Origin origin;
    bool quick = false;
    bool no_peers = false;
    arguments.add_option("SCENARIO", wanted, "What to measure; everything by default")
        ->check(CLI::IsMember(names()));
    arguments.add_flag("--quick", quick, "One short repetition, to see that it works");
    arguments.add_flag("--no-peers", no_peers, "Nothing but this library and raw hiredis");
    arguments.add_option("--json", json, "A file for the results");
    arguments.add_option("--date", origin.date, "When, for that file");
    arguments.add_option("--commit", origin.commit, "What, for that file");
    arguments.add_option("--machine", origin.machine, "Where, for that file");
    CLI11_PARSE(arguments, argc, argv);
    try {
        Effort effort{.peers = !no_peers};
        if (quick) effort.repetitions = 1, effort.turns = 10;
        Report report;
        run(wanted, effort, report);
        if (!json.empty()) report.write(json, origin);
    } catch (const std::exception& error) {
        std::cerr << "redlock_bench: " << error.what() << '\n';
        return 1;
    }
}
