// Calls a completion later, from the loop, and never inside the function that began the operation.
#pragma once

#include <redlock/async_lock.hpp>

#include "context.hpp"
#include "scheduler.hpp"

#include <memory>
#include <utility>

namespace redlock::loop {

/// Calls a completion from the loop, and destroys itself.
template <class Value>
class LaterCall final : Member {
public:
    static void make(const std::shared_ptr<Context>& context, CompletionWith<Value> done, Value value) {
        (new LaterCall(context, std::move(done), std::move(value)))->wake();
    }

private:
    LaterCall(const std::shared_ptr<Context>& of_loop, CompletionWith<Value> done, Value value)
        : Member(of_loop), done_(std::move(done)), value_(std::move(value)) {}

    void proceed() override {
        auto done = std::move(done_);
        auto value = std::move(value_);
        delete this;
        done(std::move(value));
    }
    void shut_down() noexcept override { delete this; }

    CompletionWith<Value> done_;
    Value value_;
};

}  // namespace redlock::loop
