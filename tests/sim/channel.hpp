// One TCP connection between a process and a node, as the network sees it. Bytes arrive in order and once.
// When the connection breaks, a part of the commands in transit still arrives, in order and possibly late.
// The process receives no reply to them. The kernel of a frozen server still accepts connections and bytes,
// and the server reads them when it continues.
#pragma once

#include "message.hpp"
#include "network.hpp"
#include "process.hpp"
#include "sim_node.hpp"

#include "os/network.hpp"
#include "support/command_reader.hpp"

#include <algorithm>
#include <cstddef>
#include <deque>
#include <functional>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace redlock::sim {

class Channel final : public std::enable_shared_from_this<Channel>, public SimNode::Peer {
public:
    using Sent = std::function<void(const Channel&, const Words&)>;

    /// `sent` is called with each command before it is sent.
    Channel(Process& process, Network& network, const Link& link, SimNode& node, Sent sent)
        : process_(process),
          timeline_(process.timeline()),
          network_(network),
          link_(link),
          node_(node),
          sent_(std::move(sent)) {}

    // ---- For the process.
    void open();
    /// Sets the task to wake when something has happened, or null for none.
    void listen(Task* listener) noexcept { listener_ = listener; }
    /// Returns true if something has happened that the process has not seen yet.
    bool has_news() const noexcept { return news_; }
    bool has_input() const noexcept { return !input_.empty() || broken_; }
    bool can_write() const noexcept { return broken_ || (connected_ && timeline_.now() >= full_until_); }
    std::optional<int> connect_result();
    std::ptrdiff_t send(std::string_view bytes);
    std::ptrdiff_t receive(std::span<char> bytes);
    /// The process closes the connection, or has crashed.
    void abandon() {
        pending_sets_.clear();
        cut();
        broken_ = news_ = true;
    }

    // ---- For the checker.
    const SimNode& node() const noexcept { return node_; }
    /// Returns true if the connection has carried no command of a lock and the process still waits for a
    /// reply of the handshake.
    bool is_new() const noexcept { return !used_ && (sent_commands_ == 0 || sent_commands_ > read_replies_); }
    /// Returns true if `words`, sent over another connection, would overtake a SET on this one whose reply
    /// the process has not read. Only the first extension after the SET counts. A second one may use another
    /// connection, because the first one may still be pending here for another thread.
    bool is_overtaken_by(const Words& words) const {
        return std::ranges::any_of(pending_sets_, [&](const PendingSet& it) {
            return it.owner == owner_of(words) && (releases(words) || !it.followed);
        });
    }

    void node_died() override;
    void published(std::string_view channel, std::string_view message) override;

private:
    std::ptrdiff_t report_the_end(std::ptrdiff_t error);
    void reach();
    void transmit(Words words);
    void arrive(int epoch);
    void arrive_late();
    void deliver();
    std::string subscribe(const std::string& channel);
    void answer(std::string reply);
    void take_answer(int epoch);
    void cut();
    void break_in(nanoseconds span);
    void notify_of_the_end();
    void notify();
    void note_sent(const Words& words);
    void note_read();
    Instant due(Direction direction);

    Process& process_;
    Timeline& timeline_;
    Network& network_;
    const Link& link_;
    SimNode& node_;
    Sent sent_;
    Task* listener_ = nullptr;

    support::CommandReader reader_{std::numeric_limits<std::size_t>::max()};
    std::deque<Words> to_node_{};           // in transit to the node
    std::deque<std::string> to_process_{};  // in transit to the process
    Instant full_until_{};                  // until then the socket accepts no bytes
    Instant last_to_node_{};
    Instant last_to_process_{};
    int epoch_ = 0;  // messages of an earlier epoch do not arrive as scheduled
    int life_ = 0;   // the life of the server in which it accepted this connection
    /// A SET whose reply was not read, and behind which no release was sent.
    struct PendingSet {
        std::string owner;
        std::size_t number;     // of the command on this connection
        bool followed = false;  // by another command of the owner
    };
    std::vector<PendingSet> pending_sets_{};
    std::size_t sent_commands_ = 0;
    std::size_t delivered_replies_ = 0;
    std::size_t read_replies_ = 0;
    bool used_ = false;
    bool asking_ = false;  // the last command that the node has executed was ASKING

    std::string input_{};
    bool news_ = false;
    bool connected_ = false;
    bool cut_ = false;     // nothing is transmitted any more
    bool broken_ = false;  // the process can know that
};

}  // namespace redlock::sim
