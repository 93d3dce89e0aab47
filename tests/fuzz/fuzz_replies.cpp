// Any bytes as the answers of a server, in any portions, to a Connection that sends commands meanwhile.
//
// The first byte chooses the endpoint: 1 password, 2 user and password, 4 database, 8 quarantine. What
// follows is what the server says, but for a '`' and the letter behind it:
//
//     `h  the client reads what was said       `H  it reads as one that waits for nobody else
//     `w  what was said goes out               `l  the client looks whether the connection is stale
//     `s `e `d `c `r `m  the client sends SET, extension, release, SET that counts, raise, SET of two
//     `p  it sends three extensions in one go  `a  the server reads what the client has sent
//     `x  it hangs up                          `q  it says nothing any more
//     ``  a '`'
//
// A7, D1: a vote is what an independent reader of the protocol makes of the reply in its place, and after
// nonsense, or a reply too many, the connection is broken for good. D11: what it reports has no password.
#include "claim.hpp"
#include "listener.hpp"
#include "reply_reader.hpp"

#include "os/resolution.hpp"
#include "redis/connection.hpp"
#include "redis/reply.hpp"
#include "redis/request.hpp"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace redlock::fuzz {
namespace {

using namespace std::chrono_literals;

const std::vector<std::string> one_resource{"orders:42"};
const std::vector<std::string> two_resources{"account:1", "account:2"};
constexpr std::string_view owner = "00112233445566778899aabbccddeeff00112233";

/// What a connection must have made of the replies by now.
class Expectation {
public:
    enum class Step : std::uint8_t { auth, select, ping, server, replication };

    explicit Expectation(std::deque<Step> greeting)
        : greeting_(std::move(greeting)), owed_(greeting_.size()) {}

    void identified() {
        greeting_ = {Step::server, Step::replication};
        owed_ += 2;
        awaited_ = 0;
        answers_.clear();
    }
    void sent(std::size_t commands = 1) {
        owed_ += commands;
        awaited_ = commands;
        answers_.clear();
    }
    void broken_off() { broken_ = true; }

    void heard(std::string_view bytes) {
        reader_.take(bytes);
        for (Said said; !broken_ && !doubtful_;) switch (reader_.next(said)) {
                case Reading::reply: take(said); break;
                case Reading::incomplete: return;
                case Reading::nonsense: broken_ = true; break;
                case Reading::doubtful: doubtful_ = true; break;
            }
    }

    bool ready() const { return !broken_ && greeting_.empty(); }
    bool broken() const { return broken_; }
    bool doubtful() const { return doubtful_; }
    std::size_t owed() const { return owed_; }
    const std::vector<Said>& answers() const { return answers_; }

private:
    void take(const Said& said) {
        if (owed_ == 0) {
            broken_ = true;
            return;
        }
        --owed_;
        if (!greeting_.empty()) return take_greeting(said);
        if (owed_ < awaited_) answers_.push_back(said);
    }

    void take_greeting(const Said& said) {
        const auto step = greeting_.front();
        greeting_.pop_front();
        broken_ = !introduces(step, said);
    }

    static bool introduces(Step step, const Said& said) {
        const auto value_of = [&](const std::string& name) {
            const auto at = said.text.find(name);
            if (at == std::string::npos || said.kind != Said::Kind::text) return std::string{};
            const auto begin = at + name.size();
            return said.text.substr(begin, said.text.find_first_of("\r\n", begin) - begin);
        };
        if (step == Step::server) return !value_of("run_id:").empty();
        if (step == Step::replication) return value_of("role:") == "master";
        if (said.kind == Said::Kind::error) return step == Step::ping && said.first_word() == "NOPERM";
        return said.kind == Said::Kind::status;
    }

