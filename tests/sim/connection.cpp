#include "connection.hpp"

#include <algorithm>
#include <utility>

namespace redlock::sim {

/// Later than all before it on the same way: TCP keeps the order.
Instant Connection::due(Way way) {
    auto& last = way == Way::there ? last_there_ : last_back_;
    return last = std::max(last + 1ns, network_.arrival(link_, way));
}

// ---- The greeting

void Connection::open() {
    timeline_.at(due(Way::there), [self = shared_from_this()] { self->greet(0); });
}

void Connection::greet(int epoch) {
    if (epoch != epoch_) return;
    if (!node_.up()) return break_in(0ns);
    if (node_.frozen())
        return timeline_.at(node_.frozen_until(), [self = shared_from_this()] { self->greet(0); });
    life_ = node_.life();
    run_ = node_.run();
    node_.attach(weak_from_this());
    timeline_.at(due(Way::back), [self = shared_from_this()] { self->greeted(0); });
}

void Connection::greeted(int epoch) {
    if (epoch != epoch_) return;
    ready_ = true;
    for (auto& letter : std::exchange(waiting_, {})) {
        there_.push_back(std::move(letter));
        transmit();
    }
    tell();
}

// ---- Commands

void Connection::send(std::shared_ptr<const Letter> letter) {
    ++sent_;
    if (letter->claims()) unreleased_ = letter->owner();
    if (letter->erases() && carries(letter->owner())) unreleased_.clear();
    if (cut_) return;
    if (!ready_) return waiting_.push_back(std::move(letter));
    there_.push_back(std::move(letter));
    transmit();
}

void Connection::transmit() {
    timeline_.at(due(Way::there), [self = shared_from_this(), epoch = epoch_] { self->arrive(epoch); });
    if (network_.breaks()) break_in(network_.dice().about(network_.weather().mean));
}

void Connection::arrive(int epoch) {
    if (epoch != epoch_) return;
    if (node_.frozen())
        return timeline_.at(node_.frozen_until(),
                            [self = shared_from_this(), epoch] { self->arrive(epoch); });
    deliver();
}

void Connection::deliver() {
    const auto letter = std::move(there_.front());
    there_.pop_front();
    // A server that was restarted knows nothing of the connection.
    if (!node_.up() || node_.life() != life_) return break_in(0ns);
    const auto reply = node_.execute(*letter, run_);
    if (!cut_) answer(reply);
}

// ---- Replies

void Connection::answer(Reply reply) {
    back_.push_back(reply);
    timeline_.at(due(Way::back), [self = shared_from_this(), epoch = epoch_] { self->take_answer(epoch); });
}

void Connection::take_answer(int epoch) {
    if (epoch != epoch_) return;
    answers_.push_back(back_.front());
    back_.pop_front();
    tell();
}

void Connection::tell() {
    if (listener_) process_.wake(*listener_);
}

// ---- The end

/// Of the commands under way the first few arrive all the same.
void Connection::cut() {
    if (cut_) return;
    cut_ = true;
    ++epoch_;
    waiting_.clear();
    there_.resize(std::min(there_.size(), network_.dice().below(there_.size() + 1)));
    auto at = last_there_;
    for (std::size_t i = 0; i < there_.size(); ++i) {
        at += 1ns + network_.lateness();
        timeline_.at(at, [self = shared_from_this()] { self->arrive_late(); });
    }
}

void Connection::arrive_late() {
    if (there_.empty()) return;
    if (node_.frozen())
        return timeline_.at(node_.frozen_until(), [self = shared_from_this()] { self->arrive_late(); });
    deliver();
}

void Connection::break_in(nanoseconds span) {
    timeline_.after(span, [self = shared_from_this()] {
        self->cut();
        self->tell_of_the_end();
    });
}

/// The process hears of it later, if it does not notice before.
void Connection::tell_of_the_end() {
    timeline_.at(network_.arrival(link_, Way::back), [self = shared_from_this()] {
        self->broken_ = true;
        self->tell();
    });
}

void Connection::abandon() {
    cut();
    broken_ = true;
}

void Connection::node_died() {
    there_.clear();
    cut();
    tell_of_the_end();
}

}  // namespace redlock::sim
