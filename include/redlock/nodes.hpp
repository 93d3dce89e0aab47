// The interface between the Redlock algorithm and the network.
//
// A *node* is one of the N independent Redis masters. A *request* is one command and the nodes that it goes
// to. In a *round* (Nodes::ask), each of these nodes *votes* on the request. The *tally* of a request has one
// report, with the vote, for each node.
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
#include <redlock/detail/not_copied.hpp>
#include <redlock/detail/small_vector.hpp>
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
#include <vector>

namespace redlock {

class EventLoop;
namespace loop {
class Rounds;
class Scheduler;
}  // namespace loop

/// The largest number of nodes. Five are reasonable.
inline constexpr std::size_t max_nodes = 15;
namespace detail {
/// Up to so many nodes, an operation allocates no memory for what it knows about each node.
inline constexpr std::size_t usual_nodes = 5;
}  // namespace detail

/// A set of nodes, by their index in the configured order.
using NodeSet = std::bitset<max_nodes>;

/// Returns the number of votes that a majority needs: N/2 + 1 of the *configured* nodes, whether they are up
/// or not.
constexpr std::size_t quorum(std::size_t nodes) noexcept {
    return nodes / 2 + 1;
}

// ---- What is sent in a round. The views must be valid until ask() returns.

/// The resources of one lock, sorted and each once. A node grants all of them or none.
using Resources = std::span<const std::string>;

/// The kind of a command: what a node does with the resources, atomically. If there are several resources,
/// the node executes the command for all of them or for none, unless the verb says otherwise.
enum class Verb : std::uint8_t {
    /// Sets each resource to `owner` with the expiry `ttl`: `SET resource owner NX PX ttl`. Granted if every
    /// resource was free.
    set_if_absent,
    /// Sets the expiry to `ttl`, unless the remaining time is longer. Granted if every resource still holds
    /// `owner`.
    compare_and_expire,
    /// Deletes each resource that still holds `owner`, even if others do not. Granted if all of them did.
    compare_and_delete,
    /// Does the same as set_if_absent, and counts the holder (LockOptions::fencing). A grant comes with the
    /// new count, which is larger than every earlier count of this node for any of the resources.
    set_and_count,
    /// Raises the node's counts of the resources to `fence` if they are smaller. Granted if every resource
    /// holds `owner` and has a count. A node begins to count with the time of its wall clock. Therefore it
    /// refuses a `fence` that is far ahead of this clock, and reports its own count then.
    raise_count,
    /// Enters the queue of waiters at one node, or stays in it (see waiting.hpp). Granted if the resource is
    /// reserved for this waiter now. Otherwise the refusal comes with the waiter's place in the queue.
    enter_queue,
    /// Writes `description` (LockOptions::holder) beside each resource that holds `owner`. If a resource does
    /// not hold `owner`, deletes the description that `owner` has left there. Always granted.
    describe_holder,
    /// Reads the state of the resource, see query.hpp. Granted with the answer as NodeReport::detail.
    query,
    /// Reads which of the resources exist. Granted with one digit for each resource as NodeReport::detail.
    exist,
};

/// What a command does with the queue of waiters, which the *home node* of the waiters keeps (waiting.hpp). A
/// *ticket* identifies a waiter there. If a resource is reserved for a woken waiter, its value is the ticket.
///
/// - set_if_absent and set_and_count with queue terms are the attempt of a woken waiter. At the home node
///   they first delete the reservation for the ticket, and remove the ticket if it is still in the queue.
/// - compare_and_delete with queue terms wakes the next waiter. If the terms have a ticket, its waiter leaves
///   the queue: the command removes this ticket.
struct QueueTerms {
    std::string_view ticket{};  ///< The waiter; empty if the command does not come from a waiter.
    std::size_t home = 0;       ///< The index of the waiter's home node; unused without a ticket.
    std::chrono::milliseconds reservation_ttl{};  ///< How long a reservation lasts.
    std::chrono::microseconds waited{};           ///< enter_queue: how long the waiter has waited already.
    /// enter_queue: true if the node may reserve a free resource for this waiter at once.
    bool may_take = true;
    /// compare_and_delete: true if the node wakes a waiter only if it deletes the key, or if the waiter that
    /// leaves was woken. So it is if this release was sent before, and if a waiter leaves the queue.
    bool only_passes_on = false;
    std::string_view former{};  ///< enter_queue: the ticket that this one replaces, or empty.
};

/// One command. Each node of its request gets the same one, apart from the queue terms.
struct Command {
    Verb verb{};
    Resources resources{};
    std::string_view owner{};
    /// The expiry to set. describe_holder: the expiry of the description, or zero to delete it.
    std::chrono::milliseconds ttl{};
    /// raise_count: the new count, which becomes the fencing token.
    std::uint64_t fence = 0;
    /// compare_and_delete: if positive, the resource is not deleted but blocked for that long, so that nobody
    /// can acquire it. It is the part of LockOptions::min_hold that is left.
    std::chrono::milliseconds hold_remaining{};
    std::string_view description{};  ///< For describe_holder.
    /// Null if the command does not use the queue.
    const QueueTerms* queue = nullptr;
    /// True if `owner` identifies a reader (LockOptions::shared).
    bool shared = false;
};

constexpr bool acquires(Verb verb) noexcept {
    return verb == Verb::set_if_absent || verb == Verb::set_and_count;
}

/// A command, and the nodes that it goes to; by default all.
struct Request {
    Command command{};
    NodeSet to = NodeSet{}.set();
};

/// The order in which the round of an acquisition asks the nodes. Other rounds always ask all at once. (Nodes
/// that have failed come later, or are left alone.)
enum class Round : std::uint8_t {
    sequential,   ///< Asks one node after the other, in the configured order.
    all_at_once,  ///< Writes to all nodes, then reads the replies.
};

/// The limits of a round. In addition, each node has its node_timeout.
struct RoundLimits {
    /// The instant after which the round asks no node and awaits no reply. (But a release is still written to
    /// the nodes that were not asked.)
    Clock::time_point deadline = Clock::never();
    /// No further node is asked after a stop was requested, except by a release.
    std::stop_token stop{};
    /// False for a compare_and_delete or describe_holder that is written without waiting for the replies.
    bool awaits_answers = true;
};

// ---- What comes back.

/// The vote of a node. `unknown` means that no usable answer has come. The node may have executed the command
/// then, unless NodeReport::sent is false.
enum class Vote : std::uint8_t { unknown, granted, refused };

/// The place of a waiter in the queue, as the home node reported it.
struct QueuePlace {
    enum class Held : std::uint8_t { by_nobody, by_waiter, by_holder };
    /// Who has the resource at the home node. `by_waiter`: the resource is reserved for a woken waiter.
    Held held = Held::by_nobody;
    /// How long the key lives at most; negative if it has no expiry, or if there is no key.
    std::chrono::milliseconds held_for{-1};
    /// The number of waiters in front.
    std::size_t in_front = 0;
};

/// The answer of one node to one request.
struct NodeReport {
    /// The configured name, without secrets. Valid as long as the Nodes.
    std::string_view name;
    Vote vote = Vote::unknown;
    /// True if a byte of the command may have reached the node. False again if the node has answered that it
    /// executes nothing at present (such as BUSY).
    bool sent = false;
    /// True if the round left the node alone, because it was in back-off after a failure.
    bool left_alone = false;
    /// Why the vote is unknown. A grant has no cause. A refusal has none either, except `wrong_type` if the
    /// resource is a key of another type.
    std::error_code cause = Errc::not_asked;
    /// A number that depends on the verb:
    ///
    /// - set_and_count: the node's count, if it granted.
    /// - raise_count: the node's own count, if it refused because `fence` is far ahead of its clock.
    /// - compare_and_delete with queue terms: how many waiters the node has woken, 0 or 1.
    std::uint64_t count = 0;
    /// enter_queue: the place that came with a refusal.
    QueuePlace place{};
    /// The time that the node took, including a connection that had to be made.
    std::chrono::nanoseconds took{};
    /// The error text of the server or the system, mostly empty. For query and exist: the answer.
    std::string detail{};
};

/// The reports on one request, one for each node, in the configured order.
class Tally {
public:
    using Names = std::shared_ptr<const std::vector<std::string>>;

