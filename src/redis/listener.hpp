// A connection that listens to a channel of its own, for a waiter, and for the next one after it.
#pragma once

#include <redlock/entropy.hpp>

#include "redis/connection.hpp"

#include <cstdint>
#include <memory>
#include <string>

namespace redlock {

class Listener {
public:
    /// Takes a connection that may still be connecting.
    Listener(std::unique_ptr<Connection> connection, Entropy& entropy);

    Connection& connection() noexcept { return *connection_; }

    /// Whether the server has confirmed that it will be heard.
    bool listens() const noexcept { return confirmed_ && !connection_->broken(); }

    /// Goes on as far as the socket allows.
    void advance();

    /// One that nobody ever had: the channel, '|', a number.
    std::string new_ticket() { return channel_ + '|' + std::to_string(++tickets_); }

private:
    const std::unique_ptr<Connection> connection_;
    std::string channel_{};
    bool subscribed_ = false;  // was sent
    bool confirmed_ = false;
    std::uint64_t tickets_ = 0;
};

}  // namespace redlock
