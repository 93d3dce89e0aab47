// Decides the course of one round: which node is asked when, how long the round waits for this node, and when
// the round ends. The class has no sockets, no clock and no mutex.
//
// ---- What a round is
//
// A round sends a command, such as a SET, to the nodes, and counts their votes (nodes.hpp). VotesNeeded in
// verbs.hpp says how many grants it needs.
//
// Most rounds have one request. A watchdog extends several locks in one round, with a request for each. All
// requests of a round have the same verb. The commands for one node are sent together.
//
// The *caller* is the code that needs the round. A round is given:
//
//     what                   | meaning
//     -----------------------+-------------------------------------------------------------------------------
//     requests               | the commands and their nodes
//     RoundLimits            | see nodes.hpp; `awaits_answers` can be false for a release or describe_holder
//     node_timeout           | the time that one node may take in this round, including connecting
//     round_order            | how an acquisition asks the trusted nodes: one after the other
//                            | (Round::sequential) or all at once
//     health of each node    | *trusted* or *untrusted*. An untrusted node is in *back-off* until its *probe*
//                            | is due (node_health.hpp).
//
// The votes on each request are counted separately:
//
//     term                   | meaning
//     -----------------------+-------------------------------------------------------------------------------
//     impossible request     | It can no longer get the grants that it needs.
//     decided request        | It has the grants that it needs, or it is impossible.
//     impossible round       | All its requests are impossible.
//     decided round          | All its requests are decided. If the caller does not wait for the replies, the
//                            | round is decided from the beginning.
//
// ---- The driver
//
// The *driver* (RoundDriver in src/redis/round_driver.hpp) does the I/O. It executes the steps that next()
// returns:
//
//     step    | what the driver does
//     --------+----------------------------------------------------------------------------------------------
//     ask     | It *joins* a connection to the node, that is, takes an open connection or begins a new one,
//             | and sends the commands on it.
//     give_up | The time of the node is over. The driver calls end(), and *leaves* the connection. If
//             | `timed_out` is true, the node has failed, and loses its trust.
//     wait    | It waits until something happens, but at most until the instant `until`.
//     done    | The round is over.
//
// The driver reports each event by a function on_...(), such as on_join() and on_vote():
//
//     using Kind = redlock::detail::QuorumRound::Step::Kind;
//     for (;;) {
//         const auto step = round.next(clock.now());
//         if (step.kind == Kind::ask) join(step.node);
//         if (step.kind == Kind::give_up) end_and_leave(step);
//         if (step.kind == Kind::wait) wait(step.until);
//         if (step.kind == Kind::done) break;
//     }
//
// In the step `ask`, there are two exceptions:
//
// - The driver can *postpone* a node that is not trusted by then: it joins no connection, and the step `ask`
//   can come again later. choose_connection() decides this (connection_choice.hpp). A release is never
//   postponed.
// - The driver can *exclude* a request from the node, that is, not send this request there, because it would
//   have to follow a command on a draining connection to the node (pending_replies.hpp).
//
// A release differs from the other commands in these cases, because a key that is left on a node keeps other
// clients from the lock, and because a second deletion does no harm:
//
//     case                                   | other commands                | a release
//     ---------------------------------------+-------------------------------+-------------------------------
//     the round is impossible, a stop was    | no further node is asked      | the remaining nodes are asked
//     requested, or the caller's deadline    |                               |
//     has passed                             |                               |
//     the round ends while the connection    | nothing is sent to the node   | the release is sent later: it
//     to the node is being made              |                               | was *queued* on the connection
//
// The other clean-ups (docs/glossary.md) are queued, too.
//
// ---- The stages of one node
//
//     stage      | meaning                                     | transitions
//     -----------+---------------------------------------------+-------------------------------------------
//     unasked    | no connection was joined yet, and the       | on_join() → connecting
//                | node was not postponed                      | on_postponed() → postponed
//                |                                             | exclude() of its last request → over
//     postponed  | the node was postponed                      | as unasked
//     connecting | a connection was joined; no byte of         | on_sent() → sent
//                | the commands was sent (except for a queued  | on_failed(), give_up → over
//                | clean-up, see on_sent())                    |
//     sent       | a byte of the commands may have reached the | the last on_vote() → over
//                | node                                        | on_failed(), give_up → over
//                |                                             | on_join(), see below → connecting
//     over       | its votes are known, or will stay unknown,  |
//                | or no request goes to the node              |
//
// A node *is being asked* in the stages connecting and sent. (In the stage connecting, the connection can
// also be an open one that is not free for another command yet.) end() leads to over from every stage. If
// on_failed() returns true, a release must be sent once more. If on_redirected() or on_unreachable() returns
// true, another server of a Redis Cluster must be asked. The stage then stays until the driver has joined
// another connection, and calls on_join(). If it cannot join one, exclude(), or on_postponed() and end(),
// lead to over.
//
// ---- Which nodes are awaited
//
// The round waits only as long as it *awaits* a node. It awaits a node that is being asked in three cases:
//
//     case | the node is                  | condition
//     -----+------------------------------+---------------------------------------------------------------
//     1    | trusted or untrusted         | The round is not decided.
//     2    | trusted                      | One of these is true:
//          |                              | - The nodes are asked one after the other (the phase one_by_one).
//          |                              | - The command only reads, so each reply is a part of the result.
//          |                              | - The command is a release, and the caller waits for replies.
//     3    | trusted, in the stage        | The step `ask` came less than an eighth of node_timeout ago, and
//          | connecting                   | the command does not write or delete a description.
//
// Case 3 gives new connections the time to send. If the round ended earlier, a lock would often be on a bare
// majority, and the failure of one more node would end it. A node that does not connect within this time
// counts as failed, so that the next rounds do not wait for it. The table of give_up() has the exceptions.
//
// ---- The phases of the round
//
// In each phase, the step `ask` comes for some nodes, and then usually the step `wait`. The untrusted nodes
// share one node_timeout, which has two halves. A node that was postponed in the first half can be asked in
// the second one:
//
//     phase       | nodes to ask                                | ends
//     ------------+---------------------------------------------+-------------------------------------------
//     one_by_one  | the trusted nodes; each one when the        | when all of them were asked and none is
//                 | previous one is not awaited any more        | awaited
//     all_trusted | the trusted nodes, all at once              | when all of them were asked; this phase
//                 |                                             | does not wait
//     first_half  | the untrusted nodes, all at once            | half a node_timeout after first_half began,
//                 |                                             | or earlier if no node is awaited
//     second_half | the postponed nodes                         | when no node is awaited, but at the latest
//                 |                                             | a node_timeout after first_half began
//
// An acquisition with Round::sequential begins with one_by_one, and then skips all_trusted. All other rounds
// begin with all_trusted.
//
// An example: an extension on five nodes, with a node_timeout of 50 ms. Node 5 is in back-off, and nodes 3
// and 4 have just been frozen. At 0 ms the round asks nodes 1 to 4, and postpones node 5, because these four
// could be a quorum. Nodes 1 and 2 grant. At 25 ms the round does not count on nodes 3 and 4 any more, so the
// third grant can only come from node 5. The round asks node 5, and waits for it until 50 ms at the latest.
#pragma once

