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
        : Client(std::move(name)), nodes_(uris), of_loop_(nodes_, loop_) {
        for (std::size_t i = 0; i < operations; ++i)
            flows_.push_back(std::make_unique<Flow>(*this, "bench:loop-" + std::to_string(i)));
    }

    /// Ends when all operations have ended that began within the time. The thread may be another one in each
    /// batch, because the loop does nothing between two batches.
    Batch run(const Work& work) override {
        batch_ = {};
        left_ = work.ops;
        end_ = Clock::now() + work.span;
        for (const auto& flow : flows_) flow->begin();
        while (under_way_ > 0 && loop_.run_once()) {
        }
        return std::exchange(batch_, {});
    }

private:
    using Clock = std::chrono::steady_clock;

    /// Acquires and releases one lock again and again.
    class Flow {
    public:
        Flow(LoopClient& client, std::string resource)
            : client_(client), lock_(client.of_loop_, std::move(resource)) {}

        void begin() {
            start_ = Clock::now();
            if (start_ >= client_.end_ || client_.left_ == 0) return;
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
            begin();
        }

        LoopClient& client_;
        AsyncLock lock_;
        Clock::time_point start_{};
    };

    RedisNodes nodes_;
    PollLoop loop_{};
    AsyncNodes of_loop_;
    Batch batch_{};
    std::size_t left_ = 0;
    std::size_t under_way_ = 0;
    Clock::time_point end_{};
    std::vector<std::unique_ptr<Flow>> flows_{};
};

}  // namespace redlock::bench
