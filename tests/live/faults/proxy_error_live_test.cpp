// Rule D7: proxies report by an error of their own that their server is down. Nobody knows all words of such
// errors, so an unknown error is worth a retry until the deadline.
#include "fault_world.hpp"

#include <thread>

namespace redlock::test {
namespace {

/// While the servers restart, the proxies answer for them as twemproxy does.
struct AProxyWhoseServerRestarts : testing::TestWithParam<std::size_t>, FaultWorld {
    AProxyWhoseServerRestarts() : FaultWorld(GetParam()) {
        for (std::size_t node = 0; node < size(); ++node) {
            link(node).record();
            link(node).answer_commands("-ERR Connection refused\r\n");
            (*this)[node].kill();
        }
    }

    /// Restarts all servers after this time, and calls `act` meanwhile.
    template <class Action>
    auto while_they_restart(std::chrono::nanoseconds time, Action act) {
        std::jthread restart{[this, time] {
            std::this_thread::sleep_for(time);
            for (std::size_t node = 0; node < size(); ++node) (*this)[node].restart(), link(node).heal();
        }};
        return act();
    }

    Lock mine = lock();
};

INSTANTIATE_TEST_SUITE_P(Nodes, AProxyWhoseServerRestarts, testing::Values(1U, 3U));

TEST_P(AProxyWhoseServerRestarts, LetsTheCallerWait) {
    const auto result = while_they_restart(2s, [&] { return mine.acquire_for(5min); });
    EXPECT_THAT(result, Succeeds());
    EXPECT_GT(result.attempts(), 1);
    // The pauses are the usual ones, between 100 and 200 ms, so that the proxy is not flooded.
    EXPECT_LE(link(0).commands().size(), 5U * static_cast<std::size_t>(result.attempts()));
}

TEST_P(AProxyWhoseServerRestarts, IsReportedWithItsWordsIfItTakesTooLong) {
    const auto result = mine.acquire_for(1s);
    EXPECT_EQ(result.error(), Errc::no_quorum);
    EXPECT_THAT(result.message(), testing::HasSubstr("unknown error (ERR Connection refused)"));
    // In 1 s there is room for 10 pauses.
    EXPECT_LE(result.attempts(), 12);
}

}  // namespace
}  // namespace redlock::test
