// A BackgroundTask that runs in a thread of the operating system.
//
// The thread ends when its function has nothing left to do. exit() waits for threads that still run, before
// it destroys objects that they may use, such as those of OpenSSL.
#pragma once

#include "network.hpp"

#include <memory>

namespace redlock {

/// Starts no thread. `clock` must outlive the task.
std::unique_ptr<BackgroundTask> make_background_thread(Clock& clock, BackgroundTask::Function function);

}  // namespace redlock