    Tally() = default;
    explicit Tally(const Names& names) : names_(names), reports_(names->size()) {
        for (std::size_t node = 0; node < size(); ++node) reports_[node].name = (*names)[node];
    }

    std::size_t size() const noexcept { return reports_.size(); }
    NodeReport& operator[](std::size_t node) noexcept { return reports_[node]; }
    const NodeReport& operator[](std::size_t node) const noexcept { return reports_[node]; }
    std::span<const NodeReport> reports() const noexcept { return reports_; }

    void grant(std::size_t node, std::uint64_t count = 0) noexcept {
        vote(node, Vote::granted);
        reports_[node].count = count;
    }
    void refuse(std::size_t node, std::uint64_t count = 0) noexcept {
        vote(node, Vote::refused);
        reports_[node].count = count;
    }
    /// Records that the node gave no usable answer, but that a byte of the command may have reached it.
    void mark_unknown(std::size_t node, std::error_code cause) noexcept { vote(node, Vote::unknown, cause); }
    /// Records that the node gave no usable answer, and that no byte of the command can have reached it.
    void mark_not_sent(std::size_t node, std::error_code cause) noexcept { reports_[node].cause = cause; }

    std::size_t granted() const noexcept { return count(Vote::granted); }
    std::size_t refused() const noexcept { return count(Vote::refused); }

