// The lower bound: hiredis sends the same bytes as redlock, without any logic. There is no deadline, no check
// of the validity, no new owner for each op, and no recovery from faults. Only the replies are checked, so
// that errors are not measured.
#pragma once

#include "client.hpp"
#include "raw_nodes.hpp"

#include <string>
#include <vector>

namespace redlock::bench {

class RawClient final : public LocalClient {
public:
    enum class Way : bool {
        sequential,   ///< one blocking command after the other, for the SETs and for the EVALSHAs
        multiplexed,  ///< all SETs written, then all replies read; the EVALSHAs likewise
    };

    /// Throws std::runtime_error if a node cannot be reached.
    RawClient(const std::vector<std::string>& uris, Way way, const std::string& resource)
        : RawClient(uris, way, std::vector{resource}) {}

    /// With several resources, an op acquires all of them, each by a command of its own, and releases them.
    /// The commands are pipelined: each node gets all of them in one write. Requires Way::multiplexed.
    RawClient(const std::vector<std::string>& uris, Way way, const std::vector<std::string>& resources);

    bool acquire() override;
    void release() override { send(releases_); }

private:
    void send(const std::vector<RawCommand*>& commands);

    Way way_;
    RawNodes nodes_;
    std::vector<RawCommand> commands_{};  // two for each resource
    std::vector<RawCommand*> sets_{};
    std::vector<RawCommand*> releases_{};
};

}  // namespace redlock::bench
