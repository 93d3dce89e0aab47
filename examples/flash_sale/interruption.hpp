// Ctrl-C and its like, turned into an exception, so that leaving early cleans up as leaving late does.
#pragma once

#include <chrono>
#include <csignal>

namespace flash_sale {

/// Thrown by Interruption::sleep().
struct Interrupted {
    int signal;
};

/// From its construction on (before any other thread) SIGINT, SIGQUIT, SIGTERM, SIGHUP and SIGPIPE, the
/// reader of our output gone, wait until sleep() is called.
class Interruption {
public:
    Interruption();

    /// Throws Interrupted as soon as one of them has come.
    void sleep(std::chrono::nanoseconds span) const;

private:
    sigset_t signals_;
};

}  // namespace flash_sale
