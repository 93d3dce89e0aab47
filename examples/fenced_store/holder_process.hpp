// A holder as its parent sees it: a process that says what it does, and can be stopped and woken.
#pragma once

#include "holder.hpp"

#include "support/child_process.hpp"
#include "support/temporary_directory.hpp"

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace fenced_store {

class HolderProcess {
public:
    /// Starts this program again, to deposit `amount`. `uris` with commas in between.
    HolderProcess(int amount, Writing writing, Pause pause, const std::filesystem::path& file,
                  const std::string& uris);
    ~HolderProcess();
    HolderProcess(const HolderProcess&) = delete;
    HolderProcess& operator=(const HolderProcess&) = delete;

    /// The next line it says; nothing when it has ended. Throws std::runtime_error if it says nothing for
    /// half a minute.
    std::optional<std::string> hear();

    /// SIGSTOP and SIGCONT; they return when the kernel shows the process as stopped, and as going on.
    void stop() { process_.freeze(); }
    void wake() { process_.thaw(); }

    /// Waits for its end: the exit status.
    int wait() { return process_.wait(); }

private:
    redlock::support::TemporaryDirectory directory_{};
    int ear_;
    redlock::support::ChildProcess process_;
};

/// What such a process does with the arguments it was given, the first of which is "holder".
void hold(const std::vector<std::string>& words);

}  // namespace fenced_store