    /// Returns the nodes that may have executed the command. A release must be sent to all of them.
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

    Names names_{};
    detail::SmallVector<NodeReport, detail::usual_nodes> reports_{};
};

/// A client that waits in a queue: it listens at its home node for the message that wakes it (waiting.hpp).
/// Only one thread may use an object.
class REDLOCK_EXPORT Waiter : detail::NotCopied {
public:
    virtual ~Waiter() = default;

    /// Listens at the first node of `homes`, in the configured order, that answers; returns false if none
    /// does. If the waiter listens at a node of `homes` already, it tries only the nodes before that one, and
    /// stays if none of them answers. Blocks for at most one node_timeout for each node that does not answer.
    virtual bool listen(NodeSet homes, const RoundLimits& limits) = 0;

    /// Returns the node where this waiter listens, or listened last.
    virtual std::size_t home() const noexcept = 0;

    /// Returns a new ticket. Messages to this waiter carry it. Requires that the waiter listens.
    virtual std::string new_ticket() = 0;

    struct WakeUp {
        bool connected = false;  ///< False if the connection has failed: the waiter no longer listens.
        /// The ticket in the message; empty if no message with a ticket of this client has come.
        std::string ticket{};
    };
    /// Blocks until a message has come, until `until`, or until a stop is requested. Requires that the waiter
    /// listens.
    virtual WakeUp sleep(Clock::time_point until, const std::stop_token& stop) = 0;

    /// Disconnects, so that no release wakes this waiter in vain. If `refused` is an error, the node has
    /// refused to keep a queue for this client, and listen() avoids it for a while. `words` is the error text
    /// of the server.
    virtual void disconnect(std::error_code refused, std::string_view words) = 0;

    /// Disconnects because the node does not know the subscription: the connection leads to another server.
    /// listen() then makes a new connection.
    virtual void lose_subscription() { disconnect({}, {}); }

    /// For each node that listen() avoids at present, writes the reason into a blank tally, as the cause and
    /// the detail of the node's report.
    virtual void report_refusals(Tally& tally) const = 0;
};

/// The resources that other clients have recently held or waited for, as far as this process knows. To
/// acquire such a resource, a fair lock enters the queue before its first attempt. The set is a hash table of
/// flags without the names. It can be wrong, because two resources can have the same flag. A client then
/// enters the queue of a free resource.
class ContendedResources {
public:
    bool contains(std::string_view resource) const noexcept {
        return flags_[index_of(resource)].load(std::memory_order_relaxed);
    }
    void set(std::string_view resource, bool contended) noexcept {
        flags_[index_of(resource)].store(contended, std::memory_order_relaxed);
    }

private:
    static std::size_t index_of(std::string_view resource) noexcept {
        return std::hash<std::string_view>{}(resource) % size;
    }

