// AsyncLock: begins the operations of a lock in an event loop, calls their completions, and releases the lock
// when it is destroyed. The operations themselves are jobs (loop/lock_jobs.hpp).
#include <redlock/algorithm/acquire.hpp>
#include <redlock/async_lock.hpp>
#include <redlock/detail/renewer.hpp>

#include "../flow/lock_operations.hpp"
#include "../loop/context.hpp"
#include "../loop/later_call.hpp"
#include "../loop/lock_jobs.hpp"
#include "../loop/scheduler.hpp"
#include "lease_state.hpp"
#include "option_checks.hpp"

#include <exception>
#include <new>
#include <optional>
#include <system_error>

namespace redlock {
namespace {

/// Ends an operation that cannot begin. The completion is called later, unless the loop was shut down.
void refuse(const std::shared_ptr<loop::Context>& context, Completion done, std::error_code error) {
    if (context->in_owning_process() && !context->is_shut_down())
        loop::LaterCall<Result>::make(context, std::move(done), Result{error});
}

}  // namespace

/// Returns a mark: the loop of a lock extends it.
detail::Renewer* loop_watchdog() noexcept {
    static detail::Renewer watchdog{boot_clock()};
    return &watchdog;
}

/// The state of a lock. It outlives the AsyncLock while an operation or a release is under way.
///
///     state     | done_ | job_  | ended_ | meaning
///     ----------+-------+-------+--------+----------------------------------------------------------------
///     idle      | empty | null  | empty  | no operation is under way
///     working   | set   | a job | empty  | an operation is under way; proceed() goes on with it
///     reporting | set   | any   | set    | it has ended, and the next proceed() calls its completion; a job
///               |       |       |        | has the result, and without a job the result is `ended_`
///     leaving   | empty | any   | any    | the AsyncLock was destroyed; its release is under way, or without
///               |       |       |        | memory is begun again by the next proceed()
class AsyncLock::Impl final : loop::Member, public std::enable_shared_from_this<AsyncLock::Impl> {
public:
    Impl(std::shared_ptr<loop::Context> of_loop, std::shared_ptr<detail::LeaseState> state)
        : Member(std::move(of_loop)), state_(std::move(state)) {}

    template <class Make>
    void begin(Completion done, Make make);
    /// Return the job of an operation. That of a release ends the validity of the lease at once.
    std::unique_ptr<loop::Job> acquire_job(algorithm::AcquireLimits limits);
    template <class Operation, class... Arguments>
    std::unique_ptr<loop::Job> job(const Arguments&... arguments) {
        return std::make_unique<loop::FlowJob<Operation>>(*context, static_cast<Task&>(*this), state_,
                                                          arguments...);
    }
    void cancel() noexcept;

    /// Is called when the AsyncLock is destroyed: cancels its operation, and then releases the lock.
    void leave() noexcept;

private:
    void run_job();
    void report();
    void shut_down_job() noexcept;
    void release_and_leave() noexcept;
    void write_release() noexcept;

    void proceed() override;
    void shut_down() noexcept override;

