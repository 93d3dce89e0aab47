// What follows from the commands of a connection that are pending: which command must be sent behind them,
// and which releases are sent again if the connection breaks. The base class decides to which command a reply
// belongs, and explains *pending* and *requester* (reply_queue.hpp).
//
// Some commands are sent on the connection on which an earlier command is pending, because they could
// overtake it on another connection. If that connection drains, only a clean-up follows there, and any other
// command is not sent to the node (connection_choice.hpp). (docs/glossary.md explains *clean-up*, *drain* and
// *group*, and nodes.hpp *ticket*.) The entries have what is needed to find the connection:
//
//     pending here                            | must not overtake it
//     ----------------------------------------+------------------------------------------------
//     a SET                                   | every command of its owner, above all the release
//                                             | (rule B5)
//     an enter_queue                          | every command of its ticket, and the acquisition that
//                                             | removes the ticket
//     the writing of a holder description     | its deletion, which would otherwise find nothing
//
// In the first two rows, the connection is *bound* to the owner of the pending command, until a release of
// this owner is pending behind it: after that, nothing of this owner matters. An enter_queue has its ticket
// as Command::owner.
//
// A command whose round is over has no requester any more, so its reply is *late*. A late release is sent
// again if the connection breaks (kept_releases.hpp), max_release_repeats times at most. A round that still
// awaits the reply sends its release again itself.
#pragma once

#include <redlock/nodes.hpp>

#include "../wire/verbs.hpp"
#include "reply_queue.hpp"

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <string_view>

namespace redlock::detail {

/// The commands of one connection. Also used as a list of releases that were taken off a connection, and are
/// to be sent again.
class PendingReplies : public ReplyQueue {
public:
    // ---- Releases to repeat, if the connection breaks

    /// Calls the function with each pending release that is sent again if the connection breaks.
    template <class Function>
    void for_each_release_to_repeat(Function function) const {
        for (std::size_t i = 0; i < count(); ++i)
            if (pending(i).may_be_repeated()) function(pending(i));
    }
    std::size_t releases_to_repeat() const noexcept {
        std::size_t number = 0;
        for_each_release_to_repeat([&](const PendingReply&) { ++number; });
        return number;
    }
    /// Records that sending these releases does not count as a repeat: the connection was never ready.
    void undo_repeat_count() noexcept {
        for (std::size_t i = 0; i < count(); ++i)
            if (pending(i).may_be_repeated() && pending(i).repeats > 0) --pending(i).repeats;
    }
    /// Records that the pending releases must not be repeated, except those of the oldest `except` commands.
    void never_repeat(std::size_t except = 0) noexcept {
        for (auto i = except; i < count(); ++i) pending(i).repeats = max_release_repeats;
    }
    /// Forgets the pending releases of one requester, and returns them as a list to be sent again.
    PendingReplies take_releases(const Requester& requester) {
        return take_if(
            [&](std::size_t i) { return pending(i).releases() && pending(i).requester == &requester; });
    }

    /// Forgets the pending releases that may be sent on another connection although this one is not broken,
    /// and returns them as a list to be sent again. These releases have no requester, were not sent again
    /// before, and do not follow a pending SET, which could be executed after them.
    PendingReplies take_repeatable_releases() {
        return take_if([this](std::size_t i) {
            const auto& it = pending(i);
            if (!it.releases() || it.requester || it.repeats > 0) return false;
            for (std::size_t before = 0; before < i; ++before)
                if (pending(before).binds() && pending(before).owner == it.owner) return false;
            return true;
        });
    }

    // ---- What must follow on this connection

    /// Returns true if this command must follow a pending one (the table at the top of this file).
    bool must_be_followed_by(const Command& command) const noexcept {
        if (binding_command_of(command.owner)) return true;
        if (deletes_reservation(command) && binding_command_of(command.queue->ticket)) return true;
        if (effect_of(command) != KeyEffect::undescribes) return false;
        for (std::size_t i = 0; i < count(); ++i)
            if (pending(i).effect == KeyEffect::describes && pending(i).owner == command.owner) return true;
        return false;
    }

    /// Returns the entry of the command that binds the connection to this owner, or null.
    const PendingReply* binding_command_of(std::string_view owner) const noexcept {
        for (auto i = count(); i > 0; --i)
            if (const auto& it = pending(i - 1); (it.binds() || it.releases()) && it.owner == owner)
                return it.releases() ? nullptr : &it;
        return nullptr;
    }

    /// Returns a limit for the lifetime of the keys: no pending command can make a key that lives longer.
    std::chrono::milliseconds max_ttl() const noexcept {
        std::chrono::milliseconds longest{};
        for (std::size_t i = 0; i < count(); ++i) longest = std::max(longest, pending(i).ttl);
        return longest;
    }

    /// Calls the function with each entry whose reply will be late.
    template <class Function>
    void for_each_late(Function function) const {
        for (std::size_t i = 0; i < count(); ++i)
            if (!pending(i).requester && !pending(i).handshake) function(pending(i));
    }
    /// Returns true if a clean-up is pending without a requester.
    bool has_late_clean_up() const noexcept {
        bool found = false;
        for_each_late([&](const PendingReply& it) { found = found || cleans_up(it.effect); });
        return found;
    }

private:
    /// Forgets them only when all are taken, because there may be no memory for one.
    template <class Test>
    PendingReplies take_if(Test is_taken) {
        PendingReplies taken;
        for (std::size_t i = 0; i < count(); ++i)
            if (is_taken(i)) taken.add_repetition(pending(i));
        for (std::size_t i = 0; i < count(); ++i)
            if (is_taken(i)) pending(i).effect = KeyEffect::none;
        return taken;
    }
};

}  // namespace redlock::detail