#include <redlock/clock.hpp>
#include <redlock/detail/not_copied.hpp>
#include <redlock/error.hpp>
#include <redlock/nodes.hpp>

#include "../wire/reply.hpp"
#include "../wire/verbs.hpp"
#include "connection_choice.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <system_error>
#include <utility>

namespace redlock::detail {

class QuorumRound : NotCopied {
public:
    /// What the driver has to do next.
    struct Step {
        enum class Kind : std::uint8_t { ask, give_up, wait, done };
        Kind kind = Kind::done;
        std::size_t node = 0;       ///< For ask and give_up: the index of the node.
        bool timed_out = false;     ///< For give_up: true if the silence of the node is a failure.
        Errc cause{};               ///< For give_up: for end().
        const char* detail = "";    ///< For give_up: a text for end(), such as "while connecting".
        Clock::time_point until{};  ///< For wait: when to call next() again at the latest.
    };

    /// Returns the effect of the first command. Unlike properties().effect, it tells the deletion of a
    /// description from its writing.
    KeyEffect effect() const noexcept { return effect_of(requests_.front().command); }

    /// Requires at least one request. The requests, the limits and the tallies must outlive the round.
    /// `nodes` is N. The votes on each request are written into the tally with the same index.
    QuorumRound(std::span<const Request> requests, const RoundLimits& limits, Clock::duration node_timeout,
                Round round_order, std::size_t nodes, std::span<Tally> tallies)
        : requests_(requests),
          limits_(limits),
          node_timeout_(node_timeout),
          tallies_(tallies),
          size_(nodes),
          needed_(grants_needed()),
          nodes_(nodes),
          counts_(requests.size()) {
        for (std::size_t i = 0; i < requests_.size(); ++i) {
            counts_[i].to = requests_[i].to;
            for (std::size_t node = 0; node < size_; ++node)
                if (includes(node, i)) {
                    nodes_[node].stage = Stage::unasked;
                    ++counts_[i].missing;
                }
        }
        if (effect() == KeyEffect::acquires && round_order == Round::sequential) phase_ = Phase::one_by_one;
    }

