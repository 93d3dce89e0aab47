// All clients of a measurement, on the same nodes: this library, the raw floor, and the peers that are there.
#pragma once

#include "client.hpp"
#include "peer.hpp"

#include <memory>
#include <span>
#include <string>
#include <vector>

namespace redlock::bench {

class Field {
public:
    /// This library's two ways and the raw two ways. Throws when a node cannot be reached.
    explicit Field(std::vector<std::string> uris);

    /// Those that can be had, each on all nodes; redis-py's lock knows one node and is named "redis-py x1".
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
