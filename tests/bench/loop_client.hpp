// This library in an event loop: one thread with many operations under way, each on its own resource.
#pragma once

#include "client.hpp"

#include "../../examples/poll_loop.hpp"

#include <redlock/async_lock.hpp>
#include <redlock/async_nodes.hpp>
#include <redlock/redlock.hpp>

#include <chrono>
#include <cstddef>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace redlock::bench {

class LoopClient final : public Client {
public:
    LoopClient(std::string name, const std::vector<std::string>& uris, std::size_t operations)
        : Client(std::move(name)), nodes_(uris, {.round = Round::all_at_once}), loop_nodes_(nodes_, loop_) {
        for (std::size_t i = 0; i < operations; ++i)
            flows_.push_back(std::make_unique<Flow>(*this, "bench:loop-" + std::to_string(i)));
    }

    /// Ends when all operations that began within the span have ended. The thread may be another one in each
    /// batch, because the loop does nothing between two batches.
    Batch run(const Work& work) override {
        batch_ = {};
        left_ = work.ops;
        interval_ = work.interval;
        next_ = Clock::now() + work.first;
        end_ = next_ - work.first + work.span;
        for (const auto& flow : flows_) idle_.push_back(flow.get());
        for (begin_ops(); under_way_ > 0 || has_arrivals(); begin_ops())
            if (!loop_.run_once(has_arrivals() && !idle_.empty() ? next_ - poll_precision : never)) break;
        idle_.clear();
        return std::exchange(batch_, {});
    }
    bool heeds_arrivals() const noexcept override { return true; }

private:
    using Clock = std::chrono::steady_clock;
    static constexpr auto never = Clock::time_point::max();
    static constexpr std::chrono::milliseconds poll_precision{
        1};  // the loop does not sleep shorter than this

    /// Acquires and releases one lock again and again.
    class Flow {
    public:
        Flow(LoopClient& client, std::string resource)
            : client_(client), lock_(client.loop_nodes_, std::move(resource)) {}

        void begin(Clock::time_point start) {
            start_ = start;
            --client_.left_;
            ++client_.under_way_;
            lock_.acquire([this](const Result& result) {
                if (!result) return end(false);
                lock_.release([this](const Result&) { end(true); });
            });
        }

    private:
        void end(bool acquired) {
            const std::chrono::duration<double, std::micro> took = Clock::now() - start_;
            if (acquired)
                client_.batch_.microseconds.push_back(took.count());
            else
                ++client_.batch_.failed;
            --client_.under_way_;
            client_.idle_.push_back(this);
            if (client_.interval_.count() == 0) client_.begin_ops();
        }

        LoopClient& client_;
        AsyncLock lock_;
        Clock::time_point start_{};
    };

    bool has_arrivals() const { return interval_.count() > 0 && left_ > 0 && next_ < end_; }

    /// Begins the ops that have arrived, or as many as possible if there are no arrivals.
    void begin_ops() {
        while (!idle_.empty() && left_ > 0) {
            const auto now = Clock::now();
            const auto start = interval_.count() > 0 ? next_ : now;
            if (start > now || start >= end_) return;
            next_ += interval_;
            auto* const flow = idle_.back();
            idle_.pop_back();
            flow->begin(start);
        }
    }

    RedisNodes nodes_;
    PollLoop loop_{};
    AsyncNodes loop_nodes_;
    Batch batch_{};
    std::size_t left_ = 0;
    std::size_t under_way_ = 0;
    Clock::time_point end_{};
    std::chrono::nanoseconds interval_{};
    Clock::time_point next_{};   // the next arrival
    std::vector<Flow*> idle_{};  // without an op
    std::vector<std::unique_ptr<Flow>> flows_{};
};

}  // namespace redlock::bench
