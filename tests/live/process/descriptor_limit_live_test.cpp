// A process that has no descriptor left for another connection. Its threads go on with the connections that
// they have.
#include "live/descriptor_limit.hpp"
#include "live/forked_child.hpp"
#include "live/live_world.hpp"
#include "support/in_threads.hpp"
#include "support/loopback_name.hpp"

#include <signal.h>

#include <string>
#include <thread>

namespace redlock::test::descriptor_limit_live_test {
namespace {

struct Case {
    const char* name;
    rlim_t further;           ///< descriptors that are left when the other threads begin their rounds
    std::size_t threads = 1;  ///< so many. If they are more than the processors, they share a lane.
    bool one_is_frozen = false;
    bool by_name = false;  ///< the servers have names, which must be resolved
};

class AtTheLimitOfDescriptors : public testing::TestWithParam<Case> {};
INSTANTIATE_TEST_SUITE_P(Cases, AtTheLimitOfDescriptors,
                         testing::Values(Case{"None", 0}, Case{"One", 1}, Case{"Two", 2},
                                         Case{"NoneForManyThreads", 0, 64},
                                         Case{"NoneAndAFrozenServer", 0, 1, true},
                                         Case{"OneAndAFrozenServer", 1, 1, true},
                                         Case{"NoneForServersWithNames", 0, 64, false, true}),
                         by_name);

/// Rounds that begin while another thread makes a round have other lanes, which get too few connections here.
/// Later rounds must not use these lanes, and no server counts as failed.
TEST_P(AtTheLimitOfDescriptors, UsesTheConnectionsThatItHas) {
    Cluster servers{3};
    auto uris = servers.uris();
    if (GetParam().by_name && !support::localhost_is_known()) GTEST_SKIP();
    if (GetParam().by_name)
        for (std::size_t i = 0; i < 3; ++i) uris[i] = "localhost:" + std::to_string(servers[i].port());
    const auto send = [&](std::size_t server, int signal) { ::kill(servers[server].pid(), signal); };
    const ForkedChild child{[&](auto report) {
        RedisNodes nodes{uris, {.node_timeout = 2s}};
        Lock held{nodes, "held", {.ttl = 1min}};
        Lock other{nodes, "other", {.ttl = 1min}};
        const auto extends = [&] { return count(held.extend(), Vote::granted) == 3; };
        if (!held.acquire_for(10s) || !wait_until(extends)) return report("no lock");
        limit_descriptors(GetParam().further);
        for (const std::size_t server : {0U, 1U}) send(server, SIGSTOP);
        {
            const std::jthread round{[&] { (void)held.extend(); }};
            std::this_thread::sleep_for(50ms);
            in_threads(GetParam().threads, [&](std::size_t i) {
                (void)Lock{nodes, "of thread " + std::to_string(i)}.try_acquire();
            });
            for (const std::size_t server : {0U, 1U}) send(server, SIGCONT);
        }
        if (!wait_until(extends)) return report("no extension");  // the servers go on
        if (GetParam().one_is_frozen) send(2, SIGSTOP);
        std::size_t acquired = 0;
        std::size_t everywhere = 0;
        for (int i = 0; i < 40; ++i) {
            const auto result = other.try_acquire();
            if (result) ++acquired;
            if (count(result, Vote::granted) == 3) ++everywhere;
            (void)other.release();
        }
        report(std::to_string(acquired) + " acquired, " + std::to_string(everywhere) + " everywhere");
    }};
    EXPECT_EQ(child.receive(),
              GetParam().one_is_frozen ? "40 acquired, 0 everywhere" : "40 acquired, 40 everywhere");
}

/// A node to which there is no connection yet.
struct NewNode {
    const char* name;
    rlim_t further;      ///< descriptors that are left
    const char* before;  ///< the address up to the port
    const char* behind = "";
};

class WithoutADescriptor : public testing::TestWithParam<NewNode> {};
INSTANTIATE_TEST_SUITE_P(
    Nodes, WithoutADescriptor,
    testing::Values(NewNode{"Address", 0, "127.0.0.1:"}, NewNode{"Name", 0, "localhost:"},
                    NewNode{"NameOnceAThreadResolvesIt", 2, "localhost:"},
                    NewNode{"Sentinel", 0, "redis+sentinel://127.0.0.1:", "/orders"},
                    NewNode{"SentinelOnceAThreadAsksIt", 2, "redis+sentinel://127.0.0.1:", "/orders"},
                    NewNode{"SentinelWithAName", 0, "redis+sentinel://localhost:", "/orders"}),
    by_name);

TEST_P(WithoutADescriptor, NoServerIsToBlame) {
    const RedisServer server;
    const ForkedChild child{[&](auto report) {
        FailureCount observer;
        RedisNodes nodes{{GetParam().before + std::to_string(server.port()) + GetParam().behind},
                         {.node_timeout = 5s, .observer = &observer}};
        limit_descriptors(GetParam().further);
        const auto result = Lock{nodes, "resource"}.try_acquire();
        report(result.nodes()[0].cause.message() + ", " + std::to_string(observer.failures) + " failures, " +
               result.nodes()[0].detail);
    }};
    EXPECT_THAT(child.receive(), testing::StartsWith("connection failed, 0 failures"));
}

}  // namespace
}  // namespace redlock::test::descriptor_limit_live_test
