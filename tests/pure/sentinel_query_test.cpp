// When the replies of Sentinels can be trusted (rule D8 for Sentinels).
#include "memory_network.hpp"

#include "redis/sentinel_query.hpp"

#include <memory>
#include <stop_token>
#include <string>
#include <utility>
#include <vector>

namespace redlock::sentinel_query_test {
namespace {

using namespace std::chrono_literals;

SentinelAnswer names(const std::string& master, const std::string& address, const std::string& id) {
    return {.address = address, .id = id, .master = master};
}
SentinelAnswer is_silent(const std::string& address) {
    return {.address = address};
}
SentinelAnswer refuses(const std::string& address) {
    return {.address = address, .refused = true};
}

struct Row {
    const char* name;
    std::vector<SentinelAnswer> answers;
    std::size_t sentinels;
    std::size_t named;
    std::string master;
    bool refused_for_good = false;
};

const auto s1_a = names("a", "1", "S1");
const auto s1_b = names("b", "1", "S1");
const auto s2_a = names("a", "2", "S2");
const auto s2_b = names("b", "2", "S2");
const auto s3_a = names("a", "3", "S3");

const Row rows[] = {
    {"OneOfOne", {s1_a}, 1, 1, "a"},
    {"NoneOfOne", {is_silent("1")}, 1, 0, ""},
    {"TwoOfThree", {s1_a, s2_a, is_silent("3")}, 3, 2, "a"},
    {"ThreeOfThree", {s1_a, s2_a, s3_a}, 3, 3, "a"},
    {"OneOfThree", {s1_a, is_silent("2"), is_silent("3")}, 3, 1, ""},
    {"TwoOfThreeThatDiffer", {s1_a, s2_b, is_silent("3")}, 3, 2, ""},
    {"TwoOfThreeBesideAnother", {s1_b, s2_a, s3_a}, 3, 3, "a"},
    {"HalfOfTwo", {s1_a, s2_b}, 2, 2, ""},
    {"OneOfTwo", {s1_a, is_silent("2")}, 2, 1, ""},
    // The same Sentinel.
    {"OneThatIsListedTwiceHasOneVote", {s1_a, s1_a, is_silent("2")}, 2, 1, ""},
    {"OneThatIsListedTwiceDoesNotHinderTheOthers", {s1_b, s1_b, s2_a, s3_a}, 3, 3, "a"},
    {"OneAlone", {s1_a, s1_a}, 1, 1, "a"},
    {"OneAtTwoAddresses", {s1_a, names("a", "2", "S1"), is_silent("3")}, 2, 1, ""},
    {"OneAddressWithoutAnId", {names("a", "1", ""), names("a", "1", ""), is_silent("2")}, 2, 1, ""},
    {"OneAddressOfWhichOneEntryIsSilent", {s1_a, is_silent("1")}, 1, 1, "a"},
    {"OneByWayOfAThird",
     {names("a", "1", ""), names("a", "2", "S1"), names("a", "1", "S1"), is_silent("3")},
     2,
     1,
     ""},
    {"OneByWayOfAThirdAmongOthers",
     {names("a", "1", ""), s2_a, names("a", "3", "S1"), names("a", "1", "S1"), is_silent("4")},
     3,
     2,
     "a"},
    {"OneThatContradictsItselfHasNoVote", {s1_a, s1_b, s2_a, is_silent("3")}, 3, 2, ""},
    {"OneThatContradictsItselfHasNoVoteWhateverItNamesLast", {s1_b, s1_a, s2_a, is_silent("3")}, 3, 2, ""},
    {"OneThatContradictsItselfBesideAMajority", {s1_a, s1_b, s2_a, s3_a}, 3, 3, "a"},
    // The identity of these entries is unknown. They count as Sentinels and cannot form a majority.
    {"EntriesWithoutAddressAndIdAreSentinelsOfTheirOwn", {s1_a, is_silent(""), is_silent("")}, 3, 1, ""},
    // Refusals.
    {"OneRefusalOfThree", {s1_a, refuses("2"), is_silent("3")}, 3, 1, ""},
    {"OneRefusalBesideAMajority", {s1_a, refuses("2"), s3_a}, 3, 2, "a"},
    {"TwoRefusalsOfThree", {s1_a, refuses("2"), refuses("3")}, 3, 1, "", true},
    {"ARefusalOfTwo", {is_silent("1"), refuses("2")}, 2, 0, "", true},
    {"ARefusalThatIsListedTwice", {s1_a, refuses("2"), refuses("2"), is_silent("3")}, 3, 1, ""},
    {"ARefusalOfWhichTheLaterEntryIsSilent",
     {s1_a, refuses("2"), is_silent("2"), refuses("3")},
     3,
     1,
     "",
     true},
    {"ARefusalAtOneEntryOfASentinelThatNamesAMaster",
     {s1_a, refuses("1"), refuses("2"), is_silent("3")},
     3,
     1,
     ""}};

TEST(CountSentinels, ReturnsTheCountsOfTheTable) {
    for (const auto& row : rows) {
        const auto count = count_sentinels(row.answers);
        EXPECT_EQ(count.sentinels, row.sentinels) << row.name;
        EXPECT_EQ(count.named, row.named) << row.name;
        EXPECT_EQ(count.master, row.master) << row.name;
        EXPECT_EQ(count.refused_for_good, row.refused_for_good) << row.name;
    }
}

/// Three Sentinels in memory, and one query of all of them.
struct SentinelQuery : testing::Test {
    using Words = support::CommandReader::Words;

