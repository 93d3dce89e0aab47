#include "peer.hpp"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <iostream>
#include <utility>

namespace redlock::bench {

using namespace std::chrono_literals;

std::unique_ptr<Peer> Peer::start(std::string name, std::vector<std::string> words) {
    words.insert(words.begin(), {"env", "NODE_TIMEOUT_MS=50"});  // as redlock has it
    std::unique_ptr<Peer> peer{new Peer{std::move(name), words}};
    if (peer->process_.read_line(20s) == "ready") return peer;
    std::cerr << peer->name() << " is left out: it does not start\n";
    return nullptr;
}

Batch Peer::run(const Work& work) {
    if (hung_) return {.failed = 1};
    process_.write_line("measure " + std::to_string(std::min<std::size_t>(work.ops, 1'000'000)) + " " +
                        std::to_string(work.span.count()));
    const auto line = process_.read_line(std::min<std::chrono::milliseconds>(work.span, 2min) + 3s);
    hung_ = !line;
    if (hung_) return {.failed = 1};
    const auto answer = nlohmann::json::parse(*line);
    return {.microseconds = answer.at("microseconds"), .failed = answer.at("failed")};
}

}  // namespace redlock::bench
