// The connections of one node between the rounds, and its health. node.hpp explains the words: *draining*,
// *probing*, *late* and others. The functions of shared connections are in node_shared.cpp. The caller of a
// function with the suffix _locked has locked mutex_.
#include "redis/node.hpp"

#include <redlock/detail/connection_choice.hpp>
#include <redlock/detail/verbs.hpp>

#include <algorithm>
#include <new>
#include <string_view>
#include <utility>

namespace redlock {
namespace {

using namespace std::chrono_literals;
using detail::KeyEffect;
using detail::NodeFailure;

constexpr std::size_t max_pending = 32;  // pending replies on one connection

/// A listener that was unused for longer is not used again. Nothing is sent on it, so a lost connection would
/// not be noticed.
constexpr auto max_listener_idle = 10s;

/// Returns the bytes of the first address, which identify the server.
std::string_view address_bytes(const Resolution& found) {
    const auto& address = found.addresses().front();
    return {reinterpret_cast<const char*>(&address.storage), address.length};
}

}  // namespace

Node::Node(NodeConfig config, Network& network, Options options)
    : config_(std::move(config)), network_(network), options_(options) {
    // A draining connection may have an unsent release, and must be kept even if there is no memory left.
    draining_.reserve(max_draining);
    broken_.reserve(max_broken);
}

bool Node::refresh(Clock::time_point now, std::size_t index, detail::QuorumRound& round) {
    const std::lock_guard guard{mutex_};
    if (config_.has_sentinels()) drop_former_locked(now);
    if (!draining_.empty()) drain_locked(now);
    if (probe_) advance_probe_locked(now);
    const bool repeats = !options_.shared && repeat_releases_locked(now);
    health_.update(now);
    round.set_health(index, health_.trusted(), health_.probe_due(now));
    return repeats;
}

/// Returns true if the connection leads to another server than the one that the Sentinels have named last.
bool Node::is_former_locked(const Connection& connection) const {
    const auto& found = connection.resolution();
    return config_.has_sentinels() && !server_.empty() && found.done() && !found.addresses().empty() &&
           address_bytes(found) != server_;
}

/// If the Sentinels name another server than before, drops the idle and draining connections to the former
/// master, and breaks the shared ones. The former master may be frozen. When it runs again, it would execute
/// a SET whose lease has expired meanwhile (docs/protocol.md, Promotion).
void Node::drop_former_locked(Clock::time_point now) {
    if (!resolution_ || !resolution_->done() || resolution_->addresses().empty()) return;
    const auto named = address_bytes(*resolution_);
    if (server_ == named) return;
    server_ = named;
    const auto drop = [&](std::unique_ptr<Connection>& connection) {
        if (!is_former_locked(*connection)) return false;
        retire_locked(std::move(connection), now, Errc::connection_failed,
                      "the Sentinels name another server");
        return true;
    };
    std::erase_if(idle_, drop);
    std::erase_if(draining_, [&](Draining& it) { return drop(it.connection); });
    for (const auto& it : shared_)  // their rounds leave them in sweep() (node_shared.cpp)
        if (is_former_locked(*it->connection))
            it->connection->fail(Errc::connection_failed, "the Sentinels name another server");
}

/// Returns true if the Sentinels may have named another server since the connection was begun or last became
/// idle. A reply that has come since proves nothing. When a frozen former master runs again, it first answers
/// the commands that it has received, and learns only then that it was replaced.
bool Node::may_lead_to_former_master(const Connection& connection, Clock::time_point now) const noexcept {
    return config_.has_sentinels() && now - connection.since() >= detail::max_sentinel_silence;
}

/// Writes the unsent bytes of the draining connections, and reads their late replies. A connection without
/// pending replies becomes idle. Any step may throw std::bad_alloc, so a connection is removed from the list
/// before it is passed on.
void Node::drain_locked(Clock::time_point now) {
    for (auto it = draining_.begin(); it != draining_.end();) {
        auto& connection = *it->connection;
        const auto pending = connection.pending().count();
        connection.advance();
        if (connection.pending().count() < pending) health_.replied_late();
        const bool drained = !connection.broken() && connection.pending().none();
        if (!drained && !connection.broken() && now < it->until) {
            ++it;
            continue;
        }
        auto taken = std::move(it->connection);
        it = draining_.erase(it);
        if (drained)
            keep_idle_locked(std::move(taken), now);
        else if (taken->broken())
            retire_locked(std::move(taken), now);
        else
            drop_locked(std::move(taken), Errc::timed_out, "replies were pending for too long");
    }
}

void Node::advance_probe_locked(Clock::time_point now) {
    probe_->advance();
    if (probe_->ready()) {
        health_.connected();
        keep_locked(std::move(probe_), now);
    } else if (probe_->broken()) {
        fail_locked({probe_->cause(), probe_->detail()}, now);
        drop_locked(std::move(probe_));
    }
}

std::vector<std::size_t> Node::requests_that_could_overtake(std::span<const Request> requests) {
    const std::lock_guard guard{mutex_};
    std::vector<std::size_t> result;
    // draining_before() looks at shared connections, bound_to_locked() at the others.
    for (std::size_t i = 0; i < requests.size(); ++i)
        if (draining_before(requests[i].command) ||
            bound_to_locked(requests[i].command.owner) != draining_.end())
            result.push_back(i);
    return result;
}

// ---- Check-out
//
// Some commands must be sent behind an earlier one, on the same connection. While the reply to one of these
// commands is pending, its connection is *bound* (pending_replies.hpp):
//
//     pending command                | bound to           | commands that must follow
//     -------------------------------+--------------------+-----------------------------------------------
//     SET                            | its *owner*: the   | all commands of this owner, above all the
//                                    | value of the key   | release
//     writing a *description*, a     | the owner of the   | the deletion of the description
//     text for people, beside a lock | lock               |
//     enter_queue: a waiter enters   | the *ticket* of    | the acquisition that removes the ticket from
//     the queue                      | the waiter         | the queue
//
// The next table shows which connection a command gets. Read it from the top: a row applies if its right
// column has the command, and there is such a connection.
//
//       connection                                          | for
//     --+---------------------------------------------------+----------------------------------------------
//     1 | the one that is bound to the owner of the         | every command
//       | command; if there is none, and the command is an  |
//       | acquisition that removes a ticket: the one that   |
//       | is bound to this ticket                           |
//     2 | a draining one that is not bound, with a pending  | an acquisition or a description, if the node
//       | release of the same resource                      | is trusted
//     3 | any draining one that is not bound                | a description, if there is no idle connection
//     4 | an idle one                                       | every command if the node is trusted,
//       |                                                   | otherwise a release
//     5 | one that is being made and has releases queued    | a release, if the node is trusted
//     6 | any draining one that is not bound                | a release, if the node is not trusted
//     7 | the probing one; a new one if there is none, or   | every command if the node is trusted, a probe
//       | if the probing one has taken too long             | is due, or the outcome of the round depends
//       |                                                   | on the node (`needed`); otherwise a release
//
// Rows 2, 3, 5 and 6 skip connections with 32 pending replies. If row 1 finds so many, only a release is
// sent, and any other command is not sent to the node at all. Otherwise a lock that is extended again and
// again would fill the memory while the node is silent.
//
// If Sentinels name the server, row 1 is for releases only, and rows 2 and 3 are not used. A server that has
// not answered yet may be a frozen former master, and no lease may depend on it. An extension that overtakes
// its SET is only refused.

CheckOut Node::check_out(const Command& command, Clock::time_point now, bool needed) {
    const std::lock_guard guard{mutex_};
    const auto effect = detail::effect_of(command);
    const bool release = effect == KeyEffect::releases;
    if (config_.has_sentinels() && !release) return check_out_any_locked(release, now, needed);
    if (const auto it = connection_to_follow_locked(command); it != draining_.end()) {
        if (!release && it->connection->pending().count() >= max_pending)
            return {.not_asked = "too many replies are pending behind its SET"};
        return {.connection = take_locked(it), .worth_waiting_for = health_.trusted()};
    }
    const bool describes = effect == KeyEffect::describes;
    if ((effect == KeyEffect::acquires || describes) && health_.trusted())
        if (const auto it = with_release_of_locked(command.resources); it != draining_.end())
            return {.connection = take_locked(it), .worth_waiting_for = true};
    // A description may be written late, so no connection is begun for it.
    if (describes && idle_.empty())
        if (const auto it = unbound_locked(); it != draining_.end()) return {.connection = take_locked(it)};
    return check_out_any_locked(release, now, needed);
}

bool Node::must_follow(const Command& command) {
    const std::lock_guard guard{mutex_};
    if (draining_.empty()) return false;
    const auto effect = detail::effect_of(command);
    const bool may_follow_release = effect == KeyEffect::acquires || effect == KeyEffect::describes;
    return connection_to_follow_locked(command) != draining_.end() ||
           (may_follow_release && health_.trusted() &&
            with_release_of_locked(command.resources) != draining_.end());
}

CheckOut Node::check_out_for_several(Clock::time_point now, bool needed) {
    const std::lock_guard guard{mutex_};
    constexpr bool release = false;  // only extensions come several at once
    return check_out_any_locked(release, now, needed);
}

/// Rows 4 to 7 of the table.
CheckOut Node::check_out_any_locked(bool release, Clock::time_point now, bool needed) {
    const bool due = needed || health_.probe_due(now);
    // A late reply ends the back-off only if the node would be asked now in any case. Otherwise a node that
    // is always late would delay every round.
    if (due) health_.trust_late_replies();
    if (!health_.trusted()) return check_out_untrusted_locked(release, now, due);
    return check_out_trusted_locked(release, now);
}

CheckOut Node::check_out_trusted_locked(bool release, Clock::time_point now) {
    if (auto idle = take_idle_locked(now, release))
        return {.connection = std::move(idle), .worth_waiting_for = true};
    if (const auto it = being_made_locked(); release && it != draining_.end()) {
        // If the connection is older, the round of an earlier release has already waited for it (case 3 in
        // quorum_round.hpp). The release is then sent later.
        const bool is_new = now - it->connection->since() < config_.node_timeout / 8;
        return {.connection = take_locked(it), .worth_waiting_for = is_new};
    }
    if (probe_ && may_lead_to_former_master(*probe_, now))
        drop_locked(std::move(probe_), Errc::timed_out, "while connecting");
    return {.connection = probe_ ? std::move(probe_) : connect_locked(now), .worth_waiting_for = true};
}

CheckOut Node::check_out_untrusted_locked(bool release, Clock::time_point now, bool due) {
    if (release) {
        // A release behind other commands delays nobody: the node reads it when it answers again. A new
        // connection is worth waiting for, because the failure may have concerned only the old one. It does
        // not begin a probe. Otherwise a release whose reply comes late would use up the probe, and the next
        // acquisition would leave the node alone for another pause.
        if (auto idle = take_idle_locked(now, release)) return {.connection = std::move(idle)};
        if (const auto it = unbound_locked(); it != draining_.end()) return {.connection = take_locked(it)};
        if (!probe_) return {.connection = connect_locked(now), .worth_waiting_for = true};
    } else if (!due) {
        return {};
    }
    if (due) health_.begin_probe(now, network_.entropy());
    if (probe_ && now - probe_->since() < detail::NodeHealth::back_off.longest)
        return {.connection = std::move(probe_)};
    if (probe_) drop_locked(std::move(probe_), Errc::timed_out, "while connecting");
    return {.connection = connect_locked(now)};
}

auto Node::bound_to_locked(std::string_view owner) -> std::vector<Draining>::iterator {
    return std::ranges::find_if(
        draining_, [&](const Draining& it) { return it.connection->pending().is_bound_to(owner); });
}

/// Row 1 of the table.
auto Node::connection_to_follow_locked(const Command& command) -> std::vector<Draining>::iterator {
    const auto it = bound_to_locked(command.owner);
    const bool leaves_queue = command.queue && acquires(command.verb);
    return leaves_queue && it == draining_.end() ? bound_to_locked(command.queue->ticket) : it;
}

/// Row 2: on another connection, the SET could overtake the release, and would be refused because this
/// client's own old key still exists.
auto Node::with_release_of_locked(Resources resources) -> std::vector<Draining>::iterator {
    return std::ranges::find_if(draining_, [&](const Draining& it) {
        const auto& pending = it.connection->pending();
        return pending.may_release(resources) && !pending.is_bound() && pending.count() < max_pending;
    });
}

/// Rows 3 and 6.
auto Node::unbound_locked() -> std::vector<Draining>::iterator {
    return std::ranges::find_if(draining_, [](const Draining& it) {
        const auto& pending = it.connection->pending();
        return !pending.is_bound() && pending.count() < max_pending;
    });
}

/// Row 5. A draining connection to which TCP and TLS are not established yet has releases queued. Without a
/// command, it would be the probing connection.
auto Node::being_made_locked() -> std::vector<Draining>::iterator {
    return std::ranges::find_if(draining_, [](const Draining& it) {
        return !it.connection->established() && it.connection->pending().count() < max_pending;
    });
}

std::unique_ptr<Connection> Node::take_locked(std::vector<Draining>::iterator it) {
    auto connection = std::move(it->connection);
    draining_.erase(it);
    return connection;
}

/// Returns the idle connection that was used last. Drops idle connections on which something has arrived,
/// which is mostly the end of the stream. This check costs a system call, so it is skipped for a connection
/// that became idle within the last millisecond, or within 10 ms for a release, because a release that fails
/// is repeated.
std::unique_ptr<Connection> Node::take_idle_locked(Clock::time_point now, bool release) {
    while (!idle_.empty()) {
        auto idle = std::move(idle_.back());
        idle_.pop_back();
        if (!release && may_lead_to_former_master(*idle, now)) {
            drop_locked(std::move(idle), Errc::connection_failed, detail::may_be_former);
            continue;
        }
        const bool just_used = now - idle->since() < (release ? 10ms : 1ms);
        if (just_used || !idle->gone_stale()) return idle;
        drop_locked(std::move(idle), Errc::connection_failed, "closed by the server while idle");
    }
    return nullptr;
}

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

// ---- Check-in

void Node::check_in(CheckedOut checked_out, Clock::time_point now) {
    std::unique_ptr<Connection> connection{checked_out.release()};
    const std::lock_guard guard{mutex_};
    if (!connection->broken() && (connection->ready() || connection->used()))
        keep_locked(std::move(connection), now);
    else if (!connection->broken() && !probe_)
        probe_ = std::move(connection);  // no command was sent on it
    else
        retire_locked(std::move(connection), now);
}

/// Keeps a connection as an idle or a draining one, unless it leads to a former master. A draining connection
/// is dropped after one minute, or after the longest ttl of its commands if that is longer.
void Node::keep_locked(std::unique_ptr<Connection> connection, Clock::time_point now) {
    if (is_former_locked(*connection))
        return retire_locked(std::move(connection), now, Errc::connection_failed,
                             "the Sentinels name another server");
    if (connection->pending().none()) return keep_idle_locked(std::move(connection), now);
    const auto until = now + std::max<Clock::duration>(connection->pending().max_ttl(), 1min);
    keep_draining_locked(std::move(connection), until);
}

void Node::keep_idle_locked(std::unique_ptr<Connection> connection, Clock::time_point now) {
    if (may_lead_to_former_master(*connection, now))
        return drop_locked(std::move(connection), Errc::connection_failed, detail::may_be_former);
    if (idle_.size() >= options_.max_idle) return drop_locked(std::move(connection));
    connection->became_idle(now);
    idle_.push_back(std::move(connection));
}

/// If there are too many draining connections, drops the oldest, even if a release is not sent on it yet. The
/// key of that release then stays until its ttl ends.
void Node::keep_draining_locked(std::unique_ptr<Connection> connection, Clock::time_point until) {
    if (draining_.size() >= max_draining) {
        drop_locked(std::move(draining_.front().connection), Errc::timed_out,
                    "too many connections have replies pending");
        draining_.erase(draining_.begin());
    }
    draining_.push_back({std::move(connection), until});
}

/// Disconnects. Bytes that the kernel has not sent yet are discarded. The observer gets `cause` and `why`,
/// unless the connection broke before: then it gets the cause of that. If the connection never got ready, its
/// address may be dead, so the next connection starts with another address and resolves the name again.
void Node::disconnect_locked(Connection& connection, std::error_code cause, const char* why) noexcept {
    if (!connection.was_ready()) {
        first_address_ = connection.next_address();
        if (resolution_ && resolution_->done()) resolution_.reset();
    }
    add_disconnection_locked(connection, cause, why);
    if (!connection.broken()) connection.fail({}, {});
}

void Node::drop_locked(std::unique_ptr<Connection> connection, std::error_code cause,
                       const char* why) noexcept {
    disconnect_locked(*connection, cause, why);
}

// ---- Releases that are sent again

/// Disconnects, as drop_locked() does. If the server may not have received a release whose round is over,
/// keeps the broken connection until the release is sent again on another one. If a connection that was made
/// for such a release cannot be established, the node has failed.
void Node::retire_locked(std::unique_ptr<Connection> connection, Clock::time_point now, std::error_code cause,
                         const char* why) noexcept {
    const bool was_broken = connection->broken();
    disconnect_locked(*connection, cause, why);
    if (connection->pending().left_releases() == 0) return;
    if (broken_.size() >= max_broken) broken_.erase(broken_.begin());
    const auto& kept = *broken_.emplace_back(std::move(connection));
    try {
        if (was_broken && !kept.was_ready() && health_.trusted())
            fail_locked({kept.cause(), kept.detail()}, now);
    } catch (const std::bad_alloc&) {  // NOLINT(bugprone-empty-catch): the next failure is recorded
    }
}

/// Returns true if a connection may be made in order to send releases again: if the node is trusted, or if
/// their connection broke after it had been established. So a server that has ended gets one attempt, and
/// further ones when the node is trusted again.
bool Node::may_connect_for_releases_locked() const noexcept {
    return health_.trusted() ||
           std::ranges::any_of(broken_, [](const auto& connection) { return connection->was_ready(); });
}

/// Sends the releases of the broken connections again. If the function throws, they are still to be sent.
void Node::send_left_releases_locked(Connection& connection) {
    std::size_t count = 0;
    for (const auto& it : broken_) count += it->pending().left_releases();
    auto skipped = count - std::min(count, max_repeated_releases);
    for (const auto& it : broken_) {
        connection.send_left_releases_of(*it, skipped);
        skipped -= std::min(skipped, it->pending().left_releases());
    }
    broken_.clear();
}

/// If each round has connections of its own: sends the releases of the broken ones again. Returns true if
/// there are any.
bool Node::repeat_releases_locked(Clock::time_point now) {
    if (broken_.empty() || !may_connect_for_releases_locked()) return false;
    auto connection = take_idle_locked(now, true);
    if (!connection) connection = connect_locked(now);
    send_left_releases_locked(*connection);
    if (connection->broken())
        retire_locked(std::move(connection), now);
    else
        keep_locked(std::move(connection), now);
    return true;
}

bool Node::send_unsent(Clock::time_point now) {
    const std::lock_guard guard{mutex_};
    drain_locked(now);
    (void)repeat_releases_locked(now);
    return std::ranges::any_of(draining_, [](const Draining& it) { return it.connection->unsent(); });
}

/// Returns true if closing the connection now may lose a release: one with unsent bytes, or one whose reply
/// is missing, because a server that cannot write its replies any more stops reading.
static bool could_lose_release(const Connection& connection) noexcept {
    detail::LateReplies late;
    connection.pending().add_late_to(late);
    return connection.unsent() || (late.released != 0 && !connection.broken());
}

void Node::append_unfinished(std::vector<Connection*>& connections) {
    const auto now = network_.clock().now();
    if (options_.shared) sweep(now);
    const std::lock_guard guard{mutex_};
    drain_locked(now);
    if (!options_.shared) (void)repeat_releases_locked(now);
    for (const auto& it : draining_)
        if (could_lose_release(*it.connection)) connections.push_back(it.connection.get());
    for (const auto& it : shared_) {
        // A shared connection collects commands for write_collected(). No round will call it any more, so
        // each command is now written at once.
        it->connection->set_collecting(false);
        if (could_lose_release(*it->connection)) connections.push_back(it->connection.get());
    }
}

// ---- Listeners. They are not dropped by drop_locked(), because the end of a subscription says nothing about
// the address of the node.

std::unique_ptr<Listener> Node::check_out_listener(Clock::time_point now, bool may_probe) {
    const std::lock_guard guard{mutex_};
    health_.update(now);
    if (now < no_listener_before_) return nullptr;
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
    add_disconnection_locked(listener->connection());
}

void Node::drop_listeners() noexcept {
    const std::lock_guard guard{mutex_};
    for (const auto& listener : listeners_) add_disconnection_locked(listener->connection());
    listeners_.clear();
}

void Node::refused_to_queue(NodeFailure why, Clock::time_point now) {
    const std::lock_guard guard{mutex_};
    no_listener_before_ = now + queue_refusal_lasts;
    queue_refusal_ = std::move(why);
}

std::optional<NodeFailure> Node::queue_refusal(Clock::time_point now) {
    const std::lock_guard guard{mutex_};
    return now < no_listener_before_ ? std::optional{queue_refusal_} : std::nullopt;
}

// ---- Health

void Node::connected() {
    const std::lock_guard guard{mutex_};
    health_.connected();
}

void Node::succeeded() {
    const std::lock_guard guard{mutex_};
    health_.succeeded();
}

void Node::failed(NodeFailure failure, Clock::time_point now) {
    const std::lock_guard guard{mutex_};
    fail_locked(std::move(failure), now);
}

void Node::fail_locked(NodeFailure failure, Clock::time_point now) {
    if (const auto pause = health_.failed(std::move(failure), now, network_.entropy()))
        add_event_locked(
            {.kind = NodeEvent::Kind::backing_off, .failure = health_.last_failure(), .pause = *pause});
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

std::vector<NodeEvent> Node::take_events() {
    const std::lock_guard guard{mutex_};
    return std::exchange(events_, {});
}

}  // namespace redlock
