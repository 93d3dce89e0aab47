// Any bytes as the replies of a server, in any portions, to a Connection that sends commands meanwhile.
//
// The first byte is a bit mask for the endpoint: 1 password, 2 user and password, 4 database, 8 quarantine.
// The rest is what the server sends, except for a '`' and the letter after it:
//
//     `h  the client reads what was sent       `H  it reads like one that waits for no other node
//     `w  what was added is sent               `l  the client checks whether the connection is stale
//     `s `e `d `c `r `m  the client sends SET, extension, release, SET that counts, raise, SET of two
//     `p  it pipelines three extensions        `f  its send buffer is full except for five bytes
//     `x  the server closes the connection     `a  the server reads what the client has sent
//     `q  it sends nothing any more            ``  a '`'
//
// A7, D1: a vote is what an independent reader of the protocol concludes from the reply at its position.
// After a protocol error or an unexpected reply the connection is broken for good. D11: its report has no
// password.
#include "expectation.hpp"
#include "require.hpp"
#include "virtual_network.hpp"

#include "os/resolution.hpp"
#include "redis/connection.hpp"
#include "support/command_reader.hpp"
#include "wire/reply.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <limits>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace redlock::fuzz {
namespace {

using namespace std::chrono_literals;

const std::vector<std::string> one_resource{"orders:42"};
const std::vector<std::string> two_resources{"account:1", "account:2"};
constexpr std::string_view owner = "00112233445566778899aabbccddeeff00112233";

/// Does nothing by itself, because the input decides what it sends.
struct ManualServer final : Server {
    void accept(std::shared_ptr<Stream> accepted) override {
        stream = std::move(accepted);
        stream->connect_result = 0;
    }
    void act(Clock::time_point) override {}
    Clock::time_point next() const override { return Clock::never(); }

    std::shared_ptr<Stream> stream{};
};

NodeConfig config_of(unsigned choice) {
    NodeConfig config{.endpoint = VirtualNetwork::endpoint(0), .node_timeout = 50ms};
    if ((choice & 3U) != 0) config.endpoint.password = secret;
    if ((choice & 2U) != 0) config.endpoint.username = "worker";
    if ((choice & 4U) != 0) config.endpoint.database = 3;
    if ((choice & 8U) != 0) config.quarantine = 60s;
    return config;
}

std::deque<Expectation::Step> handshake_of(const Endpoint& endpoint) {
    std::deque<Expectation::Step> steps;
    if (!endpoint.password.empty()) steps.push_back(Expectation::Step::auth);
    if (endpoint.database != 0) steps.push_back(Expectation::Step::select);
    steps.push_back(Expectation::Step::ping);
    return steps;
}

class Conversation {
public:
    explicit Conversation(unsigned choice)
        : config_(config_of(choice)),
          client_(config_, connected(), {Resolution::of_unix_socket(config_.endpoint.unix_socket)},
                  network_.now()),
          expected_(handshake_of(config_.endpoint)) {
        require(client_.handshaking(), "connected");
        client_.advance();  // reads nothing, because nothing can have come
    }

    void add(char byte) { chunk_ += byte; }

    void act(char action) {
        switch (action) {
            case 'h': return read();
            case 'H': return read_or_wait();
            case 'w': return write();
            case 'l': return look_if_stale();
            case 's': return send({Verb::set_if_absent, one_resource, owner, 10s});
            case 'e': return send({Verb::compare_and_expire, one_resource, owner, 10s});
            case 'd': return send({Verb::compare_and_delete, one_resource, owner});
            case 'c': return send({Verb::set_and_count, one_resource, owner, 10s});
            case 'r': return send({Verb::raise_count, one_resource, owner, {}, 7});
            case 'm': return send({Verb::set_if_absent, two_resources, owner, 10s});
            case 'p': return send_three_in_one_go();
            case 'f': stream().room = std::min<std::size_t>(stream().room, 5); return;
            case 'a': return server_reads();
            case 'x': return disconnect();
            case 'q': return finish();
            default: return add(action);
        }
    }

