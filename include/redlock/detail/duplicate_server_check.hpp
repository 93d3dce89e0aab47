// Which server answers for each node: one that answers for two would have two votes (rule D8).
#pragma once

#include <cstddef>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace redlock::detail {

/// Shared by all threads. The latest answer of a node counts: servers are restarted and move.
class DuplicateServerCheck {
public:
    explicit DuplicateServerCheck(std::size_t nodes) : run_ids_(nodes) {}

    /// Notes which run of which server answers for `node`. If the same answers for another node already,
    /// returns that node; what `node` was before is forgotten, for another may be that by now.
    std::optional<std::size_t> other_node_of(std::size_t node, std::string_view run_id) {
        const std::lock_guard guard{mutex_};
        if (run_ids_[node] == run_id) return std::nullopt;
        for (std::size_t other = 0; other < run_ids_.size(); ++other)
            if (run_ids_[other] == run_id) {
                run_ids_[node].clear();
                return other;
            }
        run_ids_[node] = run_id;
        return std::nullopt;
    }

private:
    std::mutex mutex_;
    std::vector<std::string> run_ids_;  // guarded by mutex_; empty: not known yet
};

}  // namespace redlock::detail
