// The replies that a connection still has to read, so that none is ever taken for another command's (rule
// D1).
//
// A server answers in the order of the commands. Only the replies to what was sent last are answers; those
// that come before them are late and belong to rounds that have ended. A SET whose reply is pending is
// remembered by its owner: its release has to go behind it on this same connection (rule B5), or it would
// overtake it. The same order is kept for a release that is not waited for and the next SET of its resource;
// for what enters a ticket into the queue and what takes it out; and for writing and removing a note.
#pragma once

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
        unexpected,  ///< to nothing that was sent: the connection is not to be trusted any more
        late,        ///< to a command whose round is over
        answer       ///< to one of those sent last
    };

    std::size_t count() const noexcept { return count_; }
    bool none() const noexcept { return count_ == 0; }

    /// The next `commands` that are sent are those whose replies are answers.
    void await(std::size_t commands) noexcept { awaited_ = commands; }

    void sent(const Command& command) {
        const bool note = command.verb == Verb::note_holder;
        const bool writes_note = note && command.ttl > command.ttl.zero();
        if (acquires(command.verb) || command.verb == Verb::enter_queue || writes_note)
            set_owner_ = command.owner;
        if (command.verb == Verb::compare_and_delete && has_set_of(command.owner)) set_owner_.clear();
        max_ttl_ = std::max({none() ? std::chrono::milliseconds{} : max_ttl_, command.ttl, command.rest});
        ++count_;
        if (command.verb == Verb::compare_and_delete || (note && !writes_note)) {
            released_ |= bits_of(command.resources);
            until_released_ = count_;
        }
    }

    /// Commands that touch no key: questions, and those of an operator.
    void sent_other(std::size_t commands) noexcept { count_ += commands; }

    /// Commands that touch no key, and go in front of everything that is pending: those of the handshake.
    void sent_first(std::size_t commands) noexcept {
        count_ += commands;
        if (until_released_ > 0) until_released_ += commands;
    }

    Reply received() noexcept {
        if (none()) return Reply::unexpected;
        --count_;
        if (none()) set_owner_.clear();
        if (until_released_ > 0 && --until_released_ == 0) released_ = 0;
        return count_ < awaited_ ? Reply::answer : Reply::late;
    }

    /// How many commands were sent last.
    std::size_t awaited() const noexcept { return awaited_; }

    /// How many of them are answered.
    std::size_t answered() const noexcept { return awaited_ - std::min(awaited_, count_); }

    /// The owner of the SET that is neither answered nor released; empty if there is none.
    const std::string& set_owner() const noexcept { return set_owner_; }
    bool has_set() const noexcept { return !set_owner_.empty(); }
    bool has_set_of(std::string_view owner) const noexcept { return has_set() && set_owner_ == owner; }

    /// Whether one of the resources may have a release pending here: behind it a SET is not refused because
    /// of a key of our own.
    bool may_release(Resources resources) const noexcept { return (released_ & bits_of(resources)) != 0; }

    /// How long a key can live on that a command still pending may have made or lengthened.
    std::chrono::milliseconds max_ttl() const noexcept { return max_ttl_; }

private:
    /// A bit for each; several resources may share one.
    static std::uint64_t bits_of(Resources resources) noexcept {
        std::uint64_t bits = 0;
        for (const auto& resource : resources)
            bits |= std::uint64_t{1} << std::hash<std::string>{}(resource) % 64;
        return bits;
    }

    std::size_t count_ = 0;
    std::size_t awaited_ = 0;  // of those sent, the last ones
    std::string set_owner_{};
    std::chrono::milliseconds max_ttl_{};
    std::uint64_t released_ = 0;      // bits of the resources with a release pending
    std::size_t until_released_ = 0;  // replies, that of the last release included
};

}  // namespace redlock::detail
