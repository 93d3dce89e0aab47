#include "loop/lock_jobs.hpp"

#include <redlock/acquire.hpp>
#include <redlock/algorithm.hpp>

#include "flow/acquire.hpp"
#include "flow/acquire_slot.hpp"
#include "flow/lease.hpp"
#include "loop/flow_runner.hpp"

#include <exception>
#include <new>
#include <stop_token>
#include <system_error>
#include <type_traits>
#include <utility>

namespace redlock::loop {
namespace {

/// An operation of a loop. It has room for its frames, and the votes are on the heap while a round needs
/// them.
using LoopOperation = flow::OperationWithMemory<flow::memory_of_frames>;

/// Writes a release at the shutdown of the loop. Without memory, the keys expire.
void write(Front& front, const Request& release) noexcept {
    try {
        (void)front.nodes().ask(release, {.awaits_answers = false});
    } catch (const std::exception&) {  // NOLINT(bugprone-empty-catch)
    }
}

// ---- Extending

class ExtendJob final : public Job {
public:
    ExtendJob(const JobContext& lock, std::chrono::milliseconds ttl)
        : lock_(lock), flow_(lock.front, lock.task, operation_) {
        terms_.ttl = ttl;
    }

    bool advance() override {
        if (!flow_.advance([this] { return extension_.run(); })) return false;
        (void)flow_.result();
        result_ = lock_.state->apply_extension(acquisition_, extension_.take_round(),
                                               {.deadline = before_.valid_until});
        if (result_) lock_.state->describe_holder(before_, terms_.ttl);
        if (result_.error() == Errc::lost && lock_.options.watchdog)
            lock_.front.renewals().add({lock_.state, acquisition_});
        return true;
    }
    Result take_result() noexcept override { return std::move(result_); }

private:
    const JobContext lock_;
    const std::uint64_t acquisition_ = lock_.state->number();
    const Lease before_ = lock_.state->lease(acquisition_);
    algorithm::LeaseRequest terms_ = lock_.state->request();
    LoopOperation operation_{lock_.front.nodes()};
    flow::Extension extension_{operation_, lock_.front.clock(), terms_, before_};
    FlowRunner flow_;
    Result result_{std::error_code{}};
};

// ---- Releasing

class ReleaseJob final : public Job {
public:
    ReleaseJob(const JobContext& lock, std::uint64_t acquisition, Replies replies)
        : lock_(lock),
          acquisition_(acquisition),
          awaited_(replies == Replies::awaited || lock.options.fair),
          lease_(begin()),
          flow_(lock.front, lock.task, operation_) {}

    bool advance() override {
        if (before_.empty()) {
            lock_.state->end_release(acquisition_, before_);
            return true;
        }
        const auto run = [this] { return awaited_ ? release_.run() : release_.run_without_waiting(); };
        if (!flow_.advance(run)) return false;
        error_ = flow_.result();
        lock_.state->describe_holder(before_, {});
        lock_.state->end_release(acquisition_, lease_);
        return true;
    }
    Result take_result() noexcept override {
        return awaited_ && !before_.empty() ? release_.take_result(error_) : Result{error_};
    }

    void shut_down() noexcept override {
        flow_.destroy();
        if (!lease_.empty()) write(lock_.front, release_.request_at(lock_.task.now()));
    }

private:
    /// An earlier release may not have been confirmed. Once the validity has ended, it need not be repeated.
    Lease begin() {
        if (lock_.options.watchdog) lock_.front.renewals().remove({lock_.state, acquisition_});
        const auto lease = lock_.state->begin_release(acquisition_);
        return lease.released && lock_.task.now() >= lease.valid_until ? Lease{} : lease;
    }

    const JobContext lock_;
    const std::uint64_t acquisition_;
    const bool awaited_;
    Lease lease_;
    const Lease before_ = lease_;
    LoopOperation operation_{lock_.front.nodes()};
    flow::Release release_{operation_, lock_.front.clock(), lock_.state->resources(), lease_,
                           lock_.options.fair};
    FlowRunner flow_;
    std::error_code error_ = Errc::not_held;
};

// ---- Acquiring

algorithm::AcquireLimits limited_by(std::stop_token stop, algorithm::AcquireLimits limits) {
    limits.stop = std::move(stop);
    return limits;
}

/// `AcquireFlow` is flow::Acquire, or flow::AcquireSlot if the lock acquires one of its resources.
template <class AcquireFlow>
class AcquireJob final : public Job {
public:
    AcquireJob(const JobContext& lock, const algorithm::AcquireLimits& limits)
        : lock_(lock),
          limits_(limited_by(stop_.get_token(), limits)),
          flow_(lock.front, lock.task, operation_) {
        if (!lock.state->lease().empty())
            earlier_ = release_job(lock, lock.state->number(), Replies::not_awaited);
    }

