// Rule D10: after fork() the child has connections of its own, and does not own the locks of its parent.
#include "command_monitor.hpp"
#include "forked_child.hpp"
#include "live_world.hpp"

#include <fcntl.h>
#include <sched.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <filesystem>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <system_error>
#include <thread>

namespace redlock::test::fork_live_test {
namespace {

struct Fork : testing::Test {
    LiveWorld world;
    Lock lock = world.lock({.ttl = 1min});

    void SetUp() override { ASSERT_THAT(lock.acquire(), Succeeds()); }
};

/// Returns the inodes of the open sockets of this process.
std::set<std::string> open_sockets() {
    std::set<std::string> sockets;
    for (const auto& entry : std::filesystem::directory_iterator{"/proc/self/fd"}) {
        std::error_code gone;  // the directory's own descriptor
        const auto target = std::filesystem::read_symlink(entry, gone).string();
        if (target.starts_with("socket:")) sockets.insert(target);
    }
    return sockets;
}

/// The parent has connections. Otherwise the child's copies of their sockets would keep them open as long as
/// the child lives.
struct ForkWithConnections : Fork {
    void SetUp() override {
        Fork::SetUp();
        const auto others = open_sockets();
        nodes = std::make_unique<RedisNodes>(world.uris(), NodesOptions{.node_timeout = 2s});
        held.emplace(*nodes, "held");
        ASSERT_THAT(held->acquire(), Succeeds());
        inherited = open_sockets();
        std::erase_if(inherited, [&](const auto& socket) { return others.contains(socket); });
        ASSERT_EQ(inherited.size(), 3U);
    }
    std::string inherited_and_open() const {
        const auto open = open_sockets();
        const auto is_open = [&](const auto& socket) { return open.contains(socket); };
        return std::to_string(std::ranges::count_if(inherited, is_open)) + " open";
    }

