// The threads of background tasks at exit() and after fork(). This program replaces operator new, so that a
// test can fork while a mutex is locked.
#include "support/process_state.hpp"

#include "live/forked_child.hpp"
#include "support/replaced_new.hpp"
#include "support/wait_until.hpp"

#include "os/os_network.hpp"

#include <gtest/gtest.h>

#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <functional>
#include <memory>
#include <new>
#include <string>
#include <thread>

namespace {

bool armed = false;
std::function<void()> at_allocation{};  // called at each allocation, if `armed` is true

}  // namespace

void redlock::support::before_allocation() {
    if (!armed) return;
    armed = false;
    at_allocation();
    armed = true;
}

namespace redlock::test::background_thread_live_test {
namespace {

using support::threads;
using namespace std::chrono_literals;
using support::wait_until;

// Each test starts its threads in a child, because a process starts to keep a list of them only once.

std::unique_ptr<BackgroundTask> task_of(BackgroundTask::Function function) {
    return OsNetwork{}.make_task(std::move(function));
}

TEST(BackgroundThread, CallsTheFunctionAgainIfItIsStartedDuringACall) {
    ForkedChild child{[](auto report) {
        std::atomic<int> calls{0};
        std::atomic<bool> ends{false};
        const auto task = task_of([&](auto) {
            if (++calls == 1) ends.wait(false);
            return Clock::never();
        });
        task->start();
        report(wait_until([&] { return calls == 1; }) ? "called" : "not called");
        task->start();
        report(wait_until([] { return threads().size() == 2; }) ? "one thread" : "several threads");
        ends = true;
        ends.notify_all();
        report(wait_until([&] { return calls == 2; }) ? "called again" : "not called again");
    }};
    EXPECT_EQ(child.receive(), "called");
    EXPECT_EQ(child.receive(), "one thread");
    EXPECT_EQ(child.receive(), "called again");
}

// A signal is meant for the threads of the user.
TEST(BackgroundThread, HandlesNoSignals) {
    ForkedChild child{[](auto report) {
        std::atomic<int> blocked{-1};
        const auto task = task_of([&](auto) {
            sigset_t mask;
            ::pthread_sigmask(SIG_SETMASK, nullptr, &mask);
            blocked = ::sigismember(&mask, SIGTERM) * ::sigismember(&mask, SIGUSR1);
            return Clock::never();
        });
        task->start();
        (void)wait_until([&] { return blocked >= 0; });
        report(blocked == 1 ? "blocked" : "not blocked");
    }};
    EXPECT_EQ(child.receive(), "blocked");
}

// exit() waits for the threads that run, and then destroys what they may use.
TEST(BackgroundThread, IsNotStartedWhenExitHasWaitedForTheOthers) {
    static std::function<void()> late;
    ForkedChild child{[](auto report) {
        late = [report] {
            report(wait_until([] { return threads().size() == 1; }) ? "has waited" : "has not waited");
            std::atomic<bool> ends{false};
            const auto task = task_of([&](auto) {
                ends.wait(false);
                return Clock::never();
            });
            task->start();
            report(threads().size() == 1 ? "not started" : "started");
            ends = true;
            ends.notify_all();
        };
        (void)std::atexit([] { late(); });  // called after the handlers that are registered later
        static const auto task = task_of([](auto) { return Clock::never(); });
        task->start();
        std::exit(0);
    }};
    EXPECT_EQ(child.receive(), "has waited");
    EXPECT_EQ(child.receive(), "not started");
    EXPECT_EQ(child.wait(), 0);
}

// exit() may begin while start() is under way. Here it begins at each allocation of start() in turn.
TEST(BackgroundThread, IsNotStartedBehindAnExitThatBeginsMeanwhile) {
    static std::atomic<bool> exited, started;
    static std::function<void()> late;
    bool begins = true;
    for (int which = 1; begins; ++which) {
        exited = started = false;
        ForkedChild child{[which](auto report) {
            late = [report] {
                exited = true;
                // The thread of the task ends soon, if there is one.
                (void)wait_until([] { return started && threads().size() == 2; });
                report("exited");
            };
            (void)std::atexit([] { late(); });  // called when exit() has waited for threads
            auto* const task = task_of([report](auto) {
                                   if (exited) report("started behind exit()");
                                   return Clock::never();
                               }).release();
            bool begun = false;
            at_allocation = [&begun, left = which]() mutable {
                if (--left != 0) return;
                begun = true;
                std::thread{[] { std::exit(0); }}.detach();
                // If exit() waits for start(), this cannot become true.
                (void)wait_until([] { return exited.load(); }, 100ms);
            };
            armed = true;
            task->start();
            armed = false;
            if (!begun) report("no such allocation");
            started = true;
            if (begun) ::pause();
        }};
        const auto line = child.receive();
        begins = line != "no such allocation";
        EXPECT_TRUE(line == "exited" || !begins) << line << ", at allocation " << which;
        EXPECT_EQ(child.wait(), 0);
        EXPECT_TRUE(begins || which > 3) << which;
    }
}

// start() cannot report that there is no memory for a thread.
TEST(BackgroundThread, IsStartedByTheNextCallIfThereWasNoMemory) {
    ForkedChild child{[](auto report) {
        int missing = 0;
        bool failed = true;
        for (int which = 1; failed; ++which) {
            failed = false;
            std::atomic<int> calls{0};
            const auto task = task_of([&](auto) {
                ++calls;
                return Clock::never();
            });
            at_allocation = [&failed, left = which]() mutable {
                failed = --left == 0;
                if (failed) throw std::bad_alloc{};
            };
            armed = true;
            task->start();
            armed = false;
            task->start();
            if (!wait_until([&] { return calls > 0; })) ++missing;
        }
        report(std::to_string(missing) + " missing");
    }};
    EXPECT_EQ(child.receive(), "0 missing");
}

TEST(BackgroundThread, EndsIfTheFunctionRunsOutOfMemory) {
    ForkedChild child{[](auto report) {
        std::atomic<int> calls{0};
        const auto task = task_of([&](auto) -> Clock::time_point {
            ++calls;
            throw std::bad_alloc{};
        });
        task->start();
        report(wait_until([&] { return calls > 0 && threads().size() == 1; }) ? "ended" : "runs");
        report(std::to_string(calls) + " calls");
    }};
    EXPECT_EQ(child.receive(), "ended");
    EXPECT_EQ(child.receive(), "1 calls");
}

// The list of the threads that exit() has to wait for belongs to one process.
TEST(BackgroundThread, IsAwaitedByTheExitOfAChild) {
    ForkedChild parent{[](auto report) {
        static std::atomic<bool> exiting{false};
        const auto of_parent = task_of([](auto) { return Clock::never(); });
        of_parent->start();
        const auto child = ::fork();
        if (child == 0) {
            ::alarm(60);
            auto* const task = task_of([report](auto) {
                                   exiting.wait(false);
                                   boot_clock().sleep_until(boot_clock().now() + 100ms, {});
                                   report("awaited");
                                   return Clock::never();
                               }).release();
            task->start();
            (void)std::atexit([] {
                exiting = true;
                exiting.notify_all();
            });
            std::exit(0);
        }
        (void)::waitpid(child, nullptr, 0);
        report("not awaited");
    }};
    EXPECT_EQ(parent.receive(), "awaited");
}

// D10. A thread of the parent may have been starting a thread of its own when the child was forked. The mutex
// of the list of threads then stays locked in the child for ever.
TEST(BackgroundThread, IsNotNeededInAChildToDestroyATask) {
    ForkedChild parent{[](auto report) {
        int forks = 0;
        int failures = 0;
        at_allocation = [&] {
            ++forks;
            const auto child = ::fork();
            if (child == 0) {
                ::alarm(10);
                task_of([](auto) { return Clock::never(); }).reset();
                ::_exit(0);
            }
            int status = -1;
            if (::waitpid(child, &status, 0) != child || status != 0) ++failures;
        };
        const auto task = task_of([](auto) { return Clock::never(); });
        armed = true;
        task->start();
        armed = false;
        report(forks >= 3 ? "forked" : "not forked in each step");
        report(std::to_string(failures) + " failures");
    }};
    EXPECT_EQ(parent.receive(), "forked");
    EXPECT_EQ(parent.receive(), "0 failures");
}

}  // namespace
}  // namespace redlock::test::background_thread_live_test
