#include "channel.hpp"

#include <algorithm>
#include <cerrno>
#include <utility>

namespace redlock::sim {

/// Later than all before it on the same way: TCP keeps the order.
Instant Channel::due(Way way) {
    auto& last = way == Way::there ? last_there_ : last_back_;
    return last = std::max(last + 1ns, network_.arrival(link_, way));
}

// ---- For the process

void Channel::open() {
    timeline_.at(due(Way::there), [self = shared_from_this()] { self->reach(); });
}

void Channel::reach() {
    if (cut_) return;
    if (!node_.up()) return break_in(0ns);
    life_ = node_.life();
    node_.attach(weak_from_this());
    timeline_.at(due(Way::back), [self = shared_from_this()] {
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
    if (broken_) return -EPIPE;
    reader_.take(bytes, [this](Words words) {
        sent_(words);
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
        return static_cast<std::ptrdiff_t>(length);
    }
    return broken_ ? -ECONNRESET : -EAGAIN;
}

void Channel::notify() {
    news_ = true;
    if (listener_) process_.wake(*listener_);
}

// ---- Commands

void Channel::transmit(Words words) {
    there_.push_back(std::move(words));
    timeline_.at(due(Way::there), [self = shared_from_this(), epoch = epoch_] { self->arrive(epoch); });
    if (network_.breaks()) break_in(network_.dice().about(network_.weather().mean));
}

void Channel::arrive(int epoch) {
    if (epoch != epoch_) return;
    if (node_.frozen())
        return timeline_.at(node_.frozen_until(),
                            [self = shared_from_this(), epoch] { self->arrive(epoch); });
    deliver();
}

void Channel::deliver() {
    const auto words = std::move(there_.front());
    there_.pop_front();
    // A server that was restarted knows nothing of the connection.
    if (!node_.up() || node_.life() != life_) return break_in(0ns);
    auto reply = node_.execute(words);
    if (!cut_) answer(std::move(reply));
}

// ---- Replies

void Channel::answer(std::string reply) {
    back_.push_back(std::move(reply));
    timeline_.at(due(Way::back), [self = shared_from_this(), epoch = epoch_] { self->take_answer(epoch); });
}

void Channel::take_answer(int epoch) {
    if (epoch != epoch_) return;
    input_ += back_.front();
    back_.pop_front();
    notify();
}

// ---- The end

/// Of the commands under way the first few arrive all the same.
void Channel::cut() {
    if (cut_) return;
    cut_ = true;
    ++epoch_;
    there_.resize(std::min(there_.size(), network_.dice().below(there_.size() + 1)));
    auto at = last_there_;
    for (std::size_t i = 0; i < there_.size(); ++i) {
        at += 1ns + network_.lateness();
        timeline_.at(at, [self = shared_from_this()] { self->arrive_late(); });
    }
}

void Channel::arrive_late() {
    if (there_.empty()) return;
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

/// The process hears of it later, if it does not notice before.
void Channel::notify_of_the_end() {
    timeline_.at(network_.arrival(link_, Way::back), [self = shared_from_this()] {
        self->broken_ = true;
        self->notify();
    });
}

void Channel::node_died() {
    there_.clear();
    cut();
    notify_of_the_end();
}

}  // namespace redlock::sim
