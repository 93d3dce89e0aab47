// All clients of a measurement, on the same nodes: this library, the raw protocol, and the other libraries
// that are installed.
#pragma once

#include "client.hpp"
#include "peer.hpp"

#include <memory>
#include <span>
#include <string>
#include <vector>

namespace redlock::bench {

/// Returns node-redlock on these nodes, or null if it is not installed.
std::unique_ptr<Peer> node_redlock(const std::vector<std::string>& uris);

class Field {
public:
    /// Adds the variants of this library and of the raw client. Throws if a node cannot be reached.
    explicit Field(std::vector<std::string> uris);

    /// Adds the installed other libraries, each on all nodes. The lock of redis-py knows one node, so it is
    /// named "redis-py x1".
    void add_peers();

    std::span<Client* const> clients() const noexcept { return clients_; }

private:
    void add(std::unique_ptr<Client> client);
    void add_program(const std::string& name, std::vector<std::string> words, std::size_t nodes);

    std::vector<std::string> uris_;
    std::vector<std::unique_ptr<Client>> owned_{};
    std::vector<Client*> clients_{};
};

}  // namespace redlock::bench
