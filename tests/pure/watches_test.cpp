// The descriptors that an event loop watches for the library.
#include "loop/watches.hpp"

#include <redlock/event_loop.hpp>

#include <fcntl.h>
#include <unistd.h>
#include "memory_network.hpp"

#include <array>
#include <map>
#include <new>
#include <vector>

namespace redlock::test::watches_test {
namespace {

/// Knows the descriptors that are watched. A descriptor stays in `known` until it is forgotten.
class RecordingLoop final : public EventLoop {
public:
    void watch(int fd, bool reads, bool writes) override {
        if (fd == cannot_watch) throw std::bad_alloc{};
        known[fd] = reads || writes;
    }
    void forget(int fd) noexcept override { known.erase(fd); }
    void wake_after(std::chrono::nanoseconds) noexcept override {}

    std::vector<int> watched() const {
        std::vector<int> result;
        for (const auto& [fd, watched] : known)
            if (watched) result.push_back(fd);
        return result;
    }
    std::map<int, bool> known{};
    int cannot_watch = -1;
};

struct WatchesTest : testing::Test {
    ~WatchesTest() override {
        for (const int fd : pipe) ::close(fd);
    }

    static std::array<int, 2> make_pipe() {
        std::array<int, 2> ends{-1, -1};
        EXPECT_EQ(::pipe2(ends.data(), O_CLOEXEC), 0);
        return ends;
    }

    const std::array<int, 2> pipe = make_pipe();
    RecordingLoop events;
    ManualClock clock;
    loop::Watches watches{events};
    MemoryServer server;
    MemorySocket::Open open;
    MemorySocket socket{open, pipe[0], server, clock, 1ms};
    const std::array<PollEntry, 1> of_socket{PollEntry{.socket = &socket, .fd = pipe[0]}};
    const std::array<PollEntry, 1> of_name{PollEntry{.fd = pipe[0]}};  // of a name that is being resolved
};

TEST_F(WatchesTest, ASocketIsWatchedUntilNobodyWaits) {
    watches.watch(of_socket);
    EXPECT_THAT(events.watched(), ElementsAre(pipe[0]));
    watches.watch({});
    EXPECT_THAT(events.watched(), IsEmpty());
}

TEST_F(WatchesTest, ASocketIsWatchedAgainAfterItWasReady) {
    watches.watch(of_socket);
    EXPECT_EQ(watches.on_ready(pipe[0]), pipe[0]);
    events.known.clear();  // the loop does not watch it any more
    watches.watch(of_socket);
    EXPECT_THAT(events.watched(), ElementsAre(pipe[0]));
    EXPECT_EQ(watches.on_ready(pipe[1]), -1) << "it is not watched";
}

TEST_F(WatchesTest, ASocketIsForgottenBeforeItIsClosed) {
    watches.watch(of_socket);
    watches.forget(pipe[0]);
    EXPECT_TRUE(events.known.empty());
    watches.watch(of_socket);
    EXPECT_THAT(events.watched(), ElementsAre(pipe[0])) << "a new socket can have the same number";
}

TEST_F(WatchesTest, ASocketIsWatchedAgainAfterItsWatchCouldNotBeChanged) {
    watches.watch(of_socket);
    events.cannot_watch = pipe[0];
    watches.watch({});
    events.cannot_watch = -1;
    events.known.clear();  // the earlier watch may be over
    watches.watch(of_socket);
    EXPECT_THAT(events.watched(), ElementsAre(pipe[0]));
}

TEST_F(WatchesTest, TheOthersAreWatchedIfOneCannotBe) {
    events.cannot_watch = pipe[1];
    const std::array both{PollEntry{.socket = &socket, .fd = pipe[1]}, of_socket.front()};
    EXPECT_THROW(watches.watch(both), std::bad_alloc);
    EXPECT_THAT(events.watched(), ElementsAre(pipe[0]));
}

// Several loops can wait for the same name.
TEST_F(WatchesTest, ADuplicateIsWatchedWhileANameIsResolved) {
    watches.watch(of_name);
    ASSERT_EQ(events.watched().size(), 1U);
    const int duplicate = events.watched().front();
    EXPECT_NE(duplicate, pipe[0]);
    EXPECT_EQ(watches.on_ready(duplicate), pipe[0]);
    EXPECT_TRUE(events.known.empty());
    EXPECT_EQ(::fcntl(duplicate, F_GETFD), -1) << "it is closed, because the next name can have the number";
}

// Several connections of one loop can wait for the same name.
TEST_F(WatchesTest, OneDuplicateIsWatchedUntilNobodyWaits) {
    watches.watch(std::array{of_name.front(), of_name.front()});
    const int duplicate = events.watched().at(0);
    watches.watch(of_name);
    EXPECT_THAT(events.watched(), ElementsAre(duplicate));
}

TEST_F(WatchesTest, ASocketCanHaveTheNumberOfAFormerResolution) {
    watches.watch(of_name);
    watches.watch(of_socket);
    EXPECT_THAT(events.watched(), ElementsAre(pipe[0]));
}

TEST_F(WatchesTest, TheEndLeavesNothing) {
    watches.watch(of_name);
    const int duplicate = events.watched().at(0);
    watches.detach();
    EXPECT_TRUE(events.known.empty());
    EXPECT_EQ(::fcntl(duplicate, F_GETFD), -1);
}

}  // namespace
}  // namespace redlock::test::watches_test
