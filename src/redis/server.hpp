// What the threads of a process know about one node, one of the N Redis masters that vote: where it is,
// and whether it is expected to answer in time. All lanes of the threads share it (lanes.hpp). Each event
// loop has its own.
#pragma once

#include <redlock/clock.hpp>

#include "../os/resolution.hpp"
#include "../round/node_health.hpp"

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

namespace redlock {

/// An event for the observer. It is kept until a round is over, because no mutex may be held while the
/// observer is called.
struct NodeEvent {
    enum class Kind : std::uint8_t { connecting, disconnected, wrote, backing_off };
    Kind kind = Kind::connecting;
    detail::NodeFailure failure{};
    Clock::duration span{};  ///< the pause of a back-off, or the time for which commands were collected
    std::size_t commands = 0;
};

/// All members but the atomic ones are guarded by `mutex`. It is not held while a connection is begun,
/// written or closed, except one to a former master. A round does not lock it while the node is calm.
/// Otherwise a thread of low priority could lose its processor with a mutex that the others need.
struct Server {
    std::mutex mutex{};
    detail::NodeHealth health{};
    std::shared_ptr<Resolution> resolution{};  ///< the newest; a connection may still use an older one
    std::string named{};                       ///< bytes of the address that the Sentinels have named last
    std::size_t first_address = 0;  ///< the index of the address that the next connection tries first
    std::vector<NodeEvent> events{};
    /// The node has not failed since it has last answered in time, so its health cannot change before it
    /// fails. Written under `mutex`.
    std::atomic<bool> calm{true};
    std::atomic<std::uint64_t> answered{0};  ///< KeptReleases::changes() when the node answered last
    std::atomic<std::size_t> draining{0};    ///< draining connections of all lanes
};

}  // namespace redlock
