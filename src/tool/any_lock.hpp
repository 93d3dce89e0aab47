// One interface for a lock and for a slot of a semaphore, because `redlock run` can use either.
#pragma once

#include <redlock/lock.hpp>
#include <redlock/result.hpp>
#include <redlock/semaphore.hpp>

#include <chrono>
#include <cstdint>
#include <stop_token>
#include <string>
#include <string_view>
#include <utility>

namespace redlock::tool {

/// Something that can be acquired.
class Acquirable {
public:
    Acquirable() = default;
    virtual ~Acquirable() = default;
    Acquirable(const Acquirable&) = delete;
    Acquirable& operator=(const Acquirable&) = delete;

    virtual Result try_acquire() = 0;
    virtual Result acquire_for(std::chrono::nanoseconds span, std::stop_token stop) = 0;
    virtual std::string resource() const = 0;
};

class AnyLock : public Acquirable {
public:
    virtual Result release() noexcept = 0;
    virtual bool valid() const noexcept = 0;
    virtual std::chrono::nanoseconds remaining() const noexcept = 0;
    virtual std::string_view owner() const noexcept = 0;
    virtual std::uint64_t fencing_token() const noexcept = 0;
    /// Returns the slot of a semaphore, and 0 for a lock.
    virtual std::size_t slot() const noexcept = 0;
};

template <class L>
class AnyLockOf final : public AnyLock {
public:
    template <class... Arguments>
    explicit AnyLockOf(Arguments&&... arguments) : lock_(std::forward<Arguments>(arguments)...) {}

    Result try_acquire() override { return lock_.try_acquire(); }
    Result acquire_for(std::chrono::nanoseconds span, std::stop_token stop) override {
        return lock_.acquire_for(span, std::move(stop));
    }
    std::string resource() const override { return lock_.resource(); }
    Result release() noexcept override { return lock_.release(); }
    bool valid() const noexcept override { return lock_.valid(); }
    std::chrono::nanoseconds remaining() const noexcept override { return lock_.remaining(); }
    std::string_view owner() const noexcept override { return lock_.owner(); }
    std::uint64_t fencing_token() const noexcept override { return lock_.fencing_token(); }
    std::size_t slot() const noexcept override {
        if constexpr (requires { lock_.slot(); })
            return lock_.slot();
        else
            return 0;
    }

private:
    L lock_;
};

}  // namespace redlock::tool
