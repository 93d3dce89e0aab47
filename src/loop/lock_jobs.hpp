// The operations of an AsyncLock or AsyncSemaphore while they are under way. Each one is driven by the task
// of its lock.
#pragma once

#include <redlock/algorithm/acquire.hpp>
#include <redlock/detail/not_copied.hpp>
#include <redlock/result.hpp>

#include "../lock/lease_state.hpp"
#include "context.hpp"
#include "scheduler.hpp"

#include <chrono>
#include <memory>

namespace redlock::flow {
enum class Replies : bool;
}

namespace redlock::loop {

class Job : detail::NotCopied {
public:
    virtual ~Job() = default;

    /// Goes on as far as possible without blocking. Returns true if the operation has ended, and has applied
    /// its outcome to the lease. Otherwise the task is woken when the function must be called again. If the
    /// function throws, the operation has ended without a result.
    virtual bool advance() = 0;

    /// Returns the result. May be called once, after advance() has returned true.
    virtual Result take_result() noexcept = 0;

    /// Ends the operation as soon as possible, if it can be cancelled.
    virtual void cancel() noexcept {}

    /// Ends the operation at the shutdown of the loop, and writes the release that is left to do.
    virtual void shut_down() noexcept {}
};

/// The lock that a job works for.
struct JobContext {
    Context& context;
    Task& task;
    const std::shared_ptr<detail::LeaseState>& state;
};

/// Return the job of an operation, see flow/lock_operations.hpp. release_job() ends the validity of the lease
/// at once.
std::unique_ptr<Job> acquire_job(const JobContext& lock, algorithm::AcquireLimits limits);
std::unique_ptr<Job> extend_job(const JobContext& lock, std::chrono::milliseconds ttl);
std::unique_ptr<Job> release_job(const JobContext& lock, std::uint64_t acquisition, flow::Replies replies);

}  // namespace redlock::loop
