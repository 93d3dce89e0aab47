#include "node.hpp"

#include "../wire/verbs.hpp"
#include "redis_cluster.hpp"

#include <algorithm>
#include <utility>

namespace redlock {

using detail::ConnectionChoice;

/// Reads the health last, because check_silence() may record a failure. Calls tidy_up() so that an empty
/// connection is used again. The next sweep() drops what drop_former() breaks.
Server::Health Node::refresh(Clock::time_point now) {
    (void)check_silence(now);
    tidy_up(now);
    drop_former();
    return config_.server->health(now);
}

// ---- The choice of a connection

/// Returns the current connection, or null.
Link* Node::current_link() const noexcept {
    const auto it = std::ranges::find_if(links_, &Link::is_current);
    return it == links_.end() ? nullptr : it->get();
}

/// Returns the draining connection that has a pending command which this command must follow, or null. There
/// is one at most, because all commands of an owner follow each other.
Link* Node::link_to_follow(const Command& command) const noexcept {
    const auto it = std::ranges::find_if(links_, [&](const auto& link) {
        return link->is_draining() && link->pending().must_be_followed_by(command);
    });
    return it == links_.end() ? nullptr : it->get();
}

const detail::PendingReply* Node::binding_command_of(std::string_view owner) const noexcept {
    for (const auto& it : links_)
        if (!it->broken())
            if (const auto* const set = it->pending().binding_command_of(owner)) return set;
    return nullptr;
}

bool Node::could_overtake(const Command& command) const noexcept {
    return !detail::cleans_up(detail::effect_of(command)) && link_to_follow(command);
}

JoinedLink Node::join(const Command& command, Clock::time_point now, bool needed) {
    const auto effect = detail::effect_of(command);
    auto* current = current_link();
    auto* const draining = detail::cleans_up(effect) ? link_to_follow(command) : nullptr;
    const auto choice = config_.server->choose(
        {.effect = effect,
         .follows_draining = draining != nullptr,
         .current = current ? current->situation(now) : detail::ConnectionSituation::Current::none,
         .probe = needed},
        now, network_.entropy());
    switch (choice.connection) {
        case ConnectionChoice::Connection::none: return {};
        case ConnectionChoice::Connection::draining: current = draining; break;
        case ConnectionChoice::Connection::current: break;
        case ConnectionChoice::Connection::fresh:
            // First, because there is one current connection. If it was never ready, the new one tries
            // another address.
            if (current) current->start_draining(now);
            current = &begin_link(now);
            limit_draining();
    }
    current->join();
    return {current, choice.worth_waiting_for};
}

/// Begins the current connection. Requires that there is none.
Link& Node::begin_link(Clock::time_point now) {
    auto fresh = std::make_unique<Link>(config_, network_, now, options_.index);
    fresh->set_collecting(options_.collects);
    links_.push_back(std::move(fresh));
    had_shortage_ = false;
    return *links_.back();
}

/// If this group has too many draining connections, breaks the oldest of them, and its late releases are not
/// sent again: otherwise there would be more and more of them while the node does not answer. If only all
/// groups together have too many, breaks the oldest draining one of this group that was never ready, and has
/// no users and no late clean-up. The next sweep() drops it.
void Node::limit_draining() {
    const auto is_spare = [](const auto& it) {
        return it->is_draining() && it->users() == 0 && !it->was_ready() &&
               !it->pending().has_late_clean_up();
    };
    auto oldest = links_.end();
    if (std::ranges::count_if(links_, &Link::is_draining) > static_cast<std::ptrdiff_t>(max_draining))
        oldest = std::ranges::find_if(links_, &Link::is_draining);
    else if (config_.server->draining() > max_draining)
        oldest = std::ranges::find_if(links_, is_spare);
    if (oldest == links_.end()) return;
    (*oldest)->fail(Errc::timed_out, "too many connections have replies pending");  // may throw
    (*oldest)->pending().never_repeat();
}

// ---- Progress

/// Calls the function with each link, also with those that it adds (see links_).
template <class Function>
void Node::for_each_link(Function function) {
    // NOLINTNEXTLINE(modernize-loop-convert)
    for (std::size_t i = 0; i < links_.size(); ++i) function(*links_[i]);
}

void Node::append_poll_entries(std::vector<PollEntry>& entries, Polled polled) const {
    for (const auto& it : links_)
        if (!it->broken() && (polled == Polled::all || it->pending().has_late_clean_up()))
            entries.push_back(it->poll_entry());
}

void Node::take_ready(int fd, Clock::time_point now) {
    for_each_link([&](Link& it) {
        if (it.fd() == fd) (void)it.progress(now);
    });
    sweep(now);
}

Clock::time_point Node::blocking_receive(Link& link) {
    const auto now = link.progress({}, &network_.clock());
    if (link.broken()) sweep(now);
    return now;
}

Clock::time_point Node::write_collected(Clock::time_point now, bool all) {
    // This function is called in each pass. Mostly there is nothing to do. If nothing has to be swept, all
    // links are current, so there is one at most.
    if (!has_to_sweep() && (links_.empty() || !links_.front()->has_collected())) return Clock::never();
    for (const auto& it : links_) it->write_if_due(now, all);
    sweep(now);  // may send releases again on another connection
    auto next = Clock::never();
    for (const auto& it : links_) next = std::min(next, it->write_due(now));
    return next;
}

Rest Node::write_all(Clock::time_point now) {
    (void)write_collected(now, true);
    auto rest = Rest::nothing;
    for (const auto& it : links_) rest = std::max(rest, it->rest());
    return rest;
}

void Node::add_late_replies(detail::LateReplies& late) const {
    for (const auto& it : links_)
        if (!it->broken()) late.add(it->pending(), options_.index);
}

bool Node::lacks_connection() const noexcept {
    if (!had_shortage_) return false;
    const auto* const current = current_link();
    return !current || !current->ready();
}

// ---- Silence

bool Node::check_silence(Clock::time_point now) {
    bool any_releases = false;
    for_each_link([&](Link& it) { any_releases = it.check_silence(now) || any_releases; });
    if (any_releases) limit_draining();  // because sweep() can begin a connection, as join() does
    if (any_releases || std::ranges::any_of(links_, &Link::broken)) sweep(now);
    return any_releases;
}

void Node::give_up_unwritten(Clock::time_point now) {
    for (const auto& it : links_) {
        it->write_if_due(now, true);  // a release that is only collected can be written at once
        if (it->unsent() && it->pending().has_late_clean_up()) it->fail({}, {});
    }
    sweep(now, false);
}

// ---- The end of a connection

/// Lets the users of broken connections leave. Then drops the connections that are broken or not needed any
/// more. If `sends_kept` is true, sends the kept releases again, which can break another connection. The loop
/// ends, because a server that breaks a connection before it is ready is not trusted then
/// (Link::disconnect()), and because the releases on a ready one count their repetitions.
void Node::sweep(Clock::time_point now, bool sends_kept) {
    for (bool again = has_to_sweep(), first = true; again; first = false) {
        // A user that leaves may break another connection, so this goes on as long as users leave.
        for (bool any_left = true; std::exchange(any_left, false);)
            for_each_link([&](Link& it) {
                if (!it.broken() || it.users() == 0) return;
                it.fail_users(now);
                any_left = any_left || it.users() == 0;
            });
        tidy_up(now);
        // In a shortage, one attempt is enough. Others would fail, too, one after the other and for ever.
        again = sends_kept && (first || !had_shortage_) && repeat_releases(now);
    }
}

/// Each round sweeps each node several times. Mostly there is nothing to do. To find that out takes no lock.
bool Node::has_to_sweep() const noexcept {
    return !config_.server->kept().none() || !are_current();
}

/// Returns true if every connection is in order and does not drain.
bool Node::are_current() const noexcept {
    return std::ranges::all_of(links_, &Link::is_current);
}

/// Drops the connections that are over, and sets had_shortage_. If there is no current one, an empty draining
/// one is current again.
void Node::tidy_up(Clock::time_point now) {
    if (are_current()) return;
    if (!current_link())
        for (const auto& it : links_)
            if (it->reuse(now)) break;
    const auto is_over = [now](const auto& it) { return it->is_over(now); };
    for (const auto& it : links_) {
        if (!is_over(it)) continue;
        had_shortage_ = it->has_shortage();
        it->end(now);
    }
    std::erase_if(links_, is_over);
}

/// Sends the kept releases again on the current connection. If there is none, begins one. Later SETs of this
/// group use it, too, so they arrive behind the releases. Returns true if the connection has broken now. If
/// others have replaced this server in its Cluster, has_replaced() gives the releases to them instead.
bool Node::repeat_releases(Clock::time_point now) {
    auto& kept = config_.server->kept();
    if (kept.none()) return false;
    const bool answers = trusted(now);
    if (config_.cluster && !answers && config_.cluster->has_replaced(config_)) return false;
    if (!kept.may_send(answers, now)) return false;
    auto* const current = current_link();
    auto& link = current ? *current : begin_link(now);
    link.send_kept(answers, now);
    return link.broken();
}

/// Closing a connection now may lose a release that is unsent, or that the server has not read. If the
/// connection is closed while the server writes replies to earlier commands, the server gets an error, and
/// does not read the later commands.
void Node::append_unfinished(std::vector<Connection*>& connections, bool sends_kept) {
    const auto now = network_.clock().now();
    sweep(now, sends_kept);
    for (const auto& it : links_) {
        // Then the next advance() writes the collected commands. No later round would do it.
        it->set_collecting(false);
        if (it->unsent() || it->pending().has_late_clean_up()) connections.push_back(it.get());
    }
}

void Node::leave_forgotten(Clock::time_point now) {
    bool any_releases = false;
    for (const auto& it : links_) any_releases = it->leave_forgotten(now) || any_releases;
    // The idle connection of another group may be forgotten, too, so the releases are not left to it.
    if (any_releases) sweep(now);
}

void Node::close_connections(Clock::time_point now) noexcept {
    for (const auto& it : links_) it->disconnect(now);
    links_.clear();
}

// ---- Only if Sentinels name the server

/// If the Sentinels name another server than before, breaks the connections to the former master
/// (docs/protocol.md, Promotion).
void Node::drop_former() {
    if (!config_.has_sentinels()) return;
    const auto master = config_.server->learn_master();
    if (master_ == master) return;
    constexpr auto* why = "the Sentinels name another server";
    for (const auto& it : links_)  // Rounds may still use it, so it is only marked as broken.
        if (config_.server->is_former(*it)) it->fail(Errc::connection_failed, why);
    master_ = master;  // the last, because fail() may throw
}

/// If the server has failed, and others have replaced it in its Cluster, breaks all connections. It may
/// be frozen, and then it answers no MOVED. has_replaced() has given its kept releases to the others.
void Node::leave_former_server(Clock::time_point now) {
    if (links_.empty() || trusted(now)) return;
    if (!config_.cluster->has_replaced(config_)) return;
    for (const auto& it : links_) it->fail(Errc::connection_failed, "the Cluster has replaced the server");
    sweep(now);
}

}  // namespace redlock
