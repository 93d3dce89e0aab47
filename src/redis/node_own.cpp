// The connections that one round has for itself, between the rounds; node.hpp has the table of connections. A
// connection is *draining* while replies are pending on it that no round takes any more. It is *probing* if
// it is being made without a command. The caller of a function with the suffix _locked has locked mutex_.
#include "redis/node.hpp"

#include <redlock/detail/connection_choice.hpp>
#include <redlock/detail/verbs.hpp>

#include <algorithm>
#include <chrono>
#include <new>
#include <string_view>
#include <utility>

namespace redlock {

using namespace std::chrono_literals;
using detail::KeyEffect;

static constexpr std::size_t max_pending = 32;  // pending replies on one connection

std::vector<std::size_t> Node::requests_that_could_overtake(std::span<const Request> requests) {
    const std::lock_guard guard{mutex_};
    std::vector<std::size_t> result;
    for (std::size_t i = 0; i < requests.size(); ++i)
        if (shared_to_follow(requests[i].command) ||
            bound_to_locked(requests[i].command.owner) != draining_.end())
            result.push_back(i);
    return result;
}

// ---- Check-out
//
// Some commands must be sent behind an earlier one, on the same connection. While the reply to the earlier
// command is pending, its connection is *bound* (pending_replies.hpp):
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
//     7 | the probing one, or else a new one                | every command if the node is trusted, a probe
//       |                                                   | is due, or the outcome of the round depends
//       |                                                   | on the node (`needed`); otherwise a release
//
// Rows 2, 3, 5 and 6 skip connections with 32 pending replies. If row 1 finds so many, only a release is
// sent, and any other command is not sent to the node at all. Otherwise a lock that is extended again and
// again would fill the memory while the node is silent. Row 7 skips a probing connection that has taken too
// long if the node is not trusted, and one that may lead to a former master if it is.
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
            return {.obstacle = "too many replies are pending behind its SET"};
        return {.connection = take_locked(it), .worth_waiting_for = health_.trusted()};
    }
    const bool describes = effect == KeyEffect::describes;
    if ((effect == KeyEffect::acquires || describes) && health_.trusted())
        if (const auto it = with_release_of_locked(command.resources); it != draining_.end())
            return {.connection = take_locked(it), .worth_waiting_for = true};
    if (describes && idle_.empty())  // row 3: a description may be written late
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
        // The round of an earlier release has waited for an older connection (case 3 in quorum_round.hpp).
        const bool is_new = now - it->connection->since() < config_.node_timeout / 8;
        return {.connection = take_locked(it), .worth_waiting_for = is_new};
    }
    if (probe_ && may_lead_to_former_master(*probe_, now))
        drop_locked(std::move(probe_), now, Errc::timed_out, "while connecting");
    return {.connection = probe_ ? std::move(probe_) : connect_locked(now), .worth_waiting_for = true};
}

CheckOut Node::check_out_untrusted_locked(bool release, Clock::time_point now, bool due) {
    if (release) {
        if (auto idle = take_idle_locked(now, release)) return {.connection = std::move(idle)};
        // The node reads a release behind other commands when it answers again.
        if (const auto it = unbound_locked(); it != draining_.end()) return {.connection = take_locked(it)};
        // A new connection is worth waiting for, because the failure may have concerned only the old one. A
        // release begins no probe. Otherwise it would use up the probe if its reply came late, and the next
        // acquisition would leave the node alone for another pause.
        if (!probe_) return {.connection = connect_locked(now), .worth_waiting_for = true};
    } else if (!due) {
        return {};
    }
    if (due) health_.begin_probe(now, network_.entropy());
    if (probe_ && now - probe_->since() < detail::NodeHealth::back_off.longest)
        return {.connection = std::move(probe_)};
    if (probe_) drop_locked(std::move(probe_), now, Errc::timed_out, "while connecting");
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
            drop_locked(std::move(idle), now, Errc::connection_failed, detail::may_be_former);
            continue;
        }
        const bool just_used = now - idle->since() < (release ? 10ms : 1ms);
        if (just_used || !idle->gone_stale()) return idle;
        drop_locked(std::move(idle), now, Errc::connection_failed, "closed by the server while idle");
    }
    return nullptr;
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
        drop_locked(std::move(connection), now);
}

/// Keeps a connection as an idle or a draining one, unless it leads to a former master. A draining connection
/// is dropped after one minute, or after the longest ttl of its commands if that is longer.
void Node::keep_locked(std::unique_ptr<Connection> connection, Clock::time_point now) {
    if (is_former_locked(*connection))
        return drop_locked(std::move(connection), now, Errc::connection_failed,
                           "the Sentinels name another server");
    if (connection->pending().none()) return keep_idle_locked(std::move(connection), now);
    const auto until = now + std::max<Clock::duration>(connection->pending().max_ttl(), 1min);
    keep_draining_locked(std::move(connection), now, until);
}

void Node::keep_idle_locked(std::unique_ptr<Connection> connection, Clock::time_point now) {
    if (may_lead_to_former_master(*connection, now))
        return drop_locked(std::move(connection), now, Errc::connection_failed, detail::may_be_former);
    if (idle_.size() >= options_.max_idle) return drop_locked(std::move(connection), now);
    connection->became_idle(now);
    idle_.push_back(std::move(connection));
}

/// If there are too many draining connections, drops the oldest, even if a release is not sent on it yet. The
/// key of that release then stays until its ttl ends.
void Node::keep_draining_locked(std::unique_ptr<Connection> connection, Clock::time_point now,
                                Clock::time_point until) {
    if (draining_.size() >= max_draining) {
        draining_.front().connection->forget_releases();
        drop_locked(std::move(draining_.front().connection), now, Errc::timed_out,
                    "too many connections have replies pending");
        draining_.erase(draining_.begin());
    }
    draining_.push_back({std::move(connection), until});
}

// ---- Late replies, and unsent releases

/// Writes the unsent bytes of the draining connections, and reads their late replies. A connection without
/// pending replies becomes idle. Any step may throw std::bad_alloc, so a connection is removed from the list
/// before it is passed on.
void Node::drain_locked(Clock::time_point now) {
    for (auto it = draining_.begin(); it != draining_.end();) {
        auto& connection = *it->connection;
        const auto pending = connection.pending().count();
        try {
            connection.advance();
        } catch (const std::bad_alloc&) {
            // The connection is broken, but the node has not failed, so that its releases may be sent at
            // once.
            if (connection.broken()) config_.kept_releases->keep(connection.take_pending(), true);
            throw;
        }
        if (connection.pending().count() < pending) {
            health_.replied_late();
            answered_locked();
        }
        const bool drained = !connection.broken() && connection.pending().none();
        if (!drained && !connection.broken() && now < it->until) {
            ++it;
            continue;
        }
        auto taken = std::move(it->connection);
        it = draining_.erase(it);
        if (drained) {
            keep_idle_locked(std::move(taken), now);
            continue;
        }
        if (!taken->broken()) taken->forget_releases();
        drop_locked(std::move(taken), now, Errc::timed_out, "replies were pending for too long");
    }
}

/// Sends the releases of broken connections again. Returns true if there are any.
bool Node::repeat_releases_locked(Clock::time_point now) {
    if (releases_.none()) config_.kept_releases->move_to(releases_, answers_locked());
    if (releases_.none()) return false;
    auto connection = take_idle_locked(now, true);
    if (!connection) connection = connect_locked(now);
    connection->repeat(releases_);
    releases_.clear();
    if (connection->broken())
        drop_locked(std::move(connection), now);
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

}  // namespace redlock
