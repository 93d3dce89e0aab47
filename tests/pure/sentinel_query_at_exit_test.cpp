// The thread that queries Sentinels over TLS, when the process is exiting.
#include "live/forked_child.hpp"
#include "memory_network.hpp"
#include "support/certificates.hpp"
#include "support/temporary_directory.hpp"

#include "redis/sentinel_query.hpp"

#include <openssl/crypto.h>

#include <memory>
#include <stop_token>
#include <string>
#include <vector>

namespace redlock::test::sentinel_query_at_exit_test {
namespace {

// If the thread ended, OpenSSL would free what it keeps for the thread, while another thread frees all of
// OpenSSL. The owner of the query asks the thread to stop when this is over.
TEST(SentinelQueryAtExit, DoesNotReturnBeforeItIsStopped) {
    const support::TemporaryDirectory directory;
    const support::Authority authority{directory / "authority"};
    ForkedChild child{[&](auto report) {
        MemoryNetwork network{1};
        network.server(0).refuses = true;
        Endpoint sentinel{.host = "127.0.0.1", .port = 1};
        sentinel.tls = {.enabled = true, .ca_file = authority.certificate()};
        const NodeConfig node{.endpoint = {.master = "orders"},
                              .node_timeout = 50ms,
                              .sentinels = std::make_shared<const std::vector<NodeConfig>>(
                                  std::vector{NodeConfig::of(sentinel, 50ms)})};
        const auto query_for = [&](Clock::duration until_stop) {
            std::stop_source stop;
            const auto start = network.clock().now();
            network.clock().after(until_stop, [&] { stop.request_stop(); });
            (void)query_sentinels(node, stop.get_token(), network);
            const auto took = network.clock().now() - start;
            network.pass(until_stop);
            return std::string{took < until_stop ? "returned" : "stayed"};
        };
        report(query_for(3h));
        ::OPENSSL_cleanup();
        report(query_for(3h));
    }};
    EXPECT_EQ(child.receive(), "returned") << "OpenSSL is in use";
    EXPECT_EQ(child.receive(), "stayed");
}

}  // namespace
}  // namespace redlock::test::sentinel_query_at_exit_test
