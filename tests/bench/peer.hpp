// A client in another language: a program of tests/interop that reads on its standard input how much to do.
//
//     program:    ready                           when it has connected
//     this class: measure OPS MILLISECONDS        (whichever ends first)
//     program:    {"failed": 0, "microseconds": [201.5, 198.0, ...]}
#pragma once

#include "client.hpp"

#include "support/line_process.hpp"

#include <memory>
#include <string>
#include <vector>

namespace redlock::bench {

class Peer final : public Client {
public:
    /// Returns null if the program cannot run, and reports that on standard error.
    static std::unique_ptr<Peer> start(std::string name, std::vector<std::string> words);

    /// A program that hangs is reported as one failed op.
    Batch run(const Work& work) override;
    bool is_local() const noexcept override { return false; }

private:
    Peer(std::string name, const std::vector<std::string>& words)
        : Client(std::move(name)), process_(words) {}

    support::LineProcess process_;
    bool hung_ = false;
};

}  // namespace redlock::bench
