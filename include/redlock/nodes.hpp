// The N independent Redis masters as the algorithm sees them: one round, a command to every node in, a
// tally of their votes out. The algorithm knows nothing else of the network.
//
// RedisNodes is the implementation for real servers. To test code of your own without servers, derive a fake:
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

/// More masters than anybody runs: 5 is reasonable (S11), and each costs every round a message.
inline constexpr std::size_t max_nodes = 15;

/// A choice of nodes, by their index in the order configured.
using NodeSet = std::bitset<max_nodes>;

/// N/2 + 1 of the nodes *configured*, whether they are up or not (S14, rule A4).
constexpr std::size_t quorum(std::size_t nodes) noexcept {
    return nodes / 2 + 1;
}

// ---- What can be asked in a round. The views must outlive the call of ask(), no longer.

/// What is locked: one resource, or several as one lock, sorted and without repetition. A node grants all of
/// them or none.
using Resources = std::span<const std::string>;

/// What a command does on one node, in one step. Where it covers several resources, a node does it for all of
/// them or for none.
enum class Verb : std::uint8_t {
    set_if_absent,       ///< `SET resource owner NX PX ttl` (S5): granted where every resource was free
    compare_and_expire,  ///< raise the expiry to `ttl` where every resource still holds `owner` (S31)
    compare_and_delete,  ///< delete the resources that still hold `owner` (S8): granted where all of them did
    set_and_count,  ///< set_if_absent that counts the holders: a grant comes with a count larger than any
                    ///< that this node has given or been raised to before, for any of the resources
    raise_count,    ///< raise the counts to `fence` at least, where every resource holds `owner` and is
                    ///< counted; refused with the node's own count where `fence` is far ahead of its clock
    enter_queue,    ///< enter the queue of waiters of one node, or stay in it: granted where the resource is
                    ///< reserved for the waiter now; refused with what it can know of its place
    note_holder,    ///< write `note` beside each resource that holds `owner`, for as long as that, and remove
                    ///< what `owner` has written beside the others: granted in any case
    query,          ///< what stands there: granted, with the answer as the report's detail; see query.hpp
};

/// What a command has to do with the queue of waiters (LockOptions::fair), of which one node is the home.
/// With it, set_if_absent and set_and_count are the round of one that has waited: at the home it leaves the
/// queue, and what was reserved for it makes room. And compare_and_delete wakes the next waiter.
struct QueueTerms {
    std::string_view ticket{};             ///< of the waiter; empty: the command is of none
    std::size_t home = 0;                  ///< the node where it waits
    std::chrono::milliseconds patience{};  ///< how long a resource stays reserved for one that was woken
    std::chrono::microseconds waited{};    ///< of enter_queue: for how long the waiter has waited
    bool may_take = true;                  ///< of enter_queue: what is free may be reserved for it at once
    bool repeated = false;                 ///< of compare_and_delete: it may have woken a waiter already
};

struct Command {
    Verb verb{};
    Resources resources{};
    std::string_view owner{};
    std::chrono::milliseconds ttl{};    ///< of the verbs that set or expire
    std::uint64_t fence = 0;            ///< of raise_count
    std::chrono::milliseconds rest{};   ///< of compare_and_delete: the resource is kept from everybody for so
                                        ///< long, where it was the owner's
    std::string_view note{};            ///< of note_holder
    const QueueTerms* queue = nullptr;  ///< null: it has nothing to do with waiters
    bool shared = false;                ///< its owner is a reader, beside others (LockOptions::shared)
};

/// Whether `verb` claims what is free.
constexpr bool acquires(Verb verb) noexcept {
    return verb == Verb::set_if_absent || verb == Verb::set_and_count;
}

/// A command, and the nodes that it goes to.
struct Request {
    Command command{};
    NodeSet to = NodeSet{}.set();
};

/// How an acquire goes round the nodes. Extension and release always go to all at once.
enum class Round : std::uint8_t {
    sequential,   ///< one node after the other, in the order configured, as the page's step 2 (S13)
    all_at_once,  ///< writes to all nodes, then reads them all: the page's multiplexing (S23)
};

/// How long a round may take.
struct RoundLimits {
    Clock::time_point deadline = Clock::never();  ///< the whole round ends by then, beside each node's budget
    std::stop_token stop{};                       ///< no further node is asked once this is stopped
    bool awaits_answers = true;  ///< false, for compare_and_delete and note_holder: the commands are written,
                                 ///< and the replies not waited for
};

// ---- What comes back.

/// A node that gave no usable answer has neither granted nor refused (rule A7).
enum class Vote : std::uint8_t { unknown, granted, refused };

/// What a waiter is told of its place in the queue.
struct QueuePlace {
    enum class Held : std::uint8_t { by_nobody, by_waiter, by_holder };
    Held held = Held::by_nobody;             ///< what stands in the way: a waiter is one that was woken
    std::chrono::milliseconds held_for{-1};  ///< at most; negative: for ever, or not at all
    std::size_t in_front = 0;                ///< waiters
};

/// What happened on one node in one round.
struct NodeReport {
    std::string_view name;                    ///< as configured, without secrets; lives as long as the Nodes
    Vote vote = Vote::unknown;                ///< its answer
    std::error_code cause = Errc::not_asked;  ///< why the vote is unknown; wrong_type also with a refusal
    std::uint64_t count = 0;                  ///< that came with a set_and_count or a refused raise_count; of
                                              ///< a compare_and_delete: 1 if it has woken a waiter
    QueuePlace place{};                       ///< that came with a refused enter_queue
    std::chrono::nanoseconds took{};          ///< from asking it, a connection to be made included, to its
                                              ///< answer, or to giving up
    bool sent = false;                        ///< a byte of the command may have reached the node
    std::string detail{};                     ///< the server's or the system's own words, mostly empty; the
                                              ///< answer to a query
};