    /// Sets the health of a node. Must be called before the first step.
    void set_health(std::size_t node, bool trusted, bool probe_due) noexcept {
        nodes_[node].trusted = trusted;
        nodes_[node].probe_due = probe_due;
    }

    bool is_release() const noexcept { return effect() == KeyEffect::releases; }
    bool awaits_answers() const noexcept { return limits_.awaits_answers; }
    std::span<const Request> requests() const noexcept { return requests_; }
    bool is_connecting(std::size_t node) const noexcept { return nodes_[node].stage == Stage::connecting; }
    bool is_sent(std::size_t node) const noexcept { return nodes_[node].stage == Stage::sent; }
    bool is_being_asked(std::size_t node) const noexcept { return nodes_[node].is_being_asked(); }
    /// Returns true if the node has voted on a request.
    bool has_replied(std::size_t node) const noexcept { return nodes_[node].replied; }
    /// Returns true if the release is sent to this node for the second time.
    bool is_repeated(std::size_t node) const noexcept { return nodes_[node].repeated; }

    /// Returns true if the node is untrusted, and could still be asked. At the end of the round, this means
    /// that it was left alone.
    bool is_left_alone(std::size_t node) const noexcept {
        return nodes_[node].can_be_asked() && !nodes_[node].trusted;
    }

    /// Returns true if the request goes to the node and was not excluded.
    bool includes(std::size_t node, std::size_t request) const { return counts_[request].to[node]; }

    /// Returns true if the request includes the node, and the vote of the node on it is missing.
    bool lacks_vote(std::size_t node, std::size_t request) const {
        return request >= nodes_[node].next_reply && includes(node, request);
    }

    // ---- Events, which the driver reports

    /// Excludes a request from the node. Must be called before on_join(). Returns false if the node has
    /// no other request.
    bool exclude(std::size_t node, std::size_t request, std::string why, Clock::time_point now) {
        record(node, request, {.cause = Errc::not_asked}, std::move(why), now);
        counts_[request].to.reset(node);
        return !end_if_complete(node);
    }

    /// Records that the driver has postponed the node. The node becomes untrusted, because it may have failed
    /// since set_health() was called.
    void on_postponed(std::size_t node) noexcept {
        nodes_[node].stage = Stage::postponed;
        nodes_[node].trusted = false;
    }

    /// Records that the driver has joined a connection to the node. The choice of the connection says
    /// whether the node is `worth_waiting_for`, that is, counts as trusted for the rest of the round.
    void on_join(std::size_t node, bool worth_waiting_for) noexcept {
        nodes_[node].stage = Stage::connecting;
        nodes_[node].trusted = worth_waiting_for;
    }