    /// Reads the rest twice, because a broken connection must stay broken, and the end must be noticed.
    void end() {
        server_reads();
        read();
        read();
        server_reads();
        if (stream().finished) require(client_.broken(), "broken when the server has hung up");
        if (!client_.broken()) require(arrived_ == expected_.sent_in_all(), "all that was sent arrives");
    }

private:
    Network& connected() {
        network_.add(server_);
        return network_;
    }
    Stream& stream() { return *server_.stream; }

    // ---- The server

    void write() {
        if (!stream().finished) stream().to_client += chunk_, under_way_ += chunk_;
        all_sent_ += std::exchange(chunk_, {});
    }

    void server_reads() {
        stream().room = std::numeric_limits<std::size_t>::max();
        if (stream().closed_by_server) return;
        reader_.take(std::exchange(stream().to_server, {}), [this](const auto&) { ++arrived_; });
        require(!reader_.blind(), "commands are arrays of strings");
        require(arrived_ <= expected_.sent_in_all(), "nothing is sent twice");
    }

    void disconnect() {
        finish();
        stream().closed_by_server = true;
    }

    void finish() {
        write();
        stream().finished = true;
    }

    // ---- The client

    void read() {
        write();
        client_.advance();
        compare();
    }

    void read_or_wait() {
        write();
        client_.ready() ? client_.blocking_receive() : client_.advance();
        compare();
    }

    void look_if_stale() {
        if (client_.broken()) return;
        require(client_.has_input_or_end() == (stream().finished || !under_way_.empty()),
                "stale if there is something to read, or an end");
    }

    void send(const Command& command) { send(std::vector{command}); }

    void send_three_in_one_go() {
        send(std::vector(3, Command{Verb::compare_and_expire, one_resource, owner, 10s}));
    }

    void send(std::vector<Command> commands) {
        const bool release = commands.front().verb == Verb::compare_and_delete;
        if (client_.ready() && client_.pending().none()) fetch_run_id_for(commands.front());
        if (!client_.ready() && !(release && client_.handshaking())) return;
        leave();
        commands_ = std::move(commands);
        client_.send(commands_, round_);
        expected_.sent(commands_.size());
        if (stream().to_client.empty()) compare();  // if it could not write, it has read
    }

    void fetch_run_id_for(const Command& command) {
        client_.fetch_run_id(command);
        if (!client_.handshaking()) return;
        leave();
        expected_.asked_for_run_id();
    }

    /// The replies to the commands that were sent last are not awaited any more.
    void leave() {
        client_.pending().stop_awaiting(round_);
        answers_.clear();
    }

    // ---- Both

    void compare() {
        expected_.received(std::exchange(under_way_, {}));
        while (const auto* const answer = client_.pending().take_answer(round_)) answers_.push_back(*answer);
        if (client_.broken()) check_reported();
        if (was_broken_) require(client_.broken(), "broken for good");
        was_broken_ = client_.broken();
        if (!stream().finished && !expected_.ambiguous()) check_as_expected();
        if (!client_.broken()) take_answers();
    }

    void check_reported() const {
        const auto& detail = client_.detail();
        if (!config_.endpoint.password.empty()) require_no_secret(detail);
        require(static_cast<bool>(client_.cause()), "broken for a cause");
        require(
            detail.size() <= 200 && std::ranges::all_of(detail, [](char c) { return c >= ' ' && c <= '~'; }),
            "a line for a report");
    }

    void check_as_expected() const {
        require(client_.broken() == expected_.broken(), "broken after a protocol error, and only then");
        if (client_.broken()) return;
        require(client_.ready() == expected_.ready(), "ready after the handshake");
        require(client_.pending().count() == expected_.pending(), "what was not answered is pending");
        require(answers_.size() == expected_.answers().size(),
                "what was sent last is answered, as far as it is");
    }

