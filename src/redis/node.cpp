// One node: its health, the socket of a connection from its beginning to its end, and its listeners.
// node_links.cpp has the choice of a connection, and what its users do. The caller of a function with the
// suffix _locked has locked the mutex of the Server.
#include "node.hpp"

#include "../round/connection_choice.hpp"
#include "redis_cluster.hpp"

#include <algorithm>
#include <new>
#include <string_view>
#include <utility>

namespace redlock {
namespace {

using namespace std::chrono_literals;
using detail::NodeFailure;

/// The longest time for which a listener, the connection on which a waiter is woken, may be unused. Nothing
/// is sent on it, so the client may not notice that the server has closed it.
constexpr auto max_listener_idle = 10s;

/// Returns the bytes of the first address, which identify the server.
std::string_view address_bytes(const Resolution& found) {
    const auto& address = found.addresses().front();
    return {reinterpret_cast<const char*>(&address.storage), address.length};
}

NodeConfig completed(NodeConfig config) {
    if (!config.kept_releases) config.kept_releases = std::make_shared<KeptReleases>();
    if (!config.server) config.server = std::make_shared<Server>();
    return config;
}

}  // namespace

Node::Node(NodeConfig config, Network& network, Options options)
    : config_(completed(std::move(config))), network_(network), options_(options), server_(config_.server) {}

/// Brings the node up to date before a round.
void Node::refresh(Clock::time_point now, std::size_t index, detail::QuorumRound& round) {
    (void)check_silence(now);
    drop_unused(now);
    if (is_calm()) return round.set_health(index, true, false);
    const std::lock_guard guard{server_->mutex};
    if (config_.has_sentinels()) drop_former_locked();
    server_->health.update(now);
    round.set_health(index, server_->health.trusted(), server_->health.probe_due(now));
}

/// Returns true if the connection leads to another server than the one that the Sentinels have named last.
bool Node::is_former_locked(const Connection& connection) const {
    const auto& found = connection.resolution();
    return config_.has_sentinels() && !server_->named.empty() && found.done() && !found.addresses().empty() &&
           address_bytes(found) != server_->named;
}

/// If the Sentinels name another server than before, breaks the connections to the former master, and drops
/// its unused listeners. The former master may be frozen. When it runs again, it would execute a SET whose
/// lease has expired meanwhile (docs/protocol.md, Promotion).
void Node::drop_former_locked() {
    const auto& found = server_->resolution;
    if (found && found->done() && !found->addresses().empty()) server_->named = address_bytes(*found);
    if (named_ == server_->named) return;
    named_ = server_->named;
    constexpr auto* why = "the Sentinels name another server";
    std::erase_if(listeners_, [&](const auto& it) {
        if (!is_former_locked(it->connection())) return false;
        add_disconnection_locked(it->connection(), Errc::connection_failed, why);
        return true;
    });
    for (const auto& it : links_)  // Rounds may still use it, so it is only marked as broken.
        if (is_former_locked(*it->connection)) it->connection->fail(Errc::connection_failed, why);
}

/// Returns true if the server of this connection may be a former master. This is so if the Sentinels have had
/// enough time to name another server since connection.since(), which is the instant at which the connection
/// was begun, or at which it last became idle. A reply alone does not show that the server is still the
/// master. When a frozen former master runs again, it first answers the commands that it has received. Only
/// after that does it learn that it was replaced.
bool Node::may_lead_to_former_master(const Connection& connection, Clock::time_point now) const noexcept {
    return config_.has_sentinels() && now - connection.since() >= detail::max_sentinel_silence;
}

// ---- Connections

/// Begins a new connection, to the addresses that were found last. If Sentinels name the server, they are
/// queried for each connection. Connections that are begun during a query share it.
std::unique_ptr<Connection> Node::connect(Clock::time_point now) {
    std::unique_lock lock{server_->mutex};
    add_event_locked({.kind = NodeEvent::Kind::connecting});
    auto resolution = server_->resolution;
    if (!resolution || (resolution->done() && (resolution->addresses().empty() || config_.has_sentinels()))) {
        lock.unlock();
        resolution = config_.find_server();
        lock.lock();
        server_->resolution = resolution;
    }
    const auto first_address = server_->first_address;
    lock.unlock();
    return std::make_unique<Connection>(config_, network_, resolution, first_address, now);
}

/// If the connection never got ready, its address may be dead, so the next one begins with another.
void Node::leave_address_locked(const Connection& connection) noexcept {
    if (connection.was_ready()) return;
    server_->first_address = connection.next_address();
    if (server_->resolution && server_->resolution->done()) server_->resolution.reset();
}

/// Disconnects. Bytes that the kernel has not sent yet are discarded. The releases whose rounds have ended
/// are sent again on another connection, unless Connection::forget_releases() was called. The observer gets
/// `cause` and `why`, or the failure of a broken connection.
///
/// This function also records that the node has failed, because there may be no round that reports it. It
/// does so if the connection broke before it was ready, and in one of these cases:
///
/// - if the node is trusted, and there are such releases, or
/// - if a probe is under way.
void Node::drop(std::unique_ptr<Connection> connection, Clock::time_point now, std::error_code cause,
                const char* why) noexcept {
    const bool was_broken = connection->broken();
    const bool had_memory = connection->cause() != std::errc::not_enough_memory;
    const bool was_ready = connection->was_ready() || !had_memory;
    bool has_failed = was_broken && !was_ready;
    {
        const std::lock_guard guard{server_->mutex};
        const auto& health = server_->health;
        has_failed = has_failed && (health.state() == detail::NodeHealth::State::half_open ||
                                    (health.trusted() && connection->pending().releases_to_repeat() > 0));
        leave_address_locked(*connection);
        add_disconnection_locked(*connection, cause, why);
    }
    if (!was_broken) connection->fail({}, {});  // disconnects
    // If the server is not to blame, a new connection may be made for the releases although it is not
    // trusted.
    config_.kept_releases->keep(connection->take_pending(), was_ready);
    if (!has_failed) return;
    try {
        failed({connection->cause(), connection->detail()}, now);
    } catch (const std::bad_alloc&) {  // NOLINT(bugprone-empty-catch): not recorded
    }
}

/// Returns true if closing the connection now may lose a release, because the release is unsent, or because
/// the server may not have read it. If the connection is closed while the server writes replies to earlier
/// commands, the server gets an error, and does not read the later commands.
static bool could_lose_release(const Connection& connection) noexcept {
    return connection.unsent() || (connection.pending().has_late_release() && !connection.broken());
}

/// Appends the connections for which could_lose_release() is true.
void Node::append_unfinished(std::vector<Connection*>& connections, bool repeats) {
    const auto now = network_.clock().now();
    sweep(now, repeats);
    for (const auto& it : links_) {
        // Commands that wait for a common write must be written now: no later round would do it.
        it->connection->set_collecting(false);
        if (could_lose_release(*it->connection)) connections.push_back(it->connection.get());
    }
}

void Node::close_connections(Clock::time_point now) noexcept {
    for (const auto& it : links_) drop(std::move(it->connection), now);
    links_.clear();
}

// ---- Listeners

std::unique_ptr<Listener> Node::check_out_listener(Clock::time_point now, bool may_probe) {
    for (;;) {
        std::unique_ptr<Listener> listener;
        {
            const std::lock_guard guard{server_->mutex};
            server_->health.update(now);
            if (now < no_listener_before_) return nullptr;  // see refused_to_queue()
            if (!server_->health.trusted()) {
                if (!may_probe || !server_->health.probe_due(now)) return nullptr;
                server_->health.begin_probe(now, network_.entropy());
            } else if (!listeners_.empty()) {
                listener = std::move(listeners_.back());
                listeners_.pop_back();
            }
        }
        if (!listener) return std::make_unique<Listener>(connect(now), network_.entropy());
        listener->advance();
        // Discards messages for an earlier waiter.
        (void)listener->connection().take_messages();
        const bool is_old = now - listener->connection().since() >= max_listener_idle;
        const std::lock_guard guard{server_->mutex};
        if (listener->listens() && !is_old && !is_former_locked(listener->connection())) return listener;
        add_disconnection_locked(listener->connection());
    }
}

void Node::check_in_listener(std::unique_ptr<Listener> listener, Clock::time_point now) {
    const std::lock_guard guard{server_->mutex};
    if (!listener->listens() || listeners_.size() >= options_.max_idle)
        return add_disconnection_locked(listener->connection());
    listener->connection().became_idle(now);
    listeners_.push_back(std::move(listener));
}

void Node::drop_listener(std::unique_ptr<Listener> listener) noexcept {
    const std::lock_guard guard{server_->mutex};
    if (listener->connection().broken()) leave_address_locked(listener->connection());
    add_disconnection_locked(listener->connection());
}

void Node::drop_listeners() noexcept {
    std::vector<std::unique_ptr<Listener>> dropped;
    const std::lock_guard guard{server_->mutex};
    dropped.swap(listeners_);
    for (const auto& listener : dropped) add_disconnection_locked(listener->connection());
}

void Node::refused_to_queue(NodeFailure why, Clock::time_point now, Clock::duration lasts) {
    const std::lock_guard guard{server_->mutex};
    no_listener_before_ = now + lasts;
    queue_refusal_ = std::move(why);
}

std::optional<NodeFailure> Node::queue_refusal(Clock::time_point now) {
    const std::lock_guard guard{server_->mutex};
    return now < no_listener_before_ ? std::optional{queue_refusal_} : std::nullopt;
}

// ---- Health

/// Trusts the node again, because it has answered a handshake. If it fails once more, its next pause is
/// longer than the last one.
void Node::connected(const Connection& connection) {
    const std::lock_guard guard{server_->mutex};
    connected_locked(connection);
}

void Node::connected_locked(const Connection& connection) {
    server_->first_address = connection.present_address();
    server_->health.connected();
    answered();
}

/// Trusts the node again, because it has answered a command in time. Its next pause is a short one.
void Node::succeeded() {
    answered();
    if (server_->calm) return;
    const std::lock_guard guard{server_->mutex};
    server_->health.succeeded();
    server_->calm = true;
}

void Node::failed(NodeFailure failure, Clock::time_point now) {
    const std::lock_guard guard{server_->mutex};
    fail_locked(std::move(failure), now);
}

void Node::fail_locked(NodeFailure failure, Clock::time_point now) {
    server_->calm = false;
    if (config_.cluster) config_.cluster->outdated();
    if (const auto pause = server_->health.failed(std::move(failure), now, network_.entropy()))
        add_event_locked({.kind = NodeEvent::Kind::backing_off,
                          .failure = server_->health.last_failure(),
                          .span = *pause});
}

bool Node::trusted() {
    if (server_->calm) return true;
    const std::lock_guard guard{server_->mutex};
    return server_->health.trusted();
}

NodeFailure Node::last_failure() {
    const std::lock_guard guard{server_->mutex};
    return server_->health.last_failure();
}

// ---- For the observer

void Node::add_event_locked(NodeEvent event) {
    if (options_.observed) server_->events.push_back(std::move(event));
}

/// Drops the event if there is no memory for it.
void Node::add_disconnection_locked(const Connection& connection, std::error_code cause,
                                    const char* why) noexcept {
    if (!options_.observed) return;
    try {
        auto failure = connection.broken() ? NodeFailure{connection.cause(), connection.detail()}
                                           : NodeFailure{cause, why};
        add_event_locked({.kind = NodeEvent::Kind::disconnected, .failure = std::move(failure)});
    } catch (const std::bad_alloc&) {  // NOLINT(bugprone-empty-catch)
    }
}

/// Drops the event if there is no memory for it.
void Node::add_write(Connection& connection, Clock::duration waited) noexcept {
    const auto commands = connection.take_written();
    if (!options_.observed || commands == 0) return;
    const std::lock_guard guard{server_->mutex};
    try {
        add_event_locked({.kind = NodeEvent::Kind::wrote, .span = waited, .commands = commands});
    } catch (const std::bad_alloc&) {  // NOLINT(bugprone-empty-catch)
    }
}

std::vector<NodeEvent> Node::take_events() {
    const std::lock_guard guard{server_->mutex};
    return std::exchange(server_->events, {});
}

}  // namespace redlock
