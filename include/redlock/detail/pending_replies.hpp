// The replies that a connection to one node still has to read. This class decides whether a reply belongs to
// the present round, so that no reply is ever taken for the reply to another command (rule D1 in
// docs/rules.md). A round is one command, or several with the same verb, sent to all nodes. It can end before
// each node has replied.
//
// A server answers in the order of the commands. The replies to the commands that the present round has sent
// are the *answers*; they are always the last ones. All replies before them are *late*, because they belong
// to rounds that have ended.
//
// Some commands must be sent on the connection on which an earlier command is pending, because they could
// overtake it on another connection. The class remembers what is needed to find this connection. In the
// table, the *owner* is the random value of the key, which identifies one attempt to acquire. A *ticket*
// identifies a client that waits in a queue, and enter_queue is the command with which this client enters the
// queue. The *holder description* is a text beside the lock for people to read:
//
//     pending here                            | must follow on this connection
//     ----------------------------------------+------------------------------------------------
//     a SET                                   | every command of its owner, above all the release
//                                             | (rule B5)
//     an enter_queue                          | the acquisition that removes the ticket
//     the writing of a holder description     | its deletion
//     a release                               | the next SET of one of its resources
//     the deletion of a holder description    | the writing of the next one
//
// In the first three rows, the connection is *bound* to the owner of the pending command. The owner of an
// enter_queue is the ticket. For the last two rows, the class remembers the resources. If Redis Sentinels
// name the server of the node, only the release of a SET follows on the same connection (node.cpp has the
// reason).
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

    /// Declares that the round is about to send `commands` commands, whose replies are the answers. The
    /// replies that are pending now become late.
    void expect_answers(std::size_t commands) noexcept { expected_answers_ = commands; }

    /// Records that a command was sent.
    void sent(const Command& command) {
        const auto effect = effect_of(command);
        const bool release = effect == KeyEffect::releases;
        // A ttl of zero means that the description is deleted.
        const bool writes_description = effect == KeyEffect::describes && command.ttl > command.ttl.zero();
        const bool removes_description = effect == KeyEffect::describes && !writes_description;
        if (effect == KeyEffect::acquires || effect == KeyEffect::enqueues || writes_description)
            bound_owner_ = command.owner;
        if (release && is_bound_to(command.owner)) bound_owner_.clear();
        max_ttl_ =
            std::max({none() ? std::chrono::milliseconds{} : max_ttl_, command.ttl, command.hold_remaining});
        ++count_;
        if (release || removes_description) {
            released_ |= bits_of(command.resources);
            until_released_ = count_;
        }
    }

    /// Records commands that no later command has to follow, such as INFO or the commands of AdminConnection.
    void sent_other(std::size_t commands) noexcept { count_ += commands; }

    /// Records commands of the handshake. They change no key. They are sent before the commands that are
    /// queued already, so the replies to those come later than expected.
    void sent_first(std::size_t commands) noexcept {
        count_ += commands;
        if (until_released_ > 0) until_released_ += commands;
    }

    /// Records that a reply was received, and returns what it belongs to. The connection stays bound until no
    /// reply is pending.
    Reply received() noexcept {
        if (none()) return Reply::unexpected;
        --count_;
        if (none()) bound_owner_.clear();
        if (until_released_ > 0 && --until_released_ == 0) released_ = 0;
        return count_ < expected_answers_ ? Reply::answer : Reply::late;
    }

    /// Returns how many answers the present round expects, including those that have come.
    std::size_t expected_answers() const noexcept { return expected_answers_; }

    /// Returns how many of the expected answers have come.
    std::size_t answered() const noexcept { return expected_answers_ - std::min(expected_answers_, count_); }

    /// Returns true if the connection is bound to an owner. It is bound by a SET, an enter_queue or the
    /// writing of a holder description. It is free again when no reply is pending or a release of this owner
    /// was sent.
    bool is_bound() const noexcept { return !bound_owner_.empty(); }
    bool is_bound_to(std::string_view owner) const noexcept { return is_bound() && bound_owner_ == owner; }

    /// Returns true if the release of one of the resources, or the deletion of its holder description, may be
    /// pending here. A SET that is sent behind the release is not refused because of this client's old key.
    /// May return true for other resources, too, because the class remembers only hash values.
    bool may_release(Resources resources) const noexcept { return (released_ & bits_of(resources)) != 0; }

    /// Returns a limit for the lifetime of the keys: no pending command can make a key that lives longer.
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
    std::size_t expected_answers_ = 0;
    std::string bound_owner_{};
    std::chrono::milliseconds max_ttl_{};
    std::uint64_t released_ = 0;      // the bits of the resources with a pending release
    std::size_t until_released_ = 0;  // how many replies come until the one to the last release has come
};

}  // namespace redlock::detail
