#include "listeners.hpp"

#include <redlock/algorithm/algorithm.hpp>
#include <redlock/algorithm/waiting.hpp>
#include <redlock/detail/memory.hpp>

#include <algorithm>

namespace redlock::loop {

using namespace std::chrono_literals;

/// How many tickets that are gone a listener remembers. If a release wakes a forgotten one, the next waiter
/// waits until the reservation ends.
static constexpr std::size_t max_gone = 1000;

Listeners::Listeners(Scheduler& scheduler, Rounds& rounds, Task& last, ListenerPools pools,
                     std::chrono::milliseconds node_timeout)
    : Task(scheduler), rounds_(rounds), last_(last), pools_(pools), node_timeout_(node_timeout) {}

// ---- Users

bool Listeners::join(std::size_t node, User& user, bool probes) {
    auto& it = of_[node];
    // The place of the user is allocated first, so that no listener is left without a user.
    it.users.reserve(it.users.size() + 1);
    if (!it.listener) {
        const auto begun = now();
        auto listener = pools_[node]->check_out(begun, probes);
        if (!listener) return false;
        it.until = begun + node_timeout_;
        it.listener = std::move(listener);
    }
    wake();
    if (std::ranges::find(it.users, &user) == it.users.end()) it.users.push_back(&user);
    return true;
}

auto Listeners::state(std::size_t node, User& user) const noexcept -> State {
    const auto& it = of_[node];
    if (std::ranges::find(it.users, &user) == it.users.end()) return State::none;
    return it.listens() ? State::listening : State::subscribing;
}

void Listeners::leave(std::size_t node, User& user, bool keeps) noexcept {
    auto& it = of_[node];
    if (std::erase(it.users, &user) == 0 || !it.users.empty()) return;
    if (keeps && it.listens())  // without memory, the next waiter connects again
        (void)detail::has_memory_for([&] { pools_[node]->check_in(std::move(it.listener), now()); });
    drop(node);
    last_.wake();
}

std::string Listeners::new_ticket(std::size_t node, User& user, const std::string& resource) {
    auto& it = of_[node];
    auto ticket = it.listener->new_ticket();
    it.tickets.emplace(ticket, Ticket{&user, resource});
    return ticket;
}

void Listeners::forget(std::size_t node, const std::string& ticket) noexcept {
    auto& it = of_[node];
    const auto found = it.tickets.find(ticket);
    if (found == it.tickets.end()) return;
    found->second.user = nullptr;
    if (!detail::has_memory_for([&] { it.gone.push_back(ticket); })) it.tickets.erase(found);
    if (it.gone.size() <= max_gone) return;
    it.tickets.erase(it.gone.front());
    it.gone.pop_front();
}

// ---- Connections

void Listeners::lose_subscription(std::size_t node, const std::string& ticket) noexcept {
    const auto& it = of_[node];
    if (!it.listener || !it.listener->has_issued(ticket)) return;
    pools_[node]->drop_all();
    drop(node);
    last_.wake();
}

void Listeners::drop_all() noexcept {
    for (std::size_t node = 0; node < pools_.size(); ++node) drop(node);
}

/// Ends the use of the listener of this node by all its users. Disconnects it, unless it was passed on.
void Listeners::drop(std::size_t node) noexcept {
    auto& it = of_[node];
    if (it.listener) pools_[node]->drop(std::move(it.listener));
    it.tickets.clear();
    it.gone.clear();
    for (auto* const user : it.users) user->on_listener();
    it.users.clear();
}

void Listeners::proceed() {
    auto next = Clock::never();
    for (std::size_t node = 0; node < pools_.size(); ++node) {
        auto& it = of_[node];
        if (!it.listener) continue;
        if (!detail::has_memory_for([&] { advance(node); }))  // the next call does the rest
            next = std::min<Clock::time_point>(next, now() + 10ms);
        if (!it.listener) continue;
        // A connection that is silent tries its next address after some time.
        if (!it.listens()) next = std::min({next, it.until, it.listener->connection().poll_entry().until});
        if (now() < it.listener->next_read()) next = std::min(next, it.listener->next_read());
    }
    wake_at(next);
    last_.wake();
}

void Listeners::advance(std::size_t node) {
    auto& it = of_[node];
    const bool listened = it.listens();
    if (pools_[node]->subscribe(*it.listener, it.until, now())) {
        if (!listened)
            for (auto* const user : it.users) user->on_listener();
        it.listener->read(now(), [&](const std::string& message) { return deliver(node, message); });
    }
    if (it.listener->connection().broken()) drop(node);
}

/// Returns false if the message concerns no ticket of this loop, or one that is awake already.
bool Listeners::deliver(std::size_t node, const std::string& message) {
    auto& it = of_[node];
    const auto found = it.tickets.find(message);
    if (found == it.tickets.end()) return false;
    if (found->second.user) return found->second.user->on_message();
    const auto gone = it.tickets.extract(found);
    // Without memory, the reservation ends by itself.
    (void)detail::has_memory_for([&] { give_back(node, gone.key(), gone.mapped().resource); });
    return true;
}

/// Withdraws the ticket without waiting for the reply, as a waiter does that leaves the queue.
void Listeners::give_back(std::size_t node, const std::string& ticket, const std::string& resource) {
    const QueueTerms withdrawal{.ticket = ticket,
                                .reservation_ttl = algorithm::reservation_ttl(node_timeout_),
                                .only_passes_on = true};
    const auto request = algorithm::withdraw_request({&resource, 1}, withdrawal, node);
    const RoundLimits limits{.awaits_answers = false};
    const auto names = std::make_shared<std::vector<std::string>>();
    for (const auto& pool : pools_) names->push_back(pool->node_name());
    Tally votes{names};  // for an observer
    (void)rounds_.begin(*this, {&request, 1}, limits, {&votes, 1})->advance();
}

/// Leaves out the connections whose next read was postponed by Listener::read().
void Listeners::append_poll_entries(std::vector<PollEntry>& entries) const {
    for (const auto& it : of_)
        if (it.listener && now() >= it.listener->next_read())
            entries.push_back(it.listener->connection().poll_entry());
}

void Listeners::on_ready(int fd) noexcept {
    for (const auto& it : of_)
        if (it.listener && it.listener->connection().poll_entry().fd == fd) return wake();
}

}  // namespace redlock::loop
