// One TCP connection of a process to a node, and its greeting, in which the process learns which run of the
// server it talks to. Commands and replies keep their order and come once. When it breaks, for whatever
// reason, a part of what was under way still arrives, possibly late, in order; no reply to it does.
#pragma once

#include "letter.hpp"
#include "network.hpp"
#include "process.hpp"
#include "sim_node.hpp"

#include <cstddef>
#include <deque>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace redlock::sim {

class Connection final : public std::enable_shared_from_this<Connection>, public SimNode::Peer {
public:
    Connection(Process& process, Network& network, const Link& link, SimNode& node)
        : process_(process), timeline_(process.timeline()), network_(network), link_(link), node_(node) {}

    /// Asks for the greeting.
    void open();

    /// Whoever waits for news of it; null for nobody.
    void listen(Task* listener) noexcept { listener_ = listener; }

    bool ready() const noexcept { return ready_; }
    bool broken() const noexcept { return broken_; }

    /// Sends it behind whatever is under way; before the greeting it waits for that.
    void send(std::shared_ptr<const Letter> letter);
    std::size_t owed() const noexcept { return sent_ - answers_.size(); }
    /// The reply to the last command sent, once it is there.
    const Reply* answer() const noexcept { return sent_ > 0 && owed() == 0 ? &answers_.back() : nullptr; }
    /// Of all commands ever sent here, in their order; as many as are answered.
    std::size_t sent() const noexcept { return sent_; }
    std::span<const Reply> answers() const noexcept { return answers_; }

    /// Whether a SET signed by `owner` is under way here that was not released yet.
    bool carries(std::string_view owner) const noexcept { return has_unreleased() && unreleased_ == owner; }
    bool has_unreleased() const noexcept { return !unreleased_.empty() && owed() > 0; }

    /// The process does not want it any more, or has died.
    void abandon();
    void node_died() override;

private:
    void transmit();
    void arrive(int epoch);
    void arrive_late();
    void deliver();
    void answer(Reply reply);
    void take_answer(int epoch);
    void greet(int epoch);
    void greeted(int epoch);
    void cut();
    void break_in(nanoseconds span);
    void tell_of_the_end();
    void tell();
    Instant due(Way way);

    Process& process_;
    Timeline& timeline_;
    Network& network_;
    const Link& link_;
    SimNode& node_;
    Task* listener_ = nullptr;

    std::deque<std::shared_ptr<const Letter>> waiting_{};  // for the greeting
    std::deque<std::shared_ptr<const Letter>> there_{};    // under way to the node
    std::deque<Reply> back_{};                             // under way to the process
    Instant last_there_{};
    Instant last_back_{};
    int epoch_ = 0;  // what was on its way in an earlier one does not arrive as planned
    int life_ = 0;   // of the server
    std::string run_{};
    std::size_t sent_ = 0;
    std::vector<Reply> answers_{};
    std::string unreleased_{};
    bool ready_ = false;
    bool cut_ = false;     // nothing gets through any more
    bool broken_ = false;  // and the process knows
};

}  // namespace redlock::sim
