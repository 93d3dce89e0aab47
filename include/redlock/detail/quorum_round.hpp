// Decides the course of one round over N nodes: which node is asked when, how long the round waits for it,
// and when the votes have decided. This class has no sockets, no clock and no mutex of its own.
//
// Words that are explained at length in other files:
//
//     node               one of the N Redis masters that vote. This file knows only its index.
//     request            A command and the nodes that it goes to. The *verb* is the kind of the command. A
//                        round has one request, or several extensions: a watchdog extends several leases in
//                        one round.
//     vote               A node grants or refuses a request, or its vote stays unknown. A request mostly
//                        needs the grants of a quorum, which is a majority of the N nodes. The votes have
//                        *decided* when each request either has these grants or cannot get them any more.
//     trusted            The client expects the node to answer in time, because it has not failed since it
//                        last answered (node_health.hpp).
//     back-off, probe    After a failure the node is in back-off: the client leaves it alone for a pause.
//                        When the pause is over, a probe is due: one round may try to reach the node again.
//     check out, in      The class Node (src/redis/node.hpp) keeps the connections of this client to one
//                        node. The driver takes a connection from it (checks it out), and later gives it
//                        back (checks it in). During back-off Node gives a connection only in the cases that
//                        are listed below the phases. Otherwise the node is *left alone*.
//     node_timeout       the time that one node may take in a round, including the making of a connection
//     waiter, home node  A waiter is a client that waits until a resource is free. Its home node keeps the
//                        queue in which it waits.
//     holder description a text that the holder of a lock leaves beside the lock for people to read
//
// Other files decide what a reply means (reply.hpp), whether a node is trusted (node_health.hpp), which
// connection a command is sent on (src/redis/node.hpp), and whether two nodes are the same server
// (duplicate_server_check.hpp).
//
// RoundDriver (src/redis/round_driver.hpp) owns the connections. It executes the steps that next() returns,
// and reports each event:
//
//     using Kind = redlock::detail::QuorumRound::Step::Kind;
//     for (;;) {
//         const auto step = round.next(clock.now());
//         if (step.kind == Kind::ask) check_out(step.node);     // then on_check_out() or on_left_alone()
//         if (step.kind == Kind::give_up) check_in(step.node);  // the time of this node is over
//         if (step.kind == Kind::wait) wait(step.until);        // or until an event is reported
//         if (step.kind == Kind::done) break;
//     }
//
// The stages of one node. The transitions are the events that the driver reports, and the step give_up. In
// the stages unasked to sent, the driver can also report end() → over.
//
//     stage      | meaning                                     | transitions
//     -----------+---------------------------------------------+-------------------------------------------
//     uninvolved | no request goes to the node                 |
//     unasked    | the round has not asked the node yet        | on_check_out() → connecting
//                |                                             | on_left_alone() → left_alone
//                |                                             | exclude() of its last request → over
//     left_alone | the node is in back-off, and there was no   | as unasked; the round may ask the node
//                | connection to it                            | once more
//     connecting | a connection was checked out, but no byte   | on_sent() → sent
//                | of the commands can have reached the node   | on_failed(), give_up → over
//     sent       | a byte of the commands may have reached the | the last on_vote() → over
//                | node                                        | on_failed(), give_up → over
//     over       | its votes are known, or will stay unknown   |
//
// Two events need more words:
//
// - exclude(): the commands of several requests are written on one connection. If the SET of an owner is
//   still pending on another connection to the node, the extension of this owner could overtake the SET. The
//   driver then excludes this request from the node. The other requests are sent.
// - on_failed() of a release whose connection broke returns true once: the commands must be *repeated*. The
//   driver checks out another connection at once. It reports on_check_out() → connecting. If there is no
//   connection, it reports on_left_alone() and end() → over.
//
// A node in the stage connecting or sent *is being asked*. The round *awaits* some of these nodes: it does
// not end before they have replied, have failed, or are out of time. It awaits a node that is being asked in
// three cases:
//
// 1. The votes have not decided yet, that is, a missing vote can still change the outcome.
// 2. The node is trusted, and the round is a sequential acquisition in the phase in_turn, a query, or a
//    release whose caller waits for the replies. Such a round awaits the node even if the votes have decided.
// 3. The node is trusted, and its commands have not been sent yet. If the votes have decided and case 2 does
//    not apply, the time for the connection is limited to an eighth of node_timeout after the node was asked.
//    If such a node were skipped, the lock could be on a bare majority, and could not survive the loss of
//    another node. The wait is the same if the votes have decided against the lock. A round that writes a
//    holder description does not wait for connections, because the description is only for people.
//
// If nobody waits for the replies (RoundLimits::awaits_answers is false), the votes count as decided from the
// beginning.
//
// The life of the whole round. It passes through several phases, and each phase asks first and then waits:
//
//     state    | meaning                                   | transitions
//     ---------+-------------------------------------------+------------------------------------------------
//     asking   | next() returns the step ask for one node  | no node of the phase is left to ask → waiting
//              | of the phase after the other              | in_turn: a node was just asked → waiting
//     waiting  | next() returns the step wait, and the     | in_turn: no node is awaited → asking
//              | step give_up for each awaited node whose  | the phase ends → asking, in the next phase
//              | time is over                              | second_half ends → over
//     over     | next() returns the step done              |
//
// When the round is over, nodes can still be in the stage connecting or sent, because the round does not
// await them. The driver reports end() for them. The phases, in their order:
//
//     phase       | nodes that are asked                        | ends
//     ------------+---------------------------------------------+-------------------------------------------
//     in_turn     | the trusted nodes; each one when the        | when all of them were asked and none is
//                 | previous one is not awaited any more        | awaited
//     all_trusted | the trusted nodes, all at once              | when all of them were asked; it does not
//                 |                                             | wait
//     first_half  | the untrusted nodes, all at once            | half a node_timeout after first_half began,
//                 |                                             | or earlier if no node is awaited
//     second_half | the nodes that were left alone, once more   | when no node is awaited, but at the latest
//                 |                                             | a node_timeout after first_half began
//
// A sequential acquisition (Round::sequential in nodes.hpp) skips all_trusted. All other rounds skip in_turn.
//
// A phase asks no further nodes if a quorum has become impossible, a stop was requested, or the deadline of
// the caller has passed. A release is sent to all its nodes in any case.
//
// The driver can check out a connection to a node in back-off in four cases: the probe of the node is due,
// the outcome of the round depends on the node (see needs()), the command is a release, or the command must
// follow a pending one on the same connection. Otherwise the node is left alone. It is asked once more in
// second_half, because the outcome may depend on it by then: the nodes that have not replied in first_half
// are no longer counted as possible grants.
//
// Within a phase, a release asks the nodes in reverse order, and every other round in the configured order.
// The first node is mostly the home node of the waiters. The release on the home node wakes the next waiter,
// which should find the other nodes free.
#pragma once

