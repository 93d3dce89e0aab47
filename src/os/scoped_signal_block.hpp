// Blocks all signals while a thread is started. The new thread inherits this, so that it handles no signals
// that are meant for the threads of the user.
#pragma once

#include <redlock/detail/not_copied.hpp>

#include <pthread.h>

#include <csignal>

namespace redlock {

class ScopedSignalBlock : detail::NotCopied {
public:
    ScopedSignalBlock() noexcept {
        sigset_t all;
        ::sigfillset(&all);
        ::pthread_sigmask(SIG_SETMASK, &all, &before_);
    }
    ~ScopedSignalBlock() { ::pthread_sigmask(SIG_SETMASK, &before_, nullptr); }

private:
    sigset_t before_{};
};

}  // namespace redlock
