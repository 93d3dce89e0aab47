// No mutex is held while a user continues, because the user may join and leave connections then.
#include "link.hpp"

#include <redlock/detail/memory.hpp>

#include "../round/write_choice.hpp"
#include "node_config.hpp"

#include <algorithm>
#include <utility>

namespace redlock {

using namespace std::chrono_literals;

/// The shortest time without a reply after which a device on the way may have forgotten a connection. Such
/// devices do so after minutes.
static constexpr auto min_silence = 1s;

Link::Link(const NodeConfig& config, Network& network, Clock::time_point now, std::size_t node)
    : Connection(config, network, config.server->addresses(config), now), index_(node) {}

detail::ConnectionSituation::Current Link::situation(Clock::time_point now) const noexcept {
    using Current = detail::ConnectionSituation::Current;
    const bool former = may_lead_to_former_master(now);
    if (was_ready()) return former && outstanding() == 0 ? Current::outdated : Current::ready;
    if (former || now - since() >= detail::max_connecting) return Current::overdue;
    return now - since() >= config_.node_timeout / 8 ? Current::made_slowly : Current::in_the_making;
}

// ---- Users

/// On a connection of a Node, every requester is a round. The handshake and ASKING have none.
static ConnectionUser& user_of(const detail::Requester& requester) noexcept {
    return const_cast<ConnectionUser&>(static_cast<const ConnectionUser&>(requester));
}

/// Returns true if a command may be passed to the connection now.
bool Link::is_free_for(detail::KeyEffect effect, Clock::time_point now) const noexcept {
    return detail::may_send({.effect = effect,
                             .established = established(),
                             .ready = ready(),
                             .drains = is_draining(),
                             .others_wait = !waiting_.empty() && !is_continuing_,
                             .pending = pending().count(),
                             .outstanding = outstanding(),
                             .has_sentinels = config_.has_sentinels(),
                             .silence = now - since()});
}

bool Link::may_send(detail::KeyEffect effect, Clock::time_point now) noexcept {
    const bool sends = is_free_for(effect, now);
    // See fail_if_outdated().
    const bool leases = !detail::cleans_up(effect) && effect != detail::KeyEffect::describes;
    has_unwritten_leases_ = (has_unwritten_leases_ && unsent()) || (sends && leases);
    return sends;
}

void Link::leave(const ConnectionUser& user) noexcept {
    --users_;
    const auto waits = std::ranges::find(waiting_, &user);
    if (waits != waiting_.end() && is_continuing_)
        *waits = nullptr;
    else if (waits != waiting_.end())
        waiting_.erase(waits);
}

void Link::fail_users(Clock::time_point now) {
    while (const auto* const requester = pending().requester()) {
        (void)user_of(*requester).on_progress(index_, now);
        pending().stop_awaiting(*requester);
    }
    let_write(now);
}

// ---- Progress

Clock::time_point Link::progress(Clock::time_point now, Clock* clock) {
    const bool was_ready_before = was_ready();
    const auto pending_before = pending().count();
    const auto answered_before = pending().answered();
    (void)detail::has_memory_for([&] {  // otherwise it is broken, or goes on at the next event
        if (clock)
            blocking_receive();
        else if (!fail_if_outdated(now))
            advance();
    });
    if (clock) now = clock->now();
    if (!was_ready_before && was_ready()) config_.server->connected(*this);
    const auto replies = pending_before - std::min(pending_before, pending().count());
    if (replies > 0) last_reply_ = now;
    has_replied_ = has_replied_ || replies > 0;
    // Replies that a round awaits are answers. Their rounds record that the node is alive.
    const bool late = replies > pending().answered() - answered_before;
    if (late && was_ready_before) config_.server->replied_late();
    deliver_answers(now);
    if (replies > 0) record_sign_of_life(now);
    let_write(now);
    return now;
}

/// Passes each answer to the user that has requested it (rule D1 in docs/rules.md).
void Link::deliver_answers(Clock::time_point now) {
    const auto next = [this] { return broken() ? nullptr : pending().answer(); };
    while (const auto* const answer = next()) {
        const auto& requester = *answer->requester;
        const auto answered = pending().answered();
        (void)user_of(requester).on_progress(index_, now);
        // A user that does not take its answer must not stop the others.
        if (pending().answered() == answered) (void)pending().take_answer(requester);
    }
}

/// Lets the users that wait send their commands, in the order in which they began to wait. A user that waits
/// with a clean-up can continue as soon as the connection is established.
void Link::let_write(Clock::time_point now) {
    if (waiting_.empty() || is_continuing_) return;
    is_continuing_ = true;
    // NOLINTNEXTLINE(modernize-loop-convert): a user that continues may let another one wait
    for (std::size_t i = 0; i < waiting_.size(); ++i) {
        const bool must_wait = ready() && !is_free_for(detail::KeyEffect::acquires, now);
        if (!waiting_[i] || must_wait) continue;
        // A user that waits on another connection now has left this one, so its place is null already.
        if (!waiting_[i]->on_progress(index_, now)) waiting_[i] = nullptr;
    }
    std::erase(waiting_, nullptr);
    is_continuing_ = false;
}

void Link::write_if_due(Clock::time_point now, bool all) {
    if (broken() || collected() == 0) {
        collected_since_ = Clock::never();  // flush() may have written them
        return;
    }
    collected_since_ = std::min(collected_since_, now);
    const auto waited = now - collected_since_;
    const bool writes = holds_back() ? waited >= longest_collecting() || is_draining()
                                     : detail::writes_now(outstanding(), has_replied_, waited, is_draining());
    if (!all && !writes) return;
    if (!fail_if_outdated(now)) write_collected();
    config_.server->wrote(take_written(), waited);
    has_replied_ = false;
    collected_since_ = Clock::never();
}

Clock::time_point Link::write_due(Clock::time_point now) const noexcept {
    return collected() == 0 ? Clock::never() : std::min(collected_since_, now) + longest_collecting();
}

/// Returns true if the collected commands are held back. If Sentinels name the server, they are clean-ups and
/// descriptions, and other commands wait until no reply is outstanding (may_send()). A steady stream of
/// clean-ups would let them wait for ever. If the clean-ups are held back, the last reply comes soon, and all
/// of these commands go in the same write.
bool Link::holds_back() const noexcept {
    return config_.has_sentinels() && ready() && !waiting_.empty() && outstanding() > 0;
}

/// Returns how long a command is collected at most. The server may be silent, so no clean-up is held back for
/// longer than half a node_timeout.
Clock::duration Link::longest_collecting() const noexcept {
    return std::max<Clock::duration>(holds_back() ? config_.node_timeout / 2 : 0ms, detail::max_collecting);
}

// ---- The end of a connection

void Link::start_draining(Clock::time_point since) noexcept {
    if (!is_current()) return;
    config_.server->leave_address(*this);
    ++config_.server->draining();
    state_ = State::draining;
    until_ = since + std::max<Clock::duration>(pending().max_ttl(), 1min);
}

void Link::stop_draining() noexcept {
    if (state_ != State::current) --config_.server->draining();
    state_ = State::current;
}

bool Link::reuse(Clock::time_point now) noexcept {
    const bool has_drained =
        ready() && is_draining() && users_ == 0 && now < until_ && pending().none() && !unsent();
    if (!has_drained || may_lead_to_former_master(now)) return false;
    stop_draining();
    return true;
}

bool Link::is_over(Clock::time_point now) const noexcept {
    if (users_ > 0) return false;
    return broken() || (is_draining() && (now >= until_ || hangs(now) || (pending().none() && !unsent())));
}

void Link::end(Clock::time_point now) noexcept {
    if (broken() || pending().none()) return disconnect(now);
    if (!was_ready()) return disconnect(now, Errc::timed_out, detail::while_connecting);
    pending().never_repeat();
    disconnect(now, Errc::timed_out, "replies were pending for too long");
}

void Link::disconnect(Clock::time_point now, std::error_code reason, const char* words) noexcept {
    auto& server = *config_.server;
    const bool was_broken = broken();
    const bool is_blameless = was_ready() || has_shortage();
    const auto health = server.health(now);
    const bool has_failed = was_broken && cause() && !is_blameless &&
                            (health.probed || (health.trusted && pending().releases_to_repeat() > 0));
    server.leave_address(*this);
    server.disconnected(*this, reason, words);
    if (!was_broken) fail({}, {});
    auto releases = std::exchange(pending(), {});
    if (!was_ready()) releases.undo_repeat_count();
    if (has_failed)  // before the releases are kept, so that no other group sends them to a failed server
        (void)detail::has_memory_for([&] { config_.failed({cause(), detail()}, now, network_.entropy()); });
    server.kept().keep(std::move(releases), is_blameless);
}

/// A round that is over does not notice that its node is silent. This process may have been suspended, so
/// what has arrived is read first. The failure counts from the instant at which the reply was due, so the
/// next probe may be due at once.
bool Link::check_silence(Clock::time_point now) {
    while (is_newly_silent(now) && has_input_or_end()) (void)progress(now);
    if (is_newly_silent(now) && is_current()) {
        const auto written = pending().oldest_write();
        config_.failed({Errc::timed_out, "a reply is missing"}, written + config_.node_timeout,
                       network_.entropy());
        start_draining(written);
    }
    // The releases that a round still awaits are given up when it leaves them.
    return is_newly_silent(now) && !pending().requester() && give_up_releases();
}

bool Link::leave_forgotten(Clock::time_point now) {
    const bool is_mute = !was_ready() && now - since() >= detail::max_connecting;
    if (!is_mute && rest() != Rest::unconfirmed && !is_newly_silent(now)) return false;
    if (is_mute) pending().undo_repeat_count();
    start_draining(now);
    return give_up_releases();
}

/// Returns true if a reply has been missing for a node_timeout, and check_silence() has something to do.
///
/// If nothing was written or read on a draining connection for a node_timeout, a device on the way, such as a
/// NAT, may have forgotten it. A slow server needs no second connection, so its releases are not given up
/// sooner.
bool Link::is_newly_silent(Clock::time_point now) const noexcept {
    const auto due = now - config_.node_timeout;
    if (state_ == State::silent || broken() || !was_ready() || pending().oldest_write() >= due) return false;
    return is_current() || (now < until_ && last_reply_ < due && pending().newest_write() < due);
}

/// Requires is_draining().
bool Link::give_up_releases() {
    auto releases = pending().take_repeatable_releases();
    state_ = State::silent;
    const bool any = releases.releases_to_repeat() > 0;
    config_.server->kept().keep(std::move(releases), true);
    return any;
}

void Link::send_kept(bool answers, Clock::time_point now) {
    const auto before = pending().count();
    try {
        config_.server->kept().send_again(answers, now,
                                          [this](const detail::PendingReply& it) { repeat(it); });
    } catch (...) {
        pending().never_repeat(before);  // all releases are still kept
        throw;
    }
    flush();  // may keep a release, so it comes after send_again()
}

/// A device has not forgotten the connection if a reply has come a moment before the newest command was
/// written.
Rest Link::rest() const noexcept {
    if (unsent()) return Rest::unsent;
    const auto written = pending().newest_write();
    const bool may_be_lost = !broken() && was_ready() && state_ != State::silent &&
                             written != Clock::never() && written - last_reply_ >= min_silence;
    return may_be_lost && pending().has_late_clean_up() ? Rest::unconfirmed : Rest::nothing;
}

// ---- Only if Sentinels name the server
//
// A reply is a *sign of life* only if it comes less than a second after the last one, because the Sentinels
// need longer than that to name another server. A later reply shows nothing: when a frozen former master runs
// again, it first answers the commands that it has received, and only then learns that it was replaced.

/// Returns true if the Sentinels have had enough time to name another server since the last sign of life.
bool Link::may_lead_to_former_master(Clock::time_point now) const noexcept {
    return config_.has_sentinels() && now - since() >= detail::max_sentinel_silence;
}

/// Is called when a reply has come. Only if no reply is outstanding any more, it can be a sign of life. If it
/// comes too late, the connection fails.
void Link::record_sign_of_life(Clock::time_point now) {
    if (!config_.has_sentinels() || !ready() || outstanding() > 0) return;
    if (may_lead_to_former_master(now))
        fail(Errc::connection_failed, detail::may_be_former);
    else
        became_idle(now);
}

/// If the server may be a former master by now, breaks a connection that still has to write a command which
/// must not be executed late (may_send()). Returns true if it does.
bool Link::fail_if_outdated(Clock::time_point now) {
    if (!has_unwritten_leases_ || !unsent() || !may_lead_to_former_master(now)) return false;
    fail(Errc::connection_failed, detail::may_be_former);
    return true;
}

}  // namespace redlock
