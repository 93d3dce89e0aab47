// What a service may want to see of its locks: rounds, connections, nodes in trouble.
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
#include <string_view>
#include <system_error>

namespace redlock {

/// Override what you are interested in; the rest does nothing. Called at the end of a round in the thread
/// that asked for it, with no internal lock held, possibly by several threads at once. What takes long here
/// lengthens acquire, extend and release by as much. The arguments live as long as the call.
class REDLOCK_EXPORT Observer {
public:
    virtual ~Observer() = default;

    /// One round: what was asked, how each node voted and why, and how long the whole took.
    virtual void round_ended(const Command& /*command*/, const Tally& /*tally*/,
                             std::chrono::nanoseconds /*took*/) noexcept {}

    /// A connection was begun.
    virtual void connecting(std::string_view /*node*/) noexcept {}

    /// A connection is gone. No cause: it was not needed any more.
    virtual void disconnected(std::string_view /*node*/, std::error_code /*cause*/,
                              std::string_view /*detail*/) noexcept {}

    /// A node failed and is left alone for `pause`, unless there is no quorum without it.
    virtual void backing_off(std::string_view /*node*/, std::error_code /*cause*/,
                             std::string_view /*detail*/, std::chrono::nanoseconds /*pause*/) noexcept {}

protected:
    Observer() = default;
    Observer(const Observer&) = default;
    Observer& operator=(const Observer&) = default;
};

}  // namespace redlock
