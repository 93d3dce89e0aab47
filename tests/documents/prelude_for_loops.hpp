// The names that the examples of event loops use, see prelude.hpp.
#pragma once

#include <redlock/async_nodes.hpp>
#include <redlock/event_loop.hpp>

namespace documents {

struct MyLoop final : redlock::EventLoop {
    void watch(int fd, bool reads, bool writes) override;
    void forget(int fd) noexcept override;
    void wake_after(std::chrono::nanoseconds delay) noexcept override;
};
extern redlock::AsyncNodes loop_nodes;

}  // namespace documents
