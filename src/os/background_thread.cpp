#include "os/background_thread.hpp"

#include "os/scoped_signal_block.hpp"

#include <redlock/process.hpp>

#include <atomic>
#include <cstdint>
#include <exception>
#include <memory>
#include <utility>
#include <vector>

namespace redlock {

/// Lets exit() wait for the threads. The static object is created when the first thread is started. Therefore
/// it is destroyed before the objects that this thread uses.
class BackgroundThread::AtExit {
public:
    /// Adds a thread that exit() has to wait for. Returns false if exit() no longer waits for threads. Throws
    /// std::bad_alloc.
    static bool add(BackgroundThread& thread) {
        static const AtExit at_exit;
        if (exiting_) return false;
        auto& list = of_this_process();
        const std::lock_guard guard{list.mutex};
        std::erase(list.threads, &thread);
        list.threads.push_back(&thread);
        return true;
    }

    static void remove(BackgroundThread& thread) noexcept {
        auto* const list = list_.load();
        if (!list || list->process != this_process()) return;
        const std::lock_guard guard{list->mutex};
        std::erase(list->threads, &thread);
    }

    ~AtExit() {
        exiting_ = true;
        auto* const list = list_.load();
        if (!list || list->process != this_process()) return;
        const std::lock_guard guard{list->mutex};
        for (auto* const it : list->threads)
            if (it->thread_.joinable()) it->thread_.join();
    }

private:
    struct List {
        const std::int64_t process = this_process();
        List* of_the_parent = nullptr;  // kept reachable for leak checkers
        std::mutex mutex{};
        std::vector<BackgroundThread*> threads{};  // guarded by mutex
    };

    /// Returns the list of this process. A child of fork() needs a new list. It has none of its parent's
    /// threads, and the mutex of the old list may be locked for ever.
    static List& of_this_process() {
        auto* known = list_.load();
        while (!known || known->process != this_process()) {
            auto fresh = std::make_unique<List>();
            fresh->of_the_parent = known;
            if (list_.compare_exchange_strong(known, fresh.get())) return *fresh.release();
        }
        return *known;
    }

    static inline std::atomic<bool> exiting_{false};
    static inline std::atomic<List*> list_{nullptr};  // never destroyed
};

BackgroundThread::BackgroundThread(Clock& clock, Function function)
    : clock_(clock), function_(std::move(function)) {}

BackgroundThread::~BackgroundThread() {
    {
        const std::lock_guard guard{mutex_};
        stopping_ = true;
    }
    changed_.notify_all();
    AtExit::remove(*this);
    if (thread_.joinable()) thread_.join();
}

void BackgroundThread::start() noexcept {
    const std::lock_guard guard{mutex_};
    started_ = true;
    changed_.notify_all();
    try {
        if (!running_) start_thread();
    } catch (const std::exception&) {  // no memory, or no thread
        running_ = false;
    }
}

void BackgroundThread::start_thread() {
    if (!AtExit::add(*this)) return;
    if (thread_.joinable()) thread_.join();  // it does not need the mutex any more, and ends soon
    const ScopedSignalBlock blocked;
    running_ = true;
    thread_ = std::thread{[this] { run(); }};
}

/// The thread: calls the function when it is due or start() was called, until it has nothing left to do.
void BackgroundThread::run() noexcept {
    std::unique_lock lock{mutex_};
    for (auto next = clock_.now(); started_ || next < Clock::never();) {
        changed_.wait_for(lock, next - clock_.now(), [this] { return started_ || stopping_; });
        if (stopping_) break;
        started_ = false;
        lock.unlock();
        try {
            next = function_(clock_.now());
        } catch (const std::exception&) {  // no memory
            next = Clock::never();
        }
        lock.lock();
    }
    running_ = false;
}

}  // namespace redlock
