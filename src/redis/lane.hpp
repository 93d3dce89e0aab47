// A lane: a group of connections to the nodes (node_group.hpp), and the rounds that threads make on it. Each
// thread that asks for a round blocks until it has ended.
//
// A thread that finds nobody on the lane is its *leading thread*. It alone uses the connections. In each
// pass, it begins the new rounds, writes their commands together, waits for replies, and continues with the
// rounds that have got one. There are two kinds of lanes:
//
//     lane   | rounds that the leading thread makes
//     -------+-----------------------------------------------------------------------------------------------
//     shared | those of all threads that come; the other threads sleep
//     own    | mostly only its own. Others may come while there is a command without a reply that their
//            | commands must follow. While there is none, the lane can be *private*: nobody may come, and the
//            | leading thread waits for a reply in a recv() that blocks
//
// The life of a round:
//
//     state   | meaning                                  | transitions
//     --------+------------------------------------------+-------------------------------------------------
//     new     | in the inbox; the leading thread has not | the leading thread begins it → active, or ended
//             | seen it                                  | if it cannot; its thread takes it back → gone
//     active  | the leading thread makes it              | its last step, or an exception → ended;
//             |                                          | its thread has left → ended
//     ended   | the leading thread has no step left to   | the leading thread wakes its thread → done
//             | make                                     |
//     done    | the leading thread has woken its thread, |
//             | which returns                            |
//
// In each state but `done`, the thread may leave (rule 6).
//
// These are the rules. Their model is tests/model/shared_reading.pml (lanes.pml is about several lanes).
//
// 1. A thread puts its round into the inbox. If nobody leads, it begins to lead in the same section under the
//    mutex. Otherwise it sleeps until its round is done, or until it is named as the leading thread.
// 2. The leading thread looks into the inbox before each wait. If it does not look there within
//    max_collecting (1 ms, write_choice.hpp), the thread whose round is the first in the inbox wakes it. A
//    thread whose deadline is closer than max_collecting wakes it at once. Only the shared lane has a
//    descriptor for this. On the others, the leading thread looks into the inbox after max_collecting.
// 3. The leading thread writes when the rules of write_choice.hpp permit it, and ends the rounds whose time
//    is over. Each round stores until when it waits (Asker::until).
// 4. When the round of the leading thread has ended, it names another thread as its successor, and wakes it:
//    that of the newest active round, which has most time left. If no active round has its thread any more,
//    it takes that of the newest round in the inbox. It looks into the inbox, and stops leading if nobody is
//    there, in one section under the mutex. So no thread ever sleeps while nobody leads.
// 5. If no active round has a thread that can be the successor, the leading thread writes all collected
//    commands, even behind pending replies, before it looks into the inbox. If nobody leads then, a
//    background task, which leads for a moment, sends what the sockets have not accepted. If only replies to
//    releases are missing, it calls check_silence() later.
// 6. The leading thread may get no processor, for example because its priority is low. Therefore a sleeping
//    thread *leaves* its round after a time (Patience; a thread of a watchdog leaves sooner):
//
//        the round  | what happens to it                   | what the thread reports of its nodes
//        -----------+--------------------------------------+--------------------------------------------
//        is new     | The thread takes it back.            | nothing was sent
//        any other  | The leading thread is woken, and     | the command may have been sent, so a release
//                   | owns it (rule 8).                    | follows in a round of its own
//
//    A new round that must be sent (rule 7) is under "any other". The reported cause is "timed out", or
//    "deadline" if that has passed, or "not awaited" if a thread of a watchdog waits for no replies.
// 7. The leading thread ends the rounds that were left before it begins any other. So a SET that was left is
//    never written behind its release. A round must be sent if it releases, or awaits no replies: it stays in
//    the inbox if its thread leaves. The leading thread begins it, hands it to the connections, and then ends
//    it.
// 8. A thread that sleeps makes copies of its requests, so everything that the leading thread uses of a round
//    outlives the call of its thread. A round that was left belongs to the leading thread. A thread that has
//    left is never named as a successor. If all threads have left, the leading thread writes their releases
//    before it stops leading.
//
// The mutex of a lane is not held during a system call. Otherwise a thread of low priority would often lose
// its processor with a mutex that the others need.
//
// A round reads its stop token only when it is about to ask another node, so a stop need not wake anybody.
#pragma once

#include <redlock/clock.hpp>
#include <redlock/detail/linked_list.hpp>
#include <redlock/detail/not_copied.hpp>
#include <redlock/nodes.hpp>

#include "../os/network.hpp"
#include "../round/unanswered.hpp"
#include "round_driver.hpp"

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <vector>

namespace redlock {

/// The detail in the report of a round whose thread has left it (rule 6).
inline constexpr auto* leading_thread_gets_no_processor =
    "the thread that makes this round gets no processor";

class Lane : detail::NotCopied {
public:
    enum class Kind : bool { own, shared };

    /// Does no I/O. `network` must outlive the object.
    Lane(const std::vector<NodeConfig>& configs, const NodesOptions& options, Network& network,
         Kind kind = Kind::shared);
    ~Lane();