#include <redlock/clock.hpp>
#include <redlock/detail/verbs.hpp>
#include <redlock/error.hpp>
#include <redlock/nodes.hpp>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

namespace redlock::detail {

/// The meaning of a reply as a vote; see NodeReport for the fields.
struct NodeVote {
    Vote vote = Vote::unknown;
    std::error_code cause{};
    std::uint64_t count = 0;
    QueuePlace place{};
};

/// One round; the head of this file explains it.
class QuorumRound {
    /// See the first table at the head of this file.
    enum class Stage : std::uint8_t { uninvolved, unasked, left_alone, connecting, sent, over };

    /// See the third table at the head of this file. The phases that ask trusted nodes come first.
    enum class Phase : std::uint8_t { in_turn, all_trusted, first_half, second_half };

    /// Which of the nodes that are being asked the round awaits although the votes have decided. Before that,
    /// it awaits all of them.
    enum class Awaited : std::uint8_t {
        trusted_nodes,    ///< The trusted nodes: case 2 at the head of this file.
        connecting_nodes  ///< The trusted nodes to which nothing was sent yet: case 3.
    };

public:
    /// What the driver has to do next.
    struct Step {
        enum class Kind : std::uint8_t { ask, give_up, wait, done };
        Kind kind = Kind::done;
        std::size_t node = 0;       ///< For ask and give_up: the index of the node.
        bool timed_out = false;     ///< For give_up: true if the node itself was too slow.
        const char* detail = "";    ///< For give_up: a text for the report, such as "while connecting".
        Clock::time_point until{};  ///< For wait: the instant at which the wait ends at the latest.
    };