    /// Records that the connection is ready, but that the driver may not send on it yet (may_send()).
    void on_held_back(std::size_t node) noexcept { nodes_[node].held_back = true; }

    /// Records that the commands are sent. Must be called before a byte of them can reach the node. There is
    /// an exception: a queued clean-up is written together with the handshake. For it, the function is called
    /// after that, but before the reply is taken.
    void on_sent(std::size_t node) {
        nodes_[node].stage = Stage::sent;
        for (std::size_t i = 0; i < requests_.size(); ++i)
            if (includes(node, i)) tallies_[i][node].sent = true;
    }

    /// Returns the command to which the next reply of the node belongs. Requires that a reply is missing.
    const Command& command_of_next_reply(std::size_t node) {
        return requests_[request_of_next_reply(node)].command;
    }

    /// Records the vote of the node on command_of_next_reply(). Returns true if it was the last one.
    bool on_vote(std::size_t node, NodeVote vote, std::string detail, Clock::time_point now) {
        auto& it = nodes_[node];
        // If the first release may have deleted the key, the refusal of the repeated one is a confirmation.
        if (it.maybe_released && vote.vote == Vote::refused) {
            vote.vote = Vote::granted;
            vote.cause = {};
            detail.clear();
        }
        const auto request = request_of_next_reply(node);
        record(node, request, vote, std::move(detail), now);
        if (!vote.maybe_executed) tallies_[request][node].sent = false;
        ++it.next_reply;
        it.replied = true;
        return end_if_complete(node);
    }

    /// Moves the node to the stage over. Its missing votes stay unknown, with this cause. When the round is
    /// done, the driver calls this function for all nodes that are being asked or were left alone.
    void end(std::size_t node, std::error_code cause, const std::string& detail, Clock::time_point now) {
        auto& it = nodes_[node];
        const bool was_asked = !it.can_be_asked();
        if (!was_asked) it.asked_at = now;  // so that the report shows no time
        it.stage = Stage::over;
        // Moves next_reply to the end, so a second call of this function changes no vote.
        for (auto& request = it.next_reply; request < requests_.size(); ++request)
            if (includes(node, request)) {
                record(node, request, {.cause = cause}, detail, now);
                tallies_[request][node].left_alone = !was_asked;
            }
    }

    /// Records that the node has failed. `disconnected` is true if its connection broke, `maybe_executed` is
    /// false if the server has executed nothing. Returns true if the command is a release that must be sent
    /// once more, over another connection. This is so if the connection broke for the first time, and before
    /// the deadline of the node. In all other cases, moves the node to the stage over.
    bool on_failed(std::size_t node, std::error_code cause, const std::string& detail, bool disconnected,
                   Clock::time_point now, bool maybe_executed = true) {
        auto& it = nodes_[node];
        if (is_release() && disconnected && !it.repeated && now < it.deadline) {
            it.repeated = true;
            it.maybe_released = maybe_executed;
            return true;
        }
        end(node, cause, detail, now);
        return false;
    }

    /// Records that a server of the node, which is a Redis Cluster, has executed nothing, and has named
    /// another server. Returns true if the commands must be sent there. This is so for the first MOVED and
    /// the first ASK, before the deadline of the node. The driver then joins another connection.
    bool on_redirected(std::size_t node, bool asking, Clock::time_point now) noexcept {
        auto& it = nodes_[node];
        if (std::exchange(asking ? it.followed_ask : it.followed_moved, true) || now >= it.deadline)
            return false;
        for (std::size_t i = 0; i < requests_.size(); ++i)
            if (includes(node, i)) tallies_[i][node].sent = false;
        return true;
    }

    /// Records that a server of the node, which is a Redis Cluster, cannot be reached, and that nothing was
    /// sent to it. Returns true if the driver may try another server.
    bool on_unreachable(std::size_t node, Clock::time_point now) noexcept {
        constexpr std::uint8_t most = 3;
        auto& it = nodes_[node];
        return it.stage == Stage::connecting && now < it.deadline && it.unreachable++ < most;
    }

    // ---- Steps