    static constexpr std::size_t size = 1024;
    std::array<std::atomic<bool>, size> flags_{};
};

/// The nodes. Each implementation documents which threads may share an object.
class REDLOCK_EXPORT Nodes : detail::NotCopied {
public:
    virtual ~Nodes() = default;

    std::size_t size() const noexcept { return names_->size(); }
    /// Returns the configured name of a node, without secrets.
    std::string_view name(std::size_t node) const { return names_->at(node); }
    /// Returns the time that one node may take in a round, including the connection; zero if there is no
    /// limit. Every ttl must exceed this time.
    std::chrono::milliseconds node_timeout() const noexcept { return node_timeout_; }
    /// Returns how long a node that has lost its data has no vote. No ttl may exceed this time. Zero means
    /// that there is no quarantine: such a node votes at once, and any ttl is allowed.
    std::chrono::milliseconds quarantine() const noexcept { return quarantine_; }

    /// Returns true if a node is a Redis Cluster. Then LockOptions::fair and fencing are not possible, and
    /// all resources of one lock must be in one hash slot.
    virtual bool has_cluster() const noexcept { return false; }

    /// Returns the clock that a Lock on these nodes must use; null if it may use any.
    virtual Clock* required_clock() const noexcept { return nullptr; }

    /// Makes one round: sends each request to its nodes, and writes their votes into the tally with the same
    /// index, which is blank before. All requests have the same verb.
    ///
    /// A failure of a node becomes an unknown vote. The only exception that the function may throw is
    /// std::bad_alloc. It returns by `limits.deadline` at the latest. (RedisNodes can take longer, by an
    /// eighth of node_timeout but at least 2 ms, if the thread that sends for this one gets no processor.) As
    /// soon as further votes cannot change the outcome, it may stop asking nodes and waiting for replies. A
    /// node that is not asked keeps its blank report.
    virtual void ask(std::span<const Request> requests, const RoundLimits& limits,
                     std::span<Tally> tallies) = 0;

    /// Makes a round for one request, and returns its tally.
    Tally ask(const Request& request, const RoundLimits& limits = {}) {
        auto tally = blank_tally();
        ask({&request, 1}, limits, {&tally, 1});
        return tally;
    }

    /// Returns a waiter for LockOptions::fair. Returns null if these nodes keep no queue; acquire() then
    /// retries after pauses.
    virtual std::unique_ptr<Waiter> waiter() { return nullptr; }

    /// Returns an object that makes rounds in an event loop without blocking it, and that may outlive these
    /// nodes. AsyncNodes (async_nodes.hpp) calls this function. If it returns null, AsyncNodes calls ask(),
    /// which blocks the loop.
    // NOLINTNEXTLINE(performance-unnecessary-value-param): clang-tidy 14 takes the reference for a copy
    virtual std::shared_ptr<loop::Rounds> rounds_in(EventLoop&, const std::shared_ptr<loop::Scheduler>&) {
        return nullptr;
    }

    ContendedResources& contended() noexcept { return contended_; }

    /// Returns a tally in which no node was asked.
    Tally blank_tally() const { return Tally{names_}; }

protected:
    /// Throws std::invalid_argument if there is no name, if there are more names than max_nodes, or if
    /// node_timeout is negative or longer than an hour.
    explicit Nodes(std::vector<std::string> names, std::chrono::milliseconds node_timeout = {},
                   std::chrono::milliseconds quarantine = {});

    struct Like {
        const Nodes& nodes;
    };
    /// Makes nodes with the names, the node_timeout and the quarantine of other nodes.
    explicit Nodes(Like like)
        : names_(like.nodes.names_),
          node_timeout_(like.nodes.node_timeout_),
          quarantine_(like.nodes.quarantine_) {}

private:
    Tally::Names names_;
    std::chrono::milliseconds node_timeout_;
    std::chrono::milliseconds quarantine_;
    ContendedResources contended_{};
};

}  // namespace redlock
