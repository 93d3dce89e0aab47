// Leader election for programs with an event loop. It follows the same rules as Leader (leader.hpp), but no
// function blocks. An AsyncLeader *campaigns*: it tries to acquire the lock of the leadership. When it has
// acquired the lock, this process is the leader, and a *term* begins. The AsyncLeader then passes an
// AsyncTerm to a function of the program. This function begins the work and returns:
//
//     std::optional<redlock::AsyncTerm> billing;  // has a value during a term
//     redlock::AsyncLeader leader{loop_nodes, "billing:leader", {.ttl = 15s}};
//     leader.run([&](redlock::AsyncTerm term) { billing.emplace(std::move(term)); },
//                [](std::exception_ptr) {});      // is called when run() has ended
//     const auto on_timer = [&] {                 // the program calls it again and again
//         if (billing && billing->lost().stop_requested()) billing.reset();  // ends the term
//         if (billing) bill_the_next(billing->fencing_token());
//     };
//
// The work must stop when a stop is requested on AsyncTerm::lost(). When the work has stopped, the program
// ends the term: it calls AsyncTerm::end(), or destroys the AsyncTerm. The AsyncLeader then releases its
// lock, pauses, and campaigns again, until AsyncLeader::cancel() is called. A std::stop_callback on lost() is
// called in the loop. It may end the term, and may destroy the AsyncLeader.
//
// leader.hpp documents the promises of a term, the options, and the campaigns, terms and pauses. This file
// documents the differences in a loop.
#pragma once

#include <redlock/async_lock.hpp>
#include <redlock/async_nodes.hpp>
#include <redlock/export.hpp>
#include <redlock/leader.hpp>

#include <exception>
#include <functional>
#include <memory>
#include <string>
#include <utility>

namespace redlock {

/// A term in an event loop: a Term that the program can end. An AsyncTerm can be moved, but not copied. Any
/// thread may call the functions of Term. All other functions must be called in the loop (EventLoop says what
/// that is). An AsyncTerm, and each copy of its Term, may outlive the AsyncLeader, the AsyncNodes and the
/// RedisNodes, but not the clock of the AsyncNodes.
class AsyncTerm : public Term {
public:
    /// The function that an AsyncTerm calls to end the term. It gets the exception of the work, or null.
    using End = CompletionWith<std::exception_ptr>;

    /// Makes an AsyncTerm whose end() calls the function `end`, which must not throw.
    ///
    /// With this constructor, a program can run code of its own at the end of a term: it makes a second
    /// AsyncTerm, which owns the one of the AsyncLeader. In the example, `term` is the one of the
    /// AsyncLeader, and the std::optional `billing` gets the second one. billing->end() calls clean_up(),
    /// which must not throw, and then term.end():
    ///
    ///     [&](redlock::AsyncTerm term) {
    ///         const redlock::Term copy = term;
    ///         billing.emplace(copy, [term = std::move(term)](std::exception_ptr failure) mutable {
    ///             clean_up();
    ///             term.end(std::move(failure));
    ///         });
    ///     }
    AsyncTerm(const Term& term, End end) noexcept : Term(term), end_(std::move(end)) {}

    /// Calls end().
    ~AsyncTerm() { end(); }
    /// Takes over the end of the term: `other.end()` does nothing afterwards. The functions of Term can still
    /// be called on `other`.
    AsyncTerm(AsyncTerm&& other) noexcept = default;
    /// Calls end(), and then takes over the end of the other term.
    AsyncTerm& operator=(AsyncTerm&& other) noexcept {
        if (this == &other) return *this;
        end();
        end_ = std::move(other.end_);
        Term::operator=(other);
        return *this;
    }

