// The interface between the Redlock algorithm and the network. The algorithm sends one command to each node
// in a round (Nodes::ask) and gets a tally: one report, with a vote, for each node. It knows nothing else of
// the network.
//
// RedisNodes (redis_nodes.hpp) implements the interface for real servers. To test your own code without
// servers, derive a fake:
//
//     class ThreeWillingNodes : public redlock::Nodes {
//     public:
//         ThreeWillingNodes() : Nodes({"a", "b", "c"}) {}
//         void ask(std::span<const redlock::Request> requests, const redlock::RoundLimits&,
//                  std::span<redlock::Tally> tallies) override {
//             for (std::size_t i = 0; i < requests.size(); ++i)
//                 for (std::size_t node = 0; node < size(); ++node)
//                     if (requests[i].to[node]) tallies[i].grant(node);
//         }
//     };
#pragma once

#include <redlock/clock.hpp>
#include <redlock/error.hpp>
#include <redlock/export.hpp>

#include <array>
#include <atomic>
#include <bitset>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <stop_token>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace redlock {

/// The largest number of nodes. Five are reasonable; each additional node costs a message in every round.
inline constexpr std::size_t max_nodes = 15;

/// A set of nodes, by their index in the configured order.
using NodeSet = std::bitset<max_nodes>;

/// Returns the number of votes that a majority needs: N/2 + 1 of the *configured* nodes, whether they are up
/// or not.
constexpr std::size_t quorum(std::size_t nodes) noexcept {
    return nodes / 2 + 1;
}

// ---- What is sent in a round. The views must be valid until ask() returns.

/// The resources that are locked together, sorted and each once. A node grants all of them or none.
using Resources = std::span<const std::string>;

/// The operation of a command. A node executes it atomically. If there are several resources, the node does
/// it for all of them or for none, unless the verb says something else.
enum class Verb : std::uint8_t {
    /// Sets each resource to `owner` with the expiry `ttl`: `SET resource owner NX PX ttl`. Granted if every
    /// resource was free.
    set_if_absent,
    /// Raises the expiry to `ttl`. Granted if every resource still holds `owner`.
    compare_and_expire,
    /// Deletes each resource that still holds `owner`. Granted if all of them did.
    compare_and_delete,
    /// Does the same as set_if_absent, and counts the holders of each resource (see fencing.hpp). A grant
    /// comes with a count that is larger than every count that this node has given, or was raised to, for any
    /// of the resources.
    set_and_count,
    /// Raises the counts to `fence` if they are smaller. Granted if every resource holds `owner` and has a
    /// count. If `fence` is far ahead of the node's clock, the node refuses and reports its own count.
    raise_count,
    /// Enters the queue of waiters at one node, or stays in it. Granted if the resource is reserved for this
    /// waiter now; a refusal comes with the waiter's place in the queue.
    enter_queue,
    /// Writes `note`, the holder description (LockOptions::holder), beside each resource that holds `owner`,
    /// for as long as that key lives. Deletes the description that `owner` has left beside the other
    /// resources. Always granted.
    note_holder,
    /// Reads the state of the resource, see query.hpp. Granted with the answer as NodeReport::detail.
    query,
    /// Reads which of the resources exist. Granted with one digit for each resource as NodeReport::detail.
    exist,
};

/// What a command does with the queue of waiters (LockOptions::fair). The *home node* keeps the queue. A
/// *ticket* identifies a waiter there. A *reservation* is a key that holds a ticket: it keeps other clients
/// from the home node until the waiter that was woken has made its attempt.
///
/// - set_if_absent and set_and_count with queue terms are the attempt of a waiter. At the home node they
///   first take the ticket out of the queue and delete its reservation.
/// - compare_and_delete with queue terms wakes the next waiter. With a ticket, it takes this ticket out of
///   the queue.
struct QueueTerms {
    std::string_view ticket{};             ///< The waiter; empty if the command does not come from a waiter.
    std::size_t home = 0;                  ///< The index of the home node.
    std::chrono::milliseconds patience{};  ///< How long a reservation lasts.
    std::chrono::microseconds waited{};    ///< enter_queue: how long the waiter has waited already.
    bool may_take = true;   ///< enter_queue: a free resource may be reserved for this waiter at once.
    bool repeated = false;  ///< compare_and_delete: an earlier release may have woken a waiter.
};

/// One command, as it is sent to each node of a round.
struct Command {
    Verb verb{};
    Resources resources{};
    std::string_view owner{};
    /// For the verbs that set or extend. note_holder: zero if the lock was released.
    std::chrono::milliseconds ttl{};
    /// raise_count: the token to which the counts are raised.
    std::uint64_t fence = 0;
    /// compare_and_delete: the remaining minimum hold time (LockOptions::at_least). If it is positive, the
    /// resource is not deleted but blocked for that long, so that nobody can acquire it.
    std::chrono::milliseconds rest{};
    /// note_holder: the holder description.
    std::string_view note{};
    /// Null if the command does not use the queue.
    const QueueTerms* queue = nullptr;
    /// True if the owner is a reader (LockOptions::shared).
    bool shared = false;
};

