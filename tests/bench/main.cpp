// Runs the scenarios named, all of them if none is.
//
//     redlock_bench [--quick] [--no-peers] [--json FILE] [--commit NAME] [SCENARIO...]
#include "report.hpp"
#include "scenarios.hpp"

#include <algorithm>
#include <array>
#include <exception>
#include <filesystem>
#include <iostream>
#include <span>
#include <stdexcept>
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
    Scenario{"loopback", loopback}, Scenario{"rtt", round_trip_time},   Scenario{"faults", faults},
    Scenario{"threads", threads},   Scenario{"contention", contention}, Scenario{"work", work},
    Scenario{"watchdog", watching},
};

struct Request {
    Effort effort{};
    std::filesystem::path json{};
    std::string commit{};
    std::vector<Scenario> scenarios{};
};

Scenario scenario_of(std::string_view name) {
    const auto* const found = std::ranges::find(scenarios, name, &Scenario::name);
    if (found != scenarios.end()) return *found;
    std::string names;
    for (const auto& scenario : scenarios) names += " " + std::string{scenario.name};
    throw std::invalid_argument("no scenario " + std::string{name} + "; there are:" + names);
}

Request parsed(std::span<char* const> words) {
    Request request;
    for (auto word = words.begin(); word != words.end(); ++word) {
        const std::string_view text{*word};
        const auto value = [&] {
            if (++word == words.end()) throw std::invalid_argument(std::string{text} + " needs a value");
            return *word;
        };
        if (text == "--quick")
            request.effort = {.repetitions = 1, .turns = 10, .peers = request.effort.peers};
        else if (text == "--no-peers")
            request.effort.peers = false;
        else if (text == "--json")
            request.json = value();
        else if (text == "--commit")
            request.commit = value();
        else
            request.scenarios.push_back(scenario_of(text));
    }
    if (request.scenarios.empty()) request.scenarios.assign(scenarios.begin(), scenarios.end());
    return request;
}

void run(const Request& request) {
    Report report;
    for (const auto& scenario : request.scenarios) scenario.run(request.effort, report);
    report.print_figures();
    if (!request.json.empty()) report.write(request.json, request.commit);
}

}  // namespace
}  // namespace redlock::bench

int main(int argc, char** argv) {
    try {
        redlock::bench::run(redlock::bench::parsed({argv + 1, static_cast<std::size_t>(argc - 1)}));
    } catch (const std::exception& error) {
        std::cerr << "redlock_bench: " << error.what() << '\n';
        return 1;
    }
}
