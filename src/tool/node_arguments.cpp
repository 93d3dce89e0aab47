#include "node_arguments.hpp"

#include <cstdlib>
#include <fstream>
#include <sstream>
#include <stdexcept>

namespace redlock::tool {
namespace {

std::string trimmed(const std::string& text) {
    const auto* const blank = " \t\r\n";
    const auto begin = text.find_first_not_of(blank);
    return begin == text.npos ? std::string{} : text.substr(begin, text.find_last_not_of(blank) - begin + 1);
}

/// One address a line; what begins with '#' is a comment.
std::vector<std::string> read_file(const std::string& path) {
    std::ifstream file{path};
    if (!file) throw std::invalid_argument{"--nodes-file " + path + ": cannot be read"};
    std::vector<std::string> uris;
    for (std::string line; std::getline(file, line);) {
        line = trimmed(line);
        if (!line.empty() && line.front() != '#') uris.push_back(line);
    }
    if (uris.empty()) throw std::invalid_argument{"--nodes-file " + path + ": names no node"};
    return uris;
}

std::vector<std::string> read_variable() {
    const char* const variable =
        std::getenv("REDLOCK_NODES");  // NOLINT(concurrency-mt-unsafe): no thread sets it
    std::istringstream list{variable != nullptr ? variable : ""};
    std::vector<std::string> uris;
    for (std::string uri; std::getline(list, uri, ',');)
        if (!trimmed(uri).empty()) uris.push_back(trimmed(uri));
    return uris;
}

}  // namespace

void NodeArguments::add_to(Arguments& arguments) {
    arguments.begin_group("Nodes");
    arguments.repeated_text("--node", nodes_,
                            "A node, redis://[user[:password]@]host[:port][/db]; may be repeated", "URI");
    arguments.text("--nodes-file", file_, "A file with one URI a line; default: the variable REDLOCK_NODES",
                   "FILE");
    arguments.span("--node-timeout", options_.node_timeout, "The budget of a node in a round (50ms)");
    arguments.span("--quarantine", options_.quarantine,
                   "How long a node that lost its data has no vote (off)");
    arguments.flag("--all-at-once", all_at_once_, "Ask all nodes at once when acquiring");
}

std::vector<std::string> NodeArguments::uris() const {
    auto result = nodes_;
    if (!file_.empty()) {
        const auto more = read_file(file_);
        result.insert(result.end(), more.begin(), more.end());
    }
    if (result.empty()) result = read_variable();
    if (result.empty())
        throw std::invalid_argument{"no nodes: give --node or --nodes-file, or set REDLOCK_NODES"};
    return result;
}

std::vector<Endpoint> NodeArguments::endpoints() const {
    std::vector<Endpoint> result;
    for (const auto& uri : uris()) result.push_back(Endpoint::parse(uri));
    return result;
}

NodesOptions NodeArguments::options() const {
    auto result = options_;
    if (all_at_once_) result.round = Round::all_at_once;
    return result;
}

}  // namespace redlock::tool
