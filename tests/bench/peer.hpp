// A client in another language: a program of tests/interop, told on its standard input how much to do.
//
//     it:     ready                           when it has connected
//     we:     measure OPS MILLISECONDS        (whichever ends first)
//     it:     {"failed": 0, "microseconds": [201.5, 198.0, ...]}
#pragma once

#include "client.hpp"

#include "support/line_process.hpp"

#include <memory>
#include <string>
#include <vector>

namespace redlock::bench {

class Peer final : public Client {
public:
    /// Null where it cannot run, which is said on standard error.
    static std::unique_ptr<Peer> start(std::string name, std::vector<std::string> words);

    /// A peer that hangs has done nothing.
    Batch run(const Work& work) override;

private:
    Peer(std::string name, const std::vector<std::string>& words)
        : Client(std::move(name)), process_(words) {}

    support::LineProcess process_;
    bool hung_ = false;
};

}  // namespace redlock::bench
