// This library, as users call it.
#pragma once

#include "client.hpp"

#include <redlock/redlock.hpp>

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace redlock::bench {

class RedlockClient final : public LocalClient {
public:
    /// Shares `nodes` with other clients.
    RedlockClient(std::string name, std::shared_ptr<Nodes> nodes, std::string resource,
                  const LockOptions& options = {})
        : LocalClient(std::move(name)),
          nodes_(std::move(nodes)),
          lock_(*nodes_, std::move(resource), options) {}

    /// Has its own nodes.
    RedlockClient(const std::vector<std::string>& uris, Round round, std::string resource)
        : RedlockClient(round == Round::sequential ? "redlock sequential" : "redlock all-at-once",
                        std::make_shared<RedisNodes>(uris, NodesOptions{.round = round}),
                        std::move(resource)) {}

    bool acquire() override { return static_cast<bool>(lock_.acquire()); }
    void release() override { (void)lock_.release(); }

private:
    std::shared_ptr<Nodes> nodes_;
    Lock lock_;
};

/// The same with a Lock for each op, which its destructor releases.
class ScopedRedlockClient final : public LocalClient {
public:
    ScopedRedlockClient(const std::vector<std::string>& uris, std::string resource)
        : LocalClient("redlock scoped"),
          nodes_(uris, {.round = Round::all_at_once}),
          resource_(std::move(resource)) {}

    bool acquire() override { return static_cast<bool>(lock_.emplace(nodes_, resource_).acquire()); }
    void release() override { lock_.reset(); }

private:
    RedisNodes nodes_;
    std::string resource_;
    std::optional<Lock> lock_{};
};

}  // namespace redlock::bench
