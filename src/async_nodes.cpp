#include <redlock/async_nodes.hpp>

#include "loop/front.hpp"

namespace redlock {

AsyncNodes::AsyncNodes(Nodes& nodes, EventLoop& event_loop, Clock& clock, Entropy& entropy)
    : front_(std::make_shared<loop::Front>(nodes, event_loop, clock, entropy)) {}

/// A child of fork() must not touch the parent's loop. Therefore the front is never destroyed there.
AsyncNodes::~AsyncNodes() {
    if (front_->in_owning_process())
        front_->shut_down();
    else
        front_->keep(front_);
}

void AsyncNodes::shut_down() noexcept {
    front_->shut_down();
}

bool AsyncNodes::are_of(const Nodes& nodes) const noexcept {
    return front_->is_of(nodes);
}

bool AsyncNodes::expired() const noexcept {
    return front_->rounds().nodes_are_gone() && front_->members().empty();
}

}  // namespace redlock
