// The commands that were sent on a connection to one node, and whose replies the client still has to read, or
// to pass to their requesters. Decides to which command a reply belongs (rule D1 in docs/rules.md).
//
// A server answers in the order of the commands. The class is a queue with one entry for each command. The
// *requester* of a command awaits its reply: mostly a round, which can end before each node has replied. Its
// entries then stay behind without a requester. A reply without a requester is *late*, and is dropped.
//
//     entry    | meaning                                      | transitions
//     ---------+----------------------------------------------+----------------------------------------------
//     pending  | the reply has not come                       | received() → answered, or removed if it is late
//     answered | the reply waits until its requester takes it | take_answer(), stop_awaiting() → removed
//
// The answered entries come before the pending ones. Removed entries keep the memory of their texts for later
// commands.
#pragma once

#include <redlock/clock.hpp>
#include <redlock/nodes.hpp>

#include "../wire/reply.hpp"
#include "../wire/scripts.hpp"
#include "../wire/verbs.hpp"

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace redlock::detail {

/// The base class of all that can await replies: rounds, and a Connection, for commands of its own. The queue
/// only compares its address.
class Requester {
protected:
    Requester() = default;
    ~Requester() = default;
};

/// How often a release is sent again at most. A server, or a proxy in front of it, may end the connection
/// because of the release. Without a limit, the client would connect again and again. If a server refuses the
/// release for now, Connection begins to count anew.
inline constexpr std::uint8_t max_release_repeats = 8;

/// The part of an entry that needs no memory of its own.
struct PendingCommand {
    const Requester* requester = nullptr;  ///< null if nobody awaits the reply any more
    const Script* script = nullptr;        ///< null if the command was not sent as a script
    bool by_sha1 = false;                  ///< the command named its script by the digest
    bool uses_queue = false;               ///< it was sent in a form that uses the queue of waiters
    bool handshake = false;                ///< it belongs to the connection itself
    bool asking = false;                   ///< it was sent behind ASKING, to a server of a Redis Cluster
    KeyEffect effect = KeyEffect::none;    ///< also none for a release that was taken away
    bool shared = false;                   ///< the owner is a reader
    std::chrono::milliseconds ttl{};       ///< no key that this command leaves lives longer
    std::optional<Clock::time_point> hold_until{};  ///< if it releases: the end of a minimum hold time
    /// How often it was sent again; max_release_repeats after never_repeat().
    std::uint8_t repeats = 0;
    Clock::time_point written = Clock::never();  ///< never() until record_write()
};

/// One entry: a command that was sent, and its reply.
struct PendingReply : PendingCommand {
    std::string owner{};                   ///< unless the effect is `none`
    std::vector<std::string> resources{};  ///< if it cleans up
    Reply reply{};                         ///< once it is answered

    bool releases() const noexcept { return effect == KeyEffect::releases; }
    /// Returns true if the connection is bound to `owner`.
    bool binds() const noexcept { return detail::binds(effect); }
    /// Returns true for a release that is sent again if the server has refused its form, or if its connection
    /// breaks. A round that still awaits the reply sends its release again itself.
    bool may_be_repeated() const noexcept {
        return releases() && !requester && repeats < max_release_repeats;
    }

    /// Returns the release without QueueTerms, so that it cannot wake a second waiter.
    Command repetition(Clock::time_point now) const noexcept {
        using std::chrono::milliseconds;
        const auto hold_left = std::max(hold_until.value_or(now) - now, Clock::duration::zero());
        return {.verb = Verb::compare_and_delete,
                .resources = resources,
                .owner = owner,
                .hold_remaining = std::chrono::ceil<milliseconds>(hold_left),
                .shared = shared};
    }

    /// Returns true if the reply means that the server refuses every digest, because EVALSHA is renamed away
    /// or forbidden by an ACL.
    bool are_digests_refused(const Reply& by) const noexcept {
        return by_sha1 && (by.is_error("NOPERM") || is_unknown_command(by));
    }

    /// Returns true if the reply means that the command was not executed, but can be in another form: with
    /// the whole script, or without the queue.
    bool is_form_refused(const Reply& by) const noexcept {
        if (by.kind != Reply::Kind::error) return false;
        if (by.is_error("NOSCRIPT") || are_digests_refused(by)) return by_sha1;
        return uses_queue && cause_of(by) == Errc::permission_denied;
    }
};

class ReplyQueue {
public:
    /// Returns the number of pending entries.
    std::size_t count() const noexcept { return size_ - answered_; }
    /// Returns the number of answered entries.
    std::size_t answered() const noexcept { return answered_; }
    bool none() const noexcept { return count() == 0; }

    // ---- Commands

    /// Adds the entry of a command that was sent.
    PendingReply& add(const Command& command, const Requester* requester) {
        const auto effect = effect_of(command);
        auto& it = add_other(requester);
        it.owner = command.owner;
        if (cleans_up(effect)) it.resources.assign(command.resources.begin(), command.resources.end());
        it.shared = command.shared;
        it.ttl = std::max(command.ttl, command.hold_remaining);
        it.effect = effect;  // the last, because an entry whose copies have thrown must not be repeated
        return it;
    }

    /// Adds the entry of a release that is sent again. The new entry has no requester. `release` must not be
    /// an entry of this object.
    PendingReply& add_repetition(const PendingReply& release) {
        auto& it = add(release.repetition({}), nullptr);  // the hold is computed when the bytes are written
        it.hold_until = release.hold_until;
        it.ttl = release.ttl;
        it.asking = release.asking;
        it.repeats = static_cast<std::uint8_t>(release.repeats + 1);
        return it;
    }

    /// Adds an entry. Used without add() for a command that no later command has to follow, such as those of
    /// Connection::send_words().
    PendingReply& add_other(const Requester* requester) {
        if (size_ == ring_.size()) grow();
        return clear(at(size_++), requester);
    }

    /// Adds the entry of a command of the handshake. It is sent before the commands that are queued already.
    /// Requires that no entry is answered.
    void add_first() {
        if (size_ == ring_.size()) grow();
        first_ = (first_ + ring_.size() - 1) % ring_.size();
        --first_number_;
        ++size_;
        clear(at(0), nullptr).handshake = true;
    }

    /// Returns true if record_write() would change something.
    bool has_unwritten() const noexcept { return !none() && at(size_ - 1).written == Clock::never(); }
    /// Records that all commands that were not written before are written now.
    void record_write(Clock::time_point now) noexcept {
        for (auto i = size_; i > answered_ && at(i - 1).written == Clock::never(); --i)
            at(i - 1).written = now;
    }
    /// Returns when the newest pending command was written, or never().
    Clock::time_point newest_write() const noexcept {
        return none() ? Clock::never() : at(size_ - 1).written;
    }
    /// Returns when the oldest pending command was written, or never().
    Clock::time_point oldest_write() const noexcept {
        return none() ? Clock::never() : at(answered_).written;
    }

    // ---- Replies

    /// Returns the entry to which the next reply belongs. Requires that an entry is pending.
    PendingReply& next() noexcept { return pending(0); }

    /// Records that this reply has come. Exchanges it with the reply of the entry if that has a requester.
    void received(Reply& reply) noexcept {
        auto& it = next();
        if (it.requester) std::swap(it.reply, reply);
        ++answered_;
        remove_late();
    }

    /// Returns the oldest answered entry, or null.
    const PendingReply* answer() const noexcept { return answered_ > 0 ? &ring_[first_] : nullptr; }

    /// Removes the oldest answered entry if its reply is for this requester, and returns it. Otherwise
    /// returns null. The entry is valid until the next command is sent.
    const PendingReply* take_answer(const Requester& requester) noexcept {
        const auto* const taken = answer();
        if (!taken || taken->requester != &requester) return nullptr;
        remove_first();
        remove_late();
        return taken;
    }

    /// Returns the first requester that awaits a reply, or null.
    const Requester* requester() const noexcept {
        for (std::size_t i = 0; i < size_; ++i)
            if (at(i).requester) return at(i).requester;
        return nullptr;
    }

    /// Records that the requester does not await its replies any more.
    void stop_awaiting(const Requester& requester) noexcept {
        stop_awaiting(requester, first_number_, size_);
    }

    /// Returns the number of the next entry. The entries have consecutive numbers.
    std::int64_t next_number() const noexcept { return first_number_ + static_cast<std::int64_t>(size_); }
    /// Does the same as stop_awaiting(requester), but considers only `count` entries, from the one with the
    /// number `first` on. Thus it takes the same time however many replies are pending.
    void stop_awaiting(const Requester& requester, std::int64_t first, std::size_t count) noexcept {
        const auto end = std::min(first + static_cast<std::int64_t>(count), next_number());
        for (auto number = std::max(first, first_number_); number < end; ++number) {
            auto& it = at(static_cast<std::size_t>(number - first_number_));
            if (it.requester == &requester) it.requester = nullptr;
        }
        remove_late();
    }

protected:
    /// Returns the pending entry with this index. That of the oldest is 0.
    PendingReply& pending(std::size_t index) noexcept { return at(answered_ + index); }
    const PendingReply& pending(std::size_t index) const noexcept { return at(answered_ + index); }

private:
    /// Makes the entry a new one. Its texts keep their memory.
    static PendingReply& clear(PendingReply& it, const Requester* requester) noexcept {
        static_cast<PendingCommand&>(it) = {.requester = requester};
        return it;
    }

    PendingReply& at(std::size_t index) noexcept { return ring_[position_of(index)]; }
    const PendingReply& at(std::size_t index) const noexcept { return ring_[position_of(index)]; }
    std::size_t position_of(std::size_t index) const noexcept {
        const auto position = first_ + index;
        return position < ring_.size() ? position : position - ring_.size();
    }

    void grow() {
        std::vector<PendingReply> larger(std::max<std::size_t>(4, 2 * size_));
        for (std::size_t i = 0; i < size_; ++i) larger[i] = std::move(at(i));
        ring_ = std::move(larger);
        first_ = 0;
    }

    void remove_first() noexcept {
        --size_;
        --answered_;
        ++first_number_;
        // An empty queue begins again at the first position, so that few entries need memory for texts.
        first_ = size_ == 0 ? 0 : position_of(1);
    }

    void remove_late() noexcept {
        while (answered_ > 0 && !ring_[first_].requester) remove_first();
    }

    std::vector<PendingReply> ring_{};  // `first_` is the position of the oldest entry
    std::size_t first_ = 0;
    std::size_t size_ = 0;
    std::size_t answered_ = 0;
    std::int64_t first_number_ = 0;  // the number of the oldest entry; the handshake can make it negative
};

}  // namespace redlock::detail
