// The replies that a connection still has to read. This class decides whether a reply belongs to the present
// round, so that no reply is ever taken for the reply to another command (rule D1).
//
// A server answers in the order of the commands. Only the replies to the commands that were sent last are
// *answers*. The replies before them are *late*: they belong to rounds that have ended.
//
// Some commands must be sent on the connection on which an earlier one is pending, because they could
// otherwise overtake it. The class remembers what is needed to find this connection:
//
//     pending here                            | must follow on this connection
//     ----------------------------------------+------------------------------------------------
//     a SET, by its owner                     | the release of this owner (rule B5)
//     a release that nobody waits for         | the next SET of its resources
//     the entry of a ticket into the queue    | the command that takes it out
//     the writing of a holder description     | its deletion, and the other way round
#pragma once

#include <redlock/detail/verbs.hpp>
#include <redlock/nodes.hpp>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

namespace redlock::detail {

class PendingReplies {
public:
    enum class Reply : std::uint8_t {
        unexpected,  ///< Nothing was sent that it could belong to. The connection cannot be trusted.
        late,        ///< It belongs to a command whose round is over.
        answer       ///< It belongs to one of the commands that were sent last.
    };

    std::size_t count() const noexcept { return count_; }
    bool none() const noexcept { return count_ == 0; }

    /// Declares that the replies to the next `commands` commands are the answers.
    void await(std::size_t commands) noexcept { awaited_ = commands; }

    /// Records that a command was sent.
    void sent(const Command& command) {
        const auto effect = effect_of(command);
        const bool release = effect == KeyEffect::releases;
        const bool writes_note = effect == KeyEffect::describes && command.ttl > command.ttl.zero();
        const bool removes_note = effect == KeyEffect::describes && !writes_note;
        if (effect == KeyEffect::acquires || effect == KeyEffect::enqueues || writes_note)
            set_owner_ = command.owner;
        if (release && has_set_of(command.owner)) set_owner_.clear();
        max_ttl_ = std::max({none() ? std::chrono::milliseconds{} : max_ttl_, command.ttl, command.rest});
        ++count_;
        if (release || removes_note) {
            released_ |= bits_of(command.resources);
            until_released_ = count_;
        }
    }

    /// Records commands whose order matters to no later command, such as INFO or those of an operator.
    void sent_other(std::size_t commands) noexcept { count_ += commands; }

    /// Records commands of the handshake, which change no key and are sent before everything that is pending.
    void sent_first(std::size_t commands) noexcept {
        count_ += commands;
        if (until_released_ > 0) until_released_ += commands;
    }

    /// Records that a reply was received, and returns what it belongs to.
    Reply received() noexcept {
        if (none()) return Reply::unexpected;
        --count_;
        if (none()) set_owner_.clear();
        if (until_released_ > 0 && --until_released_ == 0) released_ = 0;
        return count_ < awaited_ ? Reply::answer : Reply::late;
    }

    /// Returns how many answers the present round expects.
    std::size_t awaited() const noexcept { return awaited_; }

    /// Returns how many of these answers have come.
    std::size_t answered() const noexcept { return awaited_ - std::min(awaited_, count_); }

    /// Returns the owner of the SET that is neither answered nor released; empty if there is none.
    const std::string& set_owner() const noexcept { return set_owner_; }
    bool has_set() const noexcept { return !set_owner_.empty(); }
    bool has_set_of(std::string_view owner) const noexcept { return has_set() && set_owner_ == owner; }

    /// Returns true if a release of one of the resources may be pending here. A SET that is sent behind it is
    /// not refused because of this client's old key.
    bool may_release(Resources resources) const noexcept { return (released_ & bits_of(resources)) != 0; }

    /// Returns the longest time for which a key can live that a pending command may have made or extended.
    std::chrono::milliseconds max_ttl() const noexcept { return max_ttl_; }

private:
    /// Returns a bit for each resource. Several resources can have the same bit.
    static std::uint64_t bits_of(Resources resources) noexcept {
        std::uint64_t bits = 0;
        for (const auto& resource : resources)
            bits |= std::uint64_t{1} << std::hash<std::string>{}(resource) % 64;
        return bits;
    }

    std::size_t count_ = 0;
    std::size_t awaited_ = 0;  // how many of the last commands belong to the present round
    std::string set_owner_{};
    std::chrono::milliseconds max_ttl_{};
    std::uint64_t released_ = 0;      // the bits of the resources with a pending release
    std::size_t until_released_ = 0;  // how many replies come up to that of the last release
};

}  // namespace redlock::detail
