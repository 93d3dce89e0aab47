// The invariants that must hold in every world. They are checked after every step. The checker sees true time
// and all clients at once, which no process does.
#pragma once

#include "log.hpp"
#include "sim_node.hpp"
#include "timeline.hpp"

#include <redlock/nodes.hpp>

#include <algorithm>
#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace redlock::sim {

class CheckedLock;
class Process;

/// The invariants.
enum class Rule : std::uint8_t {
    one_holder,           ///< at no instant are two locks of one resource valid() (S1)
    tokens_grow,          ///< a holder's token exceeds those of all holders whose validity ended before (if
                          ///< the wall clocks of the nodes differ by less than the quarantine)
    validity_is_bounded,  ///< valid_until is at most the start of the round + ttl − drift (S15, S16)
    validity_is_kept,     ///< a failed extension leaves valid_until, a successful one never shortens it (C2)
    lapsed_stays_lapsed,  ///< valid() never turns true again for one acquisition (C3, C4)
    confirmed_in_time,    ///< a confirmation by a round counts only before the validity ends (A1, S32)
    nothing_is_left,      ///< in calm conditions, no node keeps a key of what was given up or released (A2)
    no_deadlock,          ///< at the end of the schedule, every key has expired (S2)
    loss_is_reported,     ///< the loss of a watched lock is reported by valid_until (C6)
    one_notice,           ///< a loss is reported once (C8)
    loss_is_final,        ///< when it is reported, valid() is false, and stop is requested on lost() (C8)
    over_with_release,    ///< after release() no loss is reported and no extension is sent (B7, C9)
    hold_is_limited,      ///< the watchdog extends nothing after max_hold (C7)
    order_is_kept,        ///< no command of an owner overtakes its own pending SET (B5)
    ends_in_time,         ///< no round and no verb takes longer than documented (A3, A9)
    woken_in_time,        ///< without faults, a release leads to the next hold without waiting for a poll
    served_in_order,      ///< without faults, a waiter is passed at most as often as there are other clients
    at_most_l_holders,    ///< at no instant are more semaphores of one name valid() than it has slots
    kept_at_least,        ///< no lock is acquired while the minimum hold time of the last one remains
    stop_in_time,         ///< stop is requested from a leader's work by the margin before its term ends
    one_leader,           ///< a leader's work that ends within the margin ends before another's begins
    one_completion,       ///< the completion of an operation is called once, and not while it begins
    leads_by_majority,    ///< while a leader's term is valid, a majority of the nodes has its key
};
std::string_view name_of(Rule rule) noexcept;

struct Violation {
    Rule rule;
    Instant when;
    std::string text;
};

class Checker {
public:
    Checker(Timeline& timeline, Log& log, const std::vector<std::unique_ptr<SimNode>>& nodes,
            milliseconds quarantine)
        : timeline_(timeline), log_(log), nodes_(nodes), quarantine_(quarantine) {}

    // ---- Called by semaphores.
    class Holder {
    public:
        virtual const std::string& name() const = 0;
        virtual bool check_valid() = 0;

    protected:
        ~Holder() = default;
    };
    void add(Holder& semaphore, std::size_t limit) {
        semaphores_.push_back(&semaphore);
        limit_ = std::max(limit_, limit);
    }
    void remove(Holder& semaphore) { std::erase(semaphores_, &semaphore); }
    void slot_acquired() noexcept { ++slots_acquired_; }

    // ---- Called by locks.
    void add(CheckedLock& lock) { locks_.push_back(&lock); }
    void remove(CheckedLock& lock) { std::erase(locks_, &lock); }

    /// One acquisition, and the part of true time in which its holder may have counted on it.
    struct Hold {
        std::vector<std::string> resources;
        bool shared;
        std::uint64_t token;
        Instant completed;
        Instant until;
        Instant kept_until{};
    };
    /// Returns the index of the hold, for later changes of its end.
    std::size_t acquired(Hold hold);
    void lasts(std::size_t hold, Instant until) { holds_[hold].until = until; }
    void extended() noexcept { ++extensions_; }
    void disturbed() noexcept { ++disturbances_; }
    /// Expects that after `span` no node has a key of this owner, which was given up or released. The nodes
    /// that `unreached` then returns are exempt. An event loop may still have to send the release: `sender`
    /// is its process, which must not crash or be paused meanwhile; null for a release that was sent.
    void expect_gone_in(nanoseconds span, std::string owner, std::vector<std::string> resources,
                        std::function<NodeSet()> unreached, const Process* sender);
    /// Expects the same at the end, of a process that has not crashed.
    void expect_gone_at_the_end(const Process& process, std::string owner,
                                std::vector<std::string> resources) {
        over_.push_back({&process, std::move(owner), std::move(resources)});
    }
    void expect(bool condition, Rule rule, const std::string& text) {
        if (!condition) violated(rule, text);
    }
    void violated(Rule rule, const std::string& text);

