// Servers in memory behind sockets in memory, in virtual time, for the real nodes, connections and rounds.
//
//     MemoryNetwork network{3};
//     NodeGroup nodes{network.configs(), {}, network};
//     network.server(0).paused = true;          // accepts commands, but executes them later
//     ...
//     network.server(0).log();                  // "1 PING", "1 SET", "1 EVAL": the connection and the command
#pragma once

#include "manual_clock.hpp"
#include "seeded_entropy.hpp"
#include "support/command_reader.hpp"
#include "support/matchers.hpp"
#include "support/redis_model.hpp"
#include "support/script_calls.hpp"

#include "os/network.hpp"
#include "redis/connection.hpp"

#include <netinet/in.h>

#include <algorithm>
#include <cerrno>
#include <deque>
#include <exception>
#include <functional>
#include <initializer_list>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace redlock::test {

/// What a server with too many clients sends before it closes a new connection (MemoryServer::last_words).
inline constexpr const char* too_many_clients = "-ERR max number of clients reached\r\n";

/// Returns the names n0, n1 and so on.
inline Tally::Names names_of(std::size_t nodes) {
    std::vector<std::string> names;
    for (std::size_t i = 0; i < nodes; ++i) names.push_back("n" + std::to_string(i));
    return std::make_shared<const std::vector<std::string>>(std::move(names));
}

/// While an object of this class exists, servers and the network allocate memory, and not the client. Only
/// the outermost object of several counts.
struct OutsideTheClient : detail::NotCopied {
    static inline void (*entered_or_left)() = nullptr;
    OutsideTheClient() {
        if (entered_or_left && depth++ == 0) entered_or_left();
    }
    ~OutsideTheClient() {
        if (entered_or_left && --depth == 0) entered_or_left();
    }

private:
    static inline int depth = 0;
};

using support::argument;
using support::script_of;

/// Returns a name for what a command asks a server to do.
inline std::string verb_of(const support::CommandReader::Words& words) {
    using namespace detail::scripts;
    const auto* const script = script_of(words);
    if (!script) return words[0];
    if (script == &acquire) {
        const bool counts = !argument(words, 5).empty();
        if (argument(words, 4).empty()) return counts ? "count" : "set all";
        return counts ? "leave and count" : "leave and set";
    }
    if (script == &release) {
        if (!argument(words, 3).empty()) return "rest";
        return argument(words, 5).empty() ? "delete all" : "wake";
    }
    const std::array<std::pair<const detail::Script*, const char*>, 12> names{{
        {&compare_and_delete, "delete"},
        {&compare_and_expire, "expire"},
        {&extend, "expire all"},
        {&raise_counts, "raise"},
        {&reader_acquire, "share"},
        {&reader_extend, "stay"},
        {&reader_release, "leave"},
        {&reader_raise_counts, "raise as reader"},
        {&enter_queue, "enter"},
        {&describe_holder, "note"},
        {&detail::scripts::query, "query"},
        {&exist, "which"},
    }};
    return std::ranges::find(names, script, [](const auto& it) { return it.first; })->second;
}

