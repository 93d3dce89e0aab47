#include "sentinel_query.hpp"

#include <redlock/detail/not_copied.hpp>
#include <redlock/error.hpp>

#include "../round/cluster_map.hpp"
#include "../wire/causes.hpp"
#include "connection.hpp"

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <string_view>
#include <system_error>
#include <vector>

namespace redlock {
namespace {

/// The longest time for which the Sentinels are queried, so that no answer is older when the connection to
/// the server is begun. See `max_sentinel_silence`.
constexpr std::chrono::seconds longest{1};

bool are_same(const SentinelAnswer& one, const SentinelAnswer& other) {
    return (!one.id.empty() && one.id == other.id) || (!one.address.empty() && one.address == other.address);
}

/// Returns for each entry the index of the first entry that is the same Sentinel. Two entries are also the
/// same if both equal a third one.
std::vector<std::size_t> sentinels_of(std::span<const SentinelAnswer> answers) {
    std::vector<std::size_t> result;
    for (std::size_t i = 0; i < answers.size(); ++i) {
        result.push_back(i);
        for (std::size_t other = 0; other < i; ++other)
            if (are_same(answers[i], answers[other])) {
                const auto [first, later] = std::minmax({result[i], result[other]});
                std::ranges::replace(result, later, first);
            }
    }
    return result;
}

/// The answers of all entries of one Sentinel, combined.
struct SentinelVote {
    bool refused = false;
    std::set<std::string> masters{};  // several if it contradicts itself
};

}  // namespace

SentinelCount count_sentinels(std::span<const SentinelAnswer> answers) {
    const auto sentinels = sentinels_of(answers);
    std::map<std::size_t, SentinelVote> votes;
    for (std::size_t i = 0; i < answers.size(); ++i) {
        auto& vote = votes[sentinels[i]];
        vote.refused = vote.refused || answers[i].refused;
        if (!answers[i].master.empty()) vote.masters.insert(answers[i].master);
    }
    SentinelCount result{.sentinels = votes.size()};
    std::map<std::string, std::size_t> votes_for;
    std::size_t refusing = 0;
    for (const auto& [first, vote] : votes) {
        if (!vote.masters.empty()) ++result.named;
        if (vote.masters.empty() && vote.refused) ++refusing;
        if (vote.masters.size() != 1) continue;
        const auto& master = *vote.masters.begin();
        if (++votes_for[master] * 2 > result.sentinels) result.master = master;
    }
    result.refused_for_good = (result.sentinels - refusing) * 2 <= result.sentinels;
    return result;
}

namespace {

/// One query of all Sentinels of a node. It belongs to one thread, which ends after the query.
class SentinelQuery : detail::NotCopied {
public:
    /// Starts connecting to all Sentinels of `node`.
    SentinelQuery(const NodeConfig& node, const std::stop_token& stop, Network& network)
        : node_(node),
          stop_(stop),
          network_(network),
          deadline_(network_.clock().now() + std::min<Clock::duration>(node.node_timeout, longest)),
          answers_(node.sentinels->size()) {
        for (const auto& sentinel : *node.sentinels)
            entries_.push_back({.config = &sentinel,
                                .answer = answers_[entries_.size()],
                                .connection = std::make_unique<Connection>(
                                    sentinel, network_,
                                    Server::Addresses{sentinel.find_server(), sentinel.first_address->load()},
                                    network_.clock().now())});
    }

    /// Frees what OpenSSL keeps for this thread. If the process is exiting already, the thread must not end
    /// while OpenSSL is being taken down. Then the thread stays until its owner asks it to stop.
    ~SentinelQuery() {
        entries_.clear();
        const bool uses_tls =
            std::ranges::any_of(*node_.sentinels, [](const auto& it) { return it.tls != nullptr; });
        if (!uses_tls || TlsContext::leave_thread()) return;
        while (!stop_.stop_requested()) {
            const auto now = network_.clock().now();
            network_.wait({}, now, now + std::chrono::hours{1}, stop_);
        }
    }

    /// Asks all Sentinels until a majority has named the same server, no answer is missing, or the time is
    /// over.
    Resolution::Found run() {
        for (;;) {
            for (auto& it : entries_)
                if (it.connection) advance(it);
            const auto counted = count_sentinels(answers_);
            if (!counted.master.empty()) return resolve(counted.master);
            std::vector<PollEntry> waited_for;
            for (const auto& it : entries_)
                if (it.connection) waited_for.push_back(it.connection->poll_entry());
            const auto now = network_.clock().now();
            if (now >= deadline_)
                for (auto& it : entries_)
                    if (it.connection) give_up_silent(it);
            if (waited_for.empty() || now >= deadline_ || stop_.stop_requested()) return failure(counted);
            network_.wait(waited_for, now, deadline_, stop_);
        }
    }

private:
    enum class Step : std::uint8_t { connecting, my_id, run_id, master };

    struct Entry {
        const NodeConfig* config;
        SentinelAnswer& answer;
        std::unique_ptr<Connection> connection{};  // null once there is nothing more to learn
        Step step = Step::connecting;
    };

    // ---- One Sentinel. If there are several entries, it is first asked for its id, so that duplicates are
    // found. Then it is asked for the server.

