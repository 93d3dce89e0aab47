// A client of whatever make, in a process of its own, told what to do line by line:
//
//     acquire RESOURCE TTL          held, or taken: one attempt
//     extend TTL                    held, or lost
//     release                       released, or lost
//     contend DIRECTORY RESOURCE MILLISECONDS
//                                   N holds M overlaps
//
// While it contends it acquires and releases without an end, and between the two makes and removes the file
// DIRECTORY/held: one that is there already is an overlap. Any other answer is an error. It says "ready"
// first.
#pragma once

#include "support/child_process.hpp"
#include "support/temporary_directory.hpp"

#include <chrono>
#include <filesystem>
#include <string>
#include <vector>

namespace redlock::interop {

class Client {
public:
    /// Returns when it is ready; throws std::runtime_error when it does not get so.
    Client(std::string name, const std::vector<std::string>& words);
    ~Client();
    Client(const Client&) = delete;
    Client& operator=(const Client&) = delete;

    const std::string& name() const noexcept { return name_; }

    void tell(const std::string& line);
    /// The answer to what it was told; throws std::runtime_error when there is none.
    std::string answer(std::chrono::milliseconds patience = std::chrono::seconds{20});

    std::string ask(const std::string& line) {
        tell(line);
        return answer();
    }

private:
    std::string name_;
    support::TemporaryDirectory directory_{};
    int to_;
    int from_;
    support::ChildProcess process_;
    std::string received_{};
};

}  // namespace redlock::interop
