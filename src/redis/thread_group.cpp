#include "thread_group.hpp"

#include <redlock/detail/renewer.hpp>
#include <redlock/detail/sharing_choice.hpp>
#include <redlock/detail/verbs.hpp>

#include <algorithm>
#include <array>
#include <new>
#include <utility>

namespace redlock {

ThreadGroup::ThreadGroup(const std::vector<NodeConfig>& configs, const NodesOptions& options,
                         Network& network, std::size_t processors)
    : may_share_(options.share_connections),
      processors_(processors),
      own_(configs, options, network),
      shared_(configs, options, network) {}

void ThreadGroup::close(std::span<NodeGroup* const> others) noexcept {
    if (std::exchange(closed_, true)) return;
    shared_.end_background_task();
    const std::array mine{&own_, &shared_.group()};
    try {
        std::vector<NodeGroup*> all{mine.begin(), mine.end()};
        all.insert(all.end(), others.begin(), others.end());
        NodeGroup::close(all);
    } catch (const std::bad_alloc&) {  // the destructors of the others send the rest
        NodeGroup::close(mine);
    }
}

/// Counts a round while it is under way.
class ThreadGroup::UnderWay {
public:
    explicit UnderWay(std::atomic<std::size_t>& rounds) noexcept : rounds_(rounds), now_(++rounds) {}
    ~UnderWay() { --rounds_; }
    UnderWay(const UnderWay&) = delete;
    UnderWay& operator=(const UnderWay&) = delete;

    /// Returns the number of rounds, including this one, when it began.
    std::size_t count() const noexcept { return now_; }

private:
    std::atomic<std::size_t>& rounds_;
    const std::size_t now_;
};

/// Returns true if the calling thread takes a turn of a watchdog.
static bool in_watchdog() noexcept {
    return detail::renewal_context().renewals != nullptr;
}

/// Returns for how long a round follows the leader. A watchdog must report losses in time.
static SharedRounds::Follows follows(const RoundLimits& limits) noexcept {
    using Follows = SharedRounds::Follows;
    if (!in_watchdog()) return Follows::with_grace;
    return limits.awaits_answers ? Follows::until_its_end : Follows::not_at_all;
}

void ThreadGroup::ask(std::span<const Request> requests, const RoundLimits& limits,
                      std::span<Tally> tallies) {
    if (requests.empty()) return;
    if (!NodeGroup::fit_in_one_round(requests)) {
        for (std::size_t i = 0; i < requests.size(); ++i)
            ask(requests.subspan(i, 1), limits, tallies.subspan(i, 1));
        return;
    }
    const UnderWay round{rounds_};
    if (may_share_ && shares(requests, round.count()))
        shared_.ask(requests, limits, tallies, follows(limits));
    else
        own_.ask(requests, limits, tallies);
}

/// If a round of several extensions follows commands of both sets, it uses the own set. The node then refuses
/// an extension that overtakes its SET in the shared set.
bool ThreadGroup::shares(std::span<const Request> requests, std::size_t rounds) {
    const auto calm = calm_.load(std::memory_order_relaxed);
    const auto next = detail::next_calm(calm, rounds, processors_);
    if (next != calm) calm_.store(next, std::memory_order_relaxed);
    const bool extends = detail::effect_of(requests.front().command) == detail::KeyEffect::extends;
    const bool renewal = extends && in_watchdog() && !may_overtake(requests);
    const bool follows_shared =
        std::ranges::any_of(requests, [this](const Request& it) { return shared_.may_precede(it.command); });
    if (next == 0 && !follows_shared) return false;
    const bool follows_own =
        std::ranges::any_of(requests, [this](const Request& it) { return own_.must_follow(it.command); });
    return detail::uses_shared_set({.follows_own = follows_own,
                                    .follows_shared = follows_shared,
                                    .calm = next,
                                    .renewal = renewal,
                                    .leader_is_late = shared_.is_late()});
}

/// Returns true if one of the SETs may be unanswered in the shared set.
bool ThreadGroup::may_overtake(std::span<const Request> renewals) const noexcept {
    return std::ranges::any_of(
        renewals, [this](const Request& it) { return shared_.may_be_bound_to(it.command.owner); });
}

}  // namespace redlock