    /// Continues with one Sentinel: connects, asks the first question, or takes a reply.
    void advance(Entry& entry) {
        auto& connection = *entry.connection;
        connection.advance();
        if (connection.next_address() > 0)
            entry.answer.address = connection.resolution().address_bytes(connection.present_address());
        if (connection.broken())
            return give_up(entry, connection.cause(),
                           connection.cause().message() + " (" + connection.detail() + ")");
        if (!connection.ready()) return;
        if (entry.step == Step::connecting) {
            *entry.config->first_address = connection.present_address();
            return ask(entry, entries_.size() > 1 ? Step::my_id : Step::master);
        }
        if (connection.pending().answer()) take_reply(entry);
    }

    void ask(Entry& entry, Step step) {
        using Words = std::vector<std::string_view>;
        entry.step = step;
        entry.connection->send_words(
            step == Step::my_id    ? Words{"SENTINEL", "MYID"}
            : step == Step::run_id ? Words{"INFO", "server"}
                                   : Words{"SENTINEL", "GET-MASTER-ADDR-BY-NAME", node_.endpoint.master});
    }

    /// Takes the reply to the last question. A Sentinel before Redis 6.2 does not know MYID, and a user may
    /// be permitted neither MYID nor INFO. Then only the address identifies the Sentinel.
    void take_reply(Entry& entry) {
        const auto reply = entry.connection->pending().answer()->reply;
        const bool is_text = reply.kind == detail::Reply::Kind::text;
        if (entry.step == Step::master) return take_master(entry, reply);
        if (entry.step == Step::my_id && !is_text) return ask(entry, Step::run_id);
        if (is_text)
            entry.answer.id = entry.step == Step::my_id
                                  ? reply.text
                                  : std::string{detail::line_of_info(reply.text, "run_id:")};
        ask(entry, Step::master);
    }

    void take_master(Entry& entry, const detail::Reply& reply) {
        const auto& connection = *entry.connection;
        if (reply.kind == detail::Reply::Kind::error) {
            const std::string hint{detail::hint_for(reply)};
            return give_up(entry, detail::cause_of(reply),
                           connection.quoted(reply.text) + (hint.empty() ? "" : "; " + hint));
        }
        if (reply.kind != detail::Reply::Kind::list || reply.text.empty())
            return give_up(entry, {},
                           reply.kind == detail::Reply::Kind::nil ? "does not know the master"
                                                                  : connection.quoted(reply.text));
        entry.answer.master = reply.text;
        entry.connection.reset();
    }

    void give_up_silent(Entry& entry) {
        const auto& connection = *entry.connection;
        give_up(entry, Errc::timed_out,
                make_error_code(Errc::timed_out).message() +
                    (connection.was_ready() ? "" : " (" + connection.unfinished_step() + ")"));
    }

    /// Stores why a Sentinel has not named a server, and closes its connection. If the connection never got
    /// ready, its address may be dead, so the next query begins with another.
    void give_up(Entry& entry, std::error_code cause, const std::string& why) {
        if (entry.connection->has_shortage())
            cause_ = shortage();
        else if (!entry.connection->was_ready())
            *entry.config->first_address = entry.connection->next_address();
        if (cause == Errc::authentication_failed || cause == Errc::permission_denied) {
            refusal_ = cause;
            entry.answer.refused = true;
        }
        reasons_ += "; " + entry.config->endpoint.name() + ": " + why;
        entry.connection.reset();
    }

    // ---- All of them

    /// Resolves `master`, which is a host and a port in separate lines. The host may be a name, if the
    /// Sentinels announce names.
    Resolution::Found resolve(std::string_view master) {
        const std::string host{master.substr(0, master.find('\n'))};
        const auto text = master.substr(std::min(master.size(), host.size() + 1));
        const auto port = detail::whole_number<std::uint16_t>(text);
        if (!port || *port == 0)
            return {.error =
                        "the Sentinels name something that is not an address: " + detail::printable(master)};
        const auto resolution = Resolution::of_host(host, *port);
        for (auto now = network_.clock().now(); !resolution->done(); now = network_.clock().now()) {
            if (now >= deadline_ || stop_.stop_requested())
                return {.error = "the host name from the Sentinels was not resolved in time: " +
                                 detail::printable(host)};
            PollEntry entry{.fd = resolution->fd()};
            network_.wait({&entry, 1}, now, deadline_, stop_);
        }
        return {.addresses = resolution->addresses(),
                .error = "the master that the Sentinels name, " + detail::printable(host) + ": " +
                         resolution->error(),
                .cause = resolution->cause()};
    }

    /// Returns the reasons of all Sentinels. If no majority is possible without the Sentinels that refuse the
    /// login, the cause is their refusal, which is permanent. Otherwise it is a shortage if this has hit the
    /// connection to any Sentinel.
    Resolution::Found failure(const SentinelCount& count) const {
        return {.error = "of " + std::to_string(count.sentinels) + " Sentinels " +
                         std::to_string(count.named) + " named a master, and no majority the same" + reasons_,
                .cause = count.refused_for_good ? refusal_ : cause_};
    }

    const NodeConfig& node_;
    const std::stop_token& stop_;
    Network& network_;
    const Clock::time_point deadline_;
    std::vector<SentinelAnswer> answers_;  // of the entries
    std::vector<Entry> entries_{};
    std::string reasons_{};
    std::error_code refusal_{};
    std::error_code cause_ = Errc::connection_failed;  // without a refusal
};

}  // namespace

Resolution::Found query_sentinels(const NodeConfig& node, const std::stop_token& stop, Network& network) {
    return SentinelQuery{node, stop, network}.run();
}

}  // namespace redlock
