// What the keys on the nodes come to, in words.
#include "tool/text/lock_status.hpp"
#include "support/node_states.hpp"
#include "tool/text/json.hpp"

#include <gmock/gmock.h>

#include <sstream>
#include <string>
#include <system_error>

namespace redlock::tool::lock_status_test {
namespace {

const std::string a(40, 'a');
const std::string b(40, 'b');

LockStatus status_of(const std::string& letters) {
    return detail::conclude(support::nodes_of(letters));
}

TEST(LockStatus, IsSummarizedInALine) {
    EXPECT_EQ(summary_of(status_of("bba.b")), "held by " + b + " on 3 of 5 nodes, expires in 10.0 s");
    EXPECT_EQ(summary_of(status_of("...")), "free");
    EXPECT_EQ(summary_of(status_of("ab.")), "held by nobody: the votes are split");
    EXPECT_EQ(summary_of(status_of("a??")), "no quorum: 1 of 3 nodes answered");
    EXPECT_EQ(summary_of(status_of("aa..?")),
              "uncertain: " + a + " on 2 of 5 nodes, and 1 of 5 nodes did not answer");
}

// `who` has this line only, without the table of `status`.
TEST(LockStatus, SaysInTheLineOfWhoWhyNodesDidNotAnswer) {
    auto nodes = support::nodes_of("a??");
    nodes[1].name = "10.0.0.1:6379";
    nodes[1].cause = Errc::server_error;
    nodes[1].detail = "ERR DB index is out of range";
    nodes[2].name = "10.0.0.2:6379";
    nodes[2].cause = Errc::timed_out;
    EXPECT_EQ(line_of_who(detail::conclude(nodes)),
              "no quorum: 1 of 3 nodes answered; 10.0.0.1:6379 server error (ERR DB index is out of range); "
              "10.0.0.2:6379 timed out");
    nodes[1] = nodes[0];
    EXPECT_EQ(line_of_who(detail::conclude(nodes)), "held by " + a + " on 2 of 3 nodes, expires in 10.0 s");
    nodes[1] = support::nodes_of(".")[0];
    EXPECT_EQ(
        line_of_who(detail::conclude(nodes)),
        "uncertain: " + a + " on 1 of 3 nodes, and 1 of 3 nodes did not answer; 10.0.0.2:6379 timed out");
}

TEST(LockStatus, ReportsAKeyThatExcludesAllClients) {
    EXPECT_EQ(summary_of(status_of("!!!")),
              "on 3 of 3 nodes the key is no lock: it refuses everybody until it is deleted");
    EXPECT_EQ(summary_of(status_of("!!?")),
              "on 2 of 3 nodes the key is no lock: it refuses everybody until it is deleted");
    EXPECT_EQ(summary_of(status_of("!..")),
              "free; on 1 of 3 nodes the key is no lock: it refuses everybody until it is deleted");
}

TEST(LockStatus, ReportsAnOwnerThatIsNotOfThisLibrary) {
    auto nodes = support::nodes_of("aaa");
    for (auto& node : nodes) node.owner = "worker-7";
    EXPECT_EQ(summary_of(detail::conclude(nodes)),
              "held by \"worker-7\" on 3 of 3 nodes, expires in 11.0 s, no owner of this library");
}

TEST(LockStatus, ReportsAReservation) {
    auto nodes = support::nodes_of("a");
    nodes[0].owner = "redlock:wake:" + std::string(32, 'c') + "|7";
    EXPECT_EQ(summary_of(detail::conclude(nodes)),
              "reserved for a waiter on 1 of 1 nodes, expires in 10.0 s");
    nodes[0].owner = "redlock:awake";
    EXPECT_THAT(summary_of(detail::conclude(nodes)), testing::HasSubstr("no owner of this library"));
}

TEST(LockStatus, ShowsTheHolderDescription) {
    auto nodes = support::nodes_of("aaa");
    nodes[2].holder = "host=web1\n";
    EXPECT_EQ(summary_of(detail::conclude(nodes)),
              "held by " + a + " on 3 of 3 nodes, expires in 11.0 s: host=web1\\x0a");
    for (const auto* const value : {"redlock:min-hold", "redlock:rest"}) {
        for (auto& node : nodes) node.owner = value;
        EXPECT_EQ(summary_of(detail::conclude(nodes)),
                  "released, and kept from everybody on 3 of 3 nodes, expires in 11.0 s");
    }
}

std::string json_of(const LockStatus& status, bool nodes = false) {
    std::ostringstream json;
    print_json(json, "orders:42", status, nodes);
    return json.str();
}

// The description of one node is in the JSON of that node only.
TEST(LockStatus, HasNoHolderInJsonIfNobodyHoldsTheLock) {
    auto nodes = support::nodes_of("ab.");
    nodes[0].holder = "host=web1";
    EXPECT_THAT(json_of(detail::conclude(nodes)), testing::HasSubstr("\"holder\": null"));
    nodes[1] = nodes[0];
    EXPECT_THAT(json_of(detail::conclude(nodes)), testing::HasSubstr("\"holder\": \"host=web1\""));
    EXPECT_THAT(json_of(detail::conclude(nodes)), testing::HasSubstr("\"held_on\": 2"));
}

TEST(LockStatus, HasTheNumberOfAnErrorOfTheSystemInJson) {
    auto nodes = support::nodes_of("?");
    nodes[0].cause = {1, std::generic_category()};
    EXPECT_THAT(json_of(detail::conclude(nodes), true), testing::HasSubstr("\"code\": \"generic:1\""));
}

TEST(LockStatus, ShowsTheNumberOfReaders) {
    auto nodes = support::nodes_of("aaa");
    for (auto& node : nodes) node.owner = "redlock:shared";
    nodes[1].readers = 2;
    EXPECT_EQ(summary_of(detail::conclude(nodes)), "held by 2 readers on 3 of 3 nodes, expires in 11.0 s");
}

TEST(Owners, AreShortenedAndPrintable) {
    EXPECT_EQ(shown(a), a);
    EXPECT_EQ(shown(""), "\"\"");
    EXPECT_EQ(shown("line\nbreak\x1b[31m"), "\"line\\x0abreak\\x1b[31m\"");
    EXPECT_EQ(shown(std::string(500, 'x')), '"' + std::string(36, 'x') + "\"...");
    EXPECT_EQ(shown(std::string(40, 'A')), '"' + std::string(36, 'A') + "\"...") << "ours are in lower case";
}

}  // namespace
}  // namespace redlock::tool::lock_status_test