/// A server, and its behaviour towards clients.
class MemoryServer {
public:
    bool refuses = false;          ///< refuses connections
    bool unreachable = false;      ///< connections never become established
    bool swallows = false;         ///< connections that are begun now never become established
    bool paused = false;           ///< commands are executed after resume()
    std::size_t pauses_after = 0;  ///< it becomes paused when it has executed so many commands; 0: never
    bool cut_off = false;          ///< sent bytes stay in the client's kernel until reach_again()
    std::size_t takes_at_once = 65'536;  ///< bytes in each millisecond
    std::string instead{};               ///< the bytes that replace the reply to the next command
    using Words = support::CommandReader::Words;
    /// For some kinds of commands, the bytes that answer them. They are not carried out. A kind is the first
    /// word or verb_of(), or empty for all other kinds.
    std::map<std::string, std::string> answers{};
    std::function<std::string(const Words&)>
        refuses_command{};  ///< the bytes that answer a command which is not carried out; empty if it is
    std::function<void(const Words&)> before_command{};  ///< is called before a command is carried out
    std::function<bool(const Words&)>
        hides_reply{};  ///< true if the connection ends after the command was carried out, without a reply
    std::string last_words{};  ///< if not empty, these bytes answer a new connection, which is then closed
    Clock::duration latency = 1ms;
    bool counts_listeners = false;  ///< the user of the client may use PUBSUB NUMSUB
    std::size_t writes = 0;         ///< how often a client has written
    std::size_t reads = 0;          ///< how often a client has read something
    std::size_t vain_reads = 0;     ///< how often a client has read although there was nothing to read
    std::shared_ptr<support::RedisModel> redis{};

    /// Both ends of a connection.
    struct Wire {
        std::size_t number = 0;
        bool closed = false;     // by the server
        bool forgotten = false;  // a device on the way swallows what comes
        std::string unsent{};
        support::CommandReader reader{std::string::npos};
        std::deque<Words> commands{};
        std::string channel{};  // the channel that it is subscribed to
        std::string replies{};
        Clock::time_point readable = Clock::never();
    };

    std::shared_ptr<Wire> accept(Clock::time_point now) {
        wires_.push_back(std::make_shared<Wire>());
        auto& wire = *wires_.back();
        wire.number = wires_.size();
        wire.replies = last_words;
        wire.closed = !last_words.empty();
        if (wire.closed) wire.readable = now;
        return wires_.back();
    }

    void receive(Wire& wire, std::string_view bytes, Clock::time_point now) {
        ++writes;
        if (wire.forgotten) return;
        if (cut_off) {
            wire.unsent += bytes;
            return;
        }
        wire.reader.take(bytes, [&](auto words) { wire.commands.push_back(std::move(words)); });
        if (!paused) execute(wire, now);
    }

    void resume(Clock::time_point now) {
        paused = false;
        for (const auto& wire : wires_) execute(*wire, now);
    }

    void reach_again(Clock::time_point now) {
        cut_off = false;
        for (const auto& wire : wires_) receive(*wire, std::exchange(wire->unsent, {}), now);
    }

    void close_connections(Clock::time_point now) {
        for (const auto& wire : wires_) close(*wire, now);
    }

    /// Turns the current connections into black holes, as a NAT does that has forgotten them. Later ones
    /// work.
    void forget_connections() {
        for (const auto& wire : wires_) wire->forgotten = true;
    }

    /// Forgets all subscriptions, as if their connections led to another server.
    void forget_subscriptions() {
        for (const auto& wire : wires_) wire->channel.clear();
    }

    /// Returns each executed command after the number of its connection.
    const std::vector<std::string>& log() const { return log_; }
    void forget_log() {
        log_.clear();
        executed_.clear();
    }
    struct Executed {
        Words words;
        Clock::time_point when;
        std::size_t number;  ///< counted over all servers of a network
    };
    const std::vector<Executed>& executed() const { return executed_; }
    std::size_t* counter = nullptr;  ///< for this number

