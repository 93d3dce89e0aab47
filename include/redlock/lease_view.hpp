// The queries of a lock. They return what the client knows about its lease (lease.hpp), and do no I/O. The
// function query() (query.hpp) asks the nodes instead.
#pragma once

#include <redlock/clock.hpp>
#include <redlock/export.hpp>
#include <redlock/nodes.hpp>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <stop_token>
#include <string>
#include <string_view>

namespace redlock {

namespace algorithm {
struct AcquireLimits;
}
namespace detail {
class LeaseState;
struct Acquisition;
}  // namespace detail

/// The base class of Lock and AsyncLock: the queries that they have in common. lock.hpp explains the states
/// of a lock, such as *free*.
class REDLOCK_EXPORT LeaseView {
public:
    /// Returns true if the lock is held. Once valid() is false, it stays false for this acquisition.
    bool valid() const noexcept;

    /// Returns how long valid() stays true if the lock is not extended or released. Returns zero if valid()
    /// is false. If a watchdog reports the loss of the lock, valid() can become false earlier, see
    /// LockOptions::on_lost.
    std::chrono::nanoseconds remaining() const noexcept;

    /// Returns the token on which a stop is requested when the lock is lost, if it has a watchdog (see
    /// LockOptions::on_lost). Each acquisition has a new token, so call this function after the acquisition.
    std::stop_token lost() const;

    /// Returns the resource, or if there are several, the first one in sorted order.
    const std::string& resource() const noexcept;

    /// Returns all resources, sorted and each once.
    Resources resources() const noexcept;

    /// Returns the owner: 40 random hex digits that identify this acquisition on the nodes; empty if the lock
    /// is free. The returned text can be read until the next call that acquires, even after a release.
    std::string_view owner() const noexcept;

    /// Returns the fencing token of this acquisition, which is larger than the token of every earlier holder
    /// of any of the resources. Returns 0 if the lock is free, or without LockOptions::fencing.
    std::uint64_t fencing_token() const noexcept;

protected:
    LeaseView() noexcept = default;
    ~LeaseView() = default;
    LeaseView(const LeaseView&) noexcept = default;
    LeaseView(LeaseView&&) noexcept = default;
    LeaseView& operator=(LeaseView&&) noexcept = default;

    /// For a semaphore: returns the index of the slot that is held, or else was tried last.
    std::size_t slot() const noexcept;
    /// Returns the LeaseState, and the number of the current acquisition.
    detail::Acquisition acquisition() const;
    /// Returns the present instant of the clock.
    Clock::time_point now() const noexcept;
    /// Returns LockOptions::ttl.
    std::chrono::milliseconds ttl() const noexcept;
    /// Throws std::invalid_argument for a ttl with which the lock cannot be extended.
    void check_ttl(std::chrono::milliseconds ttl) const;
    /// Returns the limits of acquire(), without a stop.
    algorithm::AcquireLimits acquire_limits() const;
    /// Returns true if this process has made the LeaseState.
    bool in_owning_process() const noexcept;

    std::shared_ptr<detail::LeaseState> state_{};  // null if moved from
};

}  // namespace redlock
