// A pthread_create() of our own: the linker takes it before that of the C library, for the whole program.
#include "started_threads.hpp"

#include <dlfcn.h>
#include <pthread.h>

#include <atomic>

namespace {

std::atomic<std::size_t> started{0};

}  // namespace

// NOLINTNEXTLINE(readability-identifier-naming)
extern "C" int pthread_create(pthread_t* thread, const pthread_attr_t* attributes, void* (*work)(void*),
                              void* argument) {
    using Create = int (*)(pthread_t*, const pthread_attr_t*, void* (*)(void*), void*);
    static const auto real = reinterpret_cast<Create>(::dlsym(RTLD_NEXT, "pthread_create"));
    started.fetch_add(1);
    return real(thread, attributes, work, argument);
}

std::size_t redlock::test::started_threads() noexcept {
    return started.load();
}