    /// Sends a message to the subscribers. Returns how many there are.
    std::size_t publish(std::string_view channel, std::string_view message, Clock::time_point now) {
        std::size_t heard = 0;
        for (const auto& wire : wires_) {
            if (wire->channel != channel || wire->closed || wire.use_count() == 1) continue;
            if (!wire->forgotten) answer(*wire, array_of({"message", channel, message}), now);
            ++heard;
        }
        return heard;
    }
    std::size_t connections() const { return wires_.size(); }
    std::size_t open_connections() const {
        return static_cast<std::size_t>(
            std::ranges::count_if(wires_, [](const auto& it) { return !it->closed && it.use_count() > 1; }));
    }

private:
    void execute(Wire& wire, Clock::time_point now) {
        for (; !wire.commands.empty() && !wire.closed && !paused; wire.commands.pop_front()) {
            const auto& words = wire.commands.front();
            paused = pauses_after > 0 && --pauses_after == 0;
            log_.push_back(std::to_string(wire.number) + " " + words.front());
            executed_.push_back({words, now, counter ? (*counter)++ : 0});
            if (before_command) before_command(words);
            if (auto refusal = refusal_of(words); !refusal.empty()) {
                answer(wire, std::move(refusal), now);
                continue;
            }
            auto reply = words.front() == "SUBSCRIBE" ? subscribe(wire, words.at(1)) : execute(words, now);
            if (hides_reply && hides_reply(words)) {
                close(wire, now);
                continue;
            }
            answer(wire, instead.empty() ? std::move(reply) : std::exchange(instead, {}), now);
        }
    }

    std::string refusal_of(const Words& words) const {
        if (!answers.empty())
            for (const auto& kind : {words.front(), verb_of(words), std::string{}})
                if (const auto it = answers.find(kind); it != answers.end()) return it->second;
        return refuses_command ? refuses_command(words) : std::string{};
    }

    /// Returns how many connections are subscribed to the channel.
    std::size_t listeners_of(std::string_view channel) const {
        return static_cast<std::size_t>(std::ranges::count_if(wires_, [&](const auto& it) {
            return it->channel == channel && !it->closed && it.use_count() > 1;
        }));
    }

    std::string execute(const Words& words, Clock::time_point now) {
        redis->on_publish([&](auto channel, auto message) { return publish(channel, message, now); });
        if (counts_listeners) redis->on_numsub([this](auto channel) { return listeners_of(channel); });
        const auto wall = std::chrono::duration_cast<support::RedisModel::Time>(now.time_since_epoch());
        return support::to_resp(redis->execute(words, wall));
    }

    static std::string subscribe(Wire& wire, const std::string& channel) {
        wire.channel = channel;
        return array_of({"subscribe", channel, "1"});
    }

    static std::string array_of(std::initializer_list<std::string_view> texts) {
        std::vector<support::RedisReply> elements;
        for (const auto text : texts) elements.push_back(support::RedisReply::of_bulk(std::string{text}));
        return support::to_resp(support::RedisReply::of_array(std::move(elements)));
    }

    void answer(Wire& wire, std::string reply, Clock::time_point now) const {
        wire.replies += reply;
        wire.readable = std::min(wire.readable, now + latency);
    }

    void close(Wire& wire, Clock::time_point now) {
        wire.closed = true;
        wire.readable = std::min(wire.readable, now + latency);
    }

    std::vector<std::shared_ptr<Wire>> wires_;
    std::vector<std::string> log_;
    std::vector<Executed> executed_;
};

class MemorySocket final : public Socket {
public:
    /// The sockets of a network that exist, by their descriptors.
    using Open = std::map<int, const MemorySocket*>;

    MemorySocket(Open& open, int fd, MemoryServer& server, ManualClock& clock, Clock::duration longest_wait)
        : server_(server), clock_(clock), longest_wait_(longest_wait), open_(open), fd_(fd) {
        open_.emplace(fd, this);
    }
    ~MemorySocket() override {
        const OutsideTheClient outside;
        open_.erase(fd_);
    }