    /// If the flow fails, sends what it has left to do before the operation ends.
    bool advance() override {
        if (earlier_ && !earlier_->advance()) return false;
        if (std::exchange(earlier_, nullptr)) lock_.state->forget();
        if (!failure_) try {
                if (!flow_.advance([this] { return acquire_.run(); })) return false;
                end();
                return true;
            } catch (...) {  // no memory, or a Nodes of the user that throws
                failure_ = std::current_exception();
                flow_.destroy();
                release_until_ = deadline_after(lock_.task.now(), lock_.options.ttl);
            }
        if (!release_what_is_left()) return false;
        std::rethrow_exception(failure_);
    }
    Result take_result() noexcept override { return acquire_.take_result(); }

    void cancel() noexcept override {
        stop_.request_stop();
        lock_.task.wake();
    }

    void shut_down() noexcept override {
        if (earlier_) return earlier_->shut_down();
        flow_.destroy();
        for_each_unreleased([&](const Request& request) { write(lock_.front, request); });
    }

private:
    /// Applies the result of the flow to the lease.
    void end() {
        const auto error = flow_.result();
        if constexpr (std::is_same_v<AcquireFlow, flow::AcquireSlot>)
            if (acquire_.tried()) lock_.state->choose(acquire_.slot());
        if (!error) begin_acquisition();
    }

    /// Without memory for the watchdog, the lease ends here, and is released as by a release of the lock.
    void begin_acquisition() {
        const auto& lease = acquire_.lease();
        const auto acquisition = lock_.state->begin(lease, std::move(lost_));
        try {
            if (lock_.options.watchdog) lock_.front.renewals().add({lock_.state, acquisition});
        } catch (...) {
            unextended_ = lock_.state->lease(acquisition);
            lock_.state->forget();
            throw;
        }
        lock_.state->describe_holder(lease, lock_.options.ttl);
    }

    /// Calls `send` with each command that the failed flow has left to do.
    template <class Send>
    void for_each_unreleased(Send send) {
        if (unextended_.empty()) return acquire_.for_each_unreleased(send);
        flow::Release release{operation_, lock_.front.clock(), lock_.state->resources(), unextended_,
                              lock_.options.fair};
        const auto request = release.request_at(lock_.task.now());
        unextended_.released = true;  // the next request is a repeated one
        send(request);
    }

    void send_what_is_left() {
        for_each_unreleased([this](const Request& request) {
            (void)lock_.front.nodes().ask(request, {.awaits_answers = false});
        });
    }

    /// Sends what the failed flow has left to do. Without memory, has this job called again soon, and returns
    /// false. After the ttl, the keys have expired.
    bool release_what_is_left() {
        using namespace std::chrono_literals;
        try {
            send_what_is_left();
        } catch (const std::bad_alloc&) {
            const auto now = lock_.task.now();
            if (now < release_until_) lock_.task.wake_at(now + 5ms);
            return now >= release_until_;
        } catch (...) {  // NOLINT(bugprone-empty-catch): a Nodes of the user that throws
        }
        return true;
    }

    const JobContext lock_;
    std::stop_source stop_{};
    const algorithm::AcquireLimits limits_;  // before acquire_, which copies the token
    std::unique_ptr<Job> earlier_{};         // the release of an earlier acquisition
    Lease unextended_{};                     // a lease that the watchdog could not take over
    std::exception_ptr failure_{};           // the exception of the flow, with which the operation ends
    Clock::time_point release_until_{};      // if the flow has failed: when its keys have expired
    // Allocated before the acquisition, because nothing may fail between the acquisition and begin().
    std::stop_source lost_ = lock_.options.watchdog ? std::stop_source{} : std::stop_source{std::nostopstate};
    LoopOperation operation_{lock_.front.nodes()};
    const algorithm::LeaseRequest request_ = lock_.state->acquire_request();
    AcquireFlow acquire_{operation_, lock_.front.clock(), lock_.front.entropy(),
                         request_,   lock_.options.retry, limits_};
    FlowRunner flow_;
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

std::unique_ptr<Job> release_job(const JobContext& lock, std::uint64_t acquisition, Replies replies) {
    return std::make_unique<ReleaseJob>(lock, acquisition, replies);
}

}  // namespace redlock::loop
