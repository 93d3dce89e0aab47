// A process may end at any time while other threads use TLS: by the end of main() and by exit().
#include "support/child_process.hpp"
#include "tls_world.hpp"

#include <string>
#include <vector>

namespace redlock::test::exit_live_test {
namespace {

using support::ChildProcess;

struct AnExitInTls : TlsWorld, testing::WithParamInterface<const char*> {
    TlsServer server{good, authority};
    std::string host = "127.0.0.1:" + std::to_string(server.port());
    std::string fields = "?ca_file=" + authority.certificate().string();

    /// Several inquiries at once, so that some thread is inside OpenSSL at most times.
    std::vector<std::string> nodes_with_sentinels() const {
        std::vector<std::string> nodes;
        for (int i = 0; i < 5; ++i)
            nodes.push_back("rediss+sentinel://" + host + "," + host + "," + host + "/master" +
                            std::to_string(i) + fields + "&server_name=db");
        return nodes;
    }
};

INSTANTIATE_TEST_SUITE_P(Tls, AnExitInTls, testing::Values("automatic", "static", "early", "never"),
                         [](const auto& it) { return std::string{it.param}; });

TEST_P(AnExitInTls, EndsTheProcessNormally) {
    const std::string mode = GetParam();
    const auto nodes = nodes_with_sentinels();
    for (int run = 0; run < 40; ++run) {
        ChildProcess process{
            {.words = support::joined({REDLOCK_EXITS_IN_TLS, mode, std::to_string(1 + run % 20)}, nodes)}};
        ASSERT_EQ(process.wait(), 0) << "in run " << run;
    }
}

}  // namespace
}  // namespace redlock::test::exit_live_test