    /// Returns the next step. The driver must execute it before the next call. (goes_on_waiting() repeats
    /// some conditions of this function.) The first row that applies decides:
    ///
    ///     situation                                       | step
    ///     ------------------------------------------------+--------------------------------------
    ///     the time of an awaited node is over             | give_up (find_overdue())
    ///     the phase has a node to ask                     | ask (next_to_ask())
    ///     the phase waits (phase_waits()) for a node      | wait
    ///     the phase is second_half                        | done
    ///     otherwise                                       | that of the next phase
    Step next(Clock::time_point now) {
        if (const auto node = find_overdue()) return give_up(*node);
        for (;;) {
            if (const auto node = next_to_ask(now)) return ask(*node, now);
            if (phase_waits(now)) {
                if (awaits_only_connecting()) limit_connecting();
                const auto until = next_deadline();
                if (until) {
                    overdue_since_ = *until <= now ? now : Clock::time_point::min();
                    return {.kind = Step::Kind::wait, .until = std::min(*until, half_time_)};
                }
            }
            if (phase_ == Phase::second_half) return {.kind = Step::Kind::done};
            enter_next_phase(now);
        }
    }

    /// Returns true if the outcome of the round depends on this node. The driver then connects to the node
    /// even in back-off. The outcome depends on the node if a request that goes to it has two properties:
    ///
    /// - The grants so far, and those of all nodes whose votes are missing, would be enough.
    /// - The grants so far, and those of only the nodes that are being asked, would not be enough.
    ///
    /// In the phase second_half, the nodes that are being asked are not expected to grant, because the nodes
    /// of the earlier phases have been silent for half a node_timeout. For a refusal, see counts_on_asking().
    bool needs(std::size_t node) const {
        if (refused_to_acquire()) return false;
        const auto expected_grants = phase_ == Phase::second_half ? 0 : count_being_asked();
        for (std::size_t i = 0; i < requests_.size(); ++i) {
            // With several requests, a node that is being asked may have granted this one already, and is
            // then counted twice. If the result is false for this reason, the node is asked in second_half.
            const auto& votes = counts_[i];
            const bool enough = votes.granted + expected_grants >= needed_;
            if (includes(node, i) && is_possible(votes) && !enough) return true;
        }
        return false;
    }

    /// Returns true if the last wait can continue in spite of the events since it began. The driver then need
    /// not call next() before the end of the wait. Returns false if the events may cause another step, or an
    /// earlier end of the wait.
    bool goes_on_waiting() const noexcept {
        // A phase that asks untrusted nodes asks all of them before the wait. Other phases may ask more. If
        // the round awaits only connecting nodes, next() may have to limit their time (case 3).
        return !asks_trusted_nodes() && !awaits_only_connecting() && next_deadline().has_value();
    }

    /// Returns the node that is being asked, if there is only one and its commands were sent.
    std::optional<std::size_t> only_one_sent() const noexcept {
        const auto* const node = std::ranges::find_if(nodes_, &Participant::is_being_asked);
        if (count_being_asked() != 1 || node->stage != Stage::sent) return std::nullopt;
        return static_cast<std::size_t>(node - nodes_.begin());
    }

private:
    // ---- The state of the round

    enum class Stage : std::uint8_t { unasked, postponed, connecting, sent, over };
    enum class Phase : std::uint8_t { one_by_one, all_trusted, first_half, second_half };

    /// What the round knows of one node.
    struct Participant {
        Stage stage = Stage::over;
        bool trusted = true;  // see set_health(), on_postponed(), on_join()
        bool probe_due = false;
        bool repeated = false;        // the release is sent to this node for the second time
        bool maybe_released = false;  // the first release may have deleted the key
        bool held_back = false;       // the connection is not free for another command, see on_held_back()
        bool replied = false;         // the node has voted on a request
        bool followed_moved = false;  // see on_redirected()
        bool followed_ask = false;
        std::uint8_t unreachable = 0;  // how many of its servers could not be reached
        // All requests before this index have the vote of the node, are excluded, or do not go to the node.
        std::size_t next_reply = 0;
        Clock::time_point asked_at{};  // when the step `ask` came
        Clock::time_point deadline{};  // when the time of the node is over
        bool too_little_time = false;  // the time is less than an eighth of node_timeout

