// Detects that two nodes are the same server, which must not have two votes (rule D8 in docs/rules.md). A
// node is one of the N configured Redis masters. By mistake, two of them can be addresses of one server.
#pragma once

#include <redlock/clock.hpp>

#include <cstddef>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace redlock::detail {

/// Remembers which server answers for each node, by its run id. A server draws a new run id at each start.
/// Shared by all threads.
///
/// The latest answer of a node counts, because servers are restarted and move to other addresses. If a node
/// has not answered for the time `lapse`, its server is forgotten. Otherwise a server that has moved from the
/// address of one node to the address of another node would never vote again. `lapse` must be longer than any
/// round, so that no round counts one server for two nodes.
class DuplicateServerCheck {
public:
    DuplicateServerCheck(std::size_t nodes, Clock::duration lapse) : lapse_(lapse), seen_(nodes) {}

    /// Records that the server with this run id answers for `node` at `now`. If it already answers for
    /// another node, returns that node, and forgets which server has answered for `node` before, because that
    /// server may answer for another node by now.
    std::optional<std::size_t> other_node_of(std::size_t node, std::string_view run_id,
                                             Clock::time_point now) {
        const std::lock_guard guard{mutex_};
        for (std::size_t other = 0; other < seen_.size(); ++other) {
            const auto& it = seen_[other];
            if (other == node || it.run_id != run_id || now - it.at >= lapse_) continue;
            seen_[node].run_id.clear();
            return other;
        }
        auto& mine = seen_[node];
        if (mine.run_id != run_id) mine.run_id = run_id;
        mine.at = now;
        return std::nullopt;
    }

private:
    struct Seen {
        std::string run_id{};  // empty: not known
        Clock::time_point at{};
    };
    const Clock::duration lapse_;
    std::mutex mutex_;
    std::vector<Seen> seen_;  // guarded by mutex_
};

}  // namespace redlock::detail
