// The connections that are not shared: their choice for a round, and what happens to them afterwards. The
// table is in node.hpp. A connection is *draining* while replies are pending on it that no round takes any
// more. It is *probing* if it is being made without a command. The caller of a function with the suffix
// _locked has locked mutex_.
#include "node.hpp"

#include <redlock/detail/connection_choice.hpp>
#include <redlock/detail/own_connection_choice.hpp>
#include <redlock/detail/verbs.hpp>

#include <algorithm>
#include <chrono>
#include <new>
#include <string_view>
#include <utility>

namespace redlock {

using namespace std::chrono_literals;
using detail::KeyEffect;
using detail::OwnSituation;

/// Returns true if another command may be sent on the connection.
static bool has_room(const Connection& connection) noexcept {
    return connection.pending().count() < detail::max_own_pending;
}

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

CheckOut Node::check_out(const Command& command, Clock::time_point now, bool needed) {
    const std::lock_guard guard{mutex_};
    auto in = situation_locked(detail::effect_of(command), now, needed);
    const auto found = find_draining_locked(in, command, now);
    return check_out_locked(in, found, now);
}

CheckOut Node::check_out_for_several(Clock::time_point now, bool needed) {
    const std::lock_guard guard{mutex_};
    // Only extensions come several at once. None of them has to follow a pending command.
    auto in = situation_locked(KeyEffect::extends, now, needed);
    return check_out_locked(in, {}, now);
}

bool Node::must_follow(const Command& command) {
    const std::lock_guard guard{mutex_};
    if (draining_.empty()) return false;
    OwnSituation in{.effect = detail::effect_of(command), .trusted = health_.trusted()};
    (void)find_draining_locked(in, command, {});
    return detail::must_follow(in);
}

/// Returns the situation without the draining connections.
OwnSituation Node::situation_locked(KeyEffect effect, Clock::time_point now, bool needed) const {
    OwnSituation in{.effect = effect,
                    .has_sentinels = config_.has_sentinels(),
                    .trusted = health_.trusted(),
                    .replied_late = health_.has_replied_late(),
                    .due = needed || health_.probe_due(now)};
    if (!idle_.empty()) in.idle = OwnSituation::Idle::some;
    if (!probe_) return in;
    in.probing = true;
    in.probing_hangs = now - probe_->since() >= detail::NodeHealth::back_off.longest;
    in.probing_may_be_former = may_lead_to_former_master(*probe_, now);
    return in;
}

/// Adds the draining connections to the situation, and returns the draining ones that may be chosen.
auto Node::find_draining_locked(OwnSituation& in, const Command& command, Clock::time_point now)
    -> FoundDraining {
    if (draining_.empty()) return {};
    FoundDraining found{.follow = connection_to_follow_locked(command),
                        .unbound = unbound_locked(in.effect),
                        .queued = being_made_locked()};
    const auto end = draining_.end();
    if (found.follow != end)
        in.follow = has_room(*found.follow->connection) ? OwnSituation::Follow::with_room
                                                        : OwnSituation::Follow::full;
    if (detail::may_follow_release(in.effect)) {
        found.behind_release = with_release_of_locked(command.resources);
        in.behind_release = found.behind_release != end;
    }
    in.unbound = found.unbound != end;
    in.unbound_was_ready = std::ranges::any_of(draining_, [](const Draining& it) {
        return it.connection->was_ready() && !it.connection->pending().is_bound();
    });
    if (found.queued != end)
        in.queued = now - found.queued->connection->since() < config_.node_timeout / 8
                        ? OwnSituation::Queued::on_new
                        : OwnSituation::Queued::on_old;
    return found;
}

/// Chooses a connection, and takes it or begins it.
CheckOut Node::check_out_locked(OwnSituation& in, const FoundDraining& found, Clock::time_point now) {
    using enum detail::OwnChoice::Connection;
    auto choice = detail::choose_own_connection(in);
    if (choice.trusts_late_replies) health_.trust_late_replies();
    if (choice.connection == idle) {
        if (auto taken = take_idle_locked(now, detail::cleans_up(in.effect)))
            return {.connection = std::move(taken), .worth_waiting_for = choice.worth_waiting_for};
        in.idle = OwnSituation::Idle::all_dropped;
        choice = detail::choose_own_connection(in);
    }
    if (choice.begins_probe) health_.begin_probe(now, network_.entropy());
    const auto take = [&]() -> std::unique_ptr<Connection> {
        switch (choice.connection) {
            case follow: return take_locked(found.follow);
            case behind_release: return take_locked(found.behind_release);
            case unbound: return take_locked(found.unbound);
            case queued: return take_locked(found.queued);
            case probing: return std::move(probe_);
            case fresh:
                if (probe_) drop_locked(std::move(probe_), now, Errc::timed_out, "while connecting");
                return connect_locked(now);
            case none:
            case refused:
            case idle: break;
        }
        return nullptr;
    };
    return {
        .connection = take(),
        .worth_waiting_for = choice.worth_waiting_for,
        .obstacle = choice.connection == refused ? "too many replies are pending behind its SET" : nullptr};
}

/// Returns the connection with the SET, if another one is bound by a description that was written meanwhile.
auto Node::bound_to_locked(std::string_view owner) -> std::vector<Draining>::iterator {
    const auto by_key = std::ranges::find_if(
        draining_, [&](const Draining& it) { return it.connection->pending().is_bound_by_key_of(owner); });
    if (by_key != draining_.end()) return by_key;
    return std::ranges::find_if(
        draining_, [&](const Draining& it) { return it.connection->pending().is_bound_to(owner); });
}

/// Returns the draining connection that the command must follow (own_connection_choice.hpp).
auto Node::connection_to_follow_locked(const Command& command) -> std::vector<Draining>::iterator {
    const auto it = bound_to_locked(command.owner);
    const bool leaves_queue = command.queue && acquires(command.verb);
    return leaves_queue && it == draining_.end() ? bound_to_locked(command.queue->ticket) : it;
}

auto Node::with_release_of_locked(Resources resources) -> std::vector<Draining>::iterator {
    return std::ranges::find_if(draining_, [&](const Draining& it) {
        const auto& pending = it.connection->pending();
        return pending.may_release(resources) && !pending.is_bound() && has_room(*it.connection);
    });
}

/// A release does not go behind other commands on a connection that has been ready, because this one may be
/// dead without a sign.
auto Node::unbound_locked(KeyEffect effect) -> std::vector<Draining>::iterator {
    return std::ranges::find_if(draining_, [effect](const Draining& it) {
        const bool may_be_dead = effect == KeyEffect::releases && it.connection->was_ready();
        return !may_be_dead && !it.connection->pending().is_bound() && has_room(*it.connection);
    });
}

/// Returns a draining connection on which TCP or TLS is not connected yet. It has queued releases. Otherwise
/// it would be the probing connection.
auto Node::being_made_locked() -> std::vector<Draining>::iterator {
    return std::ranges::find_if(draining_, [](const Draining& it) {
        return !it.connection->established() && has_room(*it.connection);
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
std::unique_ptr<Connection> Node::take_idle_locked(Clock::time_point now, bool cleans_up) {
    while (!idle_.empty()) {
        auto idle = std::move(idle_.back());
        idle_.pop_back();
        if (!cleans_up && may_lead_to_former_master(*idle, now)) {
            drop_locked(std::move(idle), now, Errc::connection_failed, detail::may_be_former);
            continue;
        }
        const bool just_used = now - idle->since() < (cleans_up ? 10ms : 1ms);
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
    if (idle_.size() >= options_.max_idle) return drop_locked(std::move(connection), now);
    // Otherwise only a release or the deletion of a description may use it.
    if (!may_lead_to_former_master(*connection, now)) connection->became_idle(now);
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
/// pending replies becomes idle. A connection that *hangs*, in the making for max_connecting, is dropped, so
/// that its releases are sent again. Any step may throw std::bad_alloc, so a connection is removed from the
/// list before it is passed on.
void Node::drain_locked(Clock::time_point now) {
    for (auto it = draining_.begin(); it != draining_.end();) {
        auto& connection = *it->connection;
        const auto pending = connection.pending().count();
        try {
            connection.advance();
        } catch (const std::bad_alloc&) {
            // If the connection is broken, only memory was missing. The node has not failed, so the releases
            // may be sent at once.
            if (connection.broken()) config_.kept_releases->keep(connection.take_pending(), true);
            throw;
        }
        if (connection.pending().count() < pending) {
            health_.replied_late();
            answered_locked();
        }
        const bool drained = !connection.broken() && connection.pending().none();
        // The address may be dead although the server answers at another one, or on another connection.
        const bool hangs = connection.hangs(now);
        if (!drained && !connection.broken() && !hangs && now < it->until) {
            ++it;
            continue;
        }
        auto taken = std::move(it->connection);
        it = draining_.erase(it);
        if (drained) {
            keep_idle_locked(std::move(taken), now);
            continue;
        }
        if (!taken->broken() && !hangs) taken->forget_releases();
        drop_locked(std::move(taken), now, Errc::timed_out,
                    hangs ? detail::while_connecting : "replies were pending for too long");
    }
}

/// Sends the releases of broken connections again. Returns true if there are any.
bool Node::repeat_releases_locked(Clock::time_point now) {
    if (releases_.none()) config_.kept_releases->move_to(releases_, answers_locked(), now);
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
