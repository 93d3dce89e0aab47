#include "server.hpp"

#include <redlock/detail/memory.hpp>

#include "connection.hpp"
#include "node_config.hpp"

#include <utility>

namespace redlock {

using namespace std::chrono_literals;

// ---- Health

Server::Health Server::health(Clock::time_point now) noexcept {
    if (calm_) return {};
    const std::lock_guard guard{mutex_};
    health_.update(now);
    return {.trusted = health_.trusted(),
            .probe_due = health_.probe_due(now),
            .probed = health_.state() == detail::NodeHealth::State::probed};
}

detail::ConnectionChoice Server::choose(detail::ConnectionSituation in, Clock::time_point now,
                                        Entropy& entropy) {
    if (calm_) return detail::choose_connection(in);
    const std::lock_guard guard{mutex_};
    in.probe = in.probe || health_.probe_due(now);
    // If a late reply has come, the node is trusted again, and needs no probe.
    if (in.probe) health_.trust_late_replies();
    in.trusted = health_.trusted();
    // The release of a round is no probe: if it were answered late, the next probe would come after another
    // pause.
    const bool probes = in.probe && !in.trusted && !detail::cleans_up(in.effect);
    if (probes) health_.begin_probe(now, entropy);
    return detail::choose_connection(in);
}

void Server::connected(const Connection& connection) noexcept {
    const std::lock_guard guard{mutex_};
    first_address_ = connection.present_address();
    health_.connected();
}

void Server::succeeded() noexcept {
    if (calm_) return;
    const std::lock_guard guard{mutex_};
    health_.succeeded();
    calm_ = true;
}

void Server::replied_late() noexcept {
    if (calm_) return;
    const std::lock_guard guard{mutex_};
    health_.replied_late();
}

void Server::failed(detail::NodeFailure failure, Clock::time_point now, Entropy& entropy) {
    std::unique_lock lock{mutex_};
    calm_ = false;
    const auto pause = health_.failed(failure, now, entropy);
    lock.unlock();
    if (!pause) return;
    add([failure = std::move(failure), pause = *pause](Observer& it, std::string_view node) {
        it.backing_off(node, failure.cause, failure.detail, pause);
    });
}

void Server::let_releases_probe(Clock::time_point now, Entropy& entropy) {
    if (kept_.none()) return;
    std::unique_lock lock{mutex_};
    if (!health_.probe_due(now)) return;
    health_.begin_probe(now, entropy);
    lock.unlock();
    kept_.permit_attempt();
}

detail::NodeFailure Server::last_failure() {
    const std::lock_guard guard{mutex_};
    return health_.last_failure();
}

// ---- Addresses

Server::Addresses Server::addresses(const NodeConfig& config) {
    add([](Observer& it, std::string_view node) { it.connecting(node); });
    std::shared_ptr<Resolution> found;  // later the old one, which must be destroyed without the mutex
    std::unique_lock lock{mutex_};
    if (!resolution_ ||
        (resolution_->done() && (resolution_->addresses().empty() || config.has_sentinels()))) {
        lock.unlock();
        found = config.find_server();
        lock.lock();
        resolution_.swap(found);
    }
    return {resolution_, first_address_};
}

void Server::leave_address(const Connection& connection) noexcept {
    const bool is_replica = connection.cause() == Errc::read_only;
    if ((connection.was_ready() && !is_replica) || connection.has_shortage()) return;
    std::shared_ptr<Resolution> old;  // destroyed without the mutex
    const std::lock_guard guard{mutex_};
    if (is_replica && connection.since() < next_look_up_) return;
    if (is_replica) next_look_up_ = connection.since() + 1s;
    first_address_ = connection.next_address();
    if (resolution_ && resolution_->done()) resolution_.swap(old);
}

std::uint64_t Server::learn_master() {
    const std::lock_guard guard{mutex_};
    const auto found = resolution_ ? resolution_->address_bytes(0) : std::string_view{};
    if (!found.empty() && found != named_) {
        named_ = found;
        ++masters_;
    }
    return masters_;
}

bool Server::is_former(const Connection& connection) noexcept {
    const auto found = connection.resolution().address_bytes(0);
    const std::lock_guard guard{mutex_};
    return !named_.empty() && !found.empty() && found != named_;
}

// ---- For the observer

/// Does nothing if there is no observer.
template <class Event>
void Server::add(Event event) noexcept {
    if (!is_observed_) return;
    const std::lock_guard guard{mutex_};
    (void)detail::has_memory_for([&] { events_.push_back(std::move(event)); });
}

void Server::disconnected(const Connection& connection, std::error_code cause, const char* why) noexcept {
    (void)detail::has_memory_for([&] {
        auto failure = connection.broken() ? detail::NodeFailure{connection.cause(), connection.detail()}
                                           : detail::NodeFailure{cause, why};
        add([failure = std::move(failure)](Observer& it, std::string_view node) {
            it.disconnected(node, failure.cause, failure.detail);
        });
    });
}

void Server::wrote(std::size_t commands, Clock::duration waited) noexcept {
    if (commands == 0) return;
    add([=](Observer& it, std::string_view node) { it.wrote(node, commands, waited); });
}

std::vector<NodeEvent> Server::take_events() {
    const std::lock_guard guard{mutex_};
    return std::exchange(events_, {});
}

}  // namespace redlock
