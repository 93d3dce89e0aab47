// Whether a node lets us do what locks do: tried with a lock of our own.
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
    /// No I/O. Both must outlive it.
    Probe(AdminConnection& admin, const CheckupPlan& plan);

    /// Acquires, extends and releases on this one node by the library's own rounds; marks it where that was
    /// asked for; and tries what fencing, a quarantine and a queue need beside that.
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
