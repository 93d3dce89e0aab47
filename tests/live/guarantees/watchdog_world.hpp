// A fixture for tests of the watchdog: a log of losses, and the extensions that a server received.
#pragma once

#include "guarantee_world.hpp"

#include <algorithm>
#include <condition_variable>
#include <functional>
#include <future>
#include <mutex>
#include <span>
#include <string_view>
#include <vector>

#include "lock/lease_state.hpp"
#include "wire/scripts.hpp"

namespace redlock::test {

/// The reported losses.
class LossLog {
public:
    std::function<void(const Result&)> callback() {
        return [this](const Result& loss) { add(loss); };
    }

    void add(const Result& loss) {
        const std::lock_guard guard{mutex_};
        losses_.push_back(loss);
        changed_.notify_all();  // with the mutex held: the waiting thread may destroy this
    }

    /// Waits for this number of losses. Returns false if they do not come.
    bool wait_for(std::size_t count) {
        std::unique_lock guard{mutex_};
        return changed_.wait_for(guard, 30s, [&] { return losses_.size() >= count; });
    }

    std::vector<Result> all() {
        const std::lock_guard guard{mutex_};
        return losses_;
    }

private:
    std::mutex mutex_;
    std::condition_variable changed_;
    std::vector<Result> losses_;
};

/// For ttls of a second or two.
inline const NodesOptions short_timeout{.node_timeout = 400ms};

inline LockOptions watched_by(Watchdog& watchdog, milliseconds ttl = 1500ms) {
    return {.ttl = ttl, .retry = {.attempts = 1}, .watchdog = &watchdog};
}

inline bool extends(const CommandMonitor::Words& words) {
    if (!words.front().starts_with("EVAL")) return false;
    const auto& script = words[1];  // only the beginning of a long one
    return script == detail::scripts::compare_and_expire.sha1 || script == detail::scripts::extend.sha1 ||
           detail::scripts::compare_and_expire.text.starts_with(std::string_view{script}.substr(0, 80));
}

/// Returns how often a server was asked to extend.
inline std::size_t extensions(const CommandMonitor& monitor) {
    return static_cast<std::size_t>(std::ranges::count_if(monitor.commands(), extends));
}

/// Three nodes that grant everything. They block the round of the watchdog until the test ends it.
class SlowToExtend : public Nodes {
public:
    SlowToExtend() : Nodes({"a", "b", "c"}) {}

    void ask(std::span<const Request> requests, const RoundLimits&, std::span<Tally> tallies) override {
        if (requests.front().command.verb == Verb::compare_and_expire) {
            asked.set_value();
            end.get_future().wait();
        }
        for (std::size_t i = 0; i < requests.size(); ++i)
            for (std::size_t node = 0; node < size(); ++node)
                if (requests[i].to[node]) tallies[i].grant(node);
    }

    std::promise<void> asked;
    std::promise<void> end;
};

}  // namespace redlock::test
