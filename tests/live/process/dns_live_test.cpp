// Rule D5: names are resolved, all their addresses are tried, and no resolution blocks beyond the deadline.
#include "fake_dns.hpp"
#include "silent_address.hpp"
#include "support/process_state.hpp"

#include "live/forked_child.hpp"
#include "live/live_world.hpp"
#include "live/loop/loop_client.hpp"
#include "pure/memory_network.hpp"

#include "os/resolution.hpp"
#include "redis/sentinel_query.hpp"
#include "tool/doctor/admin_connection.hpp"

#include <atomic>
#include <chrono>
#include <csignal>
#include <deque>
#include <memory>
#include <string>
#include <thread>
#include <vector>

namespace redlock::test::dns_live_test {
namespace {

using support::blocked_signals;
using support::descriptors;
using support::threads;
using tool::AdminConnection;

/// A limit far above the expected time, so that it holds on a busy machine.
constexpr auto soon = 5s;

/// Returns the number of threads before a resolution, including those that a sanitizer starts with the first
/// thread.
std::size_t tasks_before() {
    std::thread{[] {}}.join();
    return threads().size();
}

std::string at(const std::string& name, const RedisServer& server) {
    return name + ":" + std::to_string(server.port());
}

/// The addresses of a name, and its addresses after a failed attempt.
struct Addresses {
    std::string name;
    std::vector<std::string> first;
    std::vector<std::string> later{};
};

struct AHostName : testing::TestWithParam<Addresses> {};
INSTANTIATE_TEST_SUITE_P(
    Dns, AHostName,
    testing::Values(Addresses{"HasADeadAddressBeforeTheLivingOne", {"127.0.0.2", "127.0.0.1"}},
                    // "localhost" often resolves like this. A machine without IPv6 refuses the first address
                    // with another error.
                    Addresses{"HasAnIpv6AddressBeforeTheLivingOne", {"::1", "127.0.0.1"}},
                    // For example, IPv6 packets may be lost on their route.
                    Addresses{"HasASilentAddressBeforeTheLivingOne", {"127.0.0.3", "127.0.0.1"}},
                    Addresses{"MovesAwayFromADeadAddress", {"127.0.0.2"}, {"127.0.0.1"}},
                    // For example, a machine was replaced.
                    Addresses{"MovesAwayFromASilentAddress", {"127.0.0.3"}, {"127.0.0.1"}}),
    by_name);

TEST_P(AHostName, FindsItsServer) {
    const RedisServer server;
    const SilentAddress silent{"127.0.0.3", server.port()};
    set_addresses("name.test", GetParam().first);
    RedisNodes nodes{{at("name.test", server)}, {.node_timeout = 200ms}};
    Lock lock{nodes, "resource"};
    if (!GetParam().later.empty()) {
        EXPECT_FALSE(lock.try_acquire());
        set_addresses("name.test", GetParam().later);
    }
    EXPECT_THAT(lock.acquire_for(10s), Succeeds());
}

/// The addresses of a name, of which the first is silent, and the last one leads to the server.
struct AHostNameWithASilentAddress : testing::TestWithParam<Addresses> {};
INSTANTIATE_TEST_SUITE_P(Dns, AHostNameWithASilentAddress,
                         testing::Values(Addresses{"BeforeTheLivingOne", {"127.0.0.3", "127.0.0.1"}},
                                         Addresses{"BeforeARefusal", {"127.0.0.3", "127.0.0.2", "127.0.0.1"}},
                                         Addresses{"InBothFamilies", {"127.0.0.3", "::1", "127.0.0.1"}},
                                         Addresses{"BeforeAnother", {"127.0.0.3", "127.0.0.3", "127.0.0.1"}}),
                         by_name);

// A command such as `redlock release` makes one round, and ends.
TEST_P(AHostNameWithASilentAddress, FindsItsServerInTheFirstRound) {
    const RedisServer server;
    const SilentAddress silent{"127.0.0.3", server.port()};
    set_addresses("name.test", GetParam().first);
    const std::vector<std::string> resource{"resource"};
    for (const auto verb : {Verb::set_if_absent, Verb::query, Verb::compare_and_delete}) {
        RedisNodes nodes{{at("name.test", server)}, {.node_timeout = 2s}};
        const auto tally =
            nodes.ask({.command = {.verb = verb, .resources = resource, .owner = "owner", .ttl = 10s}});
        EXPECT_EQ(tally[0].vote, Vote::granted) << tally[0].cause.message() << ", " << tally[0].detail;
    }
    LoopClient client{std::vector{at("name.test", server)}, {.node_timeout = 2s}};
    AsyncLock lock{client.of_loop, "resource"};
    EXPECT_THAT(client.try_acquire(lock), Succeeds());
    EXPECT_THAT(client.release(lock), Succeeds());
}

// It has no later round in which it could begin with another address.
TEST_P(AHostName, LeadsAnAdminConnectionToItsServer) {
    const RedisServer server;
    const SilentAddress silent{"127.0.0.3", server.port()};
    auto addresses = GetParam().first;
    addresses.insert(addresses.end(), GetParam().later.begin(), GetParam().later.end());
    set_addresses("name.test", addresses);
    AdminConnection admin{Endpoint::parse(at("name.test", server)), 2s};
    const auto answer = admin.connect();
    EXPECT_TRUE(answer) << answer.cause.message() << " (" << answer.detail << ")";
}

TEST(AnAdminConnection, FailsInTimeIfAllAddressesAreSilent) {
    const RedisServer server;
    const SilentAddress silent{"127.0.0.3", server.port()};
    set_addresses("name.test", {"127.0.0.3", "127.0.0.3"});
    AdminConnection admin{Endpoint::parse(at("name.test", server)), 200ms};
    const auto answer = admin.connect();
    EXPECT_EQ(answer.cause, Errc::timed_out);
    EXPECT_THAT(answer.took, testing::Ge(200ms));
    EXPECT_THAT(answer.took, Le(soon));
}

// The nodes that have resolved the name before keep their addresses. Later ones must not use these, because
// the name may lead elsewhere by now.
TEST(AResolvedName, IsLookedUpAgainByOtherNodes) {
    const RedisServer server;
    set_addresses("name.test", {"127.0.0.1"});
    RedisNodes before{{at("name.test", server)}, {.node_timeout = 2s}};
    EXPECT_THAT((Lock{before, "before"}.acquire_for(10s)), Succeeds());
    const auto looked_up = lookups_of("name.test");
    RedisNodes after{{at("name.test", server)}, {.node_timeout = 2s}};
    EXPECT_THAT((Lock{after, "after"}.acquire_for(10s)), Succeeds());
    EXPECT_EQ(lookups_of("name.test"), looked_up + 1);
}

// For example, a hosting service moves the name to the server that it has promoted.
TEST(AResolvedName, IsLookedUpAgainIfItsServerIsAReplica) {
    const RedisServer former;
    const RedisServer promoted;
    promoted.command({"CONFIG", "SET", "bind", "127.0.0.2"});
    promoted.command({"CONFIG", "SET", "port", std::to_string(former.port())});
    set_addresses("name.test", {"127.0.0.1"});
    RedisNodes nodes{{at("name.test", former)}, {.node_timeout = 2s}};
    Lock lock{nodes, "resource"};
    EXPECT_THAT(lock.acquire_for(10s), Succeeds());
    former.command({"REPLICAOF", "127.0.0.1", "1"});
    set_addresses("name.test", {"127.0.0.2"});
    EXPECT_FALSE(lock.release());
    EXPECT_TRUE(wait_until([&] { return static_cast<bool>(lock.try_acquire()); }));
    EXPECT_EQ(promoted.command({"EXISTS", "resource"}), "1");
}

TEST(AResolvedName, IsLookedUpOnceASecondIfItsServerStaysAReplica) {
    const RedisServer server;
    set_addresses("name.test", {"127.0.0.1"});
    RedisNodes nodes{{at("name.test", server)}, {.node_timeout = 2s}};
    Lock lock{nodes, "resource"};
    EXPECT_THAT(lock.acquire_for(10s), Succeeds());
    EXPECT_TRUE(lock.release());
    const auto before = lookups_of("name.test");
    const auto start = boot_clock().now();
    server.command({"REPLICAOF", "127.0.0.1", "1"});
    for (int i = 0; i < 50; ++i) EXPECT_FALSE(lock.try_acquire());
    const auto seconds = std::chrono::ceil<std::chrono::seconds>(boot_clock().now() - start).count();
    EXPECT_LE(lookups_of("name.test") - before, static_cast<std::size_t>(seconds) + 1);
}

/// One node with a name, and two healthy servers.
class AHostNameAmongThree : public InEachRound {
protected:
    std::vector<std::string> with(const std::string& name) const {
        return {at(name, servers_[2]), servers_[0].uri(), servers_[1].uri()};
    }
    NodesOptions options() const { return {.node_timeout = 1s, .round = GetParam()}; }

