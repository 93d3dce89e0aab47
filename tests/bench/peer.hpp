// A client in another language: a program of its own, told on its standard input how much to do.
//
//     ours:   run OPS MILLISECONDS            (whichever ends first)
//     its:    {"ready": true}                 when it has connected, or
//             {"absent": "no module redis"}   when it cannot run here
//             {"failed": 0, "microseconds": [201.5, 198.0, ...]}
#pragma once

#include "client.hpp"

#include "support/child_process.hpp"
#include "support/temporary_directory.hpp"

#include <sys/types.h>

#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace redlock::bench {

class Peer final : public Client {
public:
    /// Null where it cannot run; says why on standard error.
    static std::unique_ptr<Peer> start(std::string name, std::vector<std::string> words);
    ~Peer() override;

    pid_t pid() const noexcept { return process_.pid(); }

    /// A peer that hangs has done nothing.
    Batch run(const Work& work) override;

private:
    Peer(std::string name, std::vector<std::string> words);
    std::optional<std::string> read_line(std::chrono::milliseconds patience);

    support::TemporaryDirectory directory_{};
    int to_;
    int from_;
    support::ChildProcess process_;
    std::string received_{};
    bool hung_ = false;
};

}  // namespace redlock::bench