    // ---- For worlds in which all locks queue and nothing fails.
    struct QueueBounds {
        nanoseconds entered_in{};  ///< the time from the call of acquire() until the lock is in the queue
        nanoseconds woken_in{};    ///< the time from the confirmed release to the next hold
        std::size_t by_passes = 0;
    };
    void expect_queues(const QueueBounds& bounds) { queue_bounds_ = bounds; }
    void waits(const CheckedLock& lock);
    /// `served` is true if the lock is held now.
    void waits_no_longer(const CheckedLock& lock, bool served);
    /// `holds` is the number of holds when the release began.
    void released(const CheckedLock& lock, std::size_t holds);

    // ---- Called by leaders.
    /// A leader at its work.
    class Leading {
    public:
        virtual const Process& process() const = 0;
        /// Returns true if the process can still count on its term.
        virtual bool check_valid() = 0;
        /// Returns the owner that had the leadership when the work began; empty if there was none.
        virtual const std::string& owner() const = 0;

    protected:
        ~Leading() = default;
    };
    /// Returns the owner that has the resource on a majority of the nodes; empty if there is none.
    std::string owner_of(const std::string& resource) const;
    void work_begins(Leading& leader);
    /// The work must end within the margin from now. `due` is the instant of the stop request, or the latest
    /// permitted instant if that is earlier.
    void work_is_told(const Leading& leader, Instant due);
    void work_ends(const Leading& leader);

    // ---- Called by the world.
    /// Checks the state after every step.
    void check();
    void check_over();
    /// Call this when nothing will happen any more and all keys must have expired.
    void check_deadlocks();

    // ---- The outcome: the first violation of each invariant.
    const std::vector<Violation>& violations() const noexcept { return violations_; }
    bool saw(Rule rule) const noexcept;
    std::size_t holds() const noexcept { return holds_.size() + slots_acquired_; }
    std::size_t extensions() const noexcept { return extensions_; }
    std::size_t disturbances() const noexcept { return disturbances_; }

private:
    static bool overlap(const Hold& one, const Hold& other);
    bool clocks_agree() const;
    void compare(const Hold& earlier, const Hold& later);
    void check_semaphores();
    void check_leaders();
    void check_gone(const std::string& owner, const std::vector<std::string>& resources, NodeSet unreached);
    void compare_rest(const Hold& earlier, const Hold& later);

    /// A lock whose acquire() is under way.
    struct Waiting {
        const CheckedLock* lock;
        Instant since;
        std::size_t passed_by = 0;
    };
    /// The work of a leader, from its begin to its end.
    struct Work {
        Leading* leader;
        Instant due = Instant::max();  // when stop was requested, or had to be
    };
    /// An attempt that was given up or released.
    struct Over {
        const Process* process;
        std::string owner;
        std::vector<std::string> resources;
    };
    bool waits_since_before(Instant when, const std::vector<std::string>& resources) const;

    Timeline& timeline_;
    Log& log_;
    const std::vector<std::unique_ptr<SimNode>>& nodes_;
    const milliseconds quarantine_;
    std::vector<CheckedLock*> locks_{};
    std::vector<Holder*> semaphores_{};  // all of one name
    std::size_t limit_ = 0;
    std::size_t slots_acquired_ = 0;
    std::vector<Hold> holds_{};
    std::size_t extensions_ = 0;
    std::size_t disturbances_ = 0;
    QueueBounds queue_bounds_{};
    std::vector<Waiting> waiting_{};
    std::vector<Work> works_{};
    std::vector<Over> over_{};
    std::vector<Violation> violations_{};
};

}  // namespace redlock::sim