        bool can_be_asked() const noexcept { return stage == Stage::unasked || stage == Stage::postponed; }
        bool is_being_asked() const noexcept { return stage == Stage::connecting || stage == Stage::sent; }
    };

    /// What the round knows of one request, above all how many votes there are on it.
    struct Count {
        NodeSet to{};  // the nodes to which the request goes, apart from those from which it was excluded
        std::size_t granted = 0;
        std::size_t refused = 0;
        std::size_t missing = 0;  // votes that are missing, and can still come
    };

    const VerbProperties& properties() const noexcept {
        return properties_of(requests_.front().command.verb);
    }

    /// Returns how many grants each request needs.
    std::size_t grants_needed() const noexcept {
        if (properties().votes == VotesNeeded::quorum) return quorum(size_);
        return properties().votes == VotesNeeded::one ? 1 : 0;
    }

    // Constant after construction.
    const std::span<const Request> requests_;
    const RoundLimits& limits_;
    const Clock::duration node_timeout_;
    const std::span<Tally> tallies_;
    const std::size_t size_;    // the number N of nodes
    const std::size_t needed_;  // grants for each request

    Phase phase_ = Phase::all_trusted;
    std::size_t cursor_ = 0;                        // how many nodes this phase has passed
    Clock::time_point half_time_ = Clock::never();  // the end of first_half; never() in the other phases
    Clock::time_point end_ = Clock::never();        // the end of second_half
    // When the last wait began, if the deadline of an awaited node had passed then; otherwise min().
    Clock::time_point overdue_since_ = Clock::time_point::min();
    SmallVector<Participant, usual_nodes> nodes_;
    SmallVector<Count, 1> counts_;  // of each request

    std::size_t count_being_asked() const noexcept {
        const auto is_asked = [](const Participant& it) { return it.is_being_asked(); };
        return static_cast<std::size_t>(std::ranges::count_if(nodes_, is_asked));
    }

    // ---- Votes

    /// Writes the vote of the node on the request into the tally, and counts the vote.
    void record(std::size_t node, std::size_t request, const NodeVote& vote, std::string detail,
                Clock::time_point now) {
        auto& report = tallies_[request][node];
        report.vote = vote.vote;
        report.cause = vote.cause;
        report.count = vote.count;
        report.place = vote.place;
        report.took = now - nodes_[node].asked_at;
        report.detail = std::move(detail);
        auto& votes = counts_[request];
        --votes.missing;
        if (vote.vote == Vote::granted) ++votes.granted;
        if (vote.vote == Vote::refused) ++votes.refused;
    }

    /// Returns the request to which the next reply of the node belongs. If no reply is missing, returns the
    /// number of requests.
    std::size_t request_of_next_reply(std::size_t node) {
        auto& request = nodes_[node].next_reply;
        while (request < requests_.size() && !includes(node, request)) ++request;
        return request;
    }

    /// Moves the node to the stage over if no reply is missing. Returns true if it does.
    bool end_if_complete(std::size_t node) {
        if (request_of_next_reply(node) < requests_.size()) return false;
        nodes_[node].stage = Stage::over;
        return true;
    }

    /// Returns true if a node has refused the only request of an acquisition.
    bool refused_to_acquire() const noexcept {
        return effect() == KeyEffect::acquires && counts_[0].refused > 0;
    }

    /// Returns true if the node was not asked yet, and the round counts on its grant. After a refusal, an
    /// acquisition does not count on an untrusted node unless its probe is due, because such a node is
    /// probably silent. If competing clients waited for it, each of them would keep its grants meanwhile, and
    /// none would get a majority. In the step `ask`, the driver postpones this node, because needs() returns
    /// false.
    bool counts_on_asking(const Participant& it) const noexcept {
        return it.can_be_asked() && (it.trusted || it.probe_due || !refused_to_acquire());
    }

