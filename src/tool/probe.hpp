// Tries whether a node permits what locks need, with a lock of its own.
#pragma once

#include "checkup.hpp"
#include "node_facts.hpp"

#include <redlock/entropy.hpp>
#include <redlock/redis_nodes.hpp>

#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace redlock::tool {

class Probe {
public:
    /// Does no I/O. Both arguments must outlive the probe.
    Probe(AdminConnection& admin, const CheckupPlan& plan);

    /// Acquires, extends and releases a lock on this one node, with the rounds of the library. If the plan
    /// asks for it, writes the marker of the quarantine. Also tries the commands that fencing, a quarantine
    /// and a queue need.
    void run(NodeFacts& facts);

private:
    void lock_and_unlock(NodeFacts& facts);
    bool may_use_each_command(NodeFacts& facts);
    bool is_allowed(NodeFacts& facts, PermissionCheck check, std::span<const std::string_view> words);
    void place_marker(NodeFacts& facts);
    void try_counter(NodeFacts& facts, const std::string& verb, const std::string& key);
    void try_queue(NodeFacts& facts);
    using Words = std::vector<std::string_view>;
    static void try_command(NodeFacts& facts, AdminConnection& admin, const Words& words,
                            PermissionCheck check);
    NodeReport ask(RedisNodes& nodes, const Command& command) const;

    AdminConnection& admin_;
    const CheckupPlan& plan_;
    std::vector<std::string> resources_;
    Owner owner_{};
};

}  // namespace redlock::tool
