// An interface for metrics and logs: an observer is notified of rounds, connections and failed nodes.
//
//     class Metrics : public redlock::Observer {
//         void round_ended(const redlock::Command& command, const redlock::Tally& tally,
//                          std::chrono::nanoseconds took) noexcept override {
//             rounds[command.verb].observe(took);
//         }
//     };
//     Metrics metrics;
//     redlock::RedisNodes nodes{{"10.0.0.1", "10.0.0.2", "10.0.0.3"}, {.observer = &metrics}};
#pragma once

#include <redlock/export.hpp>
#include <redlock/nodes.hpp>

#include <chrono>
#include <cstddef>
#include <string_view>
#include <system_error>

namespace redlock {

/// Override the functions that you need. The functions of this class do nothing. The library calls them at
/// the end of a round, for everything that has happened since the last one. A slow function makes acquire(),
/// extend() and release() slower. The arguments are valid until the function returns.
///
/// Threads: the functions are called in the thread that has asked for the round, and several threads can call
/// them at the same time. The rounds of an AsyncLock are made in its event loop. There the functions must not
/// use the locks of this loop. The library holds no internal mutex during a call, with one exception: with
/// redlock/asio.hpp it holds a mutex of the loop. Therefore the functions must not wait there for another
/// thread, which may wait for this mutex.
class REDLOCK_EXPORT Observer {
public:
    virtual ~Observer() = default;

    /// A round has ended. The tally has the vote of each node and its cause; `took` is the duration of the
    /// whole round. In an event loop, a command whose replies nobody awaits, such as the deletion of a
    /// description or of a ticket, may end without this call.
    virtual void round_ended(const Command& /*command*/, const Tally& /*tally*/,
                             std::chrono::nanoseconds /*took*/) noexcept {}

    /// A new connection was begun.
    virtual void connecting(std::string_view /*node*/) noexcept {}

    /// A connection was closed. There is no cause if it was no longer needed.
    virtual void disconnected(std::string_view /*node*/, std::error_code /*cause*/,
                              std::string_view /*detail*/) noexcept {}

    /// So many commands were written to a node, mostly in one write, over a connection that rounds share. The
    /// first of them had waited for the time `waited`, because commands are collected while the node owes
    /// replies. The function is not called for a connection that one round has for itself.
    virtual void wrote(std::string_view /*node*/, std::size_t /*commands*/,
                       std::chrono::nanoseconds /*waited*/) noexcept {}

    /// A node has failed. Rounds skip it for the time `pause`, unless there is no quorum without it.
    virtual void backing_off(std::string_view /*node*/, std::error_code /*cause*/,
                             std::string_view /*detail*/, std::chrono::nanoseconds /*pause*/) noexcept {}

protected:
    Observer() = default;
    Observer(const Observer&) = default;
    Observer& operator=(const Observer&) = default;
};

}  // namespace redlock
