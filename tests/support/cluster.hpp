// N independent redis-servers, five by default.
#pragma once

#include "support/comma_list.hpp"
#include "support/redis_config.hpp"
#include "support/redis_server.hpp"

#include <cstddef>
#include <deque>
#include <string>
#include <vector>

namespace redlock::support {

class Cluster {
public:
    explicit Cluster(std::size_t nodes = 5, const RedisConfig& config = {}) {
        while (servers_.size() < nodes) servers_.emplace_back(config);
    }

    std::size_t size() const noexcept { return servers_.size(); }
    RedisServer& operator[](std::size_t node) { return servers_.at(node); }
    auto begin() noexcept { return servers_.begin(); }
    auto end() noexcept { return servers_.end(); }

    std::vector<std::string> uris() const {
        std::vector<std::string> result;
        for (const auto& server : servers_) result.push_back(server.uri());
        return result;
    }

    /// Returns the URIs as in the environment variable REDLOCK_NODES, separated by commas.
    std::string uri_list() const {
        return comma_list(servers_, [](const auto& it) { return it.uri(); });
    }

private:
    std::deque<RedisServer> servers_;
};

}  // namespace redlock::support
