#include "channel.hpp"

#include <cerrno>
#include <utility>

namespace redlock::sim {

/// Returns the arrival time of a message. It is later than that of all earlier messages in the same
/// direction, because TCP keeps the order.
Instant Channel::due(Direction direction) {
    auto& last = direction == Direction::to_node ? last_to_node_ : last_to_process_;
    return last = std::max(last + 1ns, network_.arrival(link_, direction));
}

// ---- For the process

void Channel::open() {
    timeline_.at(due(Direction::to_node), [self = shared_from_this()] { self->reach(); });
}

void Channel::reach() {
    if (cut_) return;
    if (!node_.up()) return break_in(0ns);
    life_ = node_.life();
    node_.attach(weak_from_this());
    timeline_.at(due(Direction::to_process), [self = shared_from_this()] {
        self->connected_ = !self->cut_;
        self->notify();
    });
}

std::optional<int> Channel::connect_result() {
    news_ = false;
    if (broken_) return ECONNREFUSED;
    return connected_ ? std::optional{0} : std::nullopt;
}

std::ptrdiff_t Channel::send(std::string_view bytes) {
    if (broken_) return report_the_end(-EPIPE);
    if (timeline_.now() < full_until_) return -EAGAIN;
    if (const auto accepted = network_.accepts(bytes.size()); accepted < bytes.size()) {
        bytes = bytes.substr(0, accepted);
        full_until_ = timeline_.now() + network_.rng().about(network_.conditions().mean);
        timeline_.at(full_until_, [self = shared_from_this()] { self->notify(); });
        if (bytes.empty()) return -EAGAIN;
    }
    reader_.take(bytes, [this](Words words) {
        sent_(*this, words);
        note_sent(words);
        if (!cut_) transmit(std::move(words));
    });
    return static_cast<std::ptrdiff_t>(bytes.size());
}

std::ptrdiff_t Channel::receive(std::span<char> bytes) {
    news_ = false;
    if (!input_.empty()) {
        const auto length = std::min(bytes.size(), input_.size());
        std::copy_n(input_.begin(), length, bytes.begin());
        input_.erase(0, length);
        if (input_.empty()) note_read();
        news_ = broken_;
        return static_cast<std::ptrdiff_t>(length);
    }
    return broken_ ? report_the_end(-ECONNRESET) : -EAGAIN;
}

/// The process knows from now on that no release can follow a SET on this connection.
std::ptrdiff_t Channel::report_the_end(std::ptrdiff_t error) {
    pending_sets_.clear();
    return error;
}

void Channel::notify() {
    news_ = true;
    if (listener_) process_.wake(*listener_);
}

// ---- What is pending

void Channel::note_sent(const Words& words) {
    ++sent_commands_;
    const auto owner = owner_of(words);
    used_ = used_ || !owner.empty();
    if (sets(words))
        pending_sets_.push_back({.owner = std::string{owner}, .number = sent_commands_});
    else if (releases(words))
        std::erase_if(pending_sets_, [&](const PendingSet& it) { return it.owner == owner; });
    else
        for (auto& set : pending_sets_) set.followed = set.followed || set.owner == owner;
}

void Channel::note_read() {
    read_replies_ = delivered_replies_;
    std::erase_if(pending_sets_, [this](const PendingSet& it) { return it.number <= read_replies_; });
}

// ---- Commands

void Channel::transmit(Words words) {
    to_node_.push_back(std::move(words));
    timeline_.at(due(Direction::to_node),
                 [self = shared_from_this(), epoch = epoch_] { self->arrive(epoch); });
    if (network_.breaks()) break_in(network_.rng().about(network_.conditions().mean));
}

void Channel::arrive(int epoch) {
    if (epoch != epoch_) return;
    if (node_.frozen())
        return timeline_.at(node_.frozen_until(),
                            [self = shared_from_this(), epoch] { self->arrive(epoch); });
    deliver();
}

void Channel::deliver() {
    const auto words = std::move(to_node_.front());
    to_node_.pop_front();
    // A restarted server has no record of the connection.
    if (!node_.up() || node_.life() != life_) return break_in(0ns);
    const bool asking = std::exchange(asking_, words[0] == "ASKING");
    auto reply = asking_                   ? std::string{"+OK\r\n"}
                 : words[0] == "SUBSCRIBE" ? subscribe(words[1])
                                           : node_.execute(words, asking);
    if (!cut_) answer(std::move(reply));
}

std::string Channel::subscribe(const std::string& channel) {
    using support::RedisReply;
    node_.subscribe(channel, weak_from_this());
    return support::to_resp(RedisReply::of_array(
        {RedisReply::of_bulk("subscribe"), RedisReply::of_bulk(channel), RedisReply::of_integer(1)}));
}

// ---- Replies

void Channel::answer(std::string reply) {
    to_process_.push_back(std::move(reply));
    timeline_.at(due(Direction::to_process),
                 [self = shared_from_this(), epoch = epoch_] { self->take_answer(epoch); });
}

void Channel::take_answer(int epoch) {
    if (epoch != epoch_) return;
    input_ += to_process_.front();
    ++delivered_replies_;
    to_process_.pop_front();
    notify();
}

void Channel::published(std::string_view channel, std::string_view message) {
    using support::RedisReply;
    if (!cut_)
        answer(support::to_resp(
            RedisReply::of_array({RedisReply::of_bulk("message"), RedisReply::of_bulk(std::string{channel}),
                                  RedisReply::of_bulk(std::string{message})})));
}

// ---- The end

/// Breaks the connection. Of the commands in transit, a random number at the front still arrive, later. Until
/// the node notices the end, it takes the connection for one that still listens.
void Channel::cut() {
    if (cut_) return;
    cut_ = true;
    timeline_.after(network_.lateness(), [self = shared_from_this()] {});
    ++epoch_;
    to_node_.resize(std::min(to_node_.size(), network_.rng().below(to_node_.size() + 1)));
    auto at = network_.conditions().longest_late > 0ns ? last_to_node_ : timeline_.now();
    for (std::size_t i = 0; i < to_node_.size(); ++i) {
        at += 1ns + network_.lateness();
        timeline_.at(at, [self = shared_from_this()] { self->arrive_late(); });
    }
}

void Channel::arrive_late() {
    if (to_node_.empty()) return;
    if (node_.frozen())
        return timeline_.at(node_.frozen_until(), [self = shared_from_this()] { self->arrive_late(); });
    deliver();
}

void Channel::break_in(nanoseconds span) {
    timeline_.after(span, [self = shared_from_this()] {
        self->cut();
        self->notify_of_the_end();
    });
}

/// Lets the process know about the end later, unless it has noticed already.
void Channel::notify_of_the_end() {
    timeline_.at(network_.arrival(link_, Direction::to_process), [self = shared_from_this()] {
        self->broken_ = true;
        self->notify();
    });
}

void Channel::node_died() {
    to_node_.clear();
    cut();
    notify_of_the_end();
}

}  // namespace redlock::sim
