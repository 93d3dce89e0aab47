// A program in another process that reads requests and writes replies line by line, on its standard input and
// output.
#pragma once

#include "support/child_process.hpp"
#include "support/temporary_directory.hpp"

#include <chrono>
#include <optional>
#include <string>
#include <vector>

namespace redlock::support {

class LineProcess {
public:
    /// Starts the program, which is looked up in PATH.
    explicit LineProcess(const std::vector<std::string>& words);
    /// Kills the program.
    ~LineProcess();
    LineProcess(const LineProcess&) = delete;
    LineProcess& operator=(const LineProcess&) = delete;

    void write_line(std::string line);
    /// Returns nothing if the program ends or does not reply in time.
    std::optional<std::string> read_line(std::chrono::milliseconds timeout);

private:
    TemporaryDirectory directory_{};
    int to_;
    int from_;
    ChildProcess process_;
    std::string received_{};
};

}  // namespace redlock::support
