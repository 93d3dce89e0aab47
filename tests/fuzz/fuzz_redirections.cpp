// Rounds on a Redis Cluster whose servers redirect as the input says, in virtual time. There are three
// servers, at the ports 7000 to 7002 of 127.0.0.1. Each byte is what the next command with a key gets:
//
//     o  it is executed                             h  no reply, and none to later commands on the connection
//     m  MOVED, to the port of the next digit       x  the server closes the connection
//     a  ASK, to the port of the next digit         t  TRYAGAIN
//     e  MOVED without a host                       d  CLUSTERDOWN
//
// The digits 0 to 2 are the servers. Connections to 3 to 6 are refused, and those to 7 to 9 hang. CLUSTER
// NODES names the server of the last digit for all slots, so it may be any of them.
//
// A round ends in time and sends few commands, whatever the servers reply. When the input is over, server 0
// has all slots, and a lock can be acquired again soon.
#include "require.hpp"
#include "virtual_network.hpp"

#include <redlock/redlock.hpp>

#include "redis/redis_cluster.hpp"
#include "round/hash_slot.hpp"
#include "support/command_reader.hpp"
#include "support/nodes_over_lanes.hpp"

#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace redlock::fuzz {
namespace {

using namespace std::chrono_literals;

constexpr auto the_node_timeout = 50ms;

/// What the servers do, which all of them share.
struct Script {
    std::string_view input;
    int last_digit = 0;
    std::size_t commands = 0;  // with a key

    char take() {
        if (input.empty()) return 'o';
        const char c = input.front();
        input.remove_prefix(1);
        return c;
    }
    std::string port() {
        const char c = take();
        last_digit = c >= '0' && c <= '9' ? c - '0' : 0;
        return "127.0.0.1:" + std::to_string(7000 + last_digit);
    }
};

class RedirectingServer final : public Server {
public:
    explicit RedirectingServer(Script& script, int number) : script_(script), number_(number) {}

    void accept(std::shared_ptr<Stream> stream) override {
        stream->connect_result = 0;
        peers_.push_back({std::move(stream)});
    }
    void act(Clock::time_point) override {
        for (auto& peer : peers_)
            peer.reader.take(std::exchange(peer.stream->to_server, {}),
                             [&](const auto& words) { answer(peer, words); });
    }
    Clock::time_point next() const override { return Clock::never(); }

private:
    struct Peer {
        std::shared_ptr<Stream> stream;
        support::CommandReader reader{};
        bool hangs = false;
    };

    void answer(Peer& peer, const std::vector<std::string>& words) {
        if (peer.hangs || peer.stream->finished) return;
        auto& out = peer.stream->to_client;
        if (words[0] == "PING" || words[0] == "ASKING") out += "+OK\r\n";
        if (words[0] == "CLUSTER") out += list();
        if (words[0] != "SET" && words[0] != "EVAL" && words[0] != "EVALSHA") return;
        ++script_.commands;
        const auto slot = std::to_string(detail::hash_slot_of(words[0] == "SET" ? words[1] : words[3])) + " ";
        if (script_.input.empty() && number_ != 0) {
            out += "-MOVED " + slot + "127.0.0.1:7000\r\n";
            return;
        }
        switch (script_.take()) {
            case 'm': out += "-MOVED " + slot + script_.port() + "\r\n"; break;
            case 'a': out += "-ASK " + slot + script_.port() + "\r\n"; break;
            case 'e': out += "-MOVED " + slot + script_.port().substr(9) + "\r\n"; break;
            case 't': out += "-TRYAGAIN Multiple keys request during rehashing of slot\r\n"; break;
            case 'd': out += "-CLUSTERDOWN The cluster is down\r\n"; break;
            case 'h': peer.hangs = true; break;
            case 'x': peer.stream->finished = peer.stream->closed_by_server = true; break;
            default: out += words[0] == "SET" ? "+OK\r\n" : ":1\r\n";
        }
    }

    std::string list() const {
        const auto port = 7000 + (script_.input.empty() ? 0 : script_.last_digit);
        const auto text = "id 127.0.0.1:" + std::to_string(port) + "@1 master - 0 0 1 connected 0-16383\n";
        return "$" + std::to_string(text.size()) + "\r\n" + text + "\r\n";
    }

    Script& script_;
    const int number_;
    std::deque<Peer> peers_{};
};

/// The engine of RedisNodes over the virtual network.
class ClusterNodes final : public support::NodesOverLanes {
public:
    explicit ClusterNodes(VirtualNetwork& network)
        : NodesOverLanes({"cluster@127.0.0.1:7000"},
                         {NodeConfig::of(Endpoint::parse("redis+cluster://127.0.0.1:7000,127.0.0.1:7001"),
                                         the_node_timeout)},
                         {.node_timeout = the_node_timeout}, network, 64) {}

    bool has_cluster() const noexcept override { return true; }
};

class Scenario {
public:
    explicit Scenario(std::string_view input) : script_{input} {
        for (int i = 0; i < 3; ++i) network_.add(servers_.emplace_back(script_, i));
    }

    void run() {
        ClusterNodes nodes{network_};
        for (int i = 0; !script_.input.empty(); ++i) {
            // A round that sends no command takes nothing from the input.
            if (network_.now() > end_) break;
            const std::vector<std::string> resources{"{orders}:1", "{orders}:2"};
            Lock lock{nodes, i % 3 == 0 ? resources : std::vector{resources[0]}, {}, network_, network_};
            in_time(2, [&] { (void)lock.try_acquire(); });
            if (i % 2 == 0) in_time(1, [&] { (void)lock.extend(); });
            in_time(1, [&] { i % 4 == 3 ? lock.unlock() : void(lock.release()); });
            network_.sleep_until(network_.now() + 100ms, {});
        }
        script_.input = {};
        bool acquired = false;
        for (int i = 0; i < 10 && !acquired; ++i) {
            Lock lock{nodes, "{orders}:1", {}, network_, network_};
            acquired = static_cast<bool>(lock.try_acquire());
            (void)lock.release();
            network_.sleep_until(network_.now() + 2s, {});
        }
        require(acquired, "the lock is acquired once the servers agree");
    }

private:
    /// An operation makes so many rounds at most. A round sends its command at first, and after a MOVED and
    /// an ASK; a release is sent once more if a connection breaks. Kept releases are sent as well.
    template <class Operation>
    void in_time(int rounds, Operation operation) {
        const auto start = network_.now();
        const auto commands = script_.commands;
        operation();
        require(network_.now() - start <= rounds * the_node_timeout + 10ms, "back in time");
        sent_ += script_.commands - commands;
        rounds_ += static_cast<std::size_t>(rounds);
        require(sent_ <= 16 * rounds_, "no commands without an end");
    }

    Script script_;
    VirtualNetwork network_{};
    std::deque<RedirectingServer> servers_{};
    const Clock::time_point end_ = network_.now() + 10min;
    std::size_t sent_ = 0;
    std::size_t rounds_ = 0;
};

}  // namespace
}  // namespace redlock::fuzz

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    redlock::fuzz::Scenario{{reinterpret_cast<const char*>(data), size}}.run();
    return 0;
}
