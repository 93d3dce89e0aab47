// Numbers that tell a forked child from its parent (rule D10), also if both have the same process id.
//
// Each process stores its number in a memory page of its own. After a fork the page of the child contains
// zero, and the child takes a new number. Where the kernel has MADV_WIPEONFORK, it clears the page, whatever
// made the fork. Elsewhere a fork handler clears it. That misses a raw clone(), which calls no handlers.
#include <redlock/process.hpp>

#include <pthread.h>
#include <sys/mman.h>
#include <unistd.h>

#include <atomic>
#include <new>

namespace redlock {
namespace {

using Mark = std::atomic<long>;  // 64 bits are not always lock-free on machines with 32 bits
static_assert(Mark::is_always_lock_free);

Mark mark_without_memory{0};           // cleared by the fork handler only
std::atomic<Mark*> the_mark{nullptr};  // its value is 0 if the process has no number yet
std::atomic<long> last_number{0};

void wipe() noexcept {
    the_mark.load()->store(0);
}

Mark* wiped_on_fork() noexcept {
    const auto size = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
    void* const page = ::mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (page == MAP_FAILED) return &mark_without_memory;
#ifdef MADV_WIPEONFORK
    (void)::madvise(page, size, MADV_WIPEONFORK);
#endif
    return new (page) Mark{0};
}

/// Returns the mark of the process, and creates it on the first call. If two threads create one at the same
/// time, the second thread uses the mark of the first, and its own page stays unused.
Mark& mark() noexcept {
    if (auto* const known = the_mark.load(std::memory_order_acquire)) return *known;
    auto* const made = wiped_on_fork();
    Mark* first = nullptr;
    if (!the_mark.compare_exchange_strong(first, made)) return *first;
    (void)::pthread_atfork(nullptr, nullptr, &wipe);
    return *made;
}

}  // namespace

std::int64_t this_process() noexcept {
    auto& mark = redlock::mark();
    auto number = mark.load(std::memory_order_acquire);
    if (number != 0) return number;
    const auto next = last_number.fetch_add(1) + 1;
    return mark.compare_exchange_strong(number, next) ? next : number;
}

std::uint64_t this_thread() noexcept {
    static std::atomic<std::uint64_t> last{0};
    thread_local const std::uint64_t number = last.fetch_add(1, std::memory_order_relaxed) + 1;
    return number;
}

}  // namespace redlock
