// A BackgroundTask that runs in a thread of the operating system.
//
// The thread ends when its function has nothing left to do. exit() waits for threads that still run, before
// it destroys objects that they may use, such as those of OpenSSL.
#pragma once

#include "os/network.hpp"

#include <condition_variable>
#include <mutex>
#include <thread>

namespace redlock {

class BackgroundThread final : public BackgroundTask {
public:
    /// Starts no thread. `clock` must outlive the object.
    BackgroundThread(Clock& clock, Function function);
    ~BackgroundThread() override;

    void start() noexcept override;

private:
    class AtExit;

    void start_thread();
    void run() noexcept;

    // Constant after construction.
    Clock& clock_;
    const Function function_;

    std::mutex mutex_{};
    std::condition_variable changed_{};
    // Guarded by mutex_.
    bool started_ = false;  // start() was called since the function was last called
    bool running_ = false;
    bool stopping_ = false;
    std::thread thread_{};
};

}  // namespace redlock
