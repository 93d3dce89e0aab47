// What Leader and AsyncLeader share (leader.hpp). A *term* is one leadership, from the election to the end of
// the work.
#pragma once

#include <redlock/detail/back_off.hpp>
#include <redlock/entropy.hpp>
#include <redlock/error.hpp>
#include <redlock/leader.hpp>
#include <redlock/nodes.hpp>
#include <redlock/options.hpp>
#include <redlock/result.hpp>

#include <chrono>
#include <exception>
#include <stop_token>
#include <system_error>

namespace redlock::detail {

/// Returns the options of the lock of a leader. Throws std::invalid_argument if they cannot work.
LockOptions lock_options(const LeaderOptions& options, Renewer* watchdog, const Nodes& nodes);

/// Returns why an elected leader must not begin its work, or no error if it may. If no more than the margin
/// of the validity is left, the watchdog would end the term at once.
inline std::error_code reason_not_to_lead(std::chrono::nanoseconds remaining, const LeaderOptions& options,
                                          const std::stop_token& stop) {
    if (remaining <= options.margin) return Errc::validity_exhausted;
    return stop.stop_requested() ? make_error_code(Errc::cancelled) : std::error_code{};
}

/// Returns true if the leadership was lost before the work has ended. A stop that the caller requests also
/// stops Term::lost(), so it always counts as the cause.
inline bool was_lost(const std::stop_token& lost, const std::stop_token& stop) {
    return lost.stop_requested() && !stop.stop_requested();
}

/// Reports the outcomes of terms, and chooses the pauses between them.
class TermPauses {
public:
    /// The arguments must outlive the object.
    TermPauses(const LeaderOptions& options, Entropy& entropy) : options_(options), entropy_(entropy) {}

    /// Calls `outcome`, which returns the result of a term or throws its exception. Returns the pause before
    /// the next term:
    ///
    ///     success         | the usual pause
    ///     failure         | the usual pause, after a call of on_failure
    ///     exception       | a pause that has doubled with each exception since the last success, after a
    ///                     | call of on_error. Without on_error, the exception is thrown.
    template <class Outcome>
    Clock::duration after(Outcome outcome, const std::stop_token& stop) {
        int doublings = 0;
        try {
            const Result result = outcome();
            if (result) errors_ = 0;
            if (!result && options_.on_failure && !stop.stop_requested()) options_.on_failure(result);
        } catch (...) {
            if (!options_.on_error) throw;
            doublings = ++errors_;
            options_.on_error(std::current_exception());
        }
        const BackOff back_off{.shortest = options_.retry.delay, .longest = options_.longest_pause};
        return back_off.pause(doublings, entropy_);
    }

private:
    const LeaderOptions& options_;
    Entropy& entropy_;
    int errors_ = 0;
};

}  // namespace redlock::detail