    /// Begins a round. Requires at least one request. All must have the same verb. The requests, the limits
    /// and the tallies must outlive the round. `round_order` says whether an acquisition asks the trusted
    /// nodes one after the other (sequential) or all at once. Its type is called Round although it is only
    /// this order, because programs use the name. `node_timeout` is the time of one node, and `nodes` is N.
    /// The votes on each request are written into the tally with the same index.
    QuorumRound(std::span<const Request> requests, const RoundLimits& limits, Clock::duration node_timeout,
                Round round_order, std::size_t nodes, std::span<Tally> tallies)
        : requests_(requests),
          limits_(limits),
          node_timeout_(node_timeout),
          tallies_(tallies),
          size_(nodes),
          needed_(votes_needed()),
          release_(effect() == KeyEffect::releases) {
        if (requests_.size() > 1) many_.resize(requests_.size());
        for (std::size_t i = 0; i < requests_.size(); ++i)
            for (std::size_t node = 0; node < size_; ++node)
                if (requests_[i].to[node]) {
                    nodes_[node].stage = Stage::unasked;
                    ++counts()[i].pending;
                }
        if (effect() == KeyEffect::acquires && round_order == Round::sequential) phase_ = Phase::in_turn;
    }
    QuorumRound(const QuorumRound&) = delete;
    QuorumRound& operator=(const QuorumRound&) = delete;

    /// Sets whether the node is trusted, and if not, whether its next probe is due. Must be called before the
    /// first step.
    void set_health(std::size_t node, bool trusted, bool probe_due) noexcept {
        nodes_[node].trusted = trusted;
        nodes_[node].probe_due = probe_due;
    }

    // ---- Steps

    /// Returns the next step. The driver must execute it and report its events before the next call.
    Step next(Clock::time_point now) {
        if (const auto node = find_overdue()) return give_up(*node, now);
        for (;;) {
            if (const auto node = next_to_ask(now)) return ask(*node, now);
            if (phase_waits(now)) {
                if (awaited_ == Awaited::connecting_nodes && decided()) cap_connect_time();
                const auto until = next_deadline();
                if (until) {
                    last_check_at_ = now;
                    return {.kind = Step::Kind::wait, .until = std::min(*until, phase_end())};
                }
            }
            if (phase_ == Phase::second_half) return {.kind = Step::Kind::done};
            enter_next_phase(now);
        }
    }

    /// Returns true if the outcome of a request depends on this node. Such a node is asked even if it is in
    /// back-off. Two things must hold:
    ///
    /// - A quorum is possible if every node that has not voted yet grants, also the nodes that are not asked.
    /// - A quorum is impossible if only the nodes that are being asked grant. In the phase second_half, even
    ///   these are not counted: they have had half a node_timeout by then, and are probably silent.
    ///
    /// Returns false for an acquisition that some node has refused.
    bool needs(std::size_t node) const {
        const auto possible_grants = phase_ == Phase::second_half ? 0 : count_being_asked();
        for (std::size_t i = 0; i < requests_.size(); ++i) {
            const auto& votes = counts()[i];
            const bool can_win = votes.granted + votes.pending >= needed_;
            if (includes(node, i) && can_win && votes.granted + possible_grants < needed_ &&
                !refused_to_acquire())
                return true;
        }
        return false;
    }

    /// Returns the node that is being asked, if there is only one and its commands were sent. The driver can
    /// then read from its connection alone, without poll().
    std::optional<std::size_t> only_one_sent() const noexcept {
        const auto node = std::ranges::find_if(all(), &Participant::is_being_asked);
        if (count_being_asked() != 1 || node->stage != Stage::sent) return std::nullopt;
        return static_cast<std::size_t>(node - all().begin());
    }

    KeyEffect effect() const noexcept { return properties().effect; }
    bool is_release() const noexcept { return release_; }
    bool awaits_answers() const noexcept { return limits_.awaits_answers; }
    bool is_connecting(std::size_t node) const noexcept { return nodes_[node].stage == Stage::connecting; }
    bool is_sent(std::size_t node) const noexcept { return nodes_[node].stage == Stage::sent; }
    bool is_being_asked(std::size_t node) const noexcept { return nodes_[node].is_being_asked(); }
    bool is_repeated(std::size_t node) const noexcept { return nodes_[node].repeated; }

