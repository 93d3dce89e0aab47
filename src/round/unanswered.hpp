// What commands on other lanes must not overtake (pending_replies.hpp): the late replies of a lane, and its
// rounds that their threads have left (lane.hpp).
//
// The next SET of a resource should follow its release, but need not: if it overtakes the release, the old
// key refuses it. So the resources of the releases are remembered, too, and the SET prefers their lane
// (Lanes).
#pragma once

#include <redlock/detail/memory.hpp>
#include <redlock/nodes.hpp>

#include "../wire/verbs.hpp"
#include "pending_replies.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <mutex>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

namespace redlock::detail {

/// A summary of the late replies on the connections of a group: of the commands whose requesters have left.
struct LateReplies {
    bool any = false;
    std::uint64_t cleaned = 0;  ///< bits_of() the resources of clean-ups
    /// A command that a later one must follow.
    struct Bound {
        std::uint64_t by = 0;  ///< binding_of()
        NodeSet nodes{};
    };
    std::vector<Bound> bound{};

    /// Adds those of a connection to this node.
    void add(const PendingReplies& pending, std::size_t node) {
        pending.for_each_late([&](const PendingReply& it) {
            any = true;
            if (cleans_up(it.effect)) cleaned |= bits_of(it.resources);
            if (it.binds() || it.effect == KeyEffect::describes)
                bound.push_back({binding_of(it.effect, it.owner), NodeSet{}.set(node)});
        });
    }

    /// Returns a bit for each resource. Several resources can have the same bit. A SET can then follow a
    /// release without need.
    static std::uint64_t bits_of(Resources resources) noexcept {
        std::uint64_t bits = 0;
        for (const auto& resource : resources)
            bits |= std::uint64_t{1} << std::hash<std::string_view>{}(resource) % 64;
        return bits;
    }
    /// Returns a hash value for a command that another one must follow. Commands of one owner have the same
    /// value, except for the writing of the holder description.
    static std::uint64_t binding_of(KeyEffect effect, std::string_view owner) noexcept {
        const std::uint64_t hash = std::hash<std::string_view>{}(owner);
        return effect == KeyEffect::describes ? ~hash : hash;
    }
};

/// Any thread may call the functions, unless they say otherwise.
class Unanswered {
public:
    bool any() const noexcept { return any_left() || any_late_; }
    /// Returns true if a round was left to the leading thread, which has not ended it yet.
    bool any_left() const noexcept { return rounds_left_ > 0; }
    /// Returns true if a command may have to follow one that is recorded here.
    bool any_bound() const noexcept {
        if (!any()) return false;
        const std::lock_guard guard{mutex_};
        return any_left() || binds_all_ || !late_.bound.empty();
    }

    /// Returns the nodes from which the reply to a command is missing that this one must follow (see the
    /// table in pending_replies.hpp).
    NodeSet bound_nodes(const Command& command) const noexcept {
        if (!any()) return {};
        std::array<std::uint64_t, 2> follows{};
        follows.fill(LateReplies::binding_of(KeyEffect::acquires, command.owner));
        if (deletes_reservation(command))
            follows.back() = LateReplies::binding_of(KeyEffect::enqueues, command.queue->ticket);
        else if (effect_of(command) == KeyEffect::undescribes)
            follows.back() = LateReplies::binding_of(KeyEffect::describes, command.owner);
        const std::lock_guard guard{mutex_};
        if (binds_all_) return NodeSet{}.set();
        NodeSet nodes;
        for (const auto* const list : {&left_, &late_})
            for (const auto& it : list->bound)
                if (std::ranges::find(follows, it.by) != follows.end()) nodes |= it.nodes;
        return nodes;
    }
    /// Returns true if the command can be refused unless it follows a release that may be unanswered: an
    /// acquisition, while this client's own old key exists. May return true for others, too.
    bool may_release_before(const Command& command) const noexcept {
        if (!any() || effect_of(command) != KeyEffect::acquires) return false;
        const std::lock_guard guard{mutex_};
        return ((left_.cleaned | late_.cleaned) & LateReplies::bits_of(command.resources)) != 0;
    }

    /// Records that a round was left.
    void leave(std::span<const Request> requests) noexcept {
        const std::lock_guard guard{mutex_};
        ++rounds_left_;
        for (const auto& [command, to] : requests) {
            left_.cleaned |= LateReplies::bits_of(command.resources);
            const auto by = LateReplies::binding_of(effect_of(command), command.owner);
            if (!has_memory_for([&, &nodes = to] { left_.bound.push_back({by, nodes}); })) binds_all_ = true;
        }
    }
    /// Records that the leading thread has ended a round that was left. What it has left on the connections
    /// must have been found by update().
    void end_left() noexcept {
        const std::lock_guard guard{mutex_};
        if (--rounds_left_ > 0) return;
        left_ = {};
    }

    /// Looks for what the rounds that are over have left on the connections: calls `find` with a LateReplies
    /// to be filled. Is called by the leading thread.
    template <class Find>
    void update(Find find) noexcept {
        found_.bound.clear();
        found_ = {.bound = std::move(found_.bound)};  // keeps the memory
        const bool complete = has_memory_for([&] { find(found_); });
        if (complete && !found_.any && !any_late_) return;
        const std::lock_guard guard{mutex_};
        std::swap(late_, found_);
        binds_all_ = !complete || (binds_all_ && any_left());
        any_late_ = !complete || late_.any;
    }

private:
    mutable std::mutex mutex_{};
    // Guarded by mutex_.
    LateReplies left_{};      // what the rounds bind that were left
    LateReplies late_{};      // what those bind that are over
    bool binds_all_ = false;  // there was no memory for these lists
    // Written under mutex_.
    std::atomic<std::size_t> rounds_left_{0};
    std::atomic<bool> any_late_{false};

    LateReplies found_{};  // by update()
};

}  // namespace redlock::detail
