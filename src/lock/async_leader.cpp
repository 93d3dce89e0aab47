// AsyncLeader: does what the state of its TermSequence says (term_sequence.hpp), in an event loop.
#include <redlock/algorithm/acquire.hpp>
#include <redlock/async_leader.hpp>
#include <redlock/detail/memory.hpp>
#include <redlock/error.hpp>

#include "../loop/context.hpp"
#include "../loop/later_call.hpp"
#include "../loop/scheduler.hpp"
#include "lease_state.hpp"
#include "option_checks.hpp"
#include "term_sequence.hpp"

#include <cstdint>
#include <new>
#include <stop_token>
#include <system_error>

namespace redlock {

/// The state of a leader. It outlives the AsyncLeader while run() is under way, and while there is an
/// AsyncTerm of it. The TermSequence says what to do, and proceed() begins it. When the outcome has been
/// passed to the TermSequence, the task is woken.
class AsyncLeader::Impl final : loop::Member, public std::enable_shared_from_this<AsyncLeader::Impl> {
public:
    Impl(AsyncNodes& nodes, std::string resource, LeaderOptions options)
        : Member(nodes.context_),
          options_(std::move(options)),
          lock_(nodes, std::move(resource), detail::lock_options(options_, loop_watchdog(), *context)) {}

    void run(Work work, Done done);
    void cancel() noexcept;
    /// Is called when the AsyncLeader is destroyed.
    void leave() noexcept;

private:
    using State = detail::TermSequence::State;

    void campaign();
    void lead(AsyncTerm::End end);
    void end_work(std::uint64_t term, std::exception_ptr failure) noexcept;
    void resign();
    void report();
    void finish(std::exception_ptr failure);

    void proceed() override;
    void shut_down() noexcept override;

    const LeaderOptions options_;
    AsyncLock lock_;
    detail::TermSequence sequence_{options_, context->entropy()};

    // Of the present run().
    std::stop_source stop_{std::nostopstate};
    std::shared_ptr<Work> work_{};
    Done done_{};
    std::shared_ptr<Impl> self_{};  // keeps this object during run()

    std::uint64_t number_ = 0;  // of the present term, or the last one
    Clock::time_point pause_until_{};
};

void AsyncLeader::Impl::run(Work work, Done done) {
    if (!context->in_owning_process() || context->is_shut_down()) return;
    if (sequence_.state() != State::idle) {
        const std::system_error error{std::make_error_code(std::errc::operation_in_progress)};
        loop::LaterCall<std::exception_ptr>::make(context, std::move(done), std::make_exception_ptr(error));
        return;
    }
    stop_ = std::stop_source{};
    work_ = std::make_shared<Work>(std::move(work));
    done_ = std::move(done);
    self_ = shared_from_this();
    sequence_.begin(stop_.get_token());
    pause_until_ = now();
    wake();
}

void AsyncLeader::Impl::proceed() {
    if (sequence_.state() == State::pausing) {
        if (!stop_.stop_requested() && now() < pause_until_) return wake_at(pause_until_);
        sequence_.pause_ended();
    }
    switch (sequence_.state()) {
        case State::idle: return finish({});
        case State::campaigning: return campaign();
        case State::resigning: return resign();
        case State::resigned: return report();
        case State::leading:  // campaign() has called lead()
        case State::pausing: return;
    }
}

/// Allocates `end` before the acquisition, so that an elected leader can lead without further memory.
void AsyncLeader::Impl::campaign() {
    try {
        AsyncTerm::End end = [self = shared_from_this(), term = ++number_](std::exception_ptr failure) {
            self->end_work(term, std::move(failure));
        };
        lock_.acquire_within({.attempts = options_.retry.attempts, .wait_while_held = true},
                             [this, end = std::move(end)](Result result) mutable {
                                 sequence_.campaigned(std::move(result), lock_.remaining());
                                 if (sequence_.state() == State::leading) return lead(std::move(end));
                                 wake();
                             });
    } catch (const std::bad_alloc&) {
        sequence_.campaigned(Result{std::make_error_code(std::errc::not_enough_memory)}, {});
        wake();
    }
}

/// Calls the work. If it throws, its AsyncTerm has ended the term already, or has been moved to another place
/// and cannot end it any more.
void AsyncLeader::Impl::lead(AsyncTerm::End end) {
    const auto self = shared_from_this();
    const auto work = work_;
    const auto number = number_;
    try {
        (*work)(AsyncTerm{Term{lock_.acquisition()}, std::move(end)});
    } catch (...) {
        end_work(number, {});
        sequence_.work_failed(std::current_exception());
    }
}

void AsyncLeader::Impl::end_work(std::uint64_t term, std::exception_ptr failure) noexcept {
    if (term != number_ || sequence_.state() != State::leading || !context->in_owning_process()) return;
    if (failure)
        sequence_.work_failed(std::move(failure));
    else
        sequence_.work_ended(lock_.lost());
    wake();
}

/// Without memory, the release has not begun, and this function is called again.
void AsyncLeader::Impl::resign() {
    using namespace std::chrono_literals;
    const bool begun = detail::has_memory_for([this] {
        lock_.release([this](Result result) {
            sequence_.released(std::move(result));
            wake();
        });
    });
    if (!begun) wake_at(now() + 100ms);
}

/// Keeps this object, because the functions of the user may destroy the AsyncLeader and shut down the loop.
void AsyncLeader::Impl::report() {
    const auto self = shared_from_this();
    try {
        const auto pause = sequence_.report();
        pause_until_ = now() + pause;
    } catch (...) {
        return finish(std::current_exception());
    }
    wake();
}

/// The completion is called last, because it can begin the next run() or destroy the AsyncLeader. There is
/// none if on_failure or on_error has shut the loop down and then thrown an exception.
void AsyncLeader::Impl::finish(std::exception_ptr failure) {
    const auto self = std::move(self_);
    const auto work = std::move(work_);
    if (auto done = std::move(done_)) done(std::move(failure));
}

// ---- The end

void AsyncLeader::Impl::cancel() noexcept {
    if (sequence_.state() == State::idle || !context->in_owning_process()) return;
    stop_.request_stop();
    if (sequence_.state() == State::campaigning) lock_.cancel();
    if (sequence_.state() == State::pausing) wake();
    if (sequence_.state() == State::leading) Term{lock_.acquisition()}.request_stop();
}

void AsyncLeader::Impl::leave() noexcept {
    cancel();
    if (!context->in_owning_process())
        self_ = shared_from_this();  // a child of fork() keeps the object for ever
}

/// The functions of the user are destroyed last, because they may own the AsyncLeader.
void AsyncLeader::Impl::shut_down() noexcept {
    const auto self = std::move(self_);
    const auto work = std::move(work_);
    const auto done = std::move(done_);
    sequence_.end();
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
