// The interface between a Lock and its watchdog, which extends leases and reports their loss.
#pragma once

#include <redlock/clock.hpp>
#include <redlock/detail/not_copied.hpp>
#include <redlock/export.hpp>

#include <cstdint>
#include <memory>

namespace redlock::detail {

class LeaseState;

/// One acquisition of a Lock: the state of its lease (lease_state.hpp), and the number of the acquisition.
/// Operations on it do nothing if the Lock has made another acquisition since.
struct Acquisition {
    std::shared_ptr<LeaseState> state;
    std::uint64_t number = 0;
};

/// Extends leases and reports their loss, in its derived classes. Watchdog does this with threads. An object
/// of this class itself does nothing.
class REDLOCK_EXPORT Renewer : NotCopied {
public:
    explicit Renewer(Clock& clock) : clock_(&clock) {}
    virtual ~Renewer() = default;

    /// Returns its clock. The locks must use the same one.
    Clock& clock() const noexcept { return *clock_; }

    /// Begins to extend an acquisition. If the watchdog extends this acquisition already, it computes again
    /// when the next extension is due. Can throw std::system_error if no thread can be started, and
    /// std::bad_alloc.
    virtual void add(Acquisition /*acquisition*/) {}  // NOLINT(performance-unnecessary-value-param): moved

    /// Ends the extension of an acquisition. When this function has returned, no extension of it is sent
    /// any more (rule B7). Blocks while an extension is under way, except in the thread that makes it.
    virtual void remove(const Acquisition& /*acquisition*/) noexcept {}

private:
    Clock* const clock_;
};

/// What the running thread is doing for a watchdog. Lock::release() reads it, because a callback in this
/// thread can call Lock::release(). The release must then not wait for the pass of the watchdog
/// (src/lock/blocking_renewals.hpp), because this pass waits for the callback. And it must release the
/// acquisition whose loss is being reported, even if the Lock holds a later one.
struct RenewalContext {
    const void* renewals = nullptr;          ///< The BlockingRenewals whose pass this thread makes, or null.
    const LeaseState* lost_lease = nullptr;  ///< The lease whose loss is being reported, or null.
    std::uint64_t number = 0;                ///< The number of the acquisition that was lost.
};

/// Returns the context of the running thread.
REDLOCK_EXPORT RenewalContext& renewal_context() noexcept;

/// Changes the context of the running thread until the end of a block.
class RenewalScope : NotCopied {
public:
    explicit RenewalScope(const RenewalContext& now) noexcept : before_(renewal_context()) {
        renewal_context() = now;
    }
    ~RenewalScope() { renewal_context() = before_; }

private:
    RenewalContext before_;
};

}  // namespace redlock::detail