    /// Ends the term: the AsyncLeader releases its lock, and another process can be elected. Therefore the
    /// work must have stopped before. Does not block, because the loop sends the release later. Does nothing
    /// if the term has been ended already.
    ///
    /// `failure` is the exception with which the work has failed, or null if it has not failed. The
    /// AsyncLeader passes the exception to LeaderOptions::on_error, or ends run() if there is no on_error.
    void end(std::exception_ptr failure = {}) noexcept {
        if (auto end = std::move(end_)) end(std::move(failure));
    }

private:
    End end_;
};

/// A candidate for the leadership in an event loop.
///
/// - All functions must be called in the loop (EventLoop says what that is).
/// - The loop calls `work` and `done` of run(), LeaderOptions::on_error and LeaderOptions::on_failure inside
///   EventLoop::ready() or wake(). on_failure gets the Result of a campaign or a term that has failed.
///   on_error gets the exception of failed work, or of on_failure. All these functions may call any function
///   of this object, and may destroy it.
/// - AsyncNodes::shut_down() ends run() without a call of its completion. During a term, a stop is requested
///   on AsyncTerm::lost(), because the lock is not extended any more. The end of the term alone does not
///   release the lock then. The lock is released as soon as the program has done two things, in any order: it
///   has ended the term, and has destroyed the AsyncLeader.
class REDLOCK_EXPORT AsyncLeader {
public:
    /// The function that begins the work of a term. If it throws, the work has failed, and the term ends,
    /// even if the program has moved the AsyncTerm to another place. Its end() then does nothing.
    using Work = std::function<void(AsyncTerm)>;
    /// The completion of run(). If several rows apply, the first of them says which argument it gets:
    ///
    ///     case                                       | argument
    ///     -------------------------------------------+----------------------------------------------
    ///     another run() is under way                 | a std::system_error with the code
    ///                                                | std::errc::operation_in_progress
    ///     the work has failed, or on_failure has     | the exception of the work or of on_failure
    ///     thrown, and there is no on_error           |
    ///     on_error has thrown                        | the exception of on_error
    ///     cancel() was called                        | null
    using Done = CompletionWith<std::exception_ptr>;

    /// Prepares a candidate, as the constructor of Leader does. Does no I/O. The object may outlive the
    /// AsyncNodes (see there). The loop extends the lock. LeaderOptions::watchdog must be null or
    /// loop_watchdog(), which have the same effect. Throws std::invalid_argument if an option cannot work.
    AsyncLeader(AsyncNodes& nodes, std::string resource, LeaderOptions options = {});

    /// Calls cancel(), and does not block. If run() is under way, it goes on without this object, and ends
    /// with a call of `done` as after cancel(). A term lasts until the program ends it.
    ~AsyncLeader();
    AsyncLeader(const AsyncLeader&) = delete;
    AsyncLeader& operator=(const AsyncLeader&) = delete;

    /// Begins to run terms, with pauses between them, and returns at once. Then run() is *under way* until
    /// the loop calls `done`. One of these events lets run() end:
    ///
    /// - cancel() is called. The comment of cancel() says when run() ends then.
    /// - The work fails, or LeaderOptions::on_failure throws, and there is no LeaderOptions::on_error.
    /// - LeaderOptions::on_error throws.
    ///
    /// The work of a term fails if `work` throws, or if the program passes an exception to AsyncTerm::end().
    ///
    /// Only one run() can be under way. A second one does nothing, and the loop calls its `done` with a
    /// std::system_error that has the code std::errc::operation_in_progress. If this function throws
    /// std::bad_alloc, nothing has begun, and `done` is destroyed without a call.
    void run(Work work, Done done);

    /// Asks run() to end, and does not wait for the end. Does nothing if no run() is under way.
    ///
    /// - During a pause, run() ends at once.
    /// - During a campaign, run() ends within two node_timeouts. With LeaderOptions::fair, it can take an
    ///   eighth of a node_timeout more to leave the queue.
    /// - During a term, this function requests a stop on AsyncTerm::lost(). When the program has ended the
    ///   term, the AsyncLeader releases its lock within one node_timeout. Then run() ends.
    void cancel() noexcept;

private:
    class Impl;

    std::shared_ptr<Impl> impl_;
};

}  // namespace redlock