    /// Returns true if the round has not asked the node, and the node is in back-off. There was no connection
    /// to such a node (the stage left_alone), or the other votes decided before it was the turn of the node.
    bool is_left_alone(std::size_t node) const noexcept {
        return nodes_[node].can_be_asked() && !nodes_[node].trusted;
    }
    std::span<const Request> requests() const noexcept { return requests_; }

    /// Returns true if the request goes to the node and was not excluded.
    bool includes(std::size_t node, std::size_t request) const {
        const auto& excluded = nodes_[node].excluded;
        return requests_[request].to[node] && std::ranges::find(excluded, request) == excluded.end();
    }

    /// Returns the command to which the next reply of the node belongs. Requires that a command of the node
    /// is unanswered.
    const Command& command_of_next_reply(std::size_t node) {
        return requests_[request_of_next_reply(node)].command;
    }

    // ---- Events

    /// Records that the driver could not check out a connection, because the node is in back-off.
    void on_left_alone(std::size_t node) noexcept {
        nodes_[node].stage = Stage::left_alone;
        nodes_[node].trusted = false;
        changed_ = true;
    }

    /// Records that the driver has checked out a connection to the node, which may still be in the making.
    /// `worth_waiting_for` is mostly true if the node is trusted. There are exceptions: for example, a new
    /// connection for a release is worth waiting for although the node is in back-off (src/redis/node.cpp).
    /// From now on the node counts as trusted in this round if it is true, and otherwise as untrusted.
    void on_check_out(std::size_t node, bool worth_waiting_for) noexcept {
        nodes_[node].stage = Stage::connecting;
        nodes_[node].trusted = worth_waiting_for;
        changed_ = true;
    }

    /// Records that the connection to the node is ready, but that the driver may not write on it yet, because
    /// replies to other rounds are pending there.
    void on_held_back(std::size_t node) noexcept { nodes_[node].held_back = true; }

    /// Excludes a request that was meant for the node, so that it is not sent to this node; the head of this
    /// file gives the reason. Must be called before on_sent(). Returns false if no request is left for the
    /// node.
    bool exclude(std::size_t node, std::size_t request, std::string why, Clock::time_point now) {
        count(node, request, {.cause = Errc::not_asked}, std::move(why), now);
        nodes_[node].excluded.push_back(request);
        ++nodes_[node].settled;
        return !end_if_settled(node);
    }

    /// Records that a byte of the commands may reach the node from now on.
    void on_sent(std::size_t node) {
        nodes_[node].stage = Stage::sent;
        for (std::size_t i = 0; i < requests_.size(); ++i)
            if (includes(node, i)) tallies_[i][node].sent = true;
    }

    /// Records that the node has answered the command command_of_next_reply() with this vote. Returns true if
    /// this was the last answer of the node.
    bool on_vote(std::size_t node, const NodeVote& vote, std::string detail, Clock::time_point now) {
        auto& it = nodes_[node];
        count(node, request_of_next_reply(node), vote, std::move(detail), now);
        ++it.next_reply;
        ++it.settled;
        return end_if_settled(node);
    }

    /// Records that the node has failed with this cause. `disconnected` is true if its connection is broken.
    /// It is false if the connection works but must not be used, because the same server already answers for
    /// another node. Returns true if the commands must be sent again over another connection; the stage of
    /// the node does not change then. A release is repeated once if the connection broke, because the failure
    /// may concern only this connection, and a second deletion does no harm. No other command is repeated,
    /// because its caller gets a report of the failure, and makes another attempt if it wants.
    bool on_failed(std::size_t node, std::error_code cause, const std::string& detail, bool disconnected,
                   Clock::time_point now) {
        auto& it = nodes_[node];
        if (is_release() && disconnected && !it.repeated && now < it.deadline) {
            it.repeated = true;
            return true;
        }
        end(node, cause, detail, now);
        return false;
    }