    int fd() const noexcept override { return fd_; }
    std::optional<int> connect_result() noexcept override {
        const OutsideTheClient outside;
        if (server_.unreachable || swallowed_) return std::nullopt;
        if (server_.refuses) return ECONNREFUSED;
        if (!wire_) wire_ = server_.accept(clock_.now());
        return 0;
    }
    std::ptrdiff_t send(std::string_view bytes) override {
        const OutsideTheClient outside;
        if (wire_->closed) return -EPIPE;
        if (clock_.now() < writable_) return -EAGAIN;
        const auto taken = bytes.substr(0, server_.takes_at_once);
        if (taken.size() < bytes.size()) writable_ = clock_.now() + 1ms;
        server_.receive(*wire_, taken, clock_.now());
        return static_cast<std::ptrdiff_t>(taken.size());
    }
    std::ptrdiff_t receive(std::span<char> bytes, Wait wait) override {
        const OutsideTheClient outside;
        if (wait == Wait::yes && !has_input())
            clock_.advance_to(std::min(wire_->readable, clock_.now() + longest_wait_));
        if (!has_input()) {
            ++server_.vain_reads;
            return -EAGAIN;
        }
        ++server_.reads;
        const auto count = std::min(bytes.size(), wire_->replies.size());
        wire_->replies.copy(bytes.data(), count);
        wire_->replies.erase(0, count);
        if (wire_->replies.empty() && !wire_->closed) wire_->readable = Clock::never();
        return static_cast<std::ptrdiff_t>(count);
    }
    bool has_input() const noexcept override { return wire_ && clock_.now() >= wire_->readable; }
    void drop_unsent() noexcept override {
        if (wire_) wire_->unsent.clear();
    }

    /// Returns when the awaited event happens.
    Clock::time_point ready_at(bool writes) const {
        if (!wire_) return server_.unreachable || swallowed_ ? Clock::never() : clock_.now();
        return writes ? std::min(std::max(clock_.now(), writable_), wire_->readable) : wire_->readable;
    }

private:
    MemoryServer& server_;
    ManualClock& clock_;
    const Clock::duration longest_wait_;
    Open& open_;
    const int fd_;
    const bool swallowed_ = server_.swallows;
    Clock::time_point writable_{};
    std::shared_ptr<MemoryServer::Wire> wire_{};
};

/// A task without a thread: it runs whenever something waits or time passes. As in a BackgroundThread, an
/// exception ends the task until the next start().
class MemoryTask final : public BackgroundTask {
public:
    MemoryTask(ManualClock& clock, Function function) : clock_(clock), function_(std::move(function)) {}
    void start() noexcept override {
        const OutsideTheClient outside;
        call_after(0s);
    }

private:
    /// Cancels a pending call, and schedules the next one.
    void call_after(Clock::duration span) {
        latest_ = std::make_shared<int>();
        clock_.after(span, [this, call = std::weak_ptr{latest_}] {
            if (call.expired()) return;
            auto next = Clock::never();
            try {
                next = function_(clock_.now());
            } catch (const std::exception&) {  // NOLINT(bugprone-empty-catch): no memory
            }
            const OutsideTheClient outside;
            if (next < Clock::never()) call_after(next - clock_.now());
        });
    }

    ManualClock& clock_;
    const Function function_;
    std::shared_ptr<int> latest_{};  // the pending call
};

/// Returns a node with the addresses of the first two servers. They are found like those of a master.
inline NodeConfig at_two_addresses(NodeConfig node) {
    node.sentinels = std::make_shared<const std::vector<NodeConfig>>(1);
    node.asks_sentinels = [] {
        const auto address = [](std::uint16_t port) {
            return Resolution::of_host("127.0.0.1", port)->addresses().front();
        };
        return Resolution::known({.addresses = {address(1), address(2)}});
    };
    return node;
}

class MemoryNetwork final : public Network, detail::NotCopied {
public:
    explicit MemoryNetwork(std::size_t servers) : servers_(servers) {
        for (std::size_t i = 0; i < servers; ++i) {
            servers_[i].redis = std::make_shared<support::RedisModel>("run-" + std::to_string(i));
            servers_[i].counter = &commands_;
        }
    }

    bool has_no_descriptor = false;  ///< no socket can be opened

    MemoryServer& server(std::size_t index) { return servers_[index]; }
    void pass(Clock::duration span) { clock_.advance_to(clock_.now() + span); }
    /// Lets the server execute its pending commands, and waits for its replies.
    void resume(std::size_t index) {
        servers_[index].resume(clock_.now());
        pass(servers_[index].latency);
    }