    ReplyReader reader_{};
    std::deque<Step> greeting_;
    std::size_t owed_;
    std::size_t awaited_ = 0;
    bool broken_ = false;
    bool doubtful_ = false;
    std::vector<Said> answers_{};
};

Endpoint endpoint_of(const Listener& listener, unsigned choice) {
    Endpoint endpoint{.unix_socket = listener.path()};
    if ((choice & 3U) != 0) endpoint.password = secret;
    if ((choice & 2U) != 0) endpoint.username = "worker";
    if ((choice & 4U) != 0) endpoint.database = 3;
    return endpoint;
}

std::deque<Expectation::Step> greeting_of(const Endpoint& endpoint) {
    std::deque<Expectation::Step> steps;
    if (!endpoint.password.empty()) steps.push_back(Expectation::Step::auth);
    if (endpoint.database != 0) steps.push_back(Expectation::Step::select);
    steps.push_back(Expectation::Step::ping);
    return steps;
}

class Conversation {
public:
    Conversation(const Listener& listener, unsigned choice)
        : endpoint_(endpoint_of(listener, choice)),
          quarantine_((choice & 8U) != 0 ? 60s : 0s),
          client_(endpoint_, nullptr, Resolution::of_unix_socket(endpoint_.unix_socket), 0, 1ms, quarantine_,
                  {}),
          server_(listener.accept()),
          expected_(greeting_of(endpoint_)) {
        claim(server_ >= 0 && client_.greeting(), "connected");
    }
    ~Conversation() {
        if (server_ >= 0) ::close(server_);
    }
    Conversation(const Conversation&) = delete;
    Conversation& operator=(const Conversation&) = delete;

    void say(char byte) { chunk_ += byte; }

    void act(char action) {
        switch (action) {
            case 'h': return hear();
            case 'H': return hear_nobody_else();
            case 'w': return write();
            case 'l': return look_if_stale();
            case 's': return send({Verb::set_if_absent, one_resource, owner, 10s});
            case 'e': return send({Verb::compare_and_expire, one_resource, owner, 10s});
            case 'd': return send({Verb::compare_and_delete, one_resource, owner});
            case 'c': return send({Verb::set_and_count, one_resource, owner, 10s});
            case 'r': return send({Verb::raise_count, one_resource, owner, {}, 7});
            case 'm': return send({Verb::set_if_absent, two_resources, owner, 10s});
            case 'p': return send_three_in_one_go();
            case 'a': return server_reads();
            case 'x': return hang_up();
            case 'q': return fall_silent();
            default: return say(action);
        }
    }

    /// The rest is heard, and once more: what is broken stays broken.
    void end() {
        hear();
        hear();
    }

private:
    // ---- The server

    void write() {
        if (server_ < 0 || silent_ || chunk_.empty()) return;
        const auto sent = ::send(server_, chunk_.data(), chunk_.size(), MSG_NOSIGNAL);
        if (!client_.broken())
            claim(sent == static_cast<ssize_t>(chunk_.size()), "there is room for what is said");
        if (sent > 0) under_way_ += chunk_;
        said_ += chunk_;
        chunk_.clear();
    }

    void server_reads() const {
        std::array<char, 4'096> bytes;
        while (server_ >= 0 && ::read(server_, bytes.data(), bytes.size()) > 0) continue;
    }

    void hang_up() {
        write();
        if (server_ >= 0) ::close(server_);
        server_ = -1;
        gone_ = true;
    }

    void fall_silent() {
        write();
        if (server_ >= 0) ::shutdown(server_, SHUT_WR);
        silent_ = true;
        gone_ = true;
    }

    // ---- The client

    void hear() {
        write();
        client_.advance();
        compare();
    }

    void hear_nobody_else() {
        write();
        if (under_way_.empty() || !client_.ready()) return hear();  // it would wait in vain
        client_.wait_for_more();
        compare();
    }

    void look_if_stale() {
        if (client_.broken()) return;
        const bool stale = client_.gone_stale();
        claim(stale == (gone_ || !under_way_.empty()), "stale if there is something to read, or an end");
    }

    void send(const Command& command) {
        const bool release = command.verb == Verb::compare_and_delete;
        if (client_.ready() && client_.owed() == 0) identify_for(command);
        if (!client_.ready() && !(release && client_.greeting())) return;
        command_ = command;
        in_one_go_ = false;
        client_.send(command_);
        expected_.sent();
        if (gone_) compare();  // where it could not write, it has read
    }

    void send_three_in_one_go() {
        command_ = {Verb::compare_and_expire, one_resource, owner, 10s};
        if (client_.ready() && client_.owed() == 0) identify_for(command_);
        if (!client_.ready()) return;
        in_one_go_ = true;
        client_.send_all(std::vector(3, command_));
        expected_.sent(3);
        if (gone_) compare();
    }