    /// Ends the part that the node has in this round. The votes that the node has not given stay unknown, and
    /// their reports get this cause.
    void end(std::size_t node, std::error_code cause, const std::string& detail, Clock::time_point now) {
        auto& it = nodes_[node];
        // Nothing was sent to a node that was not asked, so its report shows no time. There is one exception:
        // a release was sent, its connection broke, and there was no other connection to repeat it on.
        const bool asked = !it.can_be_asked() || it.repeated;
        if (!asked) it.start = now;
        it.stage = Stage::over;
        changed_ = true;
        for (auto& request = it.next_reply; request < requests_.size(); ++request)
            if (includes(node, request)) {
                count(node, request, {.cause = cause}, detail, now);
                // The cause not_asked means that the node could not be asked although it had not failed.
                tallies_[request][node].left_alone = !asked && cause != Errc::not_asked;
            }
    }

private:
    /// What the round knows of one node.
    struct Participant {
        Stage stage = Stage::uninvolved;
        bool trusted = true;
        bool probe_due = false;
        bool repeated = false;       // its release is sent a second time
        bool held_back = false;      // its connection is ready, but replies to other rounds are pending there
        bool cut_short = false;      // the caller left it too little time: its silence means nothing
        std::size_t next_reply = 0;  // the request of its next reply, or an excluded one in front of that
        std::size_t settled = 0;     // the number of requests that were answered or excluded
        std::vector<std::size_t> excluded{};
        Clock::time_point start{};     // when the round asked the node
        Clock::time_point deadline{};  // when the time of the node is over

        bool can_be_asked() const noexcept { return stage == Stage::unasked || stage == Stage::left_alone; }
        bool is_being_asked() const noexcept { return stage == Stage::connecting || stage == Stage::sent; }
    };

    /// The votes on one request.
    struct Count {
        std::size_t granted = 0;
        std::size_t refused = 0;
        std::size_t pending = 0;  // nodes that can still grant
    };

    const VerbProperties& properties() const noexcept {
        return properties_of(requests_.front().command.verb);
    }

    /// Returns how many grants decide a request: mostly a quorum, which is a majority of the N nodes. A
    /// waiter that enters the queue needs the grant of its home node alone. A query and a holder description
    /// need no grant: a query wants every answer whatever it is, and a description is only for people.
    std::size_t votes_needed() const noexcept {
        switch (properties().votes) {
            case VotesNeeded::quorum: return quorum(size_);
            case VotesNeeded::one: return 1;
            case VotesNeeded::none: break;
        }
        return 0;
    }

    /// Returns the request to which the next reply of the node belongs.
    std::size_t request_of_next_reply(std::size_t node) {
        auto& request = nodes_[node].next_reply;
        while (!includes(node, request)) ++request;
        return request;
    }

    // ---- Asking

    /// Returns the next node to ask in this phase. Returns nothing if there is none, or if the node that was
    /// asked before it is still awaited in the phase in_turn.
    std::optional<std::size_t> next_to_ask(Clock::time_point now) {
        const bool trusted = phase_ <= Phase::all_trusted;
        if (phase_ == Phase::in_turn && next_deadline()) return std::nullopt;
        for (; cursor_ < size_; ++cursor_) {
            const auto node = is_release() ? size_ - 1 - cursor_ : cursor_;
            if (!nodes_[node].can_be_asked() || nodes_[node].trusted != trusted) continue;
            if (asks_no_more(now)) return std::nullopt;
            ++cursor_;
            return node;
        }
        return std::nullopt;
    }

    /// Begins the time of a node, and returns the step that asks it.
    Step ask(std::size_t node, Clock::time_point now) {
        auto& it = nodes_[node];
        const auto time_for_node = phase_ == Phase::in_turn ? fair_share(now) : node_timeout_;
        it.start = now;
        it.deadline = std::min({now + time_for_node, limits_.deadline, end_});
        it.cut_short = time_for_node < node_timeout_ / 8;
        return {.kind = Step::Kind::ask, .node = node};
    }

    /// Returns the time for the next node in turn. If the caller's time is too short to give every node its
    /// whole node_timeout, all nodes get the same part. Otherwise one node that hangs could keep the others
    /// from being asked.
    Clock::duration fair_share(Clock::time_point now) const {
        const auto left = std::max(limits_.deadline - now, Clock::duration::zero());
        const auto unasked =
            std::ranges::count_if(all(), [this](const Participant& it) { return worth_asking(it); });
        return std::min(node_timeout_, left / std::max<Clock::rep>(unasked, 1));
    }

    /// Returns true if the round asks no further nodes: a quorum is impossible, a stop was requested, or the
    /// deadline has passed. A release goes to every node, whatever the others have answered.
    bool asks_no_more(Clock::time_point now) {
        if (is_release()) return false;
        return impossible() || limits_.stop.stop_requested() || now >= limits_.deadline;
    }

