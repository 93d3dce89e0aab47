#include "lanes.hpp"

#include <redlock/detail/memory.hpp>
#include <redlock/detail/renewer.hpp>

#include "../round/connection_choice.hpp"
#include "../round/lane_choice.hpp"
#include "../wire/verbs.hpp"

#include <algorithm>
#include <array>
#include <iterator>
#include <tuple>
#include <utility>

namespace redlock {

Lanes::Lanes(std::vector<NodeConfig> configs, NodesOptions options, Network& network, std::size_t processors)
    : configs_(std::move(configs)),
      options_(std::move(options)),
      network_(network),
      processors_(processors),
      shared_(configs_, options_, network_, Lane::Kind::shared) {}

void Lanes::close(std::span<NodeGroup* const> others) noexcept {
    if (std::exchange(closed_, true)) return;
    shared_.end_background_task();
    for (const auto& it : others_) it->end_background_task();
    std::vector<NodeGroup*> all;
    if (!detail::has_memory_for([&] { all.reserve(1 + others_.size() + others.size()); }))
        return;  // the destructors send the rest
    all.push_back(&shared_.group());
    for (const auto& it : others_) all.push_back(&it->group());
    all.insert(all.end(), others.begin(), others.end());
    NodeGroup::close(all);
}

// ---- The choice of a lane

/// Returns true if the calling thread makes a pass of a watchdog. This is known from a thread-local variable.
static bool in_watchdog() noexcept {
    return detail::renewal_context().renewals != nullptr;
}

/// Returns true for the extensions of a watchdog, which must not wait for another thread.
static bool leaves_nodes_out(std::span<const Request> requests) noexcept {
    return in_watchdog() && detail::effect_of(requests.front().command) == detail::KeyEffect::extends;
}

/// Returns the patience of this thread. A watchdog must report losses in time.
static Lane::Patience patience_of(const RoundLimits& limits) noexcept {
    using Patience = Lane::Patience;
    if (!in_watchdog()) return Patience::with_grace;
    return limits.awaits_answers ? Patience::until_its_end : Patience::none;
}

/// Returns the first lane for which `test` is true, or null.
template <class Test>
auto Lanes::find_locked(Test test) noexcept -> CountedLane* {
    if (test(shared_)) return &shared_;
    const auto it = std::ranges::find_if(others_, [&](const auto& lane) { return test(*lane); });
    return it == others_.end() ? nullptr : it->get();
}

/// Returns the lane on which a command is unanswered that this one must or should follow, or null. A SET
/// follows a release only if no round uses the lane.
auto Lanes::find_to_follow_locked(const Command& command) noexcept -> CountedLane* {
    if (auto* const lane =
            find_locked([&](const CountedLane& it) { return it.unanswered().bound_nodes(command).any(); }))
        return lane;
    return find_locked(
        [&](const CountedLane& it) { return it.users == 0 && it.unanswered().may_release_before(command); });
}

/// Returns the requests without the nodes on which they could overtake a command on another lane.
std::vector<Request> Lanes::without_overtaking(std::span<const Request> requests, const CountedLane& chosen,
                                               std::span<Tally> tallies) {
    std::vector<Request> result{requests.begin(), requests.end()};
    const auto leave_out = [&](const CountedLane& lane) {
        if (&lane == &chosen || !lane.unanswered().any()) return;
        for (std::size_t i = 0; i < result.size(); ++i) {
            const auto bound = lane.unanswered().bound_nodes(result[i].command) & result[i].to;
            result[i].to &= ~bound;
            for (std::size_t node = 0; node < tallies[i].size(); ++node) {
                if (!bound[node]) continue;
                tallies[i].mark_not_sent(node, Errc::not_asked);
                tallies[i][node].detail = detail::earlier_is_pending;
            }
        }
    };
    const std::lock_guard guard{mutex_};
    leave_out(shared_);
    for (const auto& it : others_) leave_out(*it);
    return result;
}

/// Returns the best of the lanes that no round uses (shares_lane()), or rend() if there is none. A lane whose
/// background task gets no processor counts as used.
auto Lanes::find_idle_locked() noexcept -> Others::reverse_iterator {
    const auto rank = [](const auto& lane) {
        const bool is_used = lane->users > 0 || lane->is_stalled();
        return std::tuple{is_used, lane->unconnected(), lane->unanswered().any()};
    };
    const auto best = std::ranges::min_element(others_.rbegin(), others_.rend(), {}, rank);
    return best == others_.rend() || !std::get<0>(rank(*best)) ? best : others_.rend();
}

/// Returns this lane, or a new one if it is rend().
auto Lanes::take_locked(Others::reverse_iterator idle) -> CountedLane& {
    if (idle == others_.rend())
        others_.push_back(std::make_unique<CountedLane>(configs_, options_, network_, Lane::Kind::own));
    else
        std::rotate(std::prev(idle.base()), idle.base(), others_.end());
    return *others_.back();
}

auto Lanes::choose(std::span<const Request> requests, std::size_t rounds) -> Use {
    const std::lock_guard guard{mutex_};
    rounds_to_share_ = detail::next_rounds_to_share(rounds_to_share_, rounds, processors_);
    const auto idle = find_idle_locked();
    const auto lacks_quorum = [this](const CountedLane& it) {
        return configs_.size() - it.unconnected() < quorum(configs_.size());
    };
    const detail::LaneSituation in{.of_watchdog = in_watchdog(),
                                   .may_share = options_.share_connections,
                                   .leading_thread_is_stalled = shared_.is_stalled(),
                                   .shared_lacks_quorum = lacks_quorum(shared_),
                                   .own_lacks_quorum = idle != others_.rend() && lacks_quorum(**idle),
                                   .rounds_to_share = rounds_to_share_};
    CountedLane* to_follow = nullptr;  // by the first request that must follow a command
    if (!leaves_nodes_out(requests))
        for (std::size_t i = 0; i < requests.size() && !to_follow; ++i)
            to_follow = find_to_follow_locked(requests[i].command);
    auto& lane = to_follow ? *to_follow : detail::shares_lane(in) ? shared_ : take_locked(idle);
    ++lane.users;
    return Use{&lane, {this}};
}

/// Destroys the lane if there are too many that no round uses.
void Lanes::leave(CountedLane& lane) noexcept {
    std::unique_ptr<CountedLane> surplus;
    {
        const std::lock_guard guard{mutex_};
        if (--lane.users > 0 || &lane == &shared_ || others_.size() <= options_.max_idle) return;
        const auto idle = std::ranges::count_if(others_, [](const auto& it) { return it->users == 0; });
        if (static_cast<std::size_t>(idle) <= options_.max_idle || lane.unanswered().any()) return;
        if (lane.is_stalled()) return;  // end_background_task() would wait for it
        const auto it = std::ranges::find_if(others_, [&](const auto& that) { return that.get() == &lane; });
        surplus = std::move(*it);
        others_.erase(it);
    }
    surplus->end_background_task();
    surplus->group().give_up();
}

/// Reads the late replies of idle lanes, because the node that has sent one may be trusted again: those of
/// the shared lane, and in each call those of another own lane.
void Lanes::read_late() noexcept {
    std::array<Use, 2> late{Use{nullptr, {this}}, Use{nullptr, {this}}};
    const auto use = [](Use& it, CountedLane& lane) {
        ++lane.users;
        it.reset(&lane);
    };
    {
        const std::lock_guard guard{mutex_};
        const auto is_late = [](const CountedLane& lane) {
            return lane.users == 0 && lane.unanswered().any();
        };
        if (is_late(shared_)) use(late.front(), shared_);
        const auto it = std::ranges::find_if(others_, [&](const auto& lane) { return is_late(*lane); });
        if (it != others_.end()) {
            use(late.back(), **it);
            std::rotate(it, it + 1, others_.end());
        }
    }
    for (const auto& lane : late)
        if (lane) lane->read_late();
}

// ---- Rounds

void Lanes::ask(std::span<const Request> requests, const RoundLimits& limits, std::span<Tally> tallies) {
    if (requests.empty()) return;
    for (RequestsByServer parts{shared_.group().clusters(), requests, tallies}; parts.next();)
        make_round(parts.requests(), limits, parts.tallies());
}

void Lanes::make_round(std::span<const Request> requests, const RoundLimits& limits,
                       std::span<Tally> tallies) {
    const std::size_t rounds = ++rounds_;
    const std::unique_ptr<std::atomic<std::size_t>, EndRound> under_way{&rounds_};
    for (bool made = false; !made;) {  // again if the chosen lane has become private
        const auto lane = choose(requests, rounds);
        read_late();
        if (requests.size() == 1 && !leaves_nodes_out(requests)) {
            made = lane->ask(requests, limits, tallies, patience_of(limits));
        } else {
            const auto rest = without_overtaking(requests, *lane, tallies);
            made = lane->ask(rest, limits, tallies, patience_of(limits));
        }
    }
}

}  // namespace redlock