/// Returns true if `verb` acquires a resource.
constexpr bool acquires(Verb verb) noexcept {
    return verb == Verb::set_if_absent || verb == Verb::set_and_count;
}

/// A command, and the nodes to which it is sent.
struct Request {
    Command command{};
    NodeSet to = NodeSet{}.set();
};

/// The order in which an acquisition asks the nodes. Extensions and releases are always sent to all nodes at
/// once.
enum class Round : std::uint8_t {
    sequential,   ///< Asks one node after the other, in the configured order, as step 2 of the Redlock
                  ///< specification.
    all_at_once,  ///< Writes to all nodes, then reads the replies, as the specification recommends for low
                  ///< latency.
};

/// The limits of a round, in addition to node_timeout for each node.
struct RoundLimits {
    /// The instant at which the whole round ends at the latest.
    Clock::time_point deadline = Clock::never();
    /// No further node is asked after a stop was requested.
    std::stop_token stop{};
    /// False for a compare_and_delete or note_holder that is written without waiting for the replies.
    bool awaits_answers = true;
};

// ---- What comes back.

/// The vote of a node. `unknown` means that the node gave no usable answer: it has neither granted nor
/// refused.
enum class Vote : std::uint8_t { unknown, granted, refused };

/// The place of a waiter in the queue, as the home node reported it.
struct QueuePlace {
    enum class Held : std::uint8_t { by_nobody, by_waiter, by_holder };
    /// Who has the resource at the home node. `by_waiter`: it is reserved for a waiter that was woken.
    Held held = Held::by_nobody;
    /// How long the key lives at most; negative if it has no expiry, or if there is no key.
    std::chrono::milliseconds held_for{-1};
    /// The number of waiters in front.
    std::size_t in_front = 0;
};

/// The result of a round on one node.
struct NodeReport {
    /// The name as configured, without secrets. Valid as long as the Nodes.
    std::string_view name;
    Vote vote = Vote::unknown;
    /// Why the vote is unknown. A refusal can come with `wrong_type`.
    std::error_code cause = Errc::not_asked;
    /// set_and_count: the count of a grant. raise_count: the node's own count, with a refusal.
    /// compare_and_delete: 1 if it has woken a waiter.
    std::uint64_t count = 0;
    /// enter_queue: the place that came with a refusal.
    QueuePlace place{};
    /// The time from asking the node, including a connection that had to be made, until its answer or until
    /// the round gave it up.
    std::chrono::nanoseconds took{};
    /// True if a byte of the command may have reached the node.
    bool sent = false;
    /// The error text of the server or the system, mostly empty. query: the answer.
    std::string detail{};
};

/// The reports of a round, one for each node, in the configured order.
class Tally {
public:
    using Names = std::shared_ptr<const std::vector<std::string>>;

    Tally() = default;
    explicit Tally(Names names) : names_(std::move(names)) {
        for (std::size_t node = 0; node < size(); ++node) reports_[node].name = (*names_)[node];
    }

    std::size_t size() const noexcept { return names_ ? names_->size() : 0; }
    NodeReport& operator[](std::size_t node) noexcept { return reports_[node]; }
    const NodeReport& operator[](std::size_t node) const noexcept { return reports_[node]; }
    std::span<const NodeReport> reports() const noexcept { return {reports_.data(), size()}; }

    void grant(std::size_t node, std::uint64_t count = 0) noexcept {
        vote(node, Vote::granted);
        reports_[node].count = count;
    }
    void refuse(std::size_t node, std::uint64_t count = 0) noexcept {
        vote(node, Vote::refused);
        reports_[node].count = count;
    }
    /// Records that the node gave no usable answer, although a byte of the command may have reached it.
    void mark_unknown(std::size_t node, std::error_code cause) noexcept { vote(node, Vote::unknown, cause); }
    /// Records that the node gave no usable answer, and that no byte of the command can have reached it.
    void mark_not_sent(std::size_t node, std::error_code cause) noexcept { reports_[node].cause = cause; }

    /// Returns the number of nodes that granted.
    std::size_t granted() const noexcept { return count(Vote::granted); }
    /// Returns the number of nodes that refused.
    std::size_t refused() const noexcept { return count(Vote::refused); }

    /// Returns the nodes that a byte of the command may have reached. A release must be sent to all of them.
    NodeSet sent() const noexcept {
        NodeSet result;
        for (std::size_t node = 0; node < size(); ++node) result[node] = reports_[node].sent;
        return result;
    }

private:
    void vote(std::size_t node, Vote vote, std::error_code cause = {}) noexcept {
        reports_[node].vote = vote;
        reports_[node].cause = cause;
        reports_[node].sent = true;
    }

    std::size_t count(Vote vote) const noexcept {
        std::size_t result = 0;
        for (const auto& report : reports()) result += report.vote == vote ? 1 : 0;
        return result;
    }

    Names names_;
    std::array<NodeReport, max_nodes> reports_{};
};

/// Waits for wake-up messages at one node, see waiting.hpp. Used by one thread.
class REDLOCK_EXPORT Waiter {
public:
    virtual ~Waiter() = default;
    Waiter(const Waiter&) = delete;
    Waiter& operator=(const Waiter&) = delete;