    void enter_next_phase(Clock::time_point now) noexcept {
        cursor_ = 0;
        changed_ = true;
        if (phase_ == Phase::first_half) {
            phase_ = Phase::second_half;
            return;
        }
        phase_ = Phase::first_half;
        const bool every = (is_release() && limits_.awaits_answers) || properties().awaits_every_trusted_node;
        awaited_ = every ? Awaited::trusted_nodes : Awaited::connecting_nodes;
        half_time_ = now + node_timeout_ / 2;
        end_ = now + node_timeout_;
    }

    // ---- Waiting

    /// Returns true if the phase waits after it has asked its nodes, and has not ended yet.
    bool phase_waits(Clock::time_point now) const noexcept {
        return phase_ != Phase::all_trusted && (phase_ != Phase::first_half || now < half_time_);
    }

    Clock::time_point phase_end() const noexcept {
        return phase_ == Phase::first_half ? half_time_ : Clock::never();
    }

    /// Returns true if the round awaits this node. The three cases are at the head of this file.
    bool awaits(const Participant& it) {
        if (!it.is_being_asked()) return false;
        const bool unsent = it.stage == Stage::connecting && effect() != KeyEffect::describes;
        return (it.trusted && (unsent || awaited_ == Awaited::trusted_nodes)) || !decided();
    }

    /// Returns the earliest deadline of the nodes that the round awaits; nothing if it awaits none.
    std::optional<Clock::time_point> next_deadline() {
        std::optional<Clock::time_point> next;
        for (const auto& it : all())
            if (awaits(it)) next = std::min(next.value_or(it.deadline), it.deadline);
        return next;
    }

    /// Limits the time of the nodes to which nothing was sent yet to an eighth of node_timeout. It is called
    /// when the votes have decided (case 3 at the head of this file).
    void cap_connect_time() noexcept {
        for (auto& it : all())
            if (it.stage == Stage::connecting)
                it.deadline = std::min(it.deadline, it.start + node_timeout_ / 8);
    }

    /// Returns an awaited node whose time is over. The deadline is compared with the instant at which the
    /// driver last began to look for replies, and not with the present. If this process is delayed, a reply
    /// that came in time thus counts although it is read after the deadline.
    std::optional<std::size_t> find_overdue() {
        for (std::size_t node = 0; node < size_; ++node)
            if (nodes_[node].deadline <= last_check_at_ && awaits(nodes_[node])) return node;
        return std::nullopt;
    }

    /// Ends the part of a node whose time is over, and returns the step that gives this node up.
    Step give_up(std::size_t node, Clock::time_point now) {
        const auto& it = nodes_[node];
        const bool by_caller = it.deadline == limits_.deadline || it.cut_short;
        // If nobody waits for the replies and the node is awaited nevertheless, the command is a release, see
        // awaits(). cap_connect_time() has left the node only an eighth of node_timeout to connect, so the
        // node is not known to be slow. The driver has queued the release on the connection. The connection
        // sends the release as soon as it can, also after this round.
        const bool queued = !limits_.awaits_answers && it.stage == Stage::connecting;
        // A node that has answered some of the commands is alive, so it has not failed. A later round repeats
        // the commands that it has not answered.
        const bool alive = it.settled > it.excluded.size();
        const bool held_back = it.held_back && it.stage == Stage::connecting;
        // The detail of a node that was held back is worth reporting whatever the cause is.
        const char* detail = "";
        if (held_back)
            detail = "too many replies are pending on its connection";
        else if (!by_caller && alive)
            detail = "after it had answered others";
        else if (!by_caller && it.stage == Stage::connecting)
            detail = "while connecting";
        const auto cause = queued      ? Errc::not_awaited
                           : by_caller ? Errc::deadline
                           : held_back ? Errc::not_asked
                                       : Errc::timed_out;
        end(node, cause, detail, now);
        const bool timed_out = !by_caller && !alive && !queued && !held_back;
        return {.kind = Step::Kind::give_up, .node = node, .timed_out = timed_out, .detail = detail};
    }

    // ---- Counting

