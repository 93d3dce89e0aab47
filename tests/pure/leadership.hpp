// A leader of each front, and a fixture for its tests: a world, a leader whose term is extended when the test
// lets time pass, and its reports.
#pragma once

#include "leader_reports.hpp"
#include "watched.hpp"

#include <redlock/async_leader.hpp>
#include <redlock/leader.hpp>

#include <exception>
#include <functional>
#include <optional>
#include <stdexcept>
#include <stop_token>
#include <string>
#include <utility>
#include <vector>

namespace redlock::test {

/// A Leader, or an AsyncLeader that runs the loop until it has ended. In both cases, time can pass in the
/// work.
class AnyLeader : detail::NotCopied {
public:
    template <class Base>
    AnyLeader(WorldOfAnyFront<Base>& world, LeaderOptions options) : loop_(world.loop) {
        if (world.front == Front::thread) {
            blocking_.emplace(world, the_resource, std::move(options), world.clock, world.entropy);
            return;
        }
        on_failure_ = std::exchange(options.on_failure, [this](const Result& it) { report(it); });
        async_.emplace(world.of_loop, the_resource, std::move(options));
    }

    void run(const Leader::Work& work, std::stop_token stop) {
        if (blocking_) return blocking_->run(work, std::move(stop));
        std::optional<AsyncTerm> term;
        std::optional<std::exception_ptr> end;
        async_->run([&](AsyncTerm it) { term.emplace(std::move(it)); },
                    [&](const std::exception_ptr& it) { end = it; });
        const std::stop_callback on_stop{std::move(stop), [this] { async_->cancel(); }};
        while (!end) {
            if (term)
                lead(*std::exchange(term, {}), work);
            else if (!loop_.run_once())
                throw std::runtime_error("the leader waits for nothing");
        }
        if (*end) std::rethrow_exception(*end);
    }
    /// Of an AsyncLeader, the run is cancelled after the first term or failure.
    Result run_once(const Leader::Work& work, std::stop_token stop = {}) {
        if (blocking_) return blocking_->run_once(work, std::move(stop));
        result_ = Result{Errc::cancelled};
        once_ = true;
        run(work, std::move(stop));
        once_ = false;
        return *result_;
    }

private:
    void lead(AsyncTerm term, const Leader::Work& work) {
        result_ = Result{std::error_code{}};
        std::exception_ptr failure;
        try {
            work(term);
        } catch (...) {
            failure = std::current_exception();
        }
        term.end(failure);
        if (!once_) return;
        for (const auto released = loop_.now() + 100ms; loop_.run_once(released);) {
        }
        async_->cancel();
    }
    void report(const Result& result) {
        if (!once_) return on_failure_ ? on_failure_(result) : void();
        result_ = result;
        async_->cancel();
    }

    VirtualLoop& loop_;
    std::function<void(const Result&)> on_failure_{};
    std::optional<Result> result_{};
    bool once_ = false;
    std::optional<Leader> blocking_{};
    std::optional<AsyncLeader> async_{};
};

struct LeaderWorld : WatchedLocks, LeaderReports {
    using WatchedLocks::WatchedLocks;

    LeaderOptions options() {
        auto its = LeaderReports::options();
        its.watchdog = world.watchdog();
        return its;
    }
    AnyLeader candidate(LeaderOptions its) { return {world, std::move(its)}; }

    /// Another leader holds the resource for this time.
    void another_leads(milliseconds span) { world.occupy(span, 0, 1, 2, 3, 4); }

    /// Records when stop was requested on lost(), and how much of the term was left then.
    struct Notice {
        Notice(const Term& term, Clock& clock)
            : callback(term.lost(), [this, term, &clock] { left = term.remaining(), at = clock.now(); }) {}
        std::optional<Clock::duration> left{};
        Clock::time_point at{};
        std::stop_callback<std::function<void()>> callback;
    };

    AnyLeader leader{world, options()};
    std::stop_source stop;
    int terms = 0;
};

struct Leadership : testing::TestWithParam<Front>, LeaderWorld {
    Leadership() : LeaderWorld(GetParam()) {}
};
struct LeadershipOfAThread : testing::Test, LeaderWorld {
    LeadershipOfAThread() : LeaderWorld(Front::thread) {}
};

}  // namespace redlock::test