    void take_answers() {
        if (commands_.size() == 1 && !answers_.empty() &&
            answers_.front().is_form_refused(answers_.front().reply)) {
            const auto sent = [this](const char* words) {
                return all_sent_.find(words) != std::string::npos;
            };
            require(sent("-NOSCRIPT") || sent("-NOPERM") || sent("-ERR unknown command"),
                    "the server said so");
            answers_.clear();
            client_.send(commands_, round_);
            return expected_.sent(1);
        }
        for (std::size_t i = 0; i < answers_.size() && !client_.broken(); ++i) check_vote(i);
    }

    void check_vote(std::size_t which) {
        const auto& command = commands_[which];
        const auto& answer = answers_[which].reply;
        const bool scripted = answers_[which].script != nullptr;
        const auto [vote, cause, count, place, maybe_executed] = detail::to_vote(command, answer, scripted);
        if (expected_.ambiguous())
            require(vote != Vote::granted || could_grant(command, scripted), "granted in so many words");
        else
            require(vote == vote_of(command, scripted, expected_.answers().at(which)),
                    "the vote is what the server replied");
        require(count == 0 || vote != Vote::unknown, "a count comes with a vote");
        require(maybe_executed || vote == Vote::unknown, "no vote without an execution");
        if (!config_.endpoint.password.empty()) require_no_secret(client_.quoted(answer.text));
        if (cause != Errc::unexpected_reply) return;
        client_.fail(Errc::unexpected_reply, client_.quoted(answer.text));
        expected_.failed();
    }

    static Vote vote_of(const Command& command, bool scripted, const RedisReply& reply) {
        if (!scripted) {
            if (reply == RedisReply::of_status("OK")) return Vote::granted;
            return reply == RedisReply{} ? Vote::refused : Vote::unknown;
        }
        const auto effect = detail::effect_of(command);
        const bool needs_our_key =
            effect == detail::KeyEffect::extends || effect == detail::KeyEffect::releases;
        const auto& words = reply.text;
        if (needs_our_key && reply.is_error() && words.substr(0, words.find(' ')) == "WRONGTYPE" &&
            !words.ends_with(" holds no marker"))
            return Vote::refused;
        if (reply.kind != RedisReply::Kind::integer) return Vote::unknown;
        const bool counted = command.verb == Verb::set_and_count && reply.integer > 0;
        const bool too_far = command.verb == Verb::raise_count && reply.integer < 0;
        if (reply.integer == 1 || counted) return Vote::granted;
        return reply.integer == 0 || too_far ? Vote::refused : Vote::unknown;
    }

    bool could_grant(const Command& command, bool scripted) const {
        if (!scripted) return all_sent_.find("+OK\r\n") != std::string::npos;
        const bool counts = command.verb == Verb::set_and_count;
        return all_sent_.find(counts ? ":" : ":1\r\n") != std::string::npos;
    }

    const NodeConfig config_;
    ManualServer server_{};
    VirtualNetwork network_{};
    Connection client_;
    const struct Round final : detail::Requester { Round() = default; } round_{};
    std::vector<Command> commands_{};              // the last ones sent
    std::vector<detail::PendingReply> answers_{};  // to them
    bool was_broken_ = false;

    std::string chunk_{};      // to be sent
    std::string under_way_{};  // sent, and not yet read
    std::string all_sent_{};   // by the server
    support::CommandReader reader_{};
    std::size_t arrived_ = 0;  // commands

    Expectation expected_;
};

void converse(std::string_view input) {
    if (input.empty()) return;
    Conversation conversation{static_cast<unsigned char>(input.front())};
    for (std::size_t i = 1; i < input.size(); ++i)
        if (input[i] == '`' && i + 1 < input.size())
            conversation.act(input[++i]);
        else
            conversation.add(input[i]);
    conversation.end();
}

}  // namespace
}  // namespace redlock::fuzz

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    redlock::fuzz::converse({reinterpret_cast<const char*>(data), size});
    return 0;
}