/// One report a node, in the order configured.
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
    /// No usable answer, though a byte of the command may have reached the node.
    void mark_unknown(std::size_t node, std::error_code cause) noexcept { vote(node, Vote::unknown, cause); }
    /// No usable answer, and no byte of the command can have reached the node.
    void mark_not_sent(std::size_t node, std::error_code cause) noexcept { reports_[node].cause = cause; }

    std::size_t granted() const noexcept { return count(Vote::granted); }
    std::size_t refused() const noexcept { return count(Vote::refused); }

    /// The nodes to which a byte may have gone: those a release has to reach (rule B1).
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

/// One that waits at a node for a message that it is its turn; in one thread. See waiting.hpp.
class REDLOCK_EXPORT Waiter {
public:
    virtual ~Waiter() = default;
    Waiter(const Waiter&) = delete;
    Waiter& operator=(const Waiter&) = delete;

    /// Listens at the first of `homes`, in the order configured, that answers; nowhere else any more. False:
    /// none of them did. Blocks one node_timeout for each that does not.
    virtual bool listen(NodeSet homes, const RoundLimits& limits) = 0;

    /// Where it listens, or did last.
    virtual std::size_t home() const noexcept = 0;

    /// One that nobody ever had, and that messages to this waiter come with. Where it listens.
    virtual std::string new_ticket() = 0;

    struct WakeUp {
        bool connected = false;  ///< false: it listens nowhere any more
        std::string ticket{};    ///< of the message; empty if there was none
    };
    /// Until a message has come, or until then, or until stopped.
    virtual WakeUp sleep(Clock::time_point until, const std::stop_token& stop) = 0;

    /// Listens nowhere any more: nobody is to believe that a message would be heard. With `refused`, and the
    /// server's words, this node keeps no queue for us, and is not to be a home for a while.
    virtual void hang_up(std::error_code refused, std::string_view words) = 0;

    /// Into a blank tally, as the cause of an unknown vote: why nodes keep no queue for us at present.
    virtual void report_refusals(Tally& tally) const = 0;

protected:
    Waiter() = default;
};

/// Which resources others have lately waited for, as far as is known here: a hint.
class ContendedResources {
public:
    bool contains(std::string_view resource) const noexcept {
        return slots_[slot_of(resource)].load(std::memory_order_relaxed);
    }
    void set(std::string_view resource, bool contended) noexcept {
        slots_[slot_of(resource)].store(contended, std::memory_order_relaxed);
    }

private:
    /// What shares one with a contended resource is taken for contended, which costs a
    /// command; and its release, which wakes nobody, makes both uncontended: that costs a refused round.
    static std::size_t slot_of(std::string_view resource) noexcept {
        return std::hash<std::string_view>{}(resource) % slots;
    }

    static constexpr std::size_t slots = 1024;
    std::array<std::atomic<bool>, slots> slots_{};
};

/// N independent masters. Implementations say in their own documentation which threads may share them.
class REDLOCK_EXPORT Nodes {
public:
    virtual ~Nodes() = default;
    Nodes(const Nodes&) = delete;
    Nodes& operator=(const Nodes&) = delete;

    std::size_t size() const noexcept { return names_->size(); }
    std::string_view name(std::size_t node) const { return names_->at(node); }
    /// The budget of one node in one round; a ttl must exceed it. Zero where there is no such thing.
    std::chrono::milliseconds node_timeout() const noexcept { return node_timeout_; }
    /// How long a node that has lost its data has no vote; no ttl may exceed it. Zero: it votes at once.
    std::chrono::milliseconds quarantine() const noexcept { return quarantine_; }

    /// The clock that deadlines of rounds are instants of, where it cannot be any: that of a Lock must be the
    /// same. Null: any clock will do.
    virtual Clock* required_clock() const noexcept { return nullptr; }

    /// One round: every request to its nodes, the votes on it into the blank tally of the same index. A fault
    /// of a node is its unknown vote, never an exception (rule A3). Nodes that nothing was sent to keep their
    /// blank report. May stop asking, or stop waiting, once the votes decide; returns by `limits.deadline`.
    virtual void ask(std::span<const Request> requests, const RoundLimits& limits,
                     std::span<Tally> tallies) = 0;

    /// The same for one request.
    Tally ask(const Request& request, const RoundLimits& limits = {}) {
        auto tally = blank_tally();
        ask({&request, 1}, limits, {&tally, 1});
        return tally;
    }

    /// For LockOptions::fair. Null: these nodes keep no queue, and acquire() retries.
    virtual std::unique_ptr<Waiter> waiter() { return nullptr; }

    ContendedResources& contended() noexcept { return contended_; }

    /// No node asked yet.
    Tally blank_tally() const { return Tally{names_}; }

protected:
    /// Throws std::invalid_argument if there is no name, if there are more than max_nodes, or if node_timeout
    /// is negative or longer than an hour.
    explicit Nodes(std::vector<std::string> names, std::chrono::milliseconds node_timeout = {},
                   std::chrono::milliseconds quarantine = {});

private:
    Tally::Names names_;
    std::chrono::milliseconds node_timeout_;
    std::chrono::milliseconds quarantine_;
    ContendedResources contended_{};
};

}  // namespace redlock
