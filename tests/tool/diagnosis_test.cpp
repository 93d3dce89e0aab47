// What a doctor makes of the nodes together.
#include "facts.hpp"
#include "tool/text/json.hpp"

#include <redlock/error.hpp>

#include <algorithm>
#include <cstdlib>
#include <ctime>
#include <sstream>

namespace redlock::tool::diagnosis_test {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

Severity verdict(const std::vector<NodeFacts>& nodes, const CheckupPlan& plan = {}) {
    return diagnose(nodes, plan).verdict();
}

std::vector<NodeFacts> with_dead(std::size_t count, std::size_t dead) {
    auto nodes = healthy_nodes(count);
    for (std::size_t node = 0; node < dead; ++node) nodes[node].unreachable = {Errc::connection_failed, ""};
    return nodes;
}

TEST(Diagnosis, CountsHowManyMayFail) {
    struct Row {
        std::size_t nodes, dead;
        long spare;
        Severity verdict;
    };
    const std::vector<Row> table{
        {1, 0, 0, Severity::hint},    {3, 0, 1, Severity::hint},    {3, 1, 0, Severity::warning},
        {3, 2, -1, Severity::unsafe}, {5, 0, 2, Severity::hint},    {5, 2, 0, Severity::warning},
        {5, 3, -1, Severity::unsafe}, {4, 1, 0, Severity::warning}, {2, 1, -1, Severity::unsafe},
    };
    for (const auto& [count, dead, spare, expected] : table) {
        const auto nodes = with_dead(count, dead);
        const auto diagnosis = diagnose(nodes, {});
        EXPECT_EQ(diagnosis.spare(), spare) << count << " with " << dead << " dead";
        EXPECT_EQ(diagnosis.verdict(), expected) << count << " with " << dead << " dead";
        std::ostringstream json;
        print_json(json, diagnosis);
        EXPECT_THAT(json.str(), HasSubstr("\"may_fail\": " + std::to_string(std::max(spare, 0L)) + ","));
    }
    EXPECT_EQ(summary_of(diagnose(with_dead(5, 1), {})),
              "4 of 5 nodes have a vote, the quorum is 3: 1 may fail");
    EXPECT_EQ(summary_of(diagnose(with_dead(5, 3), {})),
              "2 of 5 nodes have a vote, the quorum is 3: too few for a lock");
}

TEST(Diagnosis, HasAHintForAnEvenNumberOfNodes) {
    for (const std::size_t count : {1U, 3U, 5U})
        EXPECT_THAT(diagnose(healthy_nodes(count), {}).findings, IsEmpty());
    for (const std::size_t count : {2U, 4U}) {
        const auto diagnosis = diagnose(healthy_nodes(count), {});
        ASSERT_THAT(brief(diagnosis.findings), ElementsAre("hint number"));
        EXPECT_EQ(diagnosis.verdict(), Severity::hint);
    }
    EXPECT_EQ(diagnose(healthy_nodes(4), {}).findings[0].what, "of 4 nodes 1 may fail, no more than of 3");
}

TEST(Diagnosis, GivesOneServerOneVote) {
    auto nodes = healthy_nodes(3);
    nodes[2].info.run_id = nodes[0].info.run_id;
    for (auto& node : nodes) node.probe_was_held = &node != &nodes[1];  // by one another
    const auto diagnosis = diagnose(nodes, {});
    EXPECT_THAT(diagnosis.nodes[0].findings, IsEmpty());
    ASSERT_THAT(brief(diagnosis.nodes[2].findings), ElementsAre("unsafe same_server"));
    EXPECT_THAT(diagnosis.nodes[2].findings[0].what, HasSubstr("the same server as a"));
    EXPECT_EQ(diagnosis.votes(), 2U);
    EXPECT_EQ(diagnosis.verdict(), Severity::unsafe);
}

TEST(Diagnosis, CountsServersWithoutARunIdSeparately) {
    auto nodes = healthy_nodes(3);
    for (auto& node : nodes) node.info.run_id = "";
    EXPECT_EQ(verdict(nodes), Severity::hint);
}

// A quarantine passes: no lock can be acquired meanwhile, but nothing has to be mended.
TEST(Diagnosis, WarnsOfAMajorityInQuarantine) {
    auto nodes = healthy_nodes(3);
    for (auto& node : nodes) node.marker = MarkerFacts{.placed = true, .left = 1s};
    const CheckupPlan plan{.nodes = {.quarantine = 30s}};
    EXPECT_EQ(verdict(nodes, plan), Severity::warning);
    EXPECT_EQ(diagnose(nodes, plan).votes(), 0U);
    nodes[0].unreachable = {Errc::timed_out, ""};
    EXPECT_EQ(verdict(nodes, plan), Severity::warning) << "two of three will have a vote";
    nodes[1].unreachable = {Errc::timed_out, ""};
    EXPECT_EQ(verdict(nodes, plan), Severity::unsafe);
    nodes[1] = nodes[2];
    nodes[1].info.run_id = "another";
    nodes[1].info.role = "replica";
    EXPECT_THAT(brief(diagnose(nodes, plan).findings), ElementsAre("unsafe quorum"))
        << "the end of the quarantine does not make it a master";
}

TEST(Diagnosis, HasTheMostSevereAdviceFirst) {
    auto nodes = healthy_nodes(3);
    EXPECT_EQ(advice_of(diagnose(nodes, {})), "");
    nodes[0].info.appendonly = false;
    EXPECT_THAT(advice_of(diagnose(nodes, {})), HasSubstr("a: appendonly yes"));
    nodes[1].unreachable = {Errc::connection_failed, ""};
    EXPECT_THAT(advice_of(diagnose(nodes, {})), HasSubstr("b: "));
    nodes[2].info.role = "replica";
    EXPECT_THAT(advice_of(diagnose(nodes, {})), HasSubstr("c: make it a master (REPLICAOF NO ONE)"));
}

TEST(DiagnosisReport, NamesTheNodesOfEachFinding) {
    const auto report_of = [](const std::vector<NodeFacts>& nodes) {
        std::ostringstream text;
        print(text, diagnose(nodes, {}));
        return text.str();
    };
    auto nodes = healthy_nodes(3);
    for (auto& node : nodes) node.info.appendonly = false;
    EXPECT_THAT(report_of(nodes), HasSubstr("warning: all nodes: a crash"));
    EXPECT_THAT(report_of({nodes[0]}), HasSubstr("warning: a: a crash"));
    nodes[1].info.appendonly = true;
    EXPECT_THAT(report_of(nodes), HasSubstr("warning: a, c: a crash"));
}

// The same command of different users.
TEST(DiagnosisReport, HasEachChangeAndTheMostSevereFirst) {
    auto nodes = healthy_nodes(3);
    nodes[0].info.appendonly = false;
    for (const std::size_t node : {1U, 2U}) {
        nodes[node].user = "user-" + nodes[node].name;
        nodes[node].permission_checks.push_back(
            {"acquire", "job", "+set", {Errc::permission_denied, "the 'set' command"}});
    }
    std::ostringstream text;
    print(text, diagnose(nodes, {}));
    EXPECT_THAT(text.str(),
                testing::ContainsRegex("unsafe: b:.*\n.*\n    change: ACL SETUSER user-b [+]set\n"
                                       "\nunsafe: c:.*\n.*\n    change: ACL SETUSER user-c [+]set\n"
                                       "\nwarning: a: a crash"));
}

TEST(DiagnosisReport, ShowsTheFactsAboutEachNode) {
    auto nodes = healthy_nodes(4);
    nodes[1].round_trip.reset();
    nodes[1].info = {.role = "replica"};
    nodes[2].info.make = "valkey";
    nodes[2].info.version = "8.1.1";
    nodes[2].info.appendonly = false;
    nodes[2].info.max_memory = 4'000'000;
    nodes[2].marker = MarkerFacts{.placed = true};
    nodes[3].appendfsync = "";
    nodes[3].info.max_memory = 4'000'000;
    nodes[3].info.eviction = "";
    nodes[3].marker = MarkerFacts{
        .placed = true, .left = 1s, .until = std::chrono::system_clock::time_point{1'760'000'000s}};
    ::setenv("TZ", "XYZ-5", 1);  // a time zone that is not UTC
    ::tzset();
    std::ostringstream text;
    print(text, diagnose(nodes, {.nodes = {.quarantine = 30s}}));
    EXPECT_THAT(text.str(),
                testing::StartsWith(
                    "NODE  VERDICT  ROUND TRIP  SERVER        ROLE     UP    PERSISTENCE   MEMORY\n"
                    "a     ok       1.00 ms     redis 7.0.15  master   24 h  fsync always  unbounded\n"
                    "b     unsafe   ?           ?             replica  ?     ?             ?\n"
                    "c     ok       1.00 ms     valkey 8.1.1  master   24 h  none          25 %, noeviction\n"
                    "d     warning  1.00 ms     redis 7.0.15  master   24 h  fsync ?       25 %, ?\n"
                    "c: has its quarantine behind it\n"
                    "d: in quarantine until 2025-10-09 08:53:20 UTC by its clock\n\n"));
    std::ostringstream json;
    print_json(json, diagnose(nodes, {}));
    EXPECT_THAT(json.str(), HasSubstr("\"quarantine_left_ms\": 1000,"));
    EXPECT_THAT(json.str(), HasSubstr("\"round_trip_ms\": 1.0,"));
    EXPECT_THAT(json.str(), HasSubstr("\"version\": \"8.1.1\","));
    EXPECT_THAT(json.str(), HasSubstr("\"uptime_s\": 86400,"));
}

// ---- Clocks

std::vector<NodeFacts> with_offsets(const std::vector<std::chrono::milliseconds>& offsets) {
    auto nodes = healthy_nodes(offsets.size());
    for (std::size_t node = 0; node < nodes.size(); ++node) nodes[node].clock_offset = offsets[node];
    return nodes;
}

/// 'w' for a warning, 'u' for unsafe, '.' for a clock that is right.
std::string judged(const std::vector<std::chrono::milliseconds>& offsets, const CheckupPlan& plan = {}) {
    std::string result;
    for (const auto& node : diagnose(with_offsets(offsets), plan).nodes)
        result += node.findings.empty() ? '.' : node.verdict() == Severity::unsafe ? 'u' : 'w';
    return result;
}

TEST(Clocks, AreComparedWithThoseOfOtherNodes) {
    EXPECT_EQ(judged({0ms, 0ms, 0ms}), "...");
    EXPECT_EQ(judged({1h, 1h, 1h}), "...") << "it may be we who are wrong";
    EXPECT_EQ(judged({0ms, 500ms, 0ms}), "...");
    EXPECT_EQ(judged({0ms, 501ms, 0ms}), ".w.");
    EXPECT_EQ(judged({0ms, -501ms, 0ms}), ".w.");
    EXPECT_EQ(judged({0ms, 30s, 0ms}), ".w.");
    EXPECT_EQ(judged({0ms, 30'001ms, 0ms}), ".u.");
    EXPECT_EQ(judged({0ms, 0ms, -1h, 0ms, 10ms}), "..u..");
    EXPECT_EQ(judged({0ms, 1h, 1h, 0ms, 0ms}), ".uu..");
    EXPECT_EQ(judged({0ms, 1h}), "uu") << "of two clocks, it is unknown which one is wrong";
    EXPECT_EQ(judged({1h}), ".");
}

// Of a long ttl a clock may be off by as much as the drift.
TEST(Clocks, MayDifferByTheDrift) {
    EXPECT_EQ(judged({0ms, 6s, 0ms}, {.lock = {.ttl = 10min}}), "...");
    EXPECT_EQ(judged({0ms, 6'100ms, 0ms}, {.lock = {.ttl = 10min}}), ".w.");
    EXPECT_EQ(judged({0ms, 1min, 0ms}, {.lock = {.ttl = 10min, .drift_factor = 0.5}}), "...");
}

TEST(Clocks, CauseNoFindingIfTheyAreUnknown) {
    auto nodes = with_offsets({1h, 0ms, 0ms});
    nodes[1].clock_offset.reset();
    nodes[2].clock_offset.reset();
    EXPECT_EQ(verdict(nodes), Severity::hint);
}

TEST(Clocks, AreReportedAsBehindOrAhead) {
    EXPECT_THAT(diagnose(with_offsets({0ms, 0ms, -1h}), {}).nodes[2].findings.at(0).what,
                HasSubstr("3600.0 s behind the other nodes'"));
    EXPECT_THAT(diagnose(with_offsets({0ms, 0ms, 2s}), {}).nodes[2].findings.at(0).what,
                HasSubstr("2.0 s ahead of the other nodes'"));
}

}  // namespace
}  // namespace redlock::tool::diagnosis_test
