// AsyncLeader: campaigns for a lock, has the work done while the lock is held, and resigns, in an event loop.
#include <redlock/acquire.hpp>
#include <redlock/async_leader.hpp>
#include <redlock/detail/lease_state.hpp>
#include <redlock/error.hpp>

#include "leadership.hpp"
#include "loop/front.hpp"
#include "loop/later_call.hpp"
#include "loop/scheduler.hpp"

#include <cstdint>
#include <new>
#include <optional>
#include <stop_token>
#include <system_error>
#include <utility>

namespace redlock {

/// The state of a leader. It outlives the AsyncLeader while run() is under way, and while there is an
/// AsyncTerm of it.
///
///     state       | meaning                        | transitions
///     ------------+--------------------------------+-------------------------------------------------------
///     idle        | no run() is under way          | run() → pausing, with no time to wait
///     campaigning | the lock is being acquired     | elected → leading, or resigning if the work must not
///                 |                                | begin; failed → pausing
///     leading     | the work has its term          | the work has ended → resigning
///     resigning   | the lock is being released     | released → pausing
///     pausing     | between two terms              | the pause is over → campaigning
///
/// A stop ends the state pausing, and an exception that nobody handles, too. The state is then idle.
class AsyncLeader::Impl final : loop::FrontOwner,
                                loop::Task,
                                loop::Member,
                                public std::enable_shared_from_this<AsyncLeader::Impl> {
public:
    Impl(AsyncNodes& nodes, std::string resource, LeaderOptions options)
        : FrontOwner(nodes.front_),
          Task(front->scheduler()),
          Member(front->members()),
          options_(std::move(options)),
          lock_(nodes, std::move(resource), detail::lock_options(options_, loop_watchdog(), front->nodes())) {
    }

    void run(Work work, Done done);
    void cancel() noexcept;
    /// Is called when the AsyncLeader is destroyed.
    void leave() noexcept;

private:
    enum class State { idle, campaigning, leading, resigning, pausing };

    void campaign();
    void elected(Result result);
    void lead();
    void end_work(std::uint64_t term, std::exception_ptr failure) noexcept;
    void resign();
    void resigned(Result released);
    void pause_after(Result result);
    void finish(std::exception_ptr failure);

    void proceed() override;
    void shut_down() noexcept override;

    const LeaderOptions options_;
    AsyncLock lock_;
    State state_ = State::idle;

    // Of the present run().
    std::stop_source stop_{std::nostopstate};
    std::optional<detail::TermPauses> pauses_{};
    std::shared_ptr<Work> work_{};
    Done done_{};
    std::shared_ptr<Impl> self_{};  // keeps this object during run()

    // Of the present term, or the last one.
    std::uint64_t number_ = 0;
    std::optional<Term> term_{};    // empty unless leading
    std::error_code error_{};       // why the term has failed
    std::exception_ptr failure_{};  // the exception of the work
    Clock::time_point pause_until_{};
};

void AsyncLeader::Impl::run(Work work, Done done) {
    if (!front->in_owning_process() || front->is_shut_down()) return;
    if (state_ != State::idle) {
        const std::system_error error{std::make_error_code(std::errc::operation_in_progress)};
        loop::LaterCall<std::exception_ptr>::make(front, std::move(done), std::make_exception_ptr(error));
        return;
    }
    stop_ = std::stop_source{};
    pauses_.emplace(options_, front->entropy());
    work_ = std::make_shared<Work>(std::move(work));
    done_ = std::move(done);
    self_ = shared_from_this();
    state_ = State::pausing;
    pause_until_ = now();
    wake();
}

/// Without memory, resign() has not begun the release, and is called again.
void AsyncLeader::Impl::proceed() {
    if (state_ == State::resigning) return resign();
    if (state_ != State::pausing) return;
    if (stop_.stop_requested()) return finish({});
    if (now() < pause_until_) return wake_at(pause_until_);
    campaign();
}

void AsyncLeader::Impl::campaign() {
    state_ = State::campaigning;
    try {
        lock_.acquire(algorithm::AcquireLimits{.attempts = options_.retry.attempts, .wait_while_held = true},
                      [this](Result result) { elected(std::move(result)); });
    } catch (const std::bad_alloc&) {
        pause_after(Result{std::make_error_code(std::errc::not_enough_memory)});
    }
}

void AsyncLeader::Impl::elected(Result result) {
    if (!result) return pause_after(std::move(result));
    error_ = detail::reason_not_to_lead(lock_.remaining(), options_, stop_.get_token());
    if (!error_) return lead();
    state_ = State::resigning;
    resign();
}

/// Calls the work. If it throws, its AsyncTerm has ended the term already, or has been moved to another place
/// and cannot end it any more.
void AsyncLeader::Impl::lead() {
    const auto self = shared_from_this();
    const auto work = work_;
    const auto number = ++number_;
    state_ = State::leading;
    term_.emplace(Term{{lock_.state(), lock_.state()->number()}, front->clock()});
    AsyncTerm::End end;
    try {
        end = [self, number](std::exception_ptr failure) { self->end_work(number, std::move(failure)); };
    } catch (const std::bad_alloc&) {
        end_work(number, {});
        error_ = std::make_error_code(std::errc::not_enough_memory);
        return;
    }
    try {
        (*work)(AsyncTerm{*term_, std::move(end)});
    } catch (...) {
        end_work(number, {});
        failure_ = std::current_exception();
    }
}

void AsyncLeader::Impl::end_work(std::uint64_t term, std::exception_ptr failure) noexcept {
    if (term != number_ || state_ != State::leading || !front->in_owning_process()) return;
    if (detail::was_lost(lock_.lost(), stop_.get_token())) error_ = Errc::lost;
    failure_ = std::move(failure);
    term_.reset();
    state_ = State::resigning;
    wake();
}

void AsyncLeader::Impl::resign() {
    using namespace std::chrono_literals;
    try {
        lock_.release([this](Result released) { resigned(std::move(released)); });
    } catch (const std::bad_alloc&) {
        wake_at(now() + 100ms);
    }
}

void AsyncLeader::Impl::resigned(Result released) {
    if (error_) released.conclude(error_, released.attempts());
    pause_after(std::move(released));
}

/// Keeps this object, because the functions of the user may destroy the AsyncLeader and shut down the loop.
void AsyncLeader::Impl::pause_after(Result result) {
    const auto self = shared_from_this();
    const auto outcome = [&] {
        if (failure_) std::rethrow_exception(std::exchange(failure_, nullptr));
        return std::move(result);
    };
    try {
        pause_until_ = now() + pauses_->after(outcome, stop_.get_token());
    } catch (...) {
        return finish(std::current_exception());
    }
    error_ = {};
    state_ = State::pausing;
    wake();
}

/// The completion is called last, because it can begin the next run() or destroy the AsyncLeader. There is
/// none if on_failure or on_error has shut the loop down and then thrown an exception.
void AsyncLeader::Impl::finish(std::exception_ptr failure) {
    state_ = State::idle;
    error_ = {};
    const auto self = std::move(self_);
    const auto work = std::move(work_);
    if (auto done = std::move(done_)) done(std::move(failure));
}

// ---- The end

void AsyncLeader::Impl::cancel() noexcept {
    if (state_ == State::idle || !front->in_owning_process()) return;
    stop_.request_stop();
    if (state_ == State::campaigning) lock_.cancel();
    if (state_ == State::pausing) wake();
    if (const auto term = term_) term->request_stop();
}

void AsyncLeader::Impl::leave() noexcept {
    cancel();
    if (!front->in_owning_process())
        self_ = shared_from_this();  // a child of fork() keeps the object for ever
}

/// The functions of the user are destroyed last, because they may own the AsyncLeader.
void AsyncLeader::Impl::shut_down() noexcept {
    const auto self = std::move(self_);
    const auto work = std::move(work_);
    const auto done = std::move(done_);
    state_ = State::idle;
}

// ---- AsyncLeader

AsyncLeader::AsyncLeader(AsyncNodes& nodes, std::string resource, LeaderOptions options) {
    detail::require(!options.watchdog || options.watchdog == loop_watchdog(), "LeaderOptions::watchdog",
                    "a watchdog with threads",
                    "be loop_watchdog() or null, because the leader belongs to a loop");
    impl_ = std::make_shared<Impl>(nodes, std::move(resource), std::move(options));
}

AsyncLeader::~AsyncLeader() {
    impl_->leave();
}

void AsyncLeader::run(Work work, Done done) {
    impl_->run(std::move(work), std::move(done));
}

void AsyncLeader::cancel() noexcept {
    impl_->cancel();
}

}  // namespace redlock
