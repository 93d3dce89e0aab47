// The replies that a connection still has to read, so that none is ever taken for another command's (rule
// D1).
//
// A server answers in the order of the commands. Only the replies to what was sent last are answers; those
// that come before them are late and belong to rounds that have ended. A SET whose reply is pending is
// remembered by its owner: its release has to go behind it on this same connection (rule B5), or it would
// overtake it.
#pragma once

#include <redlock/nodes.hpp>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
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
        if (acquires(command.verb)) set_owner_ = command.owner;
        if (command.verb == Verb::compare_and_delete && has_set_of(command.owner)) set_owner_.clear();
        max_ttl_ = std::max(none() ? std::chrono::milliseconds{} : max_ttl_, command.ttl);
        ++count_;
    }

    /// Commands that touch no key: of the handshake, of an operator.
    void sent_other(std::size_t commands) noexcept { count_ += commands; }

    Reply received() noexcept {
        if (none()) return Reply::unexpected;
        --count_;
        if (none()) set_owner_.clear();
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

    /// How long a key can live on that a command still pending may have made or lengthened.
    std::chrono::milliseconds max_ttl() const noexcept { return max_ttl_; }

private:
    std::size_t count_ = 0;
    std::size_t awaited_ = 0;  // of those sent, the last ones
    std::string set_owner_{};
    std::chrono::milliseconds max_ttl_{};
};

}  // namespace redlock::detail
