// A release whose connection is still being made when its process exits or forks.
#include "live/forked_child.hpp"
#include "unsent_release_world.hpp"

#include <unistd.h>

#include <cstdlib>
#include <deque>
#include <filesystem>
#include <fstream>
#include <functional>

#if defined(__has_feature)  // clang
#if __has_feature(address_sanitizer)
#define REDLOCK_ADDRESS_SANITIZER
#endif
#elif defined(__SANITIZE_ADDRESS__)
#define REDLOCK_ADDRESS_SANITIZER
#endif

namespace redlock::test::unsent_release_at_exit_live_test {
namespace {

/// Slows the proxies down when a child has reported that it is ready. The proxies run in the parent process
/// only.
class UnsentReleaseOfAChild : public UnsentRelease {
protected:
    /// `body(slowed)` acquires, calls `slowed` and unlocks.
    template <class Body>
    auto in_child(Body body) {
        return [this, body](auto report) {
            body([&] {
                report("acquired");
                EXPECT_TRUE(wait_until([&] { return exists(slowed_down); }));
            });
        };
    }
    template <class SlowDown>
    void slow_down_when_ready(ForkedChild& child, SlowDown slow_down) {
        ASSERT_EQ(child.receive(), "acquired");
        slow_down();
        std::ofstream{slowed_down};
    }
    void expect_clean_after_exit(std::function<void(std::function<void()>)> body) {
        ForkedChild child{[&](auto report) {
            in_child(body)(report);
            std::exit(0);
        }};
        slow_down_when_ready(child, [&] { slow_down(); });
        EXPECT_EQ(child.wait(), 0);
        expect_clean_in_time();
    }

    const std::filesystem::path slowed_down = directory / "slowed down";
};

TEST_F(UnsentReleaseOfAChild, IsSentIfTheProcessExitsAtOnce) {
    expect_clean_after_exit([&](auto slowed) {
        auto nodes = make_nodes();
        auto locks = acquire_two(nodes);
        slowed();
        for (auto& lock : locks) lock.unlock();
    });
}

TEST_F(UnsentReleaseOfAChild, IsSentAtTheExitByStaticNodes) {
    expect_clean_after_exit([&](auto slowed) {
        static auto nodes = make_nodes();
        static auto locks = acquire_two(nodes);
        slowed();
        locks.front().unlock();
    });
}

// The thread that sends the release uses OpenSSL, which ends with the process.
TEST_F(UnsentReleaseOfAChild, IsSentAtTheExitByNodesThatAreNeverDestroyed) {
    expect_clean_after_exit([&](auto slowed) {
        static auto* const nodes = new RedisNodes{link_endpoints, options};
        auto locks = acquire_two(*nodes);
        slowed();
        for (auto& lock : locks) lock.unlock();
    });
}

// D10. A child must not send what its parent has not sent. The thread of the parent that tries to send it
// allocates memory at any time, also during the fork(). AddressSanitizer of clang 14 does not lock its
// allocator during a fork(), so a child could wait for such a lock for ever.
TEST_F(UnsentReleaseOfAChild, IsNotSentByAForkedChild) {
#if defined(REDLOCK_ADDRESS_SANITIZER)
    GTEST_SKIP() << "the allocator of AddressSanitizer may be locked in the child for ever";
#endif
    const auto black_hole = [&] {
        for (auto& link : links) {
            link.reset();
            link.black_hole();
        }
    };
    ForkedChild parent{[&](auto report) {
        auto nodes = make_nodes();
        std::deque<Lock> locks;
        in_child([&](auto slowed) {
            locks = acquire_two(nodes);
            slowed();
            for (auto& lock : locks) lock.unlock();
        })(report);
        if (::fork() != 0) ::_exit(0);
        report("forked");
        EXPECT_TRUE(wait_until([&] { return !exists(slowed_down); }));
        Lock mine{nodes, "mine", {.ttl = 10min}};
        report(mine.acquire() ? "held" : "not held");
        report(mine.release() ? "released" : "not released");
        report("end");
        std::exit(0);
    }};
    slow_down_when_ready(parent, black_hole);
    EXPECT_EQ(parent.receive(), "forked");
    EXPECT_EQ(parent.wait(), 0);
    for (auto& link : links) link.heal();
    remove(slowed_down);
    EXPECT_EQ(parent.receive(), "held");
    EXPECT_EQ(parent.receive(), "released");
    EXPECT_EQ(parent.receive(), "end");
    EXPECT_EQ(parent.receive(), "") << "it has ended";
    for (const auto* const resource : {"a", "b"})
        for (auto& server : servers) EXPECT_NE(holder(*server, resource), "(nil)");
}

}  // namespace
}  // namespace redlock::test::unsent_release_at_exit_live_test