    /// Returns true if the request can get the grants that it needs. The votes of the unasked nodes on which
    /// the round does not count are missing, but these nodes will not grant. Only an acquisition has such
    /// nodes, and an acquisition has one request.
    bool is_possible(const Count& it) const noexcept {
        const auto is_never_asked = [this](const Participant& node) {
            return node.can_be_asked() && !counts_on_asking(node);
        };
        const auto never_asked = refused_to_acquire() ? std::ranges::count_if(nodes_, is_never_asked) : 0;
        return it.granted + it.missing >= needed_ + static_cast<std::size_t>(never_asked);
    }

    bool impossible() const noexcept {
        return std::ranges::none_of(counts_, [this](const Count& it) { return is_possible(it); });
    }

    bool decided() const noexcept {
        const auto is_undecided = [this](const Count& it) { return it.granted < needed_ && is_possible(it); };
        return !limits_.awaits_answers || std::ranges::none_of(counts_, is_undecided);
    }

    // ---- Awaiting

    /// Returns true if case 2 of the table of awaited nodes applies to all trusted nodes.
    bool awaits_every_trusted_node() const noexcept {
        return phase_ == Phase::one_by_one || properties().reply == ReplyForm::text ||
               (is_release() && limits_.awaits_answers);
    }

    /// Returns true if only case 3 can apply.
    bool awaits_only_connecting() const noexcept { return decided() && !awaits_every_trusted_node(); }

    /// Limits the time of the nodes in the stage connecting to that of case 3. Is called if only case 3 can
    /// apply. This also shortens the deadlines of untrusted nodes, but nobody waits for them then.
    void limit_connecting() noexcept {
        for (auto& it : nodes_)
            if (it.stage == Stage::connecting)
                it.deadline = std::min(it.deadline, it.asked_at + node_timeout_ / 8);
    }

    /// Returns true if the round awaits the node. The time of case 3 is not tested here, because
    /// limit_connecting() has put it into the deadline of the node.
    bool awaits(const Participant& it, bool is_decided) const noexcept {
        if (!it.is_being_asked()) return false;
        if (!is_decided) return true;  // case 1
        if (!it.trusted) return false;
        if (awaits_every_trusted_node()) return true;                                         // case 2
        return it.stage == Stage::connecting && properties().effect != KeyEffect::describes;  // case 3
    }

    /// Returns the earliest deadline of the awaited nodes, or nothing if no node is awaited.
    std::optional<Clock::time_point> next_deadline() const noexcept {
        std::optional<Clock::time_point> next;
        const bool is_decided = decided();
        for (const auto& it : nodes_)
            if (awaits(it, is_decided)) next = std::min(next.value_or(it.deadline), it.deadline);
        return next;
    }

    // ---- Phases

    /// Returns true if the phase asks trusted nodes, false if it asks untrusted nodes.
    bool asks_trusted_nodes() const noexcept {
        return phase_ == Phase::one_by_one || phase_ == Phase::all_trusted;
    }

    /// Returns true if the phase waits after it has asked its nodes.
    bool phase_waits(Clock::time_point now) const noexcept {
        return phase_ != Phase::all_trusted && now < half_time_;
    }

    void enter_next_phase(Clock::time_point now) noexcept {
        cursor_ = 0;
        if (phase_ == Phase::first_half) {
            phase_ = Phase::second_half;
            half_time_ = Clock::never();
            return;
        }
        phase_ = Phase::first_half;  // after one_by_one or all_trusted
        half_time_ = now + node_timeout_ / 2;
        end_ = now + node_timeout_;
    }

    // ---- Asking

    /// Returns true if the round must not ask any further node.
    bool asks_no_more(Clock::time_point now) const noexcept {
        if (is_release()) return false;
        return impossible() || limits_.stop.stop_requested() || now >= limits_.deadline;
    }

