// Records one sequential acquisition and one with all_at_once, over five nodes that are 1 ms away, one of
// which was just frozen. It takes the median of several recordings each, and writes them as JSON for
// pictures/timeline.py.
//
//     redlock_bench_timeline pictures/timeline.json DATE MACHINE
#include "recording.hpp"

#include "support/cluster.hpp"
#include "support/tcp_proxy.hpp"

#include <algorithm>
#include <deque>
#include <exception>
#include <fstream>
#include <iostream>
#include <sstream>
#include <stdexcept>
#include <string>
#include <vector>

namespace redlock::bench {
namespace {

using namespace std::chrono_literals;
using Span = Recording::Span;

constexpr std::size_t victim = 2;  // in the middle: neither asked first nor last
constexpr auto each_way = 500us;
constexpr auto node_timeout = 10ms;
const LockOptions lock_options{.ttl = 1s};

constexpr std::size_t repetitions = 9;

Recording record_once(Round round) {
    support::Cluster cluster;
    std::deque<support::TcpProxy> links;
    std::vector<std::string> uris;
    for (const auto& server : cluster) {
        links.emplace_back(server.port()).delay(each_way);
        uris.push_back(links.back().name());
    }
    return record(uris, round, lock_options, node_timeout, [&] { cluster[victim].freeze(); });
}

/// Returns the median recording, which is neither the luckiest nor disturbed by other activity of the
/// machine.
Recording record_several(Round round) {
    std::vector<Recording> recordings;
    while (recordings.size() < repetitions) recordings.push_back(record_once(round));
    std::ranges::sort(recordings, {}, &Recording::round_ended);
    return recordings[repetitions / 2];
}

std::string microseconds(Span span) {
    std::ostringstream text;
    text << std::chrono::round<std::chrono::microseconds>(span).count();
    return text.str();
}

std::string json(const Recording::Exchange& node) {
    const auto* const vote = node.vote == Vote::granted   ? "granted"
                             : node.vote == Vote::refused ? "refused"
                                                          : "unknown";
    return std::string{"{\"vote\": \""} + vote + "\", \"cause\": \"" + node.cause +
           "\", \"start_us\": " + microseconds(node.start) + ", \"end_us\": " + microseconds(node.end) + "}";
}

std::string json(const Recording& recording) {
    std::string nodes;
    for (const auto& node : recording.nodes) nodes += (nodes.empty() ? "\n    " : ",\n    ") + json(node);
    return std::string{"{\"round\": \""} +
           (recording.round == Round::sequential ? "sequential" : "all at once") +
           "\", \"starts_within_us\": " + microseconds(recording.starts_within) +
           ",\n   \"quorum_us\": " + microseconds(recording.quorum) +
           ", \"round_ended_us\": " + microseconds(recording.round_ended) +
           ", \"valid_until_us\": " + microseconds(recording.valid_until) +
           ", \"ttl_us\": " + microseconds(recording.ttl) + ",\n   \"nodes\": [" + nodes + "]}";
}

void write(const std::string& path, const std::string& date, const std::string& machine) {
    std::ostringstream text;
    text << "{\"date\": \"" << date << "\",\n \"machine\": \"" << machine
         << "\",\n \"round_trip_us\": " << microseconds(2 * each_way)
         << ", \"node_timeout_us\": " << microseconds(node_timeout)
         << ", \"drift_us\": " << microseconds(drift(lock_options.ttl, lock_options.drift_factor))
         << ", \"frozen_node\": " << victim + 1 << ", \"of\": " << repetitions
         << ",\n \"acquisitions\": [\n  " << json(record_several(Round::sequential)) << ",\n  "
         << json(record_several(Round::all_at_once)) << "]}\n";
    std::ofstream file{path};
    file << text.str();
    if (!file.flush()) throw std::runtime_error("cannot write " + path);
}

}  // namespace
}  // namespace redlock::bench

int main(int argc, char** argv) {
    try {
        if (argc != 4) throw std::invalid_argument("usage: redlock_bench_timeline FILE DATE MACHINE");
        redlock::bench::write(argv[1], argv[2], argv[3]);
    } catch (const std::exception& error) {
        std::cerr << "redlock_bench_timeline: " << error.what() << '\n';
        return 1;
    }
}
