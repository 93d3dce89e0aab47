// What must hold in every world, checked after every step. The checker sees true time and all
// clients at once, which no process does.
#pragma once

#include "log.hpp"
#include "sim_node.hpp"
#include "timeline.hpp"

#include <redlock/nodes.hpp>

#include <algorithm>
#include <cstddef>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace redlock::sim {

class CheckedLock;
class Process;

/// The claims.
enum class Rule : std::uint8_t {
    one_holder,           ///< at no instant are two locks of one resource valid() (S1)
    tokens_grow,          ///< a holder's token is larger than those of all whose validity ended before
    validity_is_bounded,  ///< valid_until is at most the start of the round + ttl − drift (S15, S16)
    validity_is_kept,     ///< a failed extension leaves valid_until, a successful one never shortens (C2)
    lapsed_stays_lapsed,  ///< valid() never comes back for one acquisition (C3, C4)
    confirmed_in_time,    ///< what a round confirms counts only before the validity has ended (A1, S32)
    nothing_is_left,      ///< in calm conditions, what was given up or released is on no node any more (A2)
    no_deadlock,          ///< at the end of all, every key has expired (S2)
    loss_is_reported,     ///< the loss of a watched lock is reported by valid_until (C6)
    one_notice,           ///< of one loss there is one notice (C8)
    loss_is_final,        ///< when it is reported, valid() is false, and lost() is stopped (C8)
    over_with_release,    ///< after release() no loss is reported and no extension is sent (B7, C9)
    hold_is_limited,      ///< nothing is extended by itself after max_hold (C7)
    order_is_kept,        ///< nothing of an owner overtakes its own pending SET (B5)
    ends_in_time,         ///< no round and no verb takes longer than its budgets (A3, A9)
    woken_in_time,        ///< where nothing fails, a release leads to the next hold at once, not after a beat
    served_in_order,      ///< where nothing fails, those that came later pass a waiter once each at most
    at_most_l_holders,    ///< at no instant are more semaphores of one name valid() than it has slots
    kept_at_least,        ///< no lock is acquired of a resource that is still to be kept from everybody
    stop_in_time,         ///< a leader is told to stop its work the margin before its term ends
    one_leader,           ///< a leader's work that ends within the margin has ended before another's begins
};
std::string_view name_of(Rule rule) noexcept;

struct Violation {
    Rule rule;
    Instant when;
    std::string text;
};

class Checker {
public:
    Checker(Timeline& timeline, Log& log, const std::vector<std::unique_ptr<SimNode>>& nodes)
        : timeline_(timeline), log_(log), nodes_(nodes) {}

    // ---- From the semaphores.
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

    // ---- From the locks.
    void add(CheckedLock& lock) { locks_.push_back(&lock); }
    void remove(CheckedLock& lock) { std::erase(locks_, &lock); }

    /// One acquisition with a token, and the part of true time in which it may have been counted on.
    struct Hold {
        std::vector<std::string> resources;
        bool shared;
        std::uint64_t token;
        Instant completed;
        Instant until;
        Instant kept_until{};
    };
    /// Returns its number, for later changes of its end.
    std::size_t acquired(Hold hold);
    void lasts(std::size_t hold, Instant until) { holds_[hold].until = until; }
    void extended() noexcept { ++extensions_; }
    /// Given up or released: on no node after `span`.
    void expect_gone_in(nanoseconds span, std::string owner, std::vector<std::string> resources,
                        NodeSet unreached);
    void expect(bool condition, Rule rule, const std::string& text) {
        if (!condition) violated(rule, text);
    }
    void violated(Rule rule, const std::string& text);

    // ---- Where all locks queue and nothing fails.
    struct QueueBounds {
        nanoseconds entered_in{};  ///< since acquire() was called
        nanoseconds woken_in{};    ///< since a release was confirmed
        std::size_t by_passes = 0;
    };
    void expect_queues(const QueueBounds& bounds) { queue_bounds_ = bounds; }
    void waits(const CheckedLock& lock);
    /// `served`: it holds the lock.
    void waits_no_longer(const CheckedLock& lock, bool served);
    /// There were so many holds when its release began.
    void released(const CheckedLock& lock, std::size_t holds);

    // ---- From leaders.
    void work_begins(const Process& process);
    /// To end within the margin. `due`: when that had to be told at the latest, or was.
    void work_is_told(const Process& process, Instant due);
    void work_ends(const Process& process);

    // ---- What it does by itself.
    /// After every step.
    void check();
    /// When nothing will happen any more, and all keys must have expired.
    void check_deadlocks();

    // ---- Its verdict: of every rule the first violation.
    const std::vector<Violation>& violations() const noexcept { return violations_; }
    bool saw(Rule rule) const noexcept;
    std::size_t holds() const noexcept { return holds_.size() + slots_acquired_; }
    std::size_t extensions() const noexcept { return extensions_; }

private:
    static bool overlap(const Hold& one, const Hold& other);
    void compare(const Hold& earlier, const Hold& later);
    void check_semaphores();
    void compare_rest(const Hold& earlier, const Hold& later);

    /// One that is in acquire().
    struct Waiting {
        const CheckedLock* lock;
        Instant since;
        std::size_t passed_by = 0;
    };
    /// A leader's, from its begin to its end.
    struct Work {
        const Process* process;
        Instant due = Instant::max();  // when it was to be told to stop
    };
    bool waits_since_before(Instant when, const std::vector<std::string>& resources) const;

    Timeline& timeline_;
    Log& log_;
    const std::vector<std::unique_ptr<SimNode>>& nodes_;
    std::vector<CheckedLock*> locks_{};
    std::vector<Holder*> semaphores_{};  // of one name
    std::size_t limit_ = 0;
    std::size_t slots_acquired_ = 0;
    std::vector<Hold> holds_{};
    std::size_t extensions_ = 0;
    QueueBounds queue_bounds_{};
    std::vector<Waiting> waiting_{};
    std::vector<Work> works_{};
    std::vector<Violation> violations_{};
};

}  // namespace redlock::sim
