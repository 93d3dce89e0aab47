// One node: its health, the beginning and the end of its connections, and its listeners. node_own.cpp and
// node_shared.cpp have the functions that choose the connection of a command: one that a round has for
// itself, or one that many rounds *share*. A reply is *late* if no round takes it any more. A connection that
// a round has for itself is *draining* while late replies are pending. The caller of a function with the
// suffix _locked has locked mutex_.
#include "node.hpp"

#include <redlock/detail/connection_choice.hpp>

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

NodeConfig with_kept_releases(NodeConfig config) {
    if (!config.kept_releases) config.kept_releases = std::make_shared<KeptReleases>();
    return config;
}

}  // namespace

Node::Node(NodeConfig config, Network& network, Options options)
    : config_(with_kept_releases(std::move(config))), network_(network), options_(options) {
    // A draining connection must be kept even without memory, because it may have an unsent release.
    draining_.reserve(max_draining);
    idle_.reserve(std::min<std::size_t>(options_.max_idle, 64));
}

/// Brings the node up to date before a round. Returns true if this has written releases that were lost with
/// their connections.
bool Node::refresh(Clock::time_point now, std::size_t index, detail::QuorumRound& round) {
    fail_if_silent(now);
    const std::lock_guard guard{mutex_};
    drop_unused_locked(now);
    if (config_.has_sentinels()) drop_former_locked(now);
    if (!draining_.empty()) drain_locked(now);
    if (probe_) advance_probe_locked(now);
    const bool sends = !options_.shared && repeat_releases_locked(now);
    health_.update(now);
    round.set_health(index, health_.trusted(), health_.probe_due(now));
    return sends;
}

/// Returns true if the connection leads to another server than the one that the Sentinels have named last.
bool Node::is_former_locked(const Connection& connection) const {
    const auto& found = connection.resolution();
    return config_.has_sentinels() && !server_.empty() && found.done() && !found.addresses().empty() &&
           address_bytes(found) != server_;
}

/// If the Sentinels name another server than before, drops the idle and draining connections and the unused
/// listeners of the former master, and breaks the shared connections. The former master may be frozen. When
/// it runs again, it would execute a SET whose lease has expired meanwhile (docs/protocol.md, Promotion).
void Node::drop_former_locked(Clock::time_point now) {
    if (!resolution_ || !resolution_->done() || resolution_->addresses().empty()) return;
    const auto named = address_bytes(*resolution_);
    if (server_ == named) return;
    server_ = named;
    const auto drop = [&](std::unique_ptr<Connection>& connection) {
        if (!is_former_locked(*connection)) return false;
        drop_locked(std::move(connection), now, Errc::connection_failed, "the Sentinels name another server");
        return true;
    };
    std::erase_if(idle_, drop);
    std::erase_if(draining_, [&](Draining& it) { return drop(it.connection); });
    std::erase_if(listeners_, [&](const auto& it) {
        if (!is_former_locked(it->connection())) return false;
        add_disconnection_locked(it->connection(), Errc::connection_failed,
                                 "the Sentinels name another server");
        return true;
    });
    for (const auto& it : shared_)  // Rounds may still use it, so it is only marked as broken.
        if (is_former_locked(*it->connection))
            it->connection->fail(Errc::connection_failed, "the Sentinels name another server");
}

/// Returns true if the server of this connection may be a former master. This is so if the Sentinels have had
/// enough time to name another server since connection.since(), which is the instant at which the connection
/// was begun, or at which it last became idle. A reply alone does not show that the server is still the
/// master. When a frozen former master runs again, it first answers the commands that it has received. Only
/// after that does it learn that it was replaced.
bool Node::may_lead_to_former_master(const Connection& connection, Clock::time_point now) const noexcept {
    return config_.has_sentinels() && now - connection.since() >= detail::max_sentinel_silence;
}

/// `probe_` is the unfinished connection of a *probe*, an attempt to reach a failed node.
void Node::advance_probe_locked(Clock::time_point now) {
    probe_->advance();
    if (probe_->ready()) {
        connected_locked(*probe_);
        keep_locked(std::move(probe_), now);
    } else if (probe_->broken()) {
        fail_locked({probe_->cause(), probe_->detail()}, now);
        drop_locked(std::move(probe_), now);
    }
}

