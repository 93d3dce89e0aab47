#include "lock_jobs.hpp"

#include <redlock/acquire.hpp>

#include "../flow/lock_operations.hpp"
#include "flow_runner.hpp"

#include <exception>
#include <new>
#include <stop_token>
#include <system_error>
#include <utility>

namespace redlock::loop {
namespace {

/// An operation of a loop. It has memory for its frames. The votes are on the heap while a round needs them,
/// because many operations only wait.
using LoopOperation = flow::OperationWithMemory<flow::memory_of_frames>;

/// Writes a release at the shutdown of the loop. Without memory, the keys expire.
void write(Front& front, const Request& release) noexcept {
    try {
        (void)front.nodes().ask(release, {.awaits_answers = false});
    } catch (const std::exception&) {  // NOLINT(bugprone-empty-catch)
    }
}

flow::LockParts parts_of(const JobContext& lock) {
    return {lock.state, lock.options.watchdog ? &lock.front.renewals() : nullptr};
}

/// Runs the flow of an operation (flow/lock_operations.hpp).
template <class Operation>
class FlowJob : public Job {
public:
    template <class... Arguments>
    explicit FlowJob(const JobContext& lock, Arguments&&... arguments)
        : lock_(lock),
          steps_(frames_, parts_of(lock), std::forward<Arguments>(arguments)...),
          flow_(lock.front, lock.task, frames_) {}

    bool advance() override {
        if (!flow_.advance([this] { return steps_.run(); })) return false;
        error_ = flow_.result();
        return true;
    }
    Result take_result() noexcept override { return steps_.take_result(error_); }

    void shut_down() noexcept override {
        flow_.destroy();
        steps_.for_each_unreleased([this](const Request& request) { write(lock_.front, request); });
    }

protected:
    const JobContext lock_;
    LoopOperation frames_{lock_.front.nodes()};
    Operation steps_;
    FlowRunner flow_;

private:
    std::error_code error_{};
};

using ExtendJob = FlowJob<flow::ExtendLock>;
using ReleaseJob = FlowJob<flow::ReleaseLock>;

/// The limits of an acquisition, with a stop token of its own.
struct LimitsWithStop {
    explicit LimitsWithStop(algorithm::AcquireLimits given) : limits(std::move(given)) {
        limits.stop = stop.get_token();
    }
    std::stop_source stop{};
    algorithm::AcquireLimits limits;
};

/// `AcquireFlow` is flow::Acquire, or flow::AcquireSlot if the lock acquires one of its resources.
template <class AcquireFlow>
class AcquireJob final : LimitsWithStop, public FlowJob<flow::AcquireLock<AcquireFlow>> {
    using Base = FlowJob<flow::AcquireLock<AcquireFlow>>;
    using Base::flow_, Base::lock_, Base::steps_;

public:
    AcquireJob(const JobContext& lock, const algorithm::AcquireLimits& given)
        : LimitsWithStop(given), Base(lock, lock.front.entropy(), limits) {}

    /// If the flow fails, sends what it has left to do before the operation ends.
    bool advance() override {
        if (!failure_) try {
                return Base::advance();
            } catch (...) {  // no memory, or a Nodes of the user that throws
                failure_ = std::current_exception();
                flow_.destroy();
                release_until_ = deadline_after(lock_.task.now(), lock_.options.ttl);
            }
        if (!release_what_is_left()) return false;
        std::rethrow_exception(failure_);
    }

    void cancel() noexcept override {
        stop.request_stop();
        lock_.task.wake();
    }

private:
    /// Sends what the failed flow has left to do. Without memory, has this job called again soon, and returns
    /// false. After the ttl, the keys have expired.
    bool release_what_is_left() {
        using namespace std::chrono_literals;
        try {
            steps_.for_each_unreleased([&](const Request& request) {
                (void)lock_.front.nodes().ask(request, {.awaits_answers = false});
            });
        } catch (const std::bad_alloc&) {
            const auto now = lock_.task.now();
            if (now < release_until_) lock_.task.wake_at(now + 5ms);
            return now >= release_until_;
        } catch (...) {  // NOLINT(bugprone-empty-catch): a Nodes of the user that throws
        }
        return true;
    }

    std::exception_ptr failure_{};       // the exception of the flow, with which the operation ends
    Clock::time_point release_until_{};  // if the flow has failed: when its keys have expired
};

}  // namespace

std::unique_ptr<Job> acquire_job(const JobContext& lock, const algorithm::AcquireLimits& limits) {
    if (lock.state->acquires() == detail::Acquires::one)
        return std::make_unique<AcquireJob<flow::AcquireSlot>>(lock, limits);
    return std::make_unique<AcquireJob<flow::Acquire>>(lock, limits);
}

std::unique_ptr<Job> extend_job(const JobContext& lock, std::chrono::milliseconds ttl) {
    return std::make_unique<ExtendJob>(lock, ttl);
}

std::unique_ptr<Job> release_job(const JobContext& lock, std::uint64_t acquisition, flow::Replies replies) {
    return std::make_unique<ReleaseJob>(lock, acquisition, replies);
}

}  // namespace redlock::loop
