// Blocks all signals while a thread is started. The new thread inherits this, so that it handles no signals
// that are meant for the threads of the user.
#pragma once

#include <pthread.h>

#include <csignal>

namespace redlock {

class ScopedSignalBlock {
public:
    ScopedSignalBlock() noexcept {
        sigset_t all;
        ::sigfillset(&all);
        ::pthread_sigmask(SIG_SETMASK, &all, &before_);
    }
    ~ScopedSignalBlock() { ::pthread_sigmask(SIG_SETMASK, &before_, nullptr); }
    ScopedSignalBlock(const ScopedSignalBlock&) = delete;
    ScopedSignalBlock& operator=(const ScopedSignalBlock&) = delete;

private:
    sigset_t before_{};
};

}  // namespace redlock