// ---- Connections

/// Begins a new connection, to the addresses that were found last. If Sentinels name the server, they are
/// queried for each connection. Connections that are begun during a query share it.
std::unique_ptr<Connection> Node::connect_locked(Clock::time_point now) {
    const bool done = resolution_ && resolution_->done();
    if (!resolution_ || (done && (resolution_->addresses().empty() || config_.has_sentinels())))
        resolution_ = config_.find_server();
    auto connection = std::make_unique<Connection>(config_, network_, resolution_, first_address_, now);
    add_event_locked({.kind = NodeEvent::Kind::connecting});
    return connection;
}

/// If the connection never got ready, its address may be dead, so the next one begins with another.
void Node::leave_address_locked(const Connection& connection) noexcept {
    if (connection.was_ready()) return;
    first_address_ = connection.next_address();
    if (resolution_ && resolution_->done()) resolution_.reset();
}

/// Disconnects. Bytes that the kernel has not sent yet are discarded. The releases whose rounds have ended
/// are sent again on another connection, unless Connection::forget_releases() was called. The observer gets
/// `cause` and `why`, or the failure of a broken connection.
///
/// This function also records that the node has failed, because there may be no round that reports it. It
/// does so if the connection broke before it was ready, or because the server executes nothing at present
/// (BUSY or LOADING), and in one of these cases:
///
/// - if the node is trusted, and there are such releases, or
/// - if a probe is under way.
void Node::drop_locked(std::unique_ptr<Connection> connection, Clock::time_point now, std::error_code cause,
                       const char* why) noexcept {
    const bool was_broken = connection->broken();
    const bool was_ready = connection->was_ready() && !connection->is_refused();
    const bool has_failed = was_broken && !was_ready &&
                            (health_.state() == detail::NodeHealth::State::half_open ||
                             (health_.trusted() && connection->pending().releases_to_repeat() > 0));
    leave_address_locked(*connection);
    add_disconnection_locked(*connection, cause, why);
    if (!was_broken) connection->fail({}, {});  // disconnects
    // If the connection was ready, a new one may be made for its releases although the node is not trusted.
    config_.kept_releases->keep(connection->take_pending(), was_ready);
    if (!has_failed) return;
    try {
        fail_locked({connection->cause(), connection->detail()}, now);
    } catch (const std::bad_alloc&) {  // NOLINT(bugprone-empty-catch): not recorded
    }
}

/// Returns true if closing the connection now may lose a release, because the release is unsent, or because
/// the server may not have read it. If the connection is closed while the server writes replies to earlier
/// commands, the server gets an error, and does not read the later commands.
static bool could_lose_release(const Connection& connection) noexcept {
    // late.released is not 0 if one of the late replies belongs to a release, or to the deletion of a
    // holder's description, see PendingReply::released.
    detail::LateReplies late;
    connection.pending().add_late_to(late);
    return connection.unsent() || (late.released != 0 && !connection.broken());
}

/// Appends the connections for which could_lose_release() is true.
void Node::append_unfinished(std::vector<Connection*>& connections, bool repeats) {
    const auto now = network_.clock().now();
    // Shared connections that are over are dropped by sweep(), which also repeats their releases. For
    // connections that a round has for itself, drain_locked() and repeat_releases_locked() do the same.
    if (options_.shared) sweep(now, repeats);
    const std::lock_guard guard{mutex_};
    drain_locked(now);
    if (!options_.shared && repeats) (void)repeat_releases_locked(now);
    for (const auto& it : draining_)
        if (could_lose_release(*it.connection)) connections.push_back(it.connection.get());
    for (const auto& it : shared_) {
        // Commands that wait for a common write must be written now: no later round would do it.
        it->connection->set_collecting(false);
        if (could_lose_release(*it->connection)) connections.push_back(it->connection.get());
    }
}