    /// Writes the vote of a node on a request into its report, and counts it.
    void count(std::size_t node, std::size_t request, const NodeVote& vote, std::string detail,
               Clock::time_point now) {
        auto& report = tallies_[request][node];
        report.vote = vote.vote;
        report.cause = vote.cause;
        report.count = vote.count;
        report.place = vote.place;
        report.took = now - nodes_[node].start;
        report.detail = std::move(detail);
        auto& votes = counts()[request];
        --votes.pending;
        if (vote.vote == Vote::granted) ++votes.granted;
        if (vote.vote == Vote::refused) ++votes.refused;
        changed_ = true;
    }

    /// Ends the part of a node if all its requests are answered or excluded. Returns whether they are.
    bool end_if_settled(std::size_t node) noexcept {
        auto& it = nodes_[node];
        auto& request = it.next_reply;
        while (request < requests_.size() && !includes(node, request)) ++request;
        if (request < requests_.size()) return false;
        it.stage = Stage::over;
        return true;
    }

    /// Returns the number of nodes that are being asked.
    std::size_t count_being_asked() const noexcept {
        return static_cast<std::size_t>(std::ranges::count_if(all(), &Participant::is_being_asked));
    }

    /// Returns true if some node has refused an acquisition, which always has exactly one request.
    bool refused_to_acquire() const noexcept {
        return effect() == KeyEffect::acquires && counts().front().refused > 0;
    }

    /// Returns true if the round may go on for the sake of this node. If an acquisition was refused because
    /// another client holds the resource on some node, it goes on for an untrusted node only if the probe of
    /// this node is due. Otherwise the round would often wait for the untrusted node until its node_timeout
    /// is over. If several clients collide, each of them would keep its grants during this wait, and none of
    /// them would get a majority.
    bool worth_asking(const Participant& it) const noexcept {
        return it.can_be_asked() && (it.trusted || it.probe_due || !refused_to_acquire());
    }

    /// Returns true if every request is bound to miss the grants that it needs.
    bool impossible() {
        recount();
        return impossible_ == requests_.size();
    }
    /// Returns true if the missing votes cannot change the outcome, or if nobody waits for them.
    bool decided() {
        recount();
        return undecided_ == 0 || !limits_.awaits_answers;
    }

    /// Counts the requests that are undecided and those that have become impossible, if anything has changed.
    /// A pending vote is no possible grant if the node is not worth asking. There are such nodes only in an
    /// acquisition, which has one request, so they are all nodes of this request. (The two sides of the
    /// comparison are sums because a difference of unsigned numbers could not be negative.)
    void recount() {
        if (!std::exchange(changed_, false)) return;
        const auto never_asked = static_cast<std::size_t>(std::ranges::count_if(
            all(), [this](const Participant& it) { return it.can_be_asked() && !worth_asking(it); }));
        undecided_ = 0;
        impossible_ = 0;
        for (const auto& it : counts()) {
            const bool possible = it.granted + it.pending >= needed_ + never_asked;
            if (!possible) ++impossible_;
            if (possible && it.granted < needed_) ++undecided_;
        }
    }

    std::span<Participant> all() noexcept { return {nodes_.data(), size_}; }
    std::span<const Participant> all() const noexcept { return {nodes_.data(), size_}; }
    std::span<Count> counts() noexcept { return many_.empty() ? std::span{&one_, 1} : std::span{many_}; }
    std::span<const Count> counts() const noexcept {
        return many_.empty() ? std::span{&one_, 1} : std::span{many_};
    }

    // Constant after construction.
    const std::span<const Request> requests_;
    const RoundLimits& limits_;
    const Clock::duration node_timeout_;
    const std::span<Tally> tallies_;
    const std::size_t size_;
    const std::size_t needed_;  // the number of grants that decide
    const bool release_;

    Phase phase_ = Phase::all_trusted;
    Awaited awaited_ = Awaited::trusted_nodes;
    std::size_t cursor_ = 0;                                      // how many nodes this phase has looked at
    Clock::time_point half_time_ = Clock::never();                // the end of first_half
    Clock::time_point end_ = Clock::never();                      // the end of second_half
    Clock::time_point last_check_at_ = Clock::time_point::min();  // when the driver last looked for replies
    std::array<Participant, max_nodes> nodes_{};

    Count one_{};                // for a single request, so that no memory is allocated
    std::vector<Count> many_{};  // for several requests
    bool changed_ = true;        // true if undecided_ and impossible_ are out of date
    std::size_t undecided_ = 0;
    std::size_t impossible_ = 0;
};

}  // namespace redlock::detail
