// Leader election for programs with an event loop. It follows the same rules as Leader (leader.hpp), but no
// function blocks. A *term* is the time for which this process is the leader. When a term begins, the leader
// calls a function of the program, which begins the work and returns:
//
//     std::optional<redlock::AsyncTerm> billing;            // while this process leads
//     redlock::AsyncLeader leader{loop_nodes, "billing:leader", {.ttl = 15s}};
//     leader.run([&](redlock::AsyncTerm term) { billing.emplace(std::move(term)); },  // when it is elected
//                [](std::exception_ptr) {});                // when run() has ended
//
// Here the work is done by other functions of the program, such as the handler of a timer, while `billing`
// has a term. The work must stop when a stop is requested on AsyncTerm::lost(). When the work has stopped,
// the program ends the term: it calls AsyncTerm::end(), or destroys the AsyncTerm. The leader then resigns,
// pauses, and campaigns again, until AsyncLeader::cancel() is called.
//
// leader.hpp documents the promises of a term, the options, and the states. This file documents the
// differences in a loop.
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

/// A term whose work goes on in an event loop: a Term, and the function that ends it. Any thread may use the
/// queries. All other functions must be called in the loop. The Term can be copied, the AsyncTerm cannot.
class AsyncTerm : public Term {
public:
    /// The function that ends a term. It gets the exception of the work, or null.
    using End = CompletionWith<std::exception_ptr>;

    /// Makes an object that calls `end` once, when the term ends. `end` must not throw. An AsyncLeader passes
    /// a complete AsyncTerm to the work, so a program needs this constructor only to add its own code to the
    /// end of a term. The `end` of the new object then runs this code, and ends the AsyncTerm of the leader.
    AsyncTerm(const Term& term, End end) noexcept : Term(term), end_(std::move(end)) {}

    /// Ends the term, unless it has been ended.
    ~AsyncTerm() { end(); }
    AsyncTerm(AsyncTerm&& other) noexcept = default;
    AsyncTerm& operator=(AsyncTerm&& other) noexcept {
        if (this == &other) return *this;
        end();
        end_ = std::move(other.end_);
        Term::operator=(std::move(other));
        return *this;
    }

    /// Ends the term: the leader releases its lock, and another process can be elected. Therefore the work
    /// must have stopped. `failure` is the exception with which the work has failed, if it has failed. It is
    /// treated as an exception that the work of a Leader throws. Does nothing if the term has been ended.
    void end(std::exception_ptr failure = {}) noexcept {
        if (auto end = std::move(end_)) end(std::move(failure));
    }

private:
    End end_;
};

/// A candidate for the leadership in an event loop.
///
/// - All functions must be called in the loop. The functions of the user are called in the loop, too, and may
///   call any function of this object, or destroy it.
/// - LeaderOptions::on_error and on_failure are called as those of a Leader. An exception of on_error ends
///   run().
/// - AsyncNodes::shut_down() ends run() without a call of its completion. If a term is under way, a stop is
///   requested on AsyncTerm::lost(), because the term is not extended any more. The lock of the term is
///   released when both the AsyncTerm and the AsyncLeader are destroyed.
class REDLOCK_EXPORT AsyncLeader {
public:
    /// The function that begins the work. If it throws, the term ends with this exception.
    using Work = std::function<void(AsyncTerm)>;
    /// The function that is called when run() has ended. It gets null, or the exception that the run() of a
    /// Leader would throw.
    using Done = CompletionWith<std::exception_ptr>;

    /// Prepares a candidate, as the constructor of Leader does. Does no I/O. The loop extends the terms.
    /// Throws std::invalid_argument if an option cannot work, or if LeaderOptions::watchdog is neither null
    /// nor loop_watchdog().
    AsyncLeader(AsyncNodes& nodes, std::string resource, LeaderOptions options = {});

    /// Calls cancel(). If run() is under way, it goes on to its end without this object. So a term lasts
    /// until its work has ended.
    ~AsyncLeader();
    AsyncLeader(const AsyncLeader&) = delete;
    AsyncLeader& operator=(const AsyncLeader&) = delete;

    /// Runs terms, with pauses between them, until one of these events:
    ///
    /// - cancel() is called.
    /// - The work or LeaderOptions::on_failure throws, and there is no LeaderOptions::on_error.
    /// - LeaderOptions::on_error throws.
    ///
    /// Then the loop calls `done`. Only one run() can be under way. A second one ends with a
    /// std::system_error that has the code std::errc::operation_in_progress. If this function itself throws
    /// std::bad_alloc, run() has not begun, and `done` is not called.
    void run(Work work, Done done);

    /// Ends run(): ends a pause at once, and a campaign within two node_timeouts. During a term, requests a
    /// stop on Term::lost(), and run() ends when the work has ended, plus one or two node_timeouts for the
    /// release. Does nothing if no run() is under way.
    void cancel() noexcept;

private:
    class Impl;

    std::shared_ptr<Impl> impl_;
};

}  // namespace redlock
