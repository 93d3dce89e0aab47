#include "listener.hpp"

#include <utility>

namespace redlock {

using namespace std::chrono_literals;

/// The longest time for which a listener may be unused. Nothing is sent on it, so the client may not notice
/// that the server has closed it.
static constexpr auto max_idle_time = 10s;

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
    if (!connection_->ready()) return;
    const auto* const answer = connection_->pending().answer();
    if (!answer && connection_->pending().none()) return connection_->subscribe(channel_);
    if (answer && answer->reply.kind != detail::Reply::Kind::list)
        connection_->fail(detail::cause_of(answer->reply), connection_->quoted(answer->reply.text));
}

bool Listener::has_issued(std::string_view text) const noexcept {
    if (!text.starts_with(channel_)) return false;
    text.remove_prefix(channel_.size());
    if (!text.starts_with('|') || text.starts_with("|0")) return false;
    return detail::whole_number<std::uint64_t>(text.substr(1), tickets_).has_value();
}

// ---- ListenerPool

std::unique_ptr<Listener> ListenerPool::check_out(Clock::time_point now, bool may_probe) {
    auto& server = *config_.server;
    if (queue_refusal(now) || (!may_probe && !server.health(now).trusted)) return nullptr;
    const auto choice = server.choose({.effect = detail::KeyEffect::none}, now, network_.entropy());
    if (choice.connection == detail::ConnectionChoice::Connection::none) return nullptr;
    while (auto listener = choice.worth_waiting_for ? take() : nullptr) {
        auto& connection = listener->connection();
        listener->advance();
        (void)connection.take_messages();  // for an earlier waiter
        const bool is_old = now - connection.since() >= max_idle_time;
        if (listener->listens() && !is_old && !server.is_former(connection)) return listener;
        server.disconnected(connection);
    }
    return std::make_unique<Listener>(
        std::make_unique<Connection>(config_, network_, server.addresses(config_), now), network_.entropy());
}

/// Returns the one that was used last, or null.
std::unique_ptr<Listener> ListenerPool::take() noexcept {
    const std::lock_guard guard{mutex_};
    if (unused_.empty()) return nullptr;
    auto taken = std::move(unused_.back());
    unused_.pop_back();
    return taken;
}

void ListenerPool::check_in(std::unique_ptr<Listener> listener, Clock::time_point now) {
    const std::lock_guard guard{mutex_};
    if (!listener->listens() || unused_.size() >= max_idle_)
        return config_.server->disconnected(listener->connection());
    listener->connection().became_idle(now);
    unused_.push_back(std::move(listener));
}

void ListenerPool::drop(std::unique_ptr<Listener> listener) noexcept {
    const auto& connection = listener->connection();
    if (connection.broken()) config_.server->leave_address(connection);
    config_.server->disconnected(connection);
}

void ListenerPool::drop_all() noexcept {
    while (const auto listener = take()) config_.server->disconnected(listener->connection());
}

bool ListenerPool::subscribe(Listener& listener, Clock::time_point until, Clock::time_point now) {
    if (listener.listens()) return true;
    listener.advance();
    auto& connection = listener.connection();
    if (listener.listens())
        config_.server->connected(connection);
    else if (!connection.broken() && now >= until)
        connection.fail(Errc::timed_out, "while it was to listen");
    if (connection.broken()) could_not_listen(connection, now);
    return listener.listens();
}

/// A server with too many clients has not failed, because it answers over the connections that exist. Nor has
/// it if this process has a shortage.
void ListenerPool::could_not_listen(const Connection& connection, Clock::time_point now) {
    detail::NodeFailure why{connection.cause(), connection.detail()};
    const bool is_full = connection.was_turned_away() || connection.has_shortage();
    if (!is_full && is_transient(why.cause)) return config_.failed(std::move(why), now, network_.entropy());
    refused_to_queue({std::move(why), now + (is_full ? full_server_pause : queue_refusal_duration)});
}

void ListenerPool::refused_to_queue(QueueRefusal refusal) {
    const std::lock_guard guard{mutex_};
    refusal_ = std::move(refusal);
}

std::optional<detail::NodeFailure> ListenerPool::queue_refusal(Clock::time_point now) {
    const std::lock_guard guard{mutex_};
    return now < refusal_.until ? std::optional{refusal_.why} : std::nullopt;
}

}  // namespace redlock
