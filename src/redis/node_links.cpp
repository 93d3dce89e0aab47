// The connections of one node in one lane. The *users* of a connection are the rounds that have a command
// pending on it, or wait until they may write their command. Only one thread at a time calls these functions:
// the thread that leads the lane or has it for itself, its background task, the thread of the event loop, or
// the thread that closes the nodes. They lock the mutex of the Server when they begin and end connections, or
// use the health of the node. It is not held while a user continues, because the user may join and leave
// connections then.
#include "../round/connection_choice.hpp"
#include "../wire/verbs.hpp"
#include "node.hpp"

#include <algorithm>
#include <cstddef>
#include <new>
#include <string>
#include <utility>

namespace redlock {

using namespace std::chrono_literals;
using detail::ConnectionChoice;
using detail::ConnectionSituation;

// ---- Users

Node::Link& Node::link_of(const Connection& connection) const {
    return **std::ranges::find_if(links_,
                                  [&](const auto& it) { return it->connection.get() == &connection; });
}

/// Returns the current connection, which neither drains nor is broken, or null.
auto Node::current_link() const noexcept -> Link* {
    const auto it = std::ranges::find_if(
        links_, [](const auto& shared) { return !shared->drains && !shared->connection->broken(); });
    return it == links_.end() ? nullptr : it->get();
}

/// Returns the draining connection that has a pending command which this command must follow, or null. A SET
/// need not follow an earlier release. If it overtakes the release, the node only refuses it.
auto Node::link_to_follow(const Command& command) const noexcept -> Link* {
    const bool leaves_queue = command.queue && acquires(command.verb);
    const auto find = [&](auto is_bound) -> Link* {
        const auto it = std::ranges::find_if(links_, [&](const auto& shared) {
            return shared->drains && !shared->connection->broken() && is_bound(shared->connection->pending());
        });
        return it == links_.end() ? nullptr : it->get();
    };
    // The connection with the SET comes first. Another one may be bound by a description that was written
    // meanwhile.
    if (auto* const by_key =
            find([&](const auto& pending) { return pending.is_bound_by_key_of(command.owner); }))
        return by_key;
    const bool follows_release = detail::effect_of(command) == detail::KeyEffect::undescribes;
    return find([&](const auto& pending) {
        return pending.is_bound_to(command.owner) ||
               (follows_release && pending.has_release_of(command.owner)) ||
               (leaves_queue && pending.is_bound_to(command.queue->ticket));
    });
}

const detail::PendingReply* Node::unanswered_set_of(std::string_view owner) const noexcept {
    for (const auto& it : links_)
        if (!it->connection->broken())
            if (const auto* const set = it->connection->pending().unanswered_set_of(owner)) return set;
    return nullptr;
}

std::vector<std::size_t> Node::requests_that_could_overtake(std::span<const Request> requests) {
    std::vector<std::size_t> result;
    for (std::size_t i = 0; i < requests.size(); ++i)
        if (link_to_follow(requests[i].command)) result.push_back(i);
    return result;
}

/// If the node is not calm, `locked` is true: the caller has locked the mutex of the Server.
ConnectionChoice Node::choose(const Command& command, const Link* current, bool follows,
                              Clock::time_point now, bool needed, bool locked) {
    using Current = ConnectionSituation::Current;
    bool due = needed;
    bool trusted = true;
    if (locked) {
        due = due || server_->health.probe_due(now);
        // If a late reply has come, the node is trusted again, and needs no probe.
        if (due) server_->health.trust_late_replies();
        trusted = server_->health.trusted();
    }
    auto state = Current::none;
    if (current) {
        const auto& connection = *current->connection;
        const bool former = may_lead_to_former_master(connection, now);
        const bool outstanding = connection.outstanding() > 0;
        if (connection.was_ready())
            state = former && !outstanding ? Current::outdated : Current::ready;
        else
            state = former || now - connection.since() >= detail::max_connecting ? Current::overdue
                    : now - connection.since() >= config_.node_timeout / 8       ? Current::made_slowly
                                                                                 : Current::in_the_making;
    }
    const auto choice = detail::choose_connection({.effect = detail::effect_of(command),
                                                   .follows_draining = follows,
                                                   .current = state,
                                                   .trusted = trusted,
                                                   .probe = due});
    const bool asks = choice.connection >= ConnectionChoice::Connection::current;
    // A release is no probe: if it were answered late, the next probe would come after another pause.
    const bool probes = !detail::cleans_up(detail::effect_of(command));
    if (asks && due && probes && !trusted) server_->health.begin_probe(now, network_.entropy());
    return choice;
}

CheckOut Node::join(std::span<const Request> requests, Clock::time_point now, bool needed) {
    const auto& first = requests.front().command;
    std::unique_lock lock{server_->mutex, std::defer_lock};
    if (!is_calm()) lock.lock();
    // The rounds of another lane may have learned since refresh() that the server was replaced.
    if (config_.has_sentinels()) drop_former_locked();
    auto* current = current_link();
    auto* const before = requests.size() == 1 ? link_to_follow(first) : nullptr;
    const auto choice = choose(first, current, before != nullptr, now, needed, lock.owns_lock());
    if (choice.connection == ConnectionChoice::Connection::fresh && current) {
        if (!lock) lock.lock();
        leave_address_locked(*current->connection);
    }
    if (lock) lock.unlock();
    switch (choice.connection) {
        case ConnectionChoice::Connection::none: return {};
        case ConnectionChoice::Connection::overtakes: return {.obstacle = detail::set_is_pending};
        case ConnectionChoice::Connection::draining: current = before; break;
        case ConnectionChoice::Connection::current: break;
        case ConnectionChoice::Connection::fresh: {
            auto& fresh = begin_link(now);
            if (current) start_draining(*current, now);
            limit_draining();
            current = &fresh;
            break;
        }
    }
    ++current->users;
    return {current->connection.get(), choice.worth_waiting_for};
}

Node::Link& Node::begin_link(Clock::time_point now) {
    auto fresh = std::make_unique<Link>(server_->draining);
    fresh->connection = connect(now);
    fresh->connection->set_collecting(options_.collects);
    links_.push_back(std::move(fresh));
    return *links_.back();
}

/// Returns true if a command may be passed to the connection now.
bool Node::has_turn(const Link& it, detail::KeyEffect effect, Clock::time_point now) const {
    const auto& connection = *it.connection;
    return detail::may_write({.effect = effect,
                              .established = connection.established(),
                              .ready = connection.ready(),
                              .drains = it.drains,
                              .others_wait = !it.waiting.empty() && !it.is_continuing,
                              .pending = connection.pending().count(),
                              .outstanding = connection.outstanding(),
                              .has_sentinels = config_.has_sentinels(),
                              .silence = now - connection.since()});
}

bool Node::may_write(const Connection& connection, detail::KeyEffect effect, Clock::time_point now) {
    using detail::KeyEffect;
    auto& it = link_of(connection);
    const bool turn = has_turn(it, effect, now);
    // The caller writes its command now, and the command can make or extend a lease.
    const bool leases = !detail::cleans_up(effect) && effect != KeyEffect::describes;
    it.has_unwritten_leases = it.has_unwritten_leases || (turn && leases);
    return turn;
}

void Node::wait_to_write(const Connection& connection, ConnectionUser& user) {
    link_of(connection).waiting.push_back(&user);
}

void Node::leave(const Connection& connection, const ConnectionUser& user, bool gives_up,
                 Clock::time_point now) noexcept {
    auto& it = link_of(connection);
    --it.users;
    const auto waits = std::ranges::find(it.waiting, &user);
    if (waits != it.waiting.end() && it.is_continuing)
        *waits = nullptr;
    else if (waits != it.waiting.end())
        it.waiting.erase(waits);
    if (gives_up && connection.was_ready()) start_draining(it, now);
}

/// The connection keeps its pending replies, but no SET is written on it any more. `since` is the beginning
/// of the time for which it may drain.
void Node::start_draining(Link& it, Clock::time_point since) noexcept {
    if (it.drains) return;
    it.set_drains(true);
    it.until = since + std::max<Clock::duration>(it.connection->pending().max_ttl(), 1min);
}

/// Breaks a draining connection if there are too many: the oldest of this lane, or, if only all lanes
/// together have too many, the oldest of this lane on which no command was sent. The next sweep() disconnects
/// it. Its releases are not sent again. Otherwise their number would grow while the node is silent.
void Node::limit_draining() {
    const auto drains = [](const auto& it) { return it->drains && !it->connection->broken(); };
    const auto is_spare = [&](const auto& it) {
        const auto& connection = *it->connection;
        return drains(it) && it->users == 0 && !connection.was_ready() &&
               !connection.pending().has_late_release();
    };
    auto oldest = links_.end();
    if (std::ranges::count_if(links_, drains) > static_cast<std::ptrdiff_t>(max_draining))
        oldest = std::ranges::find_if(links_, drains);
    else if (server_->draining > max_draining)
        oldest = std::ranges::find_if(links_, is_spare);
    if (oldest == links_.end()) return;
    auto& connection = *(*oldest)->connection;
    connection.forget_releases();
    connection.fail(Errc::timed_out, "too many connections have replies pending");
}

// ---- Progress

void Node::append_poll_entries(std::vector<PollEntry>& entries) const {
    for (const auto& it : links_)
        if (!it->connection->broken()) append_entry(*it, entries);
}

void Node::append_owing_entries(std::vector<PollEntry>& entries) const {
    for (const auto& it : links_)
        if (!it->connection->broken() && it->connection->pending().has_late_release())
            append_entry(*it, entries);
}

void Node::append_entry(const Link& it, std::vector<PollEntry>& entries) const {
    entries.push_back(it.connection->poll_entry());
    entries.back().node = static_cast<std::uint16_t>(options_.position);
}

void Node::take_ready(const PollEntry& entry, Clock::time_point now) {
    // Other connections may be begun meanwhile, at the end of the list.
    // NOLINTNEXTLINE(modernize-loop-convert)
    for (std::size_t i = 0; i < links_.size(); ++i)
        if (const auto mine = links_[i]->connection->poll_entry();
            mine.fd == entry.fd && mine.socket == entry.socket)
            progress(*links_[i], now);
    sweep(now);
}

/// The state of a connection before it is read.
struct Node::Before {
    explicit Before(const Connection& it)
        : was_ready(it.was_ready()), pending(it.pending().count()), answered(it.pending().answered()) {}
    bool was_ready;
    std::size_t pending;
    std::size_t answered;
};

void Node::progress(Link& it, Clock::time_point now) {
    const Before before{*it.connection};
    try {
        if (!fail_if_outdated(it, now)) it.connection->advance();
    } catch (
        const std::bad_alloc&) {  // NOLINT(bugprone-empty-catch): it is broken, or goes on at the next event
    }
    let_users_continue(it, before, now);
}

Clock::time_point Node::blocking_receive(Connection& connection) {
    auto& it = link_of(connection);
    const Before before{connection};
    try {
        connection.blocking_receive();
    } catch (const std::bad_alloc&) {  // NOLINT(bugprone-empty-catch): it is broken
    }
    const auto now = network_.clock().now();
    let_users_continue(it, before, now);
    if (it.connection->broken()) sweep(now);
    return now;
}

/// Lets the users of a connection continue after it was read.
void Node::let_users_continue(Link& it, const Before& before, Clock::time_point now) {
    auto& connection = *it.connection;
    if (!before.was_ready && connection.was_ready()) connected(connection);
    const auto pending = connection.pending().count();
    const bool replied = pending < before.pending;
    it.has_replied = it.has_replied || replied;
    if (replied) it.last_reply = now;
    // Replies that a round awaits are answers. Their rounds record that the node is alive.
    const bool late = replied && before.pending - pending > connection.pending().answered() - before.answered;
    if (late && before.was_ready) {
        answered();
        if (!server_->calm) {
            const std::lock_guard guard{server_->mutex};
            server_->health.replied_late();
        }
    }
    deliver_answers(it, now);
    if (replied) record_sign_of_life(it, now);
    let_write(it, now);
}

/// If a reply has been missing on the current connection for longer than node_timeout, the node has failed,
/// and the connection drains. A round that is over does not notice this, and each round may be over before
/// the reply is due, because the other nodes are a quorum. This process may have been suspended, so the
/// function first reads what has arrived. The failure counts from the instant at which the reply was due.
/// Therefore the next probe may be due at once.
void Node::fail_if_silent(Clock::time_point now) {
    auto* const current = current_link();
    if (!current) return;
    const auto& connection = *current->connection;
    const auto due = now - config_.node_timeout;
    while (connection.awaits_reply_since_before(due) && connection.gone_stale()) progress(*current, now);
    if (connection.broken()) return sweep(now);
    if (!connection.awaits_reply_since_before(due)) return;
    const std::lock_guard guard{server_->mutex};
    fail_locked({Errc::timed_out, "a reply is missing"},
                connection.pending().oldest_write() + config_.node_timeout);
    start_draining(*current, connection.pending().oldest_write());
}

bool Node::check_silence(Clock::time_point now) {
    fail_if_silent(now);
    bool any = false;
    // NOLINTNEXTLINE(modernize-loop-convert): a round that continues may begin a connection
    for (std::size_t i = 0; i < links_.size(); ++i) any = give_up_if_silent(*links_[i], now) || any;
    if (!any) return false;
    limit_draining();
    sweep(now);
    return true;
}

/// A device on the way, such as a NAT, may have forgotten a connection without a sign. If no reply has come
/// on a draining connection since a node_timeout before now, and no command was written since then, its
/// releases are sent again on another connection, which must not be done sooner: a slow server needs no
/// second connection. This is done once for each connection. Returns true if there are such releases. A
/// release that follows a pending SET stays, because the server may be frozen, and execute the SET when it
/// runs again.
bool Node::give_up_if_silent(Link& it, Clock::time_point now) {
    auto& connection = *it.connection;
    const auto due = now - config_.node_timeout;
    const auto is_silent = [&] {
        return !connection.broken() && connection.was_ready() && it.last_reply < due &&
               connection.pending().newest_write() < due;
    };
    if (!it.drains || it.given_up || now >= it.until) return false;
    while (is_silent() && connection.gone_stale()) progress(it, now);
    if (!is_silent()) return false;
    auto releases = connection.take_repeatable_releases();
    it.given_up = true;
    const bool any = releases.releases_to_repeat() > 0;
    config_.kept_releases->keep(std::move(releases), true);
    return any;
}

/// A connection on which a reply has come a moment before the release was written is not forgotten.
bool Node::may_have_lost_release() const noexcept {
    return std::ranges::any_of(links_, [](const auto& it) {
        const auto& connection = *it->connection;
        const auto written = connection.pending().newest_write();
        return !connection.broken() && connection.was_ready() && !it->given_up && written != Clock::never() &&
               written - it->last_reply >= detail::min_silence && connection.pending().has_late_release();
    });
}

static ConnectionUser& user_of(const detail::Requester& requester) noexcept {
    return const_cast<ConnectionUser&>(static_cast<const ConnectionUser&>(requester));
}

/// Passes each answer to the user that has requested it (rule D1 in docs/rules.md).
void Node::deliver_answers(Link& it, Clock::time_point now) const {
    auto& connection = *it.connection;
    const auto next = [&] { return connection.broken() ? nullptr : connection.answer(); };
    while (const auto* const answer = next()) {
        const auto& requester = *answer->requester;
        const auto answered = connection.pending().answered();
        (void)user_of(requester).on_progress(options_.index, now);
        // A user that does not take its answer must not stop the others.
        if (connection.pending().answered() == answered) (void)connection.take_answer(requester);
    }
}

/// Is called when a reply has come. If Sentinels name the server, and no reply is outstanding any more, this
/// is a sign of life. It counts only if the last one is less than a second old. Otherwise the server may have
/// been frozen and replaced, and the connection fails.
void Node::record_sign_of_life(Link& it, Clock::time_point now) {
    auto& connection = *it.connection;
    if (!config_.has_sentinels() || !connection.ready() || connection.outstanding() > 0) return;
    if (may_lead_to_former_master(connection, now))
        connection.fail(Errc::connection_failed, detail::may_be_former);
    else
        connection.became_idle(now);
}

/// Lets the users that wait write their commands, in the order in which they began to wait. If the connection
/// is not ready, a user may have a release on it that can be sent.
void Node::let_write(Link& it, Clock::time_point now) {
    if (it.waiting.empty() || it.is_continuing) return;
    it.is_continuing = true;
    std::size_t still_waiting = 0;
    for (std::size_t i = 0; i < it.waiting.size(); ++i) {
        auto* const user = it.waiting[i];
        if (!user) continue;
        const bool must_wait = it.connection->ready() && !has_turn(it, detail::KeyEffect::acquires, now);
        if (!must_wait && !user->on_progress(options_.index, now)) continue;
        // Is null if the user has left this connection, and waits on another one now.
        if (it.waiting[i]) it.waiting[still_waiting++] = user;
    }
    it.waiting.resize(still_waiting);
    it.is_continuing = false;
}

Clock::time_point Node::write_collected(Clock::time_point now, bool all) {
    for (const auto& it : links_) {
        auto& connection = *it->connection;
        if (connection.broken() || connection.collected() == 0) continue;
        it->collected_since = std::min(it->collected_since, now);
        if (!all && !detail::writes_now(connection.outstanding(), it->has_replied, now - it->collected_since,
                                        it->drains))
            continue;
        if (!fail_if_outdated(*it, now)) connection.write_collected();
        add_write(connection, now - it->collected_since);
        it->has_unwritten_leases = it->has_unwritten_leases && connection.unsent();
        it->has_replied = false;
        it->collected_since = Clock::never();
    }
    sweep(now);  // may send releases again on another connection
    auto next = Clock::never();
    for (const auto& it : links_)
        if (it->connection->collected() > 0)
            next = std::min(next, std::min(it->collected_since, now) + detail::max_collecting);
    return next;
}

bool Node::has_unsent() const noexcept {
    return std::ranges::any_of(links_, [](const auto& it) { return it->connection->unsent(); });
}

void Node::add_late_replies(detail::LateReplies& late) const {
    for (const auto& it : links_)
        if (!it->connection->broken()) it->connection->pending().add_late_to(late, options_.index);
}

/// If the server may be a former master by now, breaks a connection that still has to write a command other
/// than a release. Returns true if it does.
bool Node::fail_if_outdated(Link& it, Clock::time_point now) {
    auto& connection = *it.connection;
    if (!it.has_unwritten_leases || !connection.unsent() || !may_lead_to_former_master(connection, now))
        return false;
    connection.fail(Errc::connection_failed, detail::may_be_former);
    return true;
}

// ---- The end of a connection

/// Lets all users leave a broken connection.
void Node::fail_users(Link& it, Clock::time_point now) {
    auto& connection = *it.connection;
    while (const auto* const requester = connection.pending().requester()) {
        (void)user_of(*requester).on_progress(options_.index, now);
        connection.stop_awaiting(*requester);
    }
    let_write(it, now);
}

/// Disconnects the connections that are broken or not needed any more. If `repeats` is true, sends the
/// releases of the broken ones again, which can break another connection.
void Node::sweep(Clock::time_point now, bool repeats) {
    for (bool again = has_to_sweep(); again;) {
        // NOLINTNEXTLINE(modernize-loop-convert): a release that is repeated may begin a connection
        for (std::size_t i = 0; i < links_.size(); ++i)
            if (links_[i]->connection->broken()) fail_users(*links_[i], now);
        drop_unused(now);
        again = repeats && repeat_releases(now);
    }
}

/// Each round sweeps each node several times. Mostly there is nothing to do, which costs no lock.
bool Node::has_to_sweep() const noexcept {
    return !config_.kept_releases->none() ||
           std::ranges::any_of(links_, [](const auto& it) { return it->drains || it->connection->broken(); });
}

void Node::drop_unused(Clock::time_point now) {
    for (auto it = links_.begin(); it != links_.end();) {
        if (!is_over(**it, now)) {
            ++it;
            continue;
        }
        auto taken = std::move((*it)->connection);
        it = links_.erase(it);
        if (taken->broken() || taken->pending().none()) {
            drop(std::move(taken), now);
        } else if (taken->hangs(now)) {
            drop(std::move(taken), now, Errc::timed_out, detail::while_connecting);
        } else {
            taken->forget_releases();
            drop(std::move(taken), now, Errc::timed_out, "replies were pending for too long");
        }
    }
}

/// Sends the releases of the broken connections again on the current one. If there is none, begins one. Later
/// SETs of their resources use the same connection, so they arrive behind the releases. Returns true if the
/// connection has broken now.
bool Node::repeat_releases(Clock::time_point now) {
    auto& kept = *config_.kept_releases;
    if (kept.none()) return false;
    std::unique_lock lock{server_->mutex};
    const bool answers = answers_locked();
    lock.unlock();
    if (!kept.may_send(answers, now)) return false;
    auto* const current = current_link();
    auto& connection = *(current ? *current : begin_link(now)).connection;
    kept.send_again(answers, now, [&](const detail::PendingReply& release) { connection.repeat(release); });
    connection.flush();  // may keep a release, so it comes after send_again()
    return connection.broken();
}

/// Returns true if the connection has no users and no further use. A connection that has drained becomes the
/// current one again if there is no other.
bool Node::is_over(Link& it, Clock::time_point now) {
    const auto& connection = *it.connection;
    if (it.users > 0) return false;
    if (connection.broken()) return true;
    if (!it.drains) return false;
    if (now >= it.until || connection.hangs(now)) return true;
    if (!connection.pending().none() || connection.unsent()) return false;
    const bool replaced = std::ranges::any_of(links_, [&](const auto& other) {
        return other.get() != &it && !other->drains && !other->connection->broken();
    });
    if (replaced || may_lead_to_former_master(connection, now) || !connection.ready()) return true;
    it.set_drains(false);
    it.given_up = false;
    return false;
}

}  // namespace redlock
