#include "node.hpp"

#include <redlock/retry.hpp>

#include <algorithm>
#include <utility>

namespace redlock {
namespace {

using namespace std::chrono_literals;

constexpr Clock::duration shortest_back_off = 10ms;
constexpr Clock::duration longest_back_off = 1s;
constexpr std::size_t most_owing = 64;
constexpr std::size_t most_owed = 32;  // replies on one connection

Clock::duration back_off(int failures) {
    const auto steps = std::min(failures - 1, 10);
    return random_pause(std::min(shortest_back_off * (1 << steps), longest_back_off), os_entropy());
}

}  // namespace

Node::Node(Endpoint endpoint, std::shared_ptr<const TlsContext> tls, const NodesOptions& options)
    : endpoint_(std::move(endpoint)), tls_(std::move(tls)), options_(options) {}

Standing Node::look(Clock::time_point now) {
    const std::lock_guard guard{mutex_};
    if (!owing_.empty()) collect(now);
    if (probe_) look_at_probe(now);
    const bool due = now >= next_probe_;
    if (due) forgive();
    if (!suspected_) return Standing::trusted;
    return due ? Standing::due : Standing::suspected;
}

/// Reads the late replies. Any reply shows that the node is alive; a connection without debts is idle again.
void Node::collect(Clock::time_point now) {
    std::erase_if(owing_, [&](Owing& it) {
        auto& connection = *it.connection;
        const auto owed = connection.owed();
        connection.advance();
        alive_ = alive_ || connection.owed() < owed;
        if (!connection.broken() && connection.owed() == 0)
            keep_idle(std::move(it.connection), now);
        else if (connection.broken() || now >= it.until)
            drop(std::move(it.connection), {Errc::timed_out, "owed replies for too long"});
        else
            return false;
        return true;
    });
}

void Node::look_at_probe(Clock::time_point now) {
    probe_->advance();
    if (probe_->ready()) {
        suspected_ = false;
        keep(std::move(probe_), now);
    } else if (probe_->broken()) {
        suspect({probe_->cause(), probe_->detail()}, now);
        drop(std::move(probe_));
    }
}

Loan Node::lend(const Command& command, Clock::time_point now, bool needed) {
    const std::lock_guard guard{mutex_};
    const bool release = command.verb == Verb::compare_and_delete;
    if (const auto carrier = carrier_of(command.owner); carrier != owing_.end()) {
        if (!release && carrier->connection->owed() >= most_owed) return {};
        return {take(carrier), !suspected_};
    }
    return lend_any(release, now, needed);
}

Loan Node::lend_to_many(Clock::time_point now, bool needed) {
    const std::lock_guard guard{mutex_};
    return lend_any(false, now, needed);
}

std::vector<std::string> Node::unreleased() {
    const std::lock_guard guard{mutex_};
    std::vector<std::string> owners;
    for (const auto& it : owing_)
        if (it.connection->has_unreleased()) owners.push_back(it.connection->unreleased());
    return owners;
}

Loan Node::lend_any(bool release, Clock::time_point now, bool needed) {
    const bool due = needed || now >= next_probe_;
    if (due) forgive();
    if (suspected_) return lend_suspected(release, now, due);
    return {take_idle_or_new(now, release), true};
}

Loan Node::lend_suspected(bool release, Clock::time_point now, bool due) {
    if (release) {
        // It costs nothing to let it go behind something else, and it arrives when the node wakes up. Where
        // there is nothing, and no connection hangs already, the trouble may have been with the connection
        // alone.
        if (auto idle = take_idle(now, release)) return {std::move(idle)};
        if (const auto any = any_owing(); any != owing_.end()) return {take(any)};
        if (!probe_) return {connect(now), true};
    }
    if (!due) return {};
    next_probe_ = now + back_off(failures_);
    // A probe that hangs for too long is itself given up for a new one.
    if (probe_ && now - probe_->begun() < longest_back_off) return {std::move(probe_)};
    if (probe_) drop(std::move(probe_), {Errc::timed_out, "while connecting"});
    return {connect(now)};
}

std::unique_ptr<Connection> Node::take_idle_or_new(Clock::time_point now, bool release) {
    if (auto idle = take_idle(now, release)) return idle;
    return probe_ ? std::move(probe_) : connect(now);
}

auto Node::carrier_of(std::string_view owner) -> std::vector<Owing>::iterator {
    return std::ranges::find_if(owing_, [&](const Owing& it) { return it.connection->carries(owner); });
}

/// One that is not reserved for the release of its own SET.
auto Node::any_owing() -> std::vector<Owing>::iterator {
    return std::ranges::find_if(owing_, [](const Owing& it) {
        return !it.connection->has_unreleased() && it.connection->owed() < most_owed;
    });
}

std::unique_ptr<Connection> Node::take(std::vector<Owing>::iterator it) {
    auto connection = std::move(it->connection);
    owing_.erase(it);
    return connection;
}

/// The connection used last; those on which something has come in, if only their end, are thrown away. One
/// that was read a moment ago is taken without that look, which could not tell either what comes a moment
/// later; for a release the moment is longer: what it is answered wrongly costs nobody's exclusion.
std::unique_ptr<Connection> Node::take_idle(Clock::time_point now, bool release) {
    while (!idle_.empty()) {
        auto idle = std::move(idle_.back());
        idle_.pop_back();
        const bool just_used = now - idle.since < (release ? 10ms : 1ms);
        if (just_used || !idle.connection->gone_stale()) return std::move(idle.connection);
        drop(std::move(idle.connection), {Errc::connection_failed, "closed by the server while idle"});
    }
    return nullptr;
}

std::unique_ptr<Connection> Node::connect(Clock::time_point now) {
    if (!resolution_ || (resolution_->done() && resolution_->addresses().empty()))
        resolution_ = endpoint_.unix_socket.empty() ? Resolution::of_host(endpoint_.host, endpoint_.port)
                                                    : Resolution::of_unix_socket(endpoint_.unix_socket);
    auto connection = std::make_unique<Connection>(endpoint_, tls_.get(), resolution_, first_address_,
                                                   options_.node_timeout, options_.quarantine, now);
    note({.kind = NodeEvent::Kind::connecting});
    return connection;
}

void Node::give_back(std::unique_ptr<Connection> connection, Clock::time_point now) {
    const std::lock_guard guard{mutex_};
    if (!connection->broken() && (connection->ready() || connection->used()))
        keep(std::move(connection), now);
    else if (!connection->broken() && !probe_)
        probe_ = std::move(connection);  // its greeting goes on as a probe
    else
        drop(std::move(connection));
}

void Node::keep(std::unique_ptr<Connection> connection, Clock::time_point now) {
    if (connection->owed() == 0) return keep_idle(std::move(connection), now);
    const auto until = now + std::max<Clock::duration>(connection->reach(), 1min);
    keep_owing(std::move(connection), until);
}

void Node::keep_idle(std::unique_ptr<Connection> connection, Clock::time_point now) {
    if (idle_.size() >= options_.max_idle) return drop(std::move(connection));
    idle_.push_back({std::move(connection), now});
}

void Node::keep_owing(std::unique_ptr<Connection> connection, Clock::time_point until) {
    if (owing_.size() >= most_owing) {
        drop(std::move(owing_.front().connection), {Errc::timed_out, "too many connections owe replies"});
        owing_.erase(owing_.begin());
    }
    owing_.push_back({std::move(connection), until});
}

/// Ends a connection; `why` where it does not know that itself. What the kernel still has of it is not sent
/// on. One that never got ready may have had a dead address: the next one starts with another, and looks the
/// name up anew.
void Node::drop(std::unique_ptr<Connection> connection, Failure why) {
    if (connection->broken()) why = {connection->cause(), connection->detail()};
    if (!connection->was_ready()) {
        first_address_ = connection->next_address();
        if (resolution_ && resolution_->done()) resolution_.reset();
    }
    note({.kind = NodeEvent::Kind::disconnected, .failure = std::move(why)});
    connection->break_off({}, {});
}

void Node::note(NodeEvent event) {
    if (options_.observer) events_.push_back(std::move(event));
}

std::vector<NodeEvent> Node::take_events() {
    const std::lock_guard guard{mutex_};
    return std::exchange(events_, {});
}

void Node::succeeded() {
    const std::lock_guard guard{mutex_};
    suspected_ = false;
    failures_ = 0;
}

void Node::failed(Failure failure, Clock::time_point now) {
    const std::lock_guard guard{mutex_};
    suspect(std::move(failure), now);
}

Failure Node::last_failure() {
    const std::lock_guard guard{mutex_};
    return last_failure_;
}

/// Trusts a node again whose late replies have come, but not before its time: one that is always late would
/// cost every round its budget. Its failures are forgotten only when it has answered in time.
void Node::forgive() noexcept {
    if (!alive_) return;
    suspected_ = false;
    alive_ = false;
}

void Node::suspect(Failure failure, Clock::time_point now) {
    last_failure_ = std::move(failure);
    // Of many threads that meet the same trouble, one makes the pause longer.
    if (suspected_ && now < next_probe_) return;
    suspected_ = true;
    alive_ = false;
    ++failures_;
    const auto pause = back_off(failures_);
    next_probe_ = now + pause;
    note({.kind = NodeEvent::Kind::backing_off, .failure = last_failure_, .pause = pause});
}

}  // namespace redlock
