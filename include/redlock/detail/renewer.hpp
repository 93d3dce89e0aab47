// What a Lock needs of its watchdog, and the other way round: the least that both must know of each other.
#pragma once

#include <redlock/clock.hpp>
#include <redlock/export.hpp>

#include <cstdint>
#include <memory>

namespace redlock::detail {

class LeaseState;

/// One acquisition of a Lock. What is meant for it does nothing once the Lock has acquired anew.
struct Acquisition {
    std::shared_ptr<LeaseState> lease;
    std::uint64_t number = 0;
};

/// Extends leases and reports their loss: a Watchdog, in threads of its own.
class REDLOCK_EXPORT Renewer {
public:
    virtual ~Renewer() = default;

    /// The clock that it goes by; that of its locks must be the same.
    virtual Clock& clock() noexcept = 0;

    /// Begins to extend an acquisition; one that it extends already is looked at anew. May throw
    /// std::system_error, std::bad_alloc.
    virtual void add(Acquisition acquisition) = 0;

    /// Ends it: when this has returned, nothing more is sent for the acquisition (rule B7). Blocks while an
    /// extension is under way, other than in the thread of that extension.
    virtual void remove(const Acquisition& acquisition) noexcept = 0;

protected:
    Renewer() = default;
    Renewer(const Renewer&) = default;
    Renewer& operator=(const Renewer&) = default;
};

/// What the running thread is doing for a watchdog: a release() from a callback must not wait for itself, and
/// is about the acquisition whose loss is being reported.
struct RenewalContext {
    const void* queue = nullptr;       ///< the RenewalQueue whose turn it is
    const LeaseState* told = nullptr;  ///< the lease whose loss is being reported
    std::uint64_t number = 0;          ///< of the acquisition that was lost
};

/// That of this thread.
REDLOCK_EXPORT RenewalContext& renewal_context() noexcept;

/// Changes it until the end of a block.
class RenewalScope {
public:
    explicit RenewalScope(const RenewalContext& now) noexcept : before_(renewal_context()) {
        renewal_context() = now;
    }
    ~RenewalScope() { renewal_context() = before_; }
    RenewalScope(const RenewalScope&) = delete;
    RenewalScope& operator=(const RenewalScope&) = delete;

private:
    RenewalContext before_;
};

}  // namespace redlock::detail
