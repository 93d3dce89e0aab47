// (e): the cost of one op on any machine: heap allocations, instructions, system calls.
#include "scenarios.hpp"

#include "support/child_process.hpp"
#include "support/cluster.hpp"
#include "support/process_files.hpp"
#include "support/temporary_directory.hpp"

#include <array>
#include <filesystem>
#include <iostream>
#include <optional>
#include <sstream>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace redlock::bench {
namespace {

using Words = std::vector<std::string>;
using support::ChildProcess;

constexpr std::size_t some_ops = 500;
constexpr std::array clients{"redlock sequential", "raw sequential", "redlock all-at-once", "raw multiplexed",
                             "redlock fair"};

/// Returns the command that runs `ops` ops under `tool`.
Words program(Words tool, const std::string& client, std::size_t ops) {
    tool.insert(tool.end(), {REDLOCK_BENCH_OPS, client, std::to_string(ops)});
    return tool;
}

/// Returns the output of the program, or nothing if it failed.
std::optional<std::string> output_of(Words words, const std::string& nodes,
                                     const std::filesystem::path& file) {
    std::filesystem::remove(file);
    ChildProcess process{
        {.words = std::move(words), .environment = {"REDLOCK_NODES=" + nodes}, .output = file}};
    const bool good = process.wait() == 0;
    if (good) return support::content(file);
    std::cerr << support::content(file);
    return std::nullopt;
}

/// Returns the first number after `key` in `text`, or `none`.
double number_after(const std::string& text, const std::string& key) {
    const auto found = text.find(key);
    return found == std::string::npos ? none : std::stod(text.substr(found + key.size()));
}

/// Parses "100.00    0.012345           1     12345        12 total": the fourth column is the number of
/// calls.
double system_calls(const std::string& summary) {
    const auto line = summary.rfind("100.00");
    if (line == std::string::npos) return none;
    std::istringstream columns{summary.substr(line)};
    double share = 0;
    double seconds = 0;
    double each = 0;
    double calls = none;
    columns >> share >> seconds >> each >> calls;
    return calls;
}

class Bookkeeper {
public:
    Row row(const std::string& client) {
        const auto heap = output_of(program({}, client, some_ops), nodes_, directory_ / "heap");
        if (!heap) throw std::runtime_error("redlock_bench_ops failed");
        const auto per_op = [](double count) { return count / static_cast<double>(some_ops); };
        return {client,
                {per_op(number_after(*heap, " of ")), per_op(number_after("," + *heap, ",")),
                 difference({"valgrind", "--tool=callgrind", "--callgrind-out-file=/dev/null"}, client,
                            [](const auto& log) { return number_after(log, "Collected :"); }),
                 difference({"strace", "-f", "-c"}, client, system_calls)}};
    }

private:
    /// Returns the difference between twice the ops and once the ops, for each op. This excludes the start
    /// and the end of the program.
    template <class Count>
    double difference(const Words& tool, const std::string& client, Count count) {
        std::array<double, 2> counts{none, none};
        for (std::size_t i = 0; i < counts.size(); ++i) {
            const auto log = output_of(program(tool, client, (i + 1) * some_ops), nodes_, directory_ / "log");
            if (!log) return none;
            counts.at(i) = count(*log);
        }
        return (counts[1] - counts[0]) / static_cast<double>(some_ops);
    }

    support::Cluster cluster_{};
    std::string nodes_ = cluster_.uri_list();
    support::TemporaryDirectory directory_{};
};

}  // namespace

void work(const Effort& /*effort*/, Report& report) {
    Table table{.scenario = "work per op",
                .setting = "counted, not timed",
                .columns = {"allocations", "by_cpp", "instructions", "system_calls"}};
    Bookkeeper bookkeeper;
    for (const std::string client : clients) {
        table.rows.push_back(bookkeeper.row(client));
        if (table.rows.back().client.starts_with("redlock"))
            report.add(Figure{client + ": heap allocations per op", table.rows.back().cells[0],
                              Figure::Bound::at_most, 0});
    }
    report.add(std::move(table));
}

}  // namespace redlock::bench
