// A connection that is subscribed to a channel of its own. It serves one waiter after another. Each waiter
// gets a new ticket, and each message on the channel has the ticket of the waiter that it wakes.
#pragma once

#include <redlock/entropy.hpp>

#include "connection.hpp"

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

namespace redlock {

class Listener {
public:
    /// Takes over a connection, which may still be connecting. The name of the channel is random.
    Listener(std::unique_ptr<Connection> connection, Entropy& entropy);

    Connection& connection() noexcept { return *connection_; }

    /// Returns true if the server has confirmed the subscription and the connection is not broken.
    bool listens() const noexcept { return confirmed_ && !connection_->broken(); }

    /// Connects, subscribes and reads as far as the socket allows without blocking.
    void advance();

    /// Returns a ticket that no waiter has ever had: the name of the channel, '|' and a number.
    std::string new_ticket() { return channel_ + '|' + std::to_string(++tickets_); }

    /// Returns true if new_ticket() has returned this text. Every client can publish on the channel, so a
    /// message can be any text.
    bool has_issued(std::string_view text) const noexcept;

private:
    const std::unique_ptr<Connection> connection_;
    std::string channel_{};
    bool subscribed_ = false;  // SUBSCRIBE was sent
    bool confirmed_ = false;
    std::uint64_t tickets_ = 0;
};

}  // namespace redlock
