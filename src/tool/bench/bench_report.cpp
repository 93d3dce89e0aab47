#include "bench_report.hpp"

#include "text/escaped.hpp"
#include "text/span.hpp"
#include "text/table.hpp"

#include <algorithm>
#include <iomanip>
#include <utility>

namespace redlock::tool {
namespace {

using namespace std::chrono_literals;

void add_row(Table& table, const std::string& verb, const LatencyHistogram& latencies) {
    std::vector<std::string> row{verb};
    for (const double percent : {50.0, 90.0, 99.0, 99.9, 100.0})
        row.push_back(text_of(latencies.percentile(percent)));
    table.push_back(std::move(row));
}

/// Returns a bar whose length is proportional to `count`. If `count` is not 0, the bar is not empty.
std::string stripe(std::uint64_t count, std::uint64_t most) {
    constexpr std::uint64_t longest = 50;
    std::string bar(std::max(count * longest / most, std::min<std::uint64_t>(count, 1)), '#');
    return bar;
}

void print_histogram(std::ostream& out, const LatencyHistogram& latencies) {
    const auto bars = bars_of(latencies);
    const auto most = std::ranges::max(bars, {}, &Bar::count).count;
    Table table{{"acquired within", "times", ""}};
    for (const auto& bar : bars)
        table.push_back({text_of(bar.to), std::to_string(bar.count), stripe(bar.count, most)});
    out << '\n';
    print_table(out, table);
}

}  // namespace

std::vector<Bar> bars_of(const LatencyHistogram& latencies) {
    std::vector<Bar> bars;
    std::chrono::nanoseconds from{0};
    auto bucket = latencies.counts().begin();
    for (std::chrono::nanoseconds decade = 1us;; decade *= 10)
        for (const int step : {1, 2, 5}) {
            if (bucket == latencies.counts().end()) return bars;
            Bar bar{from, decade * step, 0};
            for (; bucket != latencies.counts().end() && bucket->first < bar.to; ++bucket)
                bar.count += bucket->second;
            if (!bars.empty() || bar.count > 0) bars.push_back(bar);
            from = bar.to;
        }
}

void print(std::ostream& out, const std::string& title, const Measurement& measurement) {
    out << title << ": " << measurement.acquire.count() << " times acquired and released in "
        << text_of(measurement.took) << ", " << std::fixed << std::setprecision(0) << measurement.per_second()
        << " a second\n\n";
    if (measurement.acquire.count() > 0) {
        Table table{{"", "p50", "p90", "p99", "p99.9", "max"}};
        add_row(table, "acquire", measurement.acquire);
        add_row(table, "release", measurement.release);
        print_table(out, table);
        print_histogram(out, measurement.acquire);
    }
    if (const auto& writes = measurement.shared_writes; writes.count() > 0)
        out << "\nshared connections: " << writes.count() << " writes with " << std::setprecision(1)
            << static_cast<double>(measurement.shared_commands) / static_cast<double>(writes.count())
            << " commands on average; the first of them waited " << text_of(writes.percentile(50))
            << " (p50) or " << text_of(writes.percentile(99)) << " (p99)\n";
    for (const auto& [kind, failures] :
         {std::pair{"failed: ", &measurement.failures}, std::pair{"no vote: ", &measurement.node_causes}})
        for (const auto& [failure, count] : *failures)
            out << kind << escaped(failure.first + ": " + failure.second.message()) << ", " << count
                << " times\n";
}

}  // namespace redlock::tool
