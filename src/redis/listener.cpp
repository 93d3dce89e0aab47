#include "listener.hpp"

#include <charconv>
#include <system_error>
#include <utility>

namespace redlock {

/// If there are no random numbers for the name of the channel, the connection fails, so that no waiter uses
/// it.
Listener::Listener(std::unique_ptr<Connection> connection, Entropy& entropy)
    : connection_(std::move(connection)) {
    Owner random;
    if (const auto error = random.draw(entropy))
        connection_->fail(error, "no random numbers for the name of a channel");
    else
        channel_ = "redlock:wake:" + std::string{random.view().substr(0, 32)};
}

void Listener::advance() {
    connection_->advance();
    if (!connection_->ready() || confirmed_) return;
    if (!std::exchange(subscribed_, true)) return connection_->subscribe(channel_);
    if (!connection_->answer()) return;
    const auto& reply = connection_->answer()->reply;
    confirmed_ = reply.kind == detail::Reply::Kind::list;
    if (!confirmed_) connection_->fail(detail::cause_of(reply), connection_->quoted(reply.text));
}

bool Listener::has_issued(std::string_view text) const noexcept {
    if (!text.starts_with(channel_)) return false;
    text.remove_prefix(channel_.size());
    if (!text.starts_with('|') || text.starts_with("|0")) return false;
    std::uint64_t number = 0;
    const auto* const end = text.data() + text.size();
    const auto parsed = std::from_chars(text.data() + 1, end, number);
    return parsed.ptr == end && parsed.ec == std::errc{} && number <= tickets_;
}

}  // namespace redlock
