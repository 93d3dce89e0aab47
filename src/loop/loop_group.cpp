#include "loop/loop_group.hpp"

#include <array>
#include <new>
#include <utility>

namespace redlock::loop {

// ---- FormerGroups

void FormerGroups::add(std::shared_ptr<LoopGroup> group) {
    const std::lock_guard guard{mutex_};
    if (!closed_) groups_.push_back(std::move(group));
}

void FormerGroups::close() noexcept {
    std::vector<std::shared_ptr<LoopGroup>> groups;
    {
        const std::lock_guard guard{mutex_};
        closed_ = true;
        groups.swap(groups_);
    }
    if (groups.empty()) return;
    const auto deadline = groups.front()->clock().now() + groups.front()->node_timeout();
    for (const auto& group : groups) try {
            group->send_the_rest(deadline);
        } catch (const std::bad_alloc&) {  // NOLINT(bugprone-empty-catch): the keys will expire
        }
}

// ---- LoopGroup

/// A round of the group, and the descriptors that it waits for.
class LoopGroup::Round final : public RoundInSteps {
public:
    Round(LoopGroup& group, Task& task, std::span<const Request> requests, const RoundLimits& limits,
          std::span<Tally> tallies)
        : watches_(group.network_.watches()), task_(task), round_(group.group_, requests, limits, tallies) {}
    ~Round() override {
        for (const auto& entry : entries_) watches_.end(entry);
    }

    std::optional<Clock::time_point> advance() override {
        auto& driver = round_.driver();
        // The driver must look at all descriptors before a wait that has lasted until its end is over.
        if (until_ && task_.now() >= *until_)
            for (auto& entry : entries_) entry.ready = entry.fd >= 0;
        driver.take_ready(entries_);
        until_ = driver.advance();
        if (until_)
            wait();
        else
            round_.finish();
        return until_;
    }

private:
    /// Waits for the descriptors that the driver names now. It ends all old waits first, because a new
    /// descriptor can have the number of a closed one.
    void wait() {
        std::array<PollEntry, max_nodes> space;
        std::array<PollEntry, max_nodes> now{};
        for (const auto& entry : round_.driver().poll_entries(space)) now[entry.node] = entry;
        for (std::size_t node = 0; node < max_nodes; ++node)
            if (now[node].fd != entries_[node].fd || now[node].socket != entries_[node].socket)
                watches_.end(entries_[node]);
        for (std::size_t node = 0; node < max_nodes; ++node) {
            entries_[node] = now[node];
            watches_.begin(task_, entries_[node]);
        }
    }

    Watches& watches_;
    Task& task_;
    NodeGroup::OngoingRound round_;
    std::array<PollEntry, max_nodes> entries_{};  // by node; without a descriptor if the round waits for none
    std::optional<Clock::time_point> until_{};    // the end of the wait
};

std::unique_ptr<RoundInSteps> LoopGroup::begin(Task& task, std::span<const Request> requests,
                                               const RoundLimits& limits, std::span<Tally> tallies) {
    return std::make_unique<Round>(*this, task, requests, limits, tallies);
}

void LoopGroup::detach() noexcept {
    network_.watches().detach();
    try {
        former_->add(shared_from_this());
    } catch (const std::bad_alloc&) {  // NOLINT(bugprone-empty-catch): its destructor sends the rest
    }
}

}  // namespace redlock::loop
