// A worker that locks in an event loop, on the nodes that the threads of its process use as well.
#pragma once

#include "hold_log.hpp"
#include "resources.hpp"

#include "../../examples/poll_loop.hpp"

#include <redlock/async_lock.hpp>
#include <redlock/async_nodes.hpp>
#include <redlock/redlock.hpp>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <random>
#include <string>

namespace redlock::torture {

/// Acquires, holds and releases one lock after the other. Now and then destroys a lock during an operation.
/// The options depend on the index: half of these workers are fair, and half have a watchdog. A quarter of
/// the locks have a fencing token.
class LoopWorker {
public:
    LoopWorker(const std::string& log, std::size_t index, Nodes& nodes, std::chrono::milliseconds ttl)
        : log_(log),
          own_log_(log_.of(index)),
          index_(index),
          nodes_(nodes),
          ttl_(ttl),
          of_loop_(nodes, loop_) {
        own_log_.set_mode(Mode::loop);
    }

    void run() {
        while (!log_.stopped() && !own_log_.full()) {
            if (!lock_) begin();
            loop_.run_once(std::chrono::steady_clock::now() + std::chrono::milliseconds{1});
            if (state_ == State::holds) go_on_holding();
            if (state_ == State::ended || leaves_at_ <= now()) end();
        }
        end();
    }

private:
    enum class State { acquires, holds, releases, ended };

    bool is_fair() const { return index_ % 2 == 0 && !nodes_.has_cluster(); }
    bool is_watched() const { return index_ / 2 % 2 == 0; }

    void begin() {
        own_log_.count_attempt();
        const bool fencing = below(4) == 0;
        resources_ = fencing ? fenced_resource : choose(Mode::loop, randomness_);
        LockOptions options{.ttl = ttl_,
                            .retry = {.delay = std::chrono::milliseconds{20}},
                            .fencing = fencing && !nodes_.has_cluster(),
                            .fair = is_fair()};
        if (is_watched()) {
            options.watchdog = loop_watchdog();
            options.on_lost = [this](const Result&) { own_log_.notified(now()); };
        }
        state_ = State::acquires;
        leaves_at_ = below(8) == 0 ? in(below(300)) : never;
        lock_.emplace(of_loop_, names_of(resources_), options);
        lock_->acquire_for(std::chrono::milliseconds{500}, [this, number = ++number_](const Result& result) {
            if (number != number_) return;  // of a lock that was destroyed
            state_ = State::ended;
            if (result) hold();
        });
    }

    void hold() {
        // The order matters: because `acquired` is read before remaining(), the logged validity is not too
        // long.
        const auto acquired = now();
        const auto remaining = lock_->remaining().count();
        if (remaining == 0) return;
        own_log_.begin({.from = acquired,
                        .valid_until = acquired + remaining,
                        .resources = resources_,
                        .fencing_token = lock_->fencing_token()});
        holds_until_ = in(log_.hurried() || below(4) > 0 ? below(10) : below(3000));
        state_ = State::holds;
    }

    void go_on_holding() {
        const auto at = now();
        const auto remaining = lock_->remaining().count();
        if (remaining > 0) own_log_.set_valid_until(at + remaining);
        if (remaining > 0 && at < holds_until_) return;
        own_log_.released(at);
        leaves_at_ = below(4) == 0 ? at : never;
        state_ = State::releases;
        lock_->release([this, number = number_](const Result&) {
            if (number == number_) state_ = State::ended;
        });
    }

    /// The destructor of the lock releases what is held, and cancels what is under way.
    void end() {
        if (state_ == State::holds) own_log_.released(now());
        lock_.reset();
        leaves_at_ = never;
    }

    static Instant in(unsigned milliseconds) { return now() + Instant{milliseconds} * 1'000'000; }
    unsigned below(unsigned count) {
        return std::uniform_int_distribution<unsigned>{0, count - 1}(randomness_);
    }

    static constexpr Instant never = std::numeric_limits<Instant>::max();
    HoldLog log_;
    WorkerLog& own_log_;
    const std::size_t index_;
    const Nodes& nodes_;
    const std::chrono::milliseconds ttl_;
    std::mt19937 randomness_{std::random_device{}()};
    PollLoop loop_{};
    AsyncNodes of_loop_;
    std::optional<AsyncLock> lock_{};
    std::size_t number_ = 0;  // of the lock
    State state_ = State::ended;
    std::uint64_t resources_ = 0;
    Instant holds_until_ = 0;
    Instant leaves_at_ = never;  // the lock is destroyed then, whatever it does
};

}  // namespace redlock::torture