    /// For how long a thread sleeps while another one makes its round (rule 6).
    enum class Patience : std::uint8_t {
        none,  ///< It leaves the round at once. The leading thread sends the command.
        until_its_end,
        with_grace  ///< Until its end and for time_to_end(), so that all votes count that have come.
    };

    /// Makes one round, and blocks while it lasts. Requires that the requests can share a round
    /// (RequestsByServer in redis_cluster.hpp). Returns false, and does nothing, if the lane is private. The
    /// caller then chooses a lane again.
    bool ask(std::span<const Request> requests, const RoundLimits& limits, std::span<Tally> tallies,
             Patience patience = Patience::with_grace);

    const detail::Unanswered& unanswered() const noexcept { return unanswered_; }
    /// Returns how many nodes had no connection, for want of a descriptor, when hand_over() last found no
    /// active round (NodeGroup::count_unconnected()). Returns 0 if that was more than 10 s ago, so that the
    /// lane is tried again.
    std::size_t unconnected() const noexcept {
        return unconnected_ > 0 && network_.clock().now() < unconnected_until_.load() ? unconnected_.load()
                                                                                      : 0;
    }
    /// Reads what has come, unless a thread leads, or has read less than a millisecond ago.
    void read_late() noexcept;
    /// Returns true if a thread has waited for the leading thread in vain, and the leading thread has neither
    /// made a pass since nor stopped leading.
    bool is_stalled() const noexcept { return stalled_; }

    /// For tests: returns the number of rounds that the leading thread has not begun.
    std::size_t new_rounds() const;

    /// While a thread leads, the others may only call functions of the group that read what is constant, or
    /// lock what they use, such as waiter() and notify().
    NodeGroup& group() noexcept { return group_; }
    /// Ends the background task.
    void end_background_task() noexcept { sender_.reset(); }

private:
    class Asker;
    enum class Waited : std::uint8_t;

    struct Recycle {
        Lane* lane = nullptr;
        void operator()(Asker* asker) const noexcept { lane->recycle(*asker); }
    };
    using OwnAsker = std::unique_ptr<Asker, Recycle>;

    struct Ready;  // the tag of a second list
    using Askers = detail::LinkedList<Asker>;

    OwnAsker take_asker();
    void recycle(Asker& asker) noexcept;
    bool wake(Asker& asker, Waited reason) noexcept;
    std::optional<Waited> post(Asker& own, bool& is_first);
    Waited sleep(Asker& own, bool is_first, Clock::time_point start, Patience patience);
    void wake_leading_thread(const Asker& own);
    Waited leave(Asker& own, bool leading_thread_is_late);
    void report_left(std::span<const Request> requests, std::span<Tally> tallies, bool sent,
                     std::error_code cause) const;
    void lead(Asker& own) noexcept;
    bool make_pass(Asker& own);
    void begin_new_rounds(const Asker* own);
    void begin(Asker& asker) noexcept;
    void advance(Asker& asker) noexcept;
    bool advance_ready() noexcept;
    void advance_overdue(Clock::time_point now) noexcept;
    Clock::time_point write();
    void poll(Clock::time_point until);
    /// Returns true if the round of another thread may come now. If not, the lane can be private.
    bool may_be_joined_locked() const noexcept { return kind_ == Kind::shared || unanswered_.any_bound(); }
    void make_wakeup();
    void take_ready();
    void read_all();
    void end(Asker& asker, std::exception_ptr failure) noexcept;
    void end_left() noexcept;
    void end_left(Asker& asker) noexcept;
    bool wake_ended(const Asker* own) noexcept;
    void find_unanswered() noexcept;
    void end_without_memory(Asker& own) noexcept;
    void stop_leading() noexcept;
    Rest hand_over() noexcept;
    Asker* name_successor_locked() noexcept;
    Clock::time_point send_unsent(Clock::time_point now);

    /// The number of unused objects that are kept.
    static constexpr std::size_t most_free = 64;

    Network& network_;
    const Kind kind_;

    mutable std::mutex mutex_{};
    // Guarded by mutex_. The leading thread, which alone changes is_private_ and wakeup_, reads them without
    // it.
    bool is_led_ = false;
    bool is_private_ = false;  // the leading thread may block in a recv(), so that it sees no new round
    // Made in the first pass. Null if there was no descriptor left, and on most lanes (rule 2).
    std::unique_ptr<Wakeup> wakeup_{};
    Askers inbox_{};
    std::vector<std::unique_ptr<Asker>> free_{};  // they are used again

    detail::Unanswered unanswered_{};
    std::atomic<bool> stalled_{false};
    std::atomic<std::size_t> unconnected_{0};
    std::atomic<Clock::time_point> unconnected_until_{};

    // Used by the leading thread only; for group_, see group().
    NodeGroup group_;
    Askers active_{};
    detail::LinkedList<Asker, Ready> ready_{};  // those of them that can continue
    Askers ended_{};                            // their threads have not been woken yet
    std::vector<PollEntry> entries_{};
    bool has_tried_wakeup_ = false;
    Clock::time_point last_read_{};

    // The background task goes on for a node_timeout after this instant: its start, or its last call of
    // check_silence() that has sent something.
    std::atomic<Clock::time_point> sender_since_{};
    std::unique_ptr<BackgroundTask> sender_{};
};

}  // namespace redlock
