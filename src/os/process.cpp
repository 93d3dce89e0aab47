// The mark that a fork wipes out (rule D10). The kernel does that where it knows MADV_WIPEONFORK, whatever
// the fork is made by; the handler does it elsewhere, but only for forks that run handlers: a raw clone()
// does not.
#include <redlock/process.hpp>

#include <pthread.h>
#include <sys/mman.h>
#include <unistd.h>

#include <atomic>
#include <new>

namespace redlock {
namespace {

using Mark = std::atomic<std::int64_t>;
static_assert(Mark::is_always_lock_free);

Mark mark_without_memory{0};           // wiped by the handler alone
std::atomic<Mark*> the_mark{nullptr};  // zero in a process that has no number yet
std::atomic<std::int64_t> last_number{0};

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

/// Two threads may come first at once: the one that comes second finds the mark of the other. Its page stays
/// unused.
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