    /// The Sentinel answers the questions for its id, its INFO and the master with these bytes.
    void answer(std::size_t sentinel, const std::string& my_id, const std::string& info,
                const std::string& master) {
        network.server(sentinel).refuses_command = [=](const Words& words) {
            if (words.front() == "INFO") return info;
            if (words.front() != "SENTINEL") return std::string{};
            return words.at(1) == "MYID" ? my_id : master;
        };
    }
    Resolution::Found query() { return query(network.configs()); }
    Resolution::Found query(std::vector<NodeConfig> sentinels, std::chrono::milliseconds node_timeout = 50ms,
                            const std::stop_token& stop = {}) {
        const NodeConfig node{
            .endpoint = {.master = "orders"},
            .node_timeout = node_timeout,
            .sentinels = std::make_shared<const std::vector<NodeConfig>>(std::move(sentinels))};
        return query_sentinels(node, stop, network);
    }

    const std::string names_the_master = "*2\r\n$9\r\n127.0.0.1\r\n$4\r\n6379\r\n";
    const std::string forbidden = "-NOPERM this user has no permissions\r\n";
    test::MemoryNetwork network{3};
};

// A Sentinel before Redis 6.2 does not know MYID, but its INFO has an id.
TEST_F(SentinelQuery, CountsAnOldSentinelAtTwoAddressesOnce) {
    const std::string unknown_command = "-ERR Unknown sentinel subcommand 'MYID'\r\n";
    for (const std::size_t entry : {0U, 1U})
        answer(entry, unknown_command, "$11\r\nrun_id:S1\r\n\r\n", names_the_master);
    network.server(2).refuses = true;
    const auto found = query();
    EXPECT_TRUE(found.addresses.empty());
    EXPECT_THAT(found.error, testing::StartsWith("of 2 Sentinels 1 named a master"));
    answer(1, unknown_command, "$11\r\nrun_id:S2\r\n\r\n", names_the_master);
    EXPECT_EQ(query().addresses.size(), 1U) << "two Sentinels of three";
}

// The users may ask neither for the id nor for INFO. Then only the address identifies a Sentinel: the address
// that was connected, and not another address of the same name.
TEST_F(SentinelQuery, IdentifiesASentinelByTheAddressThatWasConnected) {
    for (const std::size_t entry : {0U, 1U}) answer(entry, forbidden, forbidden, names_the_master);
    network.server(2).refuses = true;
    auto configs = network.configs();
    configs[0] = test::at_two_addresses(configs[0]);
    EXPECT_EQ(query(configs).addresses.size(), 1U) << "two Sentinels of three";
    network.server(0).refuses = true;
    const auto found = query(configs);
    EXPECT_TRUE(found.addresses.empty());
    EXPECT_THAT(found.error, testing::StartsWith("of 2 Sentinels 1 named a master"));
}

TEST_F(SentinelQuery, CountsASentinelThatIsListedTwiceOnceEvenIfItRefusesConnections) {
    for (const std::size_t entry : {0U, 1U})
        answer(entry, "$2\r\nS" + std::to_string(entry) + "\r\n", "", names_the_master);
    network.server(2).refuses = true;
    auto configs = network.configs();
    configs.push_back(configs.back());
    EXPECT_EQ(query(configs).addresses.size(), 1U) << "two Sentinels of three";
}

// Neither an address of a Sentinel nor the node is to blame.
TEST_F(SentinelQuery, FailsForWantOfADescriptor) {
    for (std::size_t i = 0; i < 3; ++i)
        answer(i, "$2\r\nS" + std::to_string(i) + "\r\n", "", names_the_master);
    network.server(2).refuses = true;
    network.has_no_descriptor = true;
    auto configs = network.configs();
    EXPECT_EQ(query(configs).cause, shortage());
    for (const auto& it : configs) EXPECT_EQ(*it.first_address, 0U);
    network.has_no_descriptor = false;
    EXPECT_EQ(query(configs).addresses.size(), 1U);
    network.server(1).refuses = true;
    EXPECT_EQ(query(configs).cause, Errc::connection_failed);
}

/// Three Sentinels, of which the first has two addresses. Only the second address answers. Its server is
/// network.server(1). Another Sentinel is down, so the first one is needed.
struct SentinelWithADeadAddress : SentinelQuery {
    SentinelWithADeadAddress() {
        for (std::size_t i = 0; i < 3; ++i)
            answer(i, "$2\r\nS" + std::to_string(i) + "\r\n", "", names_the_master);
        configs[0] = test::at_two_addresses(configs[0]);
        configs[1].asks_sentinels = [] { return Resolution::known({.error = "unknown name"}); };
        configs[1].sentinels = configs[0].sentinels;
    }
    std::vector<NodeConfig> configs = network.configs();
};

TEST_F(SentinelWithADeadAddress, IsReachedByTheSameQueryIfTheAddressIsSilent) {
    network.server(0).unreachable = true;
    const auto took = [this] {
        return time_taken(network, [this] { EXPECT_EQ(query(configs).addresses.size(), 1U); });
    };
    EXPECT_GT(took(), 10ms);
    EXPECT_LT(took(), 10ms) << "the address that has answered is tried first";
}

TEST_F(SentinelWithADeadAddress, IsReachedByTheNextQueryIfTheServerThereIsFrozen) {
    network.server(0).paused = true;
    EXPECT_TRUE(query(configs).addresses.empty());
    EXPECT_EQ(query(configs).addresses.size(), 1U);
}

TEST_F(SentinelWithADeadAddress, KeepsAnAddressThatHadNoTimeToAnswer) {
    network.server(0).latency = 20ms;
    network.server(1).unreachable = true;
    std::stop_source stop;
    network.clock().after(5ms, [&] { stop.request_stop(); });
    EXPECT_TRUE(query(configs, 500ms, stop.get_token()).addresses.empty());
    EXPECT_LT(time_taken(network, [&] { EXPECT_EQ(query(configs, 500ms).addresses.size(), 1U); }), 70ms)
        << "it does not wait for the other address first";
}

// The permission has to be given by an operator, so this failure is not retried.
TEST_F(SentinelQuery, ReportsThatAMajorityForbidsTheQuestion) {
    answer(0, "$2\r\nS1\r\n", "", names_the_master);
    for (const std::size_t entry : {1U, 2U}) answer(entry, forbidden, forbidden, forbidden);
    EXPECT_EQ(query().cause, Errc::permission_denied);
    answer(1, "$2\r\nS2\r\n", "", names_the_master);
    EXPECT_EQ(query().addresses.size(), 1U) << "two Sentinels of three";
}

// The silent Sentinels can become a majority without help, so this failure is retried.
TEST_F(SentinelQuery, ReportsATransientFailureIfAMinorityForbidsTheQuestion) {
    answer(0, forbidden, forbidden, forbidden);
    for (const std::size_t entry : {1U, 2U}) network.server(entry).refuses = true;
    EXPECT_EQ(query().cause, Errc::connection_failed);
}

TEST_F(SentinelQuery, NamesAServerInPlaceOfASentinel) {
    const std::string unknown = "-ERR unknown command 'SENTINEL', with args beginning with: 'MYID'\r\n";
    for (const std::size_t entry : {0U, 1U, 2U}) answer(entry, unknown, "$0\r\n\r\n", unknown);
    EXPECT_THAT(
        query().error,
        testing::EndsWith("if a server and no Sentinel answers at this port, write redis://HOST:PORT"));
}

TEST_F(SentinelQuery, NamesTheSentinelsThatAreSilent) {
    answer(0, "$2\r\nS1\r\n", "", names_the_master);
    network.server(1).paused = true;
    network.server(2).unreachable = true;
    EXPECT_THAT(query().error,
                testing::AllOf(testing::HasSubstr("127.0.0.1:2: timed out (while connecting)"),
                               testing::HasSubstr("127.0.0.1:3: timed out (while connecting)")));
}

// There is no answer left to wait for.
TEST_F(SentinelQuery, EndsAtOnceIfEachSentinelHasFailed) {
    for (const std::size_t entry : {0U, 1U, 2U}) network.server(entry).refuses = true;
    EXPECT_LT(time_taken(network, [this] { EXPECT_TRUE(query().addresses.empty()); }), 10ms);
}

// A password has to be given by an operator, too.
TEST_F(SentinelQuery, ReportsThatAMajorityDemandsAPassword) {
    const std::string demand = "-NOAUTH Authentication required.\r\n";
    for (const std::size_t entry : {0U, 1U, 2U}) answer(entry, demand, demand, demand);
    EXPECT_EQ(query().cause, Errc::authentication_failed);
}

// Clients of the Sentinels can leave without help of an operator, so this is no failed login.
TEST_F(SentinelQuery, ReportsATransientFailureIfAMajorityHasTooManyClients) {
    auto sentinels = network.configs();
    for (auto& it : sentinels) it.endpoint.password = "theirs";
    for (const std::size_t entry : {0U, 1U, 2U}) network.server(entry).last_words = test::too_many_clients;
    const auto found = query(sentinels);
    EXPECT_EQ(found.cause, Errc::connection_failed);
    EXPECT_THAT(found.error, testing::HasSubstr("(ERR max number of clients reached)"));
}

TEST_F(SentinelQuery, ReportsWhatIsNotAnAddress) {
    for (const std::string port : {"$1\r\n0", "$5\r\n6379x", "$5\r\n65536", "$0\r\n"}) {
        for (const std::size_t entry : {0U, 1U, 2U}) {
            const auto id = "$1\r\n" + std::to_string(entry) + "\r\n";
            answer(entry, id, "", "*2\r\n$9\r\n127.0.0.1\r\n" + port + "\r\n");
        }
        const auto found = query();
        EXPECT_TRUE(found.addresses.empty()) << port;
        EXPECT_THAT(found.error, testing::HasSubstr("something that is not an address: 127.0.0.1")) << port;
    }
}

// The answers must be recent when the connection to the server is begun.
TEST_F(SentinelQuery, LastsForASecondAtMost) {
    for (const std::size_t entry : {0U, 1U, 2U}) network.server(entry).paused = true;
    EXPECT_EQ(time_taken(network, [&] { EXPECT_TRUE(query(network.configs(), 5s).addresses.empty()); }), 1s);
}

TEST_F(SentinelQuery, EndsWhenItIsStopped) {
    for (const std::size_t entry : {0U, 1U, 2U}) network.server(entry).paused = true;
    std::stop_source stop;
    network.clock().after(10ms, [&] { stop.request_stop(); });
    const auto start = network.clock().now();
    EXPECT_TRUE(query(network.configs(), 500ms, stop.get_token()).addresses.empty());
    EXPECT_EQ(network.clock().now() - start, 10ms);
}

}  // namespace
}  // namespace redlock::sentinel_query_test
