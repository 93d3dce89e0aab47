#include <redlock/async_nodes.hpp>

#include "context.hpp"

namespace redlock {

AsyncNodes::AsyncNodes(Nodes& nodes, EventLoop& event_loop, Clock& clock, Entropy& entropy)
    : context_(std::make_shared<loop::Context>(nodes, event_loop, clock, entropy)) {}

/// In a child of fork(), the context of the parent is kept for ever.
AsyncNodes::~AsyncNodes() {
    if (context_->in_owning_process())
        context_->shut_down();
    else
        context_->keep(context_);
}

void AsyncNodes::shut_down() noexcept {
    context_->shut_down();
}

bool AsyncNodes::are_of(const Nodes& nodes) const noexcept {
    return context_->is_of(nodes);
}

bool AsyncNodes::expired() const noexcept {
    return context_->rounds().nodes_are_gone() && context_->members().empty();
}

}  // namespace redlock
