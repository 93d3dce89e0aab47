// The connections on which the waiters of one event loop receive the messages that wake them. All waiters of
// a loop share one *listener* for each node. Each message names the ticket of its waiter.
//
//     listener    | meaning                                        | transitions
//     ------------+------------------------------------------------+-----------------------------------------
//     none        | no waiter of the loop needs the node           | join() → subscribing or listening
//     subscribing | it connects and subscribes                     | the server confirms → listening
//                 |                                                | it fails, is refused or takes longer than
//                 |                                                | node_timeout → none
//                 |                                                | the last user leaves → none
//     listening   | messages arrive                                | the connection is cut → none
//                 |                                                | the last user leaves → none; the node
//                 |                                                | keeps the connection for the next waiter
//
// A ticket is *gone* if its waiter has left the node. The command that takes it out of the queue can be lost,
// so a release can still wake the ticket. The message is then *given back*: the ticket is withdrawn, and the
// withdrawal wakes the next waiter.
#pragma once

#include <redlock/clock.hpp>
#include <redlock/detail/not_copied.hpp>
#include <redlock/nodes.hpp>

#include "../redis/listener.hpp"
#include "rounds.hpp"
#include "scheduler.hpp"

#include <array>
#include <chrono>
#include <cstddef>
#include <deque>
#include <map>
#include <memory>
#include <string>
#include <vector>

namespace redlock::loop {

class Listeners final : public Task {
public:
    /// A waiter that uses listeners.
    class User : detail::NotCopied {
    public:
        /// A listener that the user has joined is ready, or has failed.
        virtual void on_listener() noexcept = 0;
        /// A message with the ticket of this user has come. Returns false if it is not the first one.
        virtual bool on_message() noexcept = 0;

    protected:
        ~User() = default;
    };

    /// The arguments must outlive the object. It sends withdrawals through `rounds`, and wakes `last` when
    /// other descriptors have to be watched.
    Listeners(Scheduler& scheduler, Rounds& rounds, Task& last, ListenerPools pools,
              std::chrono::milliseconds node_timeout);
    ~Listeners() override { drop_all(); }

    enum class State : std::uint8_t { none, subscribing, listening };

    /// Begins to use the listener of a node, and has it made if there is none. Returns false if this node may
    /// not be used now, see ListenerPool::check_out(). May throw std::bad_alloc.
    bool join(std::size_t node, User& user, bool probes);
    /// Returns `none` if the user does not use a listener of this node, or if the listener has failed.
    State state(std::size_t node, User& user) const noexcept;
    /// Ends the use. If `keeps` is false, the listener of the last user is disconnected, because the node is
    /// not expected to answer. Otherwise the node keeps it.
    void leave(std::size_t node, User& user, bool keeps) noexcept;

    /// Returns a new ticket of this user, to which messages are passed. Requires the state `listening`. May
    /// throw std::bad_alloc.
    std::string new_ticket(std::size_t node, User& user, const std::string& resource);
    /// The user does not wait for messages with this ticket any more.
    void forget(std::size_t node, const std::string& ticket) noexcept;

    /// The node does not know the subscription to which this ticket belongs. Disconnects the listener, unless
    /// it was replaced since.
    void lose_subscription(std::size_t node, const std::string& ticket) noexcept;

    /// Appends an entry for each connection that has to be watched now.
    void append_poll_entries(std::vector<PollEntry>& entries) const;
    /// Is called when the descriptor of an entry is ready, whosever it is.
    void on_ready(int fd) noexcept;

    /// Disconnects, at the shutdown of the loop.
    void drop_all() noexcept;

private:
    struct Ticket {
        User* user;  // null if the ticket is gone
        std::string resource;
    };

    struct OfNode {
        std::unique_ptr<Listener> listener{};
        Clock::time_point until{};   // when a listener that is subscribing fails
        std::vector<User*> users{};  // in the order in which they have joined
        std::map<std::string, Ticket> tickets{};
        std::deque<std::string> gone{};  // the newest tickets that are gone; the newest is the last

        bool listens() const noexcept { return listener && listener->listens(); }
    };

    void proceed() override;
    void advance(std::size_t node);
    bool deliver(std::size_t node, const std::string& message);
    void give_back(std::size_t node, const std::string& ticket, const std::string& resource);
    void drop(std::size_t node) noexcept;

    Rounds& rounds_;
    Task& last_;
    const ListenerPools pools_;
    const std::chrono::milliseconds node_timeout_;
    std::array<OfNode, max_nodes> of_{};
};

}  // namespace redlock::loop
