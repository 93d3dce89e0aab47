// A lock in a context of one Asio. A program can have source files with Boost.Asio and others with standalone
// Asio. This header names neither.
#pragma once

#include <redlock/redis_nodes.hpp>
#include <redlock/result.hpp>

#include <memory>
#include <typeindex>

namespace redlock::test {

class OneAsio {
public:
    OneAsio() = default;
    OneAsio(const OneAsio&) = delete;
    OneAsio& operator=(const OneAsio&) = delete;
    virtual ~OneAsio() = default;

    /// Both run the context until the operation has ended.
    virtual Result try_acquire() = 0;
    virtual Result release() = 0;
    /// Returns the type of the lock.
    virtual std::type_index type() const noexcept = 0;
};

std::unique_ptr<OneAsio> with_boost(RedisNodes& nodes);
std::unique_ptr<OneAsio> with_standalone(RedisNodes& nodes);

}  // namespace redlock::test