    void identify_for(const Command& command) {
        client_.identify_for(command);
        if (client_.greeting()) expected_.identified();
    }

    // ---- Both

    void compare() {
        expected_.heard(under_way_);
        under_way_.clear();
        if (client_.broken()) claim_reported();
        if (was_broken_) claim(client_.broken(), "broken for good");
        was_broken_ = client_.broken();
        if (!gone_ && !expected_.doubtful()) claim_as_expected();
        if (client_.answer() && !client_.broken()) take_answer();
    }

    void claim_reported() const {
        const auto& detail = client_.detail();
        if (!endpoint_.password.empty()) claim_no_secret(detail);
        claim(static_cast<bool>(client_.cause()), "broken for a cause");
        claim(
            detail.size() <= 200 && std::ranges::all_of(detail, [](char c) { return c >= ' ' && c <= '~'; }),
            "a line for a report");
    }

    void claim_as_expected() const {
        claim(client_.broken() == expected_.broken(), "broken after nonsense, and only then");
        if (client_.broken()) return;
        claim(client_.ready() == expected_.ready(), "ready when it is greeted");
        claim(client_.owed() == expected_.owed(), "owes what was not answered");
        claim(client_.answers().size() == expected_.answers().size(),
              "what was sent last is answered, as far as it is");
    }

    void take_answer() {
        if (!in_one_go_ && client_.script_is_unknown()) {
            claim(said_.find("-NOSCRIPT") != std::string::npos, "the server said so");
            client_.send_whole(command_);
            return expected_.sent();
        }
        for (std::size_t i = 0; i < client_.answers().size() && !client_.broken(); ++i) judge(i);
    }

    void judge(std::size_t which) {
        const auto& answer = client_.answers()[which];
        const auto [vote, cause, count] = wire::judge(command_, answer, client_.scripted());
        if (expected_.doubtful())
            claim(vote != Vote::granted || could_grant(), "granted in so many words");
        else
            claim(vote == vote_of(expected_.answers().at(which)), "the vote is what the server said");
        const bool raises = command_.verb == Verb::raise_count;
        claim(count == 0 || vote == (raises ? Vote::refused : Vote::granted), "a count comes with a grant");
        if (!endpoint_.password.empty()) claim_no_secret(client_.quoted(answer.text));
        if (cause != Errc::unexpected_reply) return;
        client_.break_off(Errc::unexpected_reply, client_.quoted(answer.text));
        expected_.broken_off();
    }

    Vote vote_of(const Said& said) const {
        const bool count = command_.verb == Verb::set_and_count && said.integer > 0;
        if (!client_.scripted()) {
            if (said.is_status("OK")) return Vote::granted;
            return said.kind == Said::Kind::nil ? Vote::refused : Vote::unknown;
        }
        if (said.kind != Said::Kind::integer) return Vote::unknown;
        if (said.integer == 1 || count) return Vote::granted;
        const bool own_count = command_.verb == Verb::raise_count && said.integer < 0;
        return said.integer == 0 || own_count ? Vote::refused : Vote::unknown;
    }

    bool could_grant() const {
        if (!client_.scripted()) return said_.find("+OK\r\n") != std::string::npos;
        const bool counts = command_.verb == Verb::set_and_count;
        return said_.find(counts ? ":" : ":1\r\n") != std::string::npos;
    }

    Endpoint endpoint_;
    std::chrono::milliseconds quarantine_;
    Connection client_;
    bool in_one_go_ = false;
    Command command_{};
    bool was_broken_ = false;

    int server_;
    bool silent_ = false;
    bool gone_ = false;        // the server has hung up, or says nothing any more
    std::string chunk_{};      // to be said
    std::string under_way_{};  // said, and not yet read
    std::string said_{};       // all of it

    Expectation expected_;
};

void converse(std::string_view input) {
    static const Listener listener{"server"};
    if (input.empty()) return;
    Conversation conversation{listener, static_cast<unsigned char>(input.front())};
    for (std::size_t i = 1; i < input.size(); ++i)
        if (input[i] == '`' && i + 1 < input.size())
            conversation.act(input[++i]);
        else
            conversation.say(input[i]);
    conversation.end();
}

}  // namespace
}  // namespace redlock::fuzz

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    redlock::fuzz::converse({reinterpret_cast<const char*>(data), size});
    return 0;
}