    /// Returns the next node to ask in this phase, or nothing if none may be asked now. A release goes
    /// through the nodes in reverse order, because the first node usually has the queue of waiting clients.
    /// The client that the release wakes there then finds the other nodes free.
    std::optional<std::size_t> next_to_ask(Clock::time_point now) {
        // In the phase one_by_one, a node is asked only when the round awaits no other.
        if (phase_ == Phase::one_by_one && next_deadline()) return std::nullopt;
        for (; cursor_ < size_; ++cursor_) {
            const auto node = is_release() ? size_ - 1 - cursor_ : cursor_;
            const auto& it = nodes_[node];
            if (!it.can_be_asked() || it.trusted != asks_trusted_nodes()) continue;
            if (asks_no_more(now)) return std::nullopt;
            ++cursor_;
            return node;
        }
        return std::nullopt;
    }

    /// Returns the time for the next node in the phase one_by_one: a node_timeout, or less if the caller's
    /// time is too short for a node_timeout for each node. The nodes then share the caller's time equally.
    /// Otherwise one frozen node could keep the round from asking the others.
    Clock::duration fair_share(Clock::time_point now) const {
        const auto left = std::max(limits_.deadline - now, Clock::duration::zero());
        const auto unasked =
            std::ranges::count_if(nodes_, [this](const Participant& it) { return counts_on_asking(it); });
        return std::min(node_timeout_, left / std::max<Clock::rep>(unasked, 1));
    }

    Step ask(std::size_t node, Clock::time_point now) {
        auto& it = nodes_[node];
        const auto time_for_node = phase_ == Phase::one_by_one ? fair_share(now) : node_timeout_;
        it.asked_at = now;
        it.deadline = std::min({now + time_for_node, limits_.deadline, end_});
        it.too_little_time = time_for_node < node_timeout_ / 8;
        return {.kind = Step::Kind::ask, .node = node};
    }

    // ---- Giving up

    /// Returns an awaited node whose deadline had already passed when the last wait began. Thus each node
    /// gets one wait after its deadline, and this wait ends at once. In this wait, the driver takes a reply
    /// that has come in time, but was not read because this process was suspended.
    std::optional<std::size_t> find_overdue() const noexcept {
        if (overdue_since_ == Clock::time_point::min()) return std::nullopt;
        for (std::size_t node = 0; node < size_; ++node)
            if (nodes_[node].deadline <= overdue_since_ && awaits(nodes_[node], decided())) return node;
        return std::nullopt;
    }

    /// Returns the step for an overdue node. The first row that applies decides. (The detail has conditions
    /// of its own.)
    ///
    ///     case                                             | cause       | the node has failed
    ///     -------------------------------------------------+-------------+--------------------------------
    ///     The caller does not wait for replies, so only    | not_awaited | no: the command is a clean-up,
    ///     case 3 applies.                                  |             | which is queued and will be sent
    ///     The caller's deadline has passed, or has left    | deadline    | no
    ///     the node less than an eighth of node_timeout.    |             |
    ///     The connection is ready, but on_held_back() was  | not_asked   | no
    ///     called.                                          |             |
    ///     The node has voted on some of the requests.      | timed_out   | no
    ///     otherwise                                        | timed_out   | yes
    Step give_up(std::size_t node) const noexcept {
        const auto& it = nodes_[node];
        const bool connecting = it.stage == Stage::connecting;
        const bool queued = !limits_.awaits_answers && connecting;
        const bool by_caller = it.deadline == limits_.deadline || it.too_little_time;
        const bool held_back = it.held_back && connecting;
        const auto cause = queued      ? Errc::not_awaited
                           : by_caller ? Errc::deadline
                           : held_back ? Errc::not_asked
                                       : Errc::timed_out;
        const char* detail = "";
        if (held_back)
            detail = "its connection was not free for another command";
        else if (!by_caller && it.replied)
            detail = "after it had answered others";
        else if (!by_caller && connecting)
            detail = while_connecting;
        const bool timed_out = !queued && !by_caller && !held_back && !it.replied;
        return {Step::Kind::give_up, node, timed_out, cause, detail};
    }
};

}  // namespace redlock::detail