    std::unique_ptr<RedisNodes> nodes;
    std::optional<Lock> held;
    std::set<std::string> inherited;
};

// D10
TEST_F(ForkWithConnections, TheChildClosesItsCopiesOfTheSocketsAtItsFirstUse) {
    ForkedChild child{[&](auto report) {
        report(inherited_and_open());
        Lock mine{*nodes, "mine"};
        report(mine.acquire() ? "held" : "not held");
        report(inherited_and_open());
    }};
    EXPECT_EQ(child.receive(), "3 open");
    EXPECT_EQ(child.receive(), "held");
    EXPECT_EQ(child.receive(), "0 open");
    EXPECT_THAT(held->extend(), Succeeds()) << "the parent's connections stay";
}

// D10
TEST_F(ForkWithConnections, TheChildSendsNothingAndClosesItsCopiesOfTheSocketsWhenItDestroysTheNodes) {
    const CommandMonitor monitor{world[0]};
    ForkedChild child{[&](auto report) {
        held.reset();
        nodes.reset();
        report(inherited_and_open());
    }};
    EXPECT_EQ(child.receive(), "0 open");
    EXPECT_THAT(monitor.commands(), IsEmpty());
    EXPECT_THAT(held->extend(), Succeeds()) << "the parent's connections stay";
}

/// Returns the descriptors of the open sockets.
std::set<int> socket_descriptors() {
    std::set<int> descriptors;
    for (int fd = 0; fd < 1024; ++fd)
        if (struct stat it{}; ::fstat(fd, &it) == 0 && S_ISSOCK(it.st_mode)) descriptors.insert(fd);
    return descriptors;
}

// D10. After the parent has closed a socket, its descriptor number may belong to another file.
TEST_F(Fork, TheChildClosesNoFileThatReusedTheNumberOfASocket) {
    auto numbers = socket_descriptors();
    world[2].kill();
    ASSERT_TRUE(wait_until([&] { return lock.extend().nodes()[2].cause == Errc::connection_failed; }));
    for (const int open : socket_descriptors()) numbers.erase(open);
    ASSERT_FALSE(numbers.empty()) << "or this test shows nothing";
    const int null = ::open("/dev/null", O_WRONLY | O_CLOEXEC);
    numbers.insert(null);
    for (const int number : numbers) ASSERT_EQ(::dup2(null, number), number);
    ForkedChild child{[&](auto report) {
        auto mine = world.lock("mine");
        report(mine.acquire() ? "held" : "not held");
        const auto is_open = [&](int number) {
            const auto path = "/proc/self/fd/" + std::to_string(number);
            std::error_code gone;
            return std::filesystem::read_symlink(path, gone) == "/dev/null";
        };
        report(std::ranges::all_of(numbers, is_open) ? "all open" : "closed");
    }};
    EXPECT_EQ(child.receive(), "held");
    EXPECT_EQ(child.receive(), "all open");
    for (const int number : numbers) ::close(number);
}

// A6, A8. No state of a generator is copied. The owners differ, and so do the pauses, which use the same
// generator.
TEST_F(Fork, EachChildDrawsItsOwnOwners) {
    const auto drawn = [](auto report) {
        Owner owner;
        report(owner.draw(os_entropy()) ? "none" : std::string{owner.view()});
    };
    std::set<std::string> owners;
    drawn([&](const std::string& owner) { owners.insert(owner); });
    for (int i = 0; i < 3; ++i) owners.insert(ForkedChild{drawn}.receive());
    EXPECT_EQ(owners.size(), 4U);
}

// D10, S2. This also holds for a grandchild. A parent that ends does not release the lock of its child.
TEST_F(Fork, EveryGenerationHoldsItsOwnLocks) {
    ForkedChild child{[&](auto report) {
        auto mine = world.lock("child's", {.ttl = 1min});
        report(mine.acquire() ? "held" : "not held");
        ForkedChild grandchild{[&](auto report) {
            report(mine.valid() ? "valid" : "not valid");
            auto own = world.lock("grandchild's", {.ttl = 1min});
            report(own.acquire() && own.release() ? "worked" : "did not work");
        }};
        report(grandchild.receive());
        report(grandchild.receive());
        report(mine.valid() && mine.release() ? "released" : "not released");
    }};
    EXPECT_EQ(child.receive(), "held");
    EXPECT_EQ(child.receive(), "not valid");
    EXPECT_EQ(child.receive(), "worked");
    EXPECT_EQ(child.receive(), "released");
    EXPECT_TRUE(lock.valid());
}

/// Forks without the C library, whose handlers then do not run. Container runtimes do that. `flags` may
/// request new namespaces.
template <class Body>
int status_of_clone(unsigned long flags, Body body) {
    const auto child = ::syscall(SYS_clone, flags | SIGCHLD, nullptr, nullptr, nullptr, nullptr);
    if (child == 0) ::_exit(body());
    if (child < 0) return -errno;
    int status = 0;
    while (::waitpid(static_cast<pid_t>(child), &status, 0) < 0 && errno == EINTR) {
    }
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

// D10. A raw clone() runs no handlers of pthread_atfork().
TEST_F(Fork, AChildOfARawCloneDoesNotOwnTheLockOfItsParent) {
    EXPECT_EQ(status_of_clone(0, [&] { return lock.valid() || !lock.owner().empty() ? 1 : 0; }), 0);
    EXPECT_TRUE(lock.valid());
}

// D10. The first process of a container forks the first process of another one. Both have the process id 1.
TEST_F(Fork, AChildWithTheSameProcessIdDoesNotOwnTheLockOfItsParent) {
    const auto status = status_of_clone(CLONE_NEWPID, [&] {
        auto mine = world.lock("the parent's", {.ttl = 1min});
        if (::getpid() != 1 || !mine.acquire()) return 2;
        const auto child = status_of_clone(CLONE_NEWPID, [&] {
            if (::getpid() != 1) return 3;
            return mine.valid() || mine.release().error() != Errc::not_held ? 1 : 0;
        });
        return mine.release() ? child : 4;
    });
    if (status == -EPERM) GTEST_SKIP() << "making a pid namespace takes the rights of root";
    EXPECT_EQ(status, 0);
}

// D10. A child of fork() has the Watchdog object, but not its thread. It starts a thread when it needs one,
// and leaves the locks of its parent alone.
TEST(ForkedWatchdog, ExtendsTheLocksOfTheChildInTheChild) {
    LiveWorld world{3, {.node_timeout = 400ms}};
    Watchdog watchdog;
    auto lock = world.lock({.ttl = 1500ms, .retry = {.attempts = 1}, .watchdog = &watchdog});
    ASSERT_THAT(lock.acquire(), Succeeds());
    ForkedChild child{[&](auto report) {
        report(lock.valid() || lock.lost().stop_possible() ? "holds the parent's" : "holds nothing");
        auto own = world.lock("the child's", {.ttl = 600ms, .retry = {.attempts = 1}, .watchdog = &watchdog});
        report(own.acquire() ? "acquired" : "not acquired");
        const auto end = boot_clock().now() + 1500ms;
        while (boot_clock().now() < end && own.valid()) std::this_thread::sleep_for(10ms);
        report(own.valid() ? "still valid" : "lost");
        report(own.release() ? "released" : "not released");
        report(lock.try_acquire().message());
    }};
    EXPECT_EQ(child.receive(), "holds nothing");
    EXPECT_EQ(child.receive(), "acquired");
    EXPECT_EQ(child.receive(), "still valid");
    EXPECT_EQ(child.receive(), "released");
    EXPECT_THAT(child.receive(), testing::StartsWith("held by another"));
    EXPECT_EQ(child.wait(), 0);
    EXPECT_TRUE(lock.valid()) << "the parent's was extended all the while";
    EXPECT_THAT(lock.release(), Succeeds());
}

// A lock copies its options when the child acquires it.
TEST(AForkedLock, ReturnsTheExceptionOfCopyingOnLost) {
    struct OnLost {
        OnLost(int process) : may_be_copied_in(process) {}
        OnLost(const OnLost& other) : may_be_copied_in(other.may_be_copied_in) {
            if (::getpid() != may_be_copied_in) throw std::system_error{EBUSY, std::generic_category()};
        }
        void operator()(const Result&) const {}
        int may_be_copied_in;
    };
    RedisNodes nodes{{"127.0.0.1:1"}};
    Watchdog watchdog;
    Lock lock{nodes, the_resource, {.watchdog = &watchdog, .on_lost = OnLost{::getpid()}}};
    ForkedChild child{[&](auto report) { report(lock.try_acquire().error().message()); }};
    EXPECT_EQ(child.receive(), std::generic_category().message(EBUSY));
}

// D10. Whichever thread of the parent holds it: in the child nobody does, and any thread can acquire it when
// the keys of the parent are gone.
TEST(ForkedRecursiveLock, IsFreeInTheChild) {
    for (const bool by_another_thread : {false, true}) {
        LiveWorld world;
        RecursiveLock lock{world.nodes, the_resource, {.ttl = 1min, .retry = {.attempts = 1}}};
        const auto acquire = [&] { ASSERT_THAT(lock.acquire(), Succeeds()); };
        by_another_thread ? std::thread{acquire}.join() : acquire();
        ForkedChild child{[&](auto report) {
            report(std::to_string(lock.level()) + (lock.valid() ? " valid" : " not valid"));
            report(lock.release().message());
            report(lock.try_acquire().message());
            for (std::size_t node = 0; node < world.size(); ++node)
                (void)world[node].command({"DEL", the_resource});
            report(lock.try_acquire() && lock.try_acquire() ? "acquired twice" : "not acquired");
        }};
        EXPECT_EQ(child.receive(), "0 not valid");
        EXPECT_EQ(child.receive(), make_error_code(Errc::not_held).message());
        EXPECT_THAT(child.receive(), testing::StartsWith("held by another"));
        EXPECT_EQ(child.receive(), "acquired twice");
        EXPECT_EQ(child.wait(), 0);
    }
}

}  // namespace
}  // namespace redlock::test::fork_live_test