    const std::shared_ptr<detail::LeaseState> state_;
    Completion done_{};
    std::unique_ptr<loop::Job> job_{};
    std::stop_source stop_{std::nostopstate};  // ends the last acquisition
    std::optional<std::error_code> ended_{};
    bool is_in_job_ = false;        // the job is running; a callback of lost() can shut the loop down then
    std::shared_ptr<Impl> self_{};  // keeps this object after the AsyncLock was destroyed
};

// ---- Operations

/// Begins the job that `make` returns. The completion is called later, also if another operation is under
/// way. After the shutdown of the loop it is not called. Without memory for the job, nothing has begun.
template <class Make>
void AsyncLock::Impl::begin(Completion done, Make make) {
    if (!context->in_owning_process() || context->is_shut_down()) return;
    if (done_)
        return refuse(context, std::move(done), std::make_error_code(std::errc::operation_in_progress));
    const auto keep = shared_from_this();
    job_ = make();
    done_ = std::move(done);
    run_job();
    if (ended_) wake();
}

std::unique_ptr<loop::Job> AsyncLock::Impl::acquire_job(algorithm::AcquireLimits limits) {
    std::stop_source stop;
    limits.stop = stop.get_token();
    auto acquiring = job<flow::AcquireLock>(limits, state_->terms.options.ttl);
    stop_ = std::move(stop);
    return acquiring;
}

void AsyncLock::Impl::cancel() noexcept {
    if (job_ && !ended_ && stop_.request_stop()) wake();
}

/// While the job runs, a callback of lost() can shut the loop down or destroy the AsyncLock. Therefore the
/// caller keeps this object, and the job is destroyed after it has returned.
void AsyncLock::Impl::run_job() {
    is_in_job_ = true;
    try {
        if (job_->advance()) ended_.emplace();
    } catch (...) {
        ended_ = flow::error_of_exception();
        job_.reset();
    }
    is_in_job_ = false;
    if (context->is_shut_down()) shut_down_job();
}

void AsyncLock::Impl::proceed() {
    const auto keep = shared_from_this();
    if (job_ && !ended_) run_job();
    if (!ended_) return;
    if (done_)
        report();
    else
        release_and_leave();
}

/// Calls the completion, which can begin the next operation or destroy the lock. If the AsyncLock was
/// destroyed during the operation, its release is begun first.
void AsyncLock::Impl::report() {
    auto done = std::move(done_);
    auto result = job_ ? job_->take_result() : Result{*ended_};
    job_.reset();
    ended_.reset();
    if (self_) {
        result = Result{Errc::cancelled};
        release_and_leave();
    }
    done(std::move(result));
}

// ---- The end

/// Ends the job, unless run_job() does this later.
void AsyncLock::Impl::shut_down_job() noexcept {
    if (is_in_job_) return;
    const auto job = std::move(job_);
    if (job && !ended_) job->shut_down();
    ended_.reset();
}

void AsyncLock::Impl::leave() noexcept {
    self_ = shared_from_this();
    if (!context->in_owning_process()) return;  // a child of fork() keeps the object for ever
    state_->end_watch(state_->number());
    if (context->is_shut_down()) {
        shut_down_job();
        write_release();
        self_.reset();
    } else if (done_) {
        cancel();
    } else {
        release_and_leave();
    }
}

/// Sends the release, if there is anything to release, and then lets this object be destroyed. Without
/// memory, tries again soon.
void AsyncLock::Impl::release_and_leave() noexcept {
    using namespace std::chrono_literals;
    state_->end_watch(state_->number());
    const bool again = ended_ && *ended_ == std::errc::not_enough_memory;
    if (ended_ && !again) return self_.reset();
    ended_.reset();
    try {
        const auto lease = state_->lease();
        if (lease.empty() || (lease.released && now() >= lease.valid_until)) return self_.reset();
        job_ = job<flow::ReleaseLock>(state_->number(), flow::Replies::not_awaited);
        wake();
    } catch (const std::bad_alloc&) {
        ended_ = std::make_error_code(std::errc::not_enough_memory);
        wake_at(now() + 100ms);
    }
}

/// At the shutdown of the loop: writes the release of a lock that is destroyed.
void AsyncLock::Impl::write_release() noexcept {
    flow::BlockingOperation operation{*context};
    flow::ReleaseLock release{operation, state_, state_->number(), flow::Replies::not_awaited};
    release.send_unreleased();  // without memory, the keys will expire
}

/// The lock is not extended any more, so a stop is requested on lost(), as AsyncLeader does for its term. If
/// the AsyncLock was destroyed before, the lock may be held, and nobody else will release it. If a release is
/// under way, its job has written it. The completion is destroyed last, because it may own the AsyncLock.
void AsyncLock::Impl::shut_down() noexcept {
    const auto keep = weak_from_this().lock();
    const auto done = std::move(done_);
    const bool is_left = self_ && (ended_ || !state_->lease().released);
    shut_down_job();
    if (is_left) write_release();
    self_.reset();
    if (state_->terms.options.watchdog) state_->request_stop(state_->number());
    state_->end_watch(state_->number());  // on_lost is not called, even if a callback of lost() shuts down
}

// ---- AsyncLock

AsyncLock::AsyncLock(AsyncNodes& nodes, ResourceList resources, LockOptions options)
    : AsyncLock(nodes, detail::checked_resources(std::move(resources).take()), std::move(options),
                detail::Acquires::all) {}

AsyncLock::AsyncLock(AsyncNodes& nodes, std::vector<std::string> names, LockOptions options,
                     detail::Acquires acquires)
    : context_(nodes.context_) {
    detail::check_lock(options, *context_, names);
    detail::require(!options.watchdog || options.watchdog == loop_watchdog(), "LockOptions::watchdog",
                    "a watchdog with threads", "be loop_watchdog(), because the lock belongs to a loop");
    if (options.watchdog) options.watchdog = &context_->renewals();
    state_ = std::make_shared<detail::LeaseState>(detail::LockTerms{
        *context_, context_->clock(), std::move(names), std::move(options), acquires, context_->entropy()});
    impl_ = std::make_shared<Impl>(context_, state_);
}

AsyncLock::~AsyncLock() {
    if (impl_) impl_->leave();
}

// NOLINTNEXTLINE(performance-move-constructor-init): the other lock keeps its loop
AsyncLock::AsyncLock(AsyncLock&& other) noexcept
    : LeaseView(std::move(other)), context_(other.context_), impl_(std::move(other.impl_)) {}

AsyncLock& AsyncLock::operator=(AsyncLock&& other) noexcept {
    if (this == &other) return *this;
    if (impl_) impl_->leave();
    LeaseView::operator=(std::move(other));
    context_ = other.context_;
    impl_ = std::move(other.impl_);
    return *this;
}

// ---- Operations. A lock that was moved from can only refuse them.

void AsyncLock::acquire(Completion done) {
    acquire_within(acquire_limits(), std::move(done));
}

void AsyncLock::try_acquire(Completion done) {
    acquire_within({.attempts = 1, .queue_timeout = {}}, std::move(done));
}

void AsyncLock::acquire_by(Clock::time_point deadline, Completion done) {
    acquire_within({.deadline = deadline}, std::move(done));
}

void AsyncLock::acquire_within(const algorithm::AcquireLimits& limits, Completion done) {
    if (!impl_) return refuse(context_, std::move(done), std::make_error_code(std::errc::invalid_argument));
    impl_->begin(std::move(done), [&] { return impl_->acquire_job(limits); });
}

void AsyncLock::extend(Completion done) {
    extend(ttl(), std::move(done));
}

void AsyncLock::extend(std::chrono::milliseconds ttl, Completion done) {
    if (!impl_) return refuse(context_, std::move(done), Errc::not_held);
    check_ttl(ttl);
    impl_->begin(std::move(done), [&] { return impl_->job<flow::ExtendLock>(ttl); });
}

void AsyncLock::release(Completion done) {
    if (!impl_) return refuse(context_, std::move(done), Errc::not_held);
    impl_->begin(std::move(done), [&] {
        return impl_->job<flow::ReleaseLock>(state_->number_to_release(), flow::Replies::awaited);
    });
}

void AsyncLock::cancel() noexcept {
    if (impl_) impl_->cancel();
}

}  // namespace redlock