    /// Starts to listen at the first of `homes`, in the configured order, that answers, and stops listening
    /// at any other node. Returns false if no node answers. Blocks for at most one node_timeout for each node
    /// that does not answer.
    virtual bool listen(NodeSet homes, const RoundLimits& limits) = 0;

    /// Returns the node where this waiter listens, or listened last.
    virtual std::size_t home() const noexcept = 0;

    /// Returns a ticket that no waiter has ever had. Messages to this waiter carry its ticket. Requires that
    /// the waiter listens.
    virtual std::string new_ticket() = 0;

    struct WakeUp {
        bool connected = false;  ///< False if the connection has failed: the waiter no longer listens.
        std::string ticket{};    ///< The ticket in the message; empty if no message has come.
    };
    /// Blocks until a message has come, until `until`, or until a stop is requested. Requires that the waiter
    /// listens.
    virtual WakeUp sleep(Clock::time_point until, const std::stop_token& stop) = 0;

    /// Disconnects, so that no release believes that this waiter would receive a message. If `refused` is
    /// set, the node has refused to keep a queue for this client, with the server's reason in `words`. The
    /// node is then not used as a home node for a while.
    virtual void hang_up(std::error_code refused, std::string_view words) = 0;

    /// Writes, into a blank tally, the reason of each node that does not keep a queue for this client at
    /// present.
    virtual void report_refusals(Tally& tally) const = 0;

protected:
    Waiter() = default;
};

/// The resources for which other clients have recently waited, as far as this process knows. This is only a
/// hint.
class ContendedResources {
public:
    bool contains(std::string_view resource) const noexcept {
        return slots_[slot_of(resource)].load(std::memory_order_relaxed);
    }
    void set(std::string_view resource, bool contended) noexcept {
        slots_[slot_of(resource)].store(contended, std::memory_order_relaxed);
    }

private:
    /// Returns the slot of the resource. Resources can share a slot. A resource that shares the slot of a
    /// contended one is treated as contended, which costs one command. Its release wakes nobody and clears
    /// the slot, which costs the contended resource one refused round.
    static std::size_t slot_of(std::string_view resource) noexcept {
        return std::hash<std::string_view>{}(resource) % slots;
    }

    static constexpr std::size_t slots = 1024;
    std::array<std::atomic<bool>, slots> slots_{};
};

/// N independent masters. Each implementation documents which threads may share an object.
class REDLOCK_EXPORT Nodes {
public:
    virtual ~Nodes() = default;
    Nodes(const Nodes&) = delete;
    Nodes& operator=(const Nodes&) = delete;

    /// Returns N, the number of configured nodes.
    std::size_t size() const noexcept { return names_->size(); }
    /// Returns the name of a node as configured, without secrets.
    std::string_view name(std::size_t node) const { return names_->at(node); }
    /// Returns the time that one node may take in a round, including the connection. A ttl must exceed it.
    /// Zero if the implementation has no such limit.
    std::chrono::milliseconds node_timeout() const noexcept { return node_timeout_; }
    /// Returns how long a node that has lost its data has no vote. No ttl may exceed it. Zero if such a node
    /// votes at once.
    std::chrono::milliseconds quarantine() const noexcept { return quarantine_; }

    /// Returns the clock that the deadlines of rounds refer to; a Lock on these nodes must use the same one.
    /// Null if every clock will do.
    virtual Clock* required_clock() const noexcept { return nullptr; }

    /// Makes one round: sends each request to its nodes, and writes the votes on it into the blank tally with
    /// the same index.
    ///
    /// A failure of a node becomes an unknown vote, never an exception. A node to which nothing was sent
    /// keeps its blank report. The function may stop asking and waiting when the votes have decided. It
    /// returns by `limits.deadline` at the latest.
    virtual void ask(std::span<const Request> requests, const RoundLimits& limits,
                     std::span<Tally> tallies) = 0;

    /// Makes a round for one request, and returns its tally.
    Tally ask(const Request& request, const RoundLimits& limits = {}) {
        auto tally = blank_tally();
        ask({&request, 1}, limits, {&tally, 1});
        return tally;
    }

    /// Returns a waiter for LockOptions::fair. Null if these nodes keep no queue; acquire() then retries.
    virtual std::unique_ptr<Waiter> waiter() { return nullptr; }

    /// Returns the hints about contended resources, which all locks on these nodes share.
    ContendedResources& contended() noexcept { return contended_; }

    /// Returns a tally in which no node was asked.
    Tally blank_tally() const { return Tally{names_}; }

protected:
    /// Throws std::invalid_argument if there is no name, if there are more names than max_nodes, or if
    /// node_timeout is negative or longer than an hour.
    explicit Nodes(std::vector<std::string> names, std::chrono::milliseconds node_timeout = {},
                   std::chrono::milliseconds quarantine = {});

private:
    Tally::Names names_;
    std::chrono::milliseconds node_timeout_;
    std::chrono::milliseconds quarantine_;
    ContendedResources contended_{};
};

}  // namespace redlock
