// The background tasks of OsNetwork, which run in threads of the operating system.
//
// A thread ends when its function has nothing left to do. exit() waits for threads that still run, before it
// destroys objects that they may use, such as those of OpenSSL.
#include "os_network.hpp"

#include "scoped_signal_block.hpp"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <exception>
#include <mutex>
#include <stop_token>
#include <thread>
#include <utility>
#include <vector>

namespace redlock {
namespace {

/// Lets exit() wait for the threads. The static object is created when the first thread is started. Therefore
/// it is destroyed before the objects that this thread uses.
class AtExit {
public:
    /// Starts a thread that exit() has to wait for. Does nothing if exit() no longer waits for threads. The
    /// mutex is locked until the thread has started. Otherwise exit() could miss a thread that starts while
    /// exit() begins. Throws std::bad_alloc and std::system_error.
    template <class Start>
    static void start(std::jthread& thread, Start start) {
        static const AtExit at_exit;
        auto& list = of_this_process();
        const std::lock_guard guard{list.mutex};
        if (exiting_) return;
        std::erase(list.threads, &thread);
        list.threads.push_back(&thread);
        start();
    }

    static void remove(std::jthread& thread) noexcept {
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
            if (it->joinable()) it->join();
    }

private:
    struct List {
        const std::int64_t process = this_process();
        List* of_the_parent = nullptr;  // kept reachable for leak checkers
        std::mutex mutex{};
        std::vector<std::jthread*> threads{};  // guarded by mutex
    };

    /// Returns the list of this process. A child of fork() makes a new one.
    static List& of_this_process() {
        return detail::of_this_process(
            list_, [](List* parents) { return std::unique_ptr<List>{new List{.of_the_parent = parents}}; });
    }

    static inline std::atomic<bool> exiting_{false};
    static inline std::atomic<List*> list_{nullptr};  // never destroyed
};

class BackgroundThread final : public BackgroundTask {
public:
    explicit BackgroundThread(Function function) : function_(std::move(function)) {}

    ~BackgroundThread() override {
        thread_.request_stop();  // its destructor joins it
        AtExit::remove(thread_);
    }

    void start() noexcept override {
        const std::lock_guard guard{mutex_};
        started_ = true;
        changed_.notify_all();
        if (running_) return;
        try {
            AtExit::start(thread_, [this] {
                if (thread_.joinable()) thread_.join();  // it does not need the mutex any more, and ends soon
                const ScopedSignalBlock blocked;
                thread_ = std::jthread{[this](const std::stop_token& stop) { run(stop); }};
                running_ = true;
            });
        } catch (const std::exception&) {  // NOLINT(bugprone-empty-catch): no memory, or no thread
        }
    }

private:
    /// The thread: calls the function when it is due or start() was called, until it has nothing left to do.
    void run(const std::stop_token& stop) noexcept {
        std::unique_lock lock{mutex_};
        for (auto next = clock_.now(); started_ || next < Clock::never();) {
            // The limit prevents an overflow in wait_for() if only start() was called.
            const auto pause = std::min<Clock::duration>(next - clock_.now(), std::chrono::hours{1});
            changed_.wait_for(lock, stop, pause, [this] { return started_; });
            if (stop.stop_requested()) break;
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

    // Constant after construction.
    Clock& clock_ = boot_clock();  // made before AtExit, so that exit() destroys it later
    const Function function_;

    std::mutex mutex_{};
    std::condition_variable_any changed_{};
    // Guarded by mutex_.
    bool started_ = false;  // start() was called since the function was last called
    bool running_ = false;
    std::jthread thread_{};  // destroyed first, because it uses the others
};

}  // namespace

std::unique_ptr<BackgroundTask> OsNetwork::make_task(BackgroundTask::Function function) {
    return std::make_unique<BackgroundThread>(std::move(function));
}

}  // namespace redlock