    std::deque<RedisServer> servers_ = std::deque<RedisServer>(3);
};

INSTANTIATE_TEST_SUITE_P(EachRound, AHostNameAmongThree, each_round(), by_round);

// A3
TEST_P(AHostNameAmongThree, DoesNotAffectTheOtherNodesIfItIsUnknown) {
    set_addresses("unknown.test", {});
    RedisNodes nodes{with("unknown.test"), options()};
    for (int time = 0; time < 10; ++time) {
        Lock lock{nodes, "resource"};
        const auto start = boot_clock().now();
        const auto result = lock.try_acquire();
        EXPECT_TRUE(result) << result.message();
        EXPECT_THAT(boot_clock().now() - start, Le(soon));
        EXPECT_FALSE(result.nodes()[0].sent);
        if (time == 0 && GetParam() == Round::sequential) {
            EXPECT_THAT(result, Reports(0, Errc::connection_failed));
            EXPECT_FALSE(result.nodes()[0].detail.empty()) << "the resolver's own words";
        }
        EXPECT_TRUE(lock.release());
    }
}

// A3
TEST_P(AHostNameAmongThree, DoesNotAffectTheOtherNodesIfItsLookUpHangs) {
    const auto before = tasks_before();
    HangingName hanging{"127.0.0.1"};
    RedisNodes nodes{with(hanging.name()), options()};
    Lock lock{nodes, "resource"};
    for (int time = 0; time < 10; ++time) {
        const auto start = boot_clock().now();
        const auto result = lock.try_acquire();
        EXPECT_TRUE(result) << result.message();
        EXPECT_TRUE(lock.release());
        EXPECT_THAT(boot_clock().now() - start, Le(soon));
    }
    EXPECT_EQ(lookups_of(hanging.name()), 1U) << "there is one thread, however many rounds wait for it";
    hanging.resolve();
    EXPECT_TRUE(wait_until([&] {  // then it votes like the others
        const auto result = lock.try_acquire();
        return lock.release() && result.nodes()[0].vote == Vote::granted;
    }));
    EXPECT_TRUE(wait_until([&] { return threads().size() <= before; })) << "the thread ends with the look-up";
}

TEST(HangingLookUps, DoNotExceedTheDeadlineAndAreReportedAsTimedOut) {
    HangingName hanging{"127.0.0.1"};
    const auto& name = hanging.name();
    RedisNodes nodes{{name + ":1", name + ":2", name + ":3"}, {.node_timeout = 100ms}};
    Lock lock{nodes, "resource"};
    const auto start = boot_clock().now();
    const auto single = lock.try_acquire();
    EXPECT_EQ(single.error(), Errc::no_quorum);
    EXPECT_EQ(single.nodes()[0].cause, Errc::timed_out) << single.message();
    EXPECT_EQ(single.nodes()[0].detail, "while connecting: the name of the host is not resolved yet");
    EXPECT_FALSE(lock.acquire_for(300ms));
    EXPECT_THAT(boot_clock().now() - start, Le(soon));
}

// A service may create new nodes for every job. It must not accumulate threads while DNS hangs, and
// destroying the nodes must not wait for DNS.
TEST(HangingLookUps, UseOneThreadForEachNameHoweverManyNodesAreCreated) {
    const auto before = tasks_before();
    {
        HangingName hanging{"127.0.0.1"};
        for (int time = 0; time < 50; ++time) {
            RedisNodes nodes{{hanging.name() + ":1"}, {.node_timeout = 1ms}};
            Lock lock{nodes, "resource"};
            EXPECT_FALSE(lock.try_acquire());
        }
        EXPECT_THAT(threads().size(), Le(before + 1));
        EXPECT_EQ(lookups_of(hanging.name()), 1U);
    }
    EXPECT_TRUE(wait_until([&] { return threads().size() <= before; })) << "the thread ends with the look-up";
}

// The answers of the Sentinels must be recent when the connection to the server is begun.
TEST(HangingLookUps, DoNotProlongAQueryOfTheSentinels) {
    HangingName hanging{"127.0.0.1"};
    MemoryNetwork network{1};
    const auto length = std::to_string(hanging.name().size());
    const auto reply = "*2\r\n$" + length + "\r\n" + hanging.name() + "\r\n$4\r\n6379\r\n";
    network.server(0).answers["SENTINEL"] = reply;
    const auto start = network.clock().now();
    const auto found =
        query_sentinels({.endpoint = {.master = "orders"},
                         .node_timeout = 50ms,
                         .sentinels = std::make_shared<const std::vector<NodeConfig>>(network.configs())},
                        {}, network);
    EXPECT_THAT(found.error, HasSubstr("was not resolved in time: " + hanging.name()));
    EXPECT_EQ(network.clock().now() - start, 50ms);
}

/// Returns how many threads of this process do not block SIGTERM.
std::ptrdiff_t threads_that_handle_sigterm() {
    return std::ranges::count_if(
        threads(), [](pid_t thread) { return (blocked_signals(thread) & 1ULL << (SIGTERM - 1)) == 0; });
}

// A signal is meant for the threads of the user.
TEST(ThreadsOfResolutions, HandleNoSignals) {
    const HangingName hanging{"127.0.0.1"};
    const auto before = threads_that_handle_sigterm();
    std::atomic<bool> runs{false};
    const auto name = Resolution::of_host(hanging.name(), 1);
    const auto sentinels = Resolution::in_thread([&](const std::stop_token& stop) {
        runs = true;
        boot_clock().sleep_until(Clock::never(), stop);
        return Resolution::Found{};
    });
    // The C library blocks the signals of a thread that begins.
    EXPECT_TRUE(wait_until([&] { return runs && lookups_of(hanging.name()) > 0; }));
    EXPECT_EQ(threads_that_handle_sigterm(), before);
}

TEST(AResolution, LeavesNoDescriptorOpen) {
    const auto before = descriptors().size();
    const auto find = [](const std::stop_token&) { return Resolution::Found{}; };
    Resolution::in_thread(find).reset();
    EXPECT_THAT(descriptors().size(), Le(before));
}

// D10. The thread that resolves a name for the parent does not exist in a child.
TEST(HangingLookUps, AreRepeatedInTheChildAfterAFork) {
    RedisServer server;
    HangingName hanging{"127.0.0.1"};
    RedisNodes nodes{{at(hanging.name(), server)}, {.node_timeout = 1ms}};
    EXPECT_FALSE((Lock{nodes, "resource"}.try_acquire()));
    ForkedChild child{[&](auto report) {
        hanging.resolve();
        RedisNodes own{at(hanging.name(), server)};
        const auto result = Lock{own, "resource"}.acquire_for(10s);
        report(result ? "acquired" : result.message());
    }};
    EXPECT_EQ(child.receive(), "acquired");
}

}  // namespace
}  // namespace redlock::test::dns_live_test