    /// Returns the value of the key on a server, or null if there is none.
    const auto* find(std::size_t index, const std::string& key) {
        const auto wall = clock_.now().time_since_epoch();
        return servers_[index].redis->find(key, std::chrono::duration_cast<support::RedisModel::Time>(wall));
    }
    /// Returns the text of the key on a server, or an empty text if there is none.
    std::string text_at(std::size_t index, const std::string& key) {
        const auto* const found = find(index, key);
        return found ? found->text : "";
    }
    /// Returns how many keys there are on all servers.
    std::size_t keys() const {
        std::size_t count = 0;
        for (const auto& server : servers_) count += server.redis->keys().size();
        return count;
    }

    std::vector<NodeConfig> configs(std::chrono::milliseconds quarantine = 0ms) const {
        std::vector<NodeConfig> configs;
        for (std::size_t i = 0; i < servers_.size(); ++i)
            configs.push_back({.endpoint = {.host = "127.0.0.1", .port = static_cast<std::uint16_t>(1 + i)},
                               .node_timeout = 50ms,
                               .quarantine = quarantine});
        return for_one_process(std::move(configs));
    }

    ManualClock& clock() noexcept override { return clock_; }
    Entropy& entropy() noexcept override { return *drawn_from_; }
    void draw_from(Entropy& entropy) { drawn_from_ = &entropy; }

    std::unique_ptr<Socket> connect(const Address& address, std::chrono::milliseconds longest_wait,
                                    int& error) override {
        const OutsideTheClient outside;
        error = has_no_descriptor ? EMFILE : 0;
        if (has_no_descriptor) return nullptr;
        const auto port = ntohs(reinterpret_cast<const sockaddr_in&>(address.storage).sin_port);
        return std::make_unique<MemorySocket>(open_, ++latest_fd_, servers_.at(port - 1U), clock_,
                                              longest_wait);
    }

    void wait_for_descriptors(std::span<PollEntry> entries, Clock::time_point, Clock::time_point until,
                              const std::stop_token& stop) override {
        const OutsideTheClient outside;
        ++waits_;
        const auto end = [&] {
            auto earliest = until;
            for (const auto& entry : entries) earliest = std::min(earliest, ready_at(entry.fd, entry.writes));
            return earliest;
        };
        while (!stop.stop_requested() && clock_.let_next_event_happen(end())) {
        }
        if (!stop.stop_requested()) clock_.advance_to(end());
        for (auto& entry : entries) entry.ready = ready_at(entry.fd, entry.writes) <= clock_.now();
    }

    /// Returns when the event happens for which somebody waits with this descriptor.
    Clock::time_point ready_at(int fd, bool writes) const {
        const auto socket = open_.find(fd);
        return socket != open_.end() ? socket->second->ready_at(writes) : Clock::never();
    }

    bool is_open(int fd) const { return open_.contains(fd); }

    /// Returns how often wait() was called.
    std::size_t waits() const { return waits_; }

    std::unique_ptr<BackgroundTask> make_task(BackgroundTask::Function function) override {
        const OutsideTheClient outside;
        return std::make_unique<MemoryTask>(clock_, std::move(function));
    }

private:
    std::vector<MemoryServer> servers_;
    MemorySocket::Open open_{};
    int latest_fd_ = 0;
    ManualClock clock_{};
    ConstantEntropy entropy_{0xFF};
    Entropy* drawn_from_ = &entropy_;
    std::size_t commands_ = 0;
    std::size_t waits_ = 0;
};

/// Returns how long `action` takes by the clock of the network.
template <class Action>
Clock::duration time_taken(MemoryNetwork& network, Action action) {
    const auto start = network.clock().now();
    action();
    return network.clock().now() - start;
}

}  // namespace redlock::test