void Node::close_connections(Clock::time_point now) noexcept {
    const std::lock_guard guard{mutex_};
    for (auto& it : draining_) drop_locked(std::move(it.connection), now);
    for (const auto& it : shared_) drop_locked(std::move(it->connection), now);
    draining_.clear();
    shared_.clear();
}

// ---- Listeners

std::unique_ptr<Listener> Node::check_out_listener(Clock::time_point now, bool may_probe) {
    const std::lock_guard guard{mutex_};
    health_.update(now);
    if (now < no_listener_before_) return nullptr;  // see refused_to_queue()
    if (!health_.trusted()) {
        if (!may_probe || !health_.probe_due(now)) return nullptr;
        health_.begin_probe(now, network_.entropy());
        return std::make_unique<Listener>(connect_locked(now), network_.entropy());
    }
    while (!listeners_.empty()) {
        auto listener = std::move(listeners_.back());
        listeners_.pop_back();
        listener->advance();
        // Discards messages for an earlier waiter.
        (void)listener->connection().take_messages();
        if (listener->listens() && now - listener->connection().since() < max_listener_idle) return listener;
        add_disconnection_locked(listener->connection());
    }
    return std::make_unique<Listener>(connect_locked(now), network_.entropy());
}

void Node::check_in_listener(std::unique_ptr<Listener> listener, Clock::time_point now) {
    const std::lock_guard guard{mutex_};
    if (!listener->listens() || listeners_.size() >= options_.max_idle)
        return add_disconnection_locked(listener->connection());
    listener->connection().became_idle(now);
    listeners_.push_back(std::move(listener));
}

void Node::drop_listener(std::unique_ptr<Listener> listener) noexcept {
    const std::lock_guard guard{mutex_};
    if (listener->connection().broken()) leave_address_locked(listener->connection());
    add_disconnection_locked(listener->connection());
}

void Node::drop_listeners() noexcept {
    const std::lock_guard guard{mutex_};
    for (const auto& listener : listeners_) add_disconnection_locked(listener->connection());
    listeners_.clear();
}

void Node::refused_to_queue(NodeFailure why, Clock::time_point now, Clock::duration lasts) {
    const std::lock_guard guard{mutex_};
    no_listener_before_ = now + lasts;
    queue_refusal_ = std::move(why);
}

std::optional<NodeFailure> Node::queue_refusal(Clock::time_point now) {
    const std::lock_guard guard{mutex_};
    return now < no_listener_before_ ? std::optional{queue_refusal_} : std::nullopt;
}

// ---- Health

/// Trusts the node again, because it has answered a handshake. If it fails once more, its next pause is
/// longer than the last one.
void Node::connected(const Connection& connection) {
    const std::lock_guard guard{mutex_};
    connected_locked(connection);
}

void Node::connected_locked(const Connection& connection) {
    first_address_ = connection.present_address();
    health_.connected();
    answered_locked();
}

/// Trusts the node again, because it has answered a command in time. Its next pause is a short one.
void Node::succeeded() {
    const std::lock_guard guard{mutex_};
    health_.succeeded();
    answered_locked();
}

void Node::failed(NodeFailure failure, Clock::time_point now) {
    const std::lock_guard guard{mutex_};
    fail_locked(std::move(failure), now);
}

void Node::fail_locked(NodeFailure failure, Clock::time_point now) {
    if (const auto pause = health_.failed(std::move(failure), now, network_.entropy()))
        add_event_locked(
            {.kind = NodeEvent::Kind::backing_off, .failure = health_.last_failure(), .span = *pause});
}

NodeFailure Node::last_failure() {
    const std::lock_guard guard{mutex_};
    return health_.last_failure();
}

// ---- For the observer

void Node::add_event_locked(NodeEvent event) {
    if (options_.observed) events_.push_back(std::move(event));
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
    const std::lock_guard guard{mutex_};
    try {
        add_event_locked({.kind = NodeEvent::Kind::wrote, .span = waited, .commands = commands});
    } catch (const std::bad_alloc&) {  // NOLINT(bugprone-empty-catch)
    }
}

std::vector<NodeEvent> Node::take_events() {
    const std::lock_guard guard{mutex_};
    return std::exchange(events_, {});
}

}  // namespace redlock
