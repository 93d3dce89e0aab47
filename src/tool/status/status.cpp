#include "subcommands.hpp"

#include "arguments/node_arguments.hpp"
#include "process/exit_status.hpp"
#include "text/escaped.hpp"
#include "text/json.hpp"
#include "text/lock_status.hpp"
#include "text/span.hpp"
#include "text/table.hpp"

#include <redlock/query.hpp>
#include <redlock/redis_nodes.hpp>

#include <algorithm>
#include <cstdint>
#include <iostream>
#include <string>

namespace redlock::tool {
namespace {

struct StatusArguments {
    NodeArguments nodes{};
    std::string resource{};
    bool json = false;

    void add_to(CLI::App& app) {
        app.add_option("RESOURCE", resource, "What is locked: the key on the nodes")->required();
        app.add_flag("--json", json, "One JSON object on stdout");
        nodes.add_to(app);
    }
};

/// Returns the owner, or the reason why there is none: an error, or a key that is not a lock.
std::string told(const NodeStatus& node) {
    using State = NodeStatus::State;
    if (node.state == State::unknown)
        return node.cause.message() + (node.detail.empty() ? "" : ": " + node.detail);
    if (node.state == State::no_lock) return "no lock: " + node.type;
    return node.state == State::held ? shown(node.owner) : std::string{};
}

void print(std::ostream& out, const LockStatus& status) {
    const auto number = [](std::uint64_t it) { return it > 0 ? std::to_string(it) : std::string{}; };
    Table table{{"NODE", "STATE", "EXPIRES IN", "FENCING COUNT", "WAITING", "READERS", "OWNER", "HOLDER"}};
    for (const auto& node : status.nodes)
        table.push_back(
            {node.name, node.state == NodeStatus::State::no_lock ? "no lock" : name_of(node.state),
             node.expires_in.count() < 0 ? "" : text_of(node.expires_in), number(node.fencing_count),
             number(node.waiters), number(node.readers), told(node), node.holder});
    print_table(out, table);
    out << escaped(summary_of(status)) << '\n';
}

int exit_status_of(const LockStatus& status) {
    using Kind = LockStatus::Kind;
    if (status.kind == Kind::held) return 0;
    if (status.kind == Kind::free || status.kind == Kind::split) return exit_status::not_held;
    const auto refusing = std::ranges::count_if(status.nodes, exit_status::is_refusal, &NodeStatus::cause);
    return exit_status::without_quorum(status.nodes.size(), static_cast<std::size_t>(refusing));
}

/// Asks the nodes, and prints the state as text or in JSON: each node, or all together in one line.
template <bool one_line>
int show(const StatusArguments& arguments) {
    RedisNodes nodes{arguments.nodes.endpoints(), arguments.nodes.options()};
    const auto status = query(nodes, arguments.resource);
    if (arguments.json)
        print_json(std::cout, arguments.resource, status, !one_line);
    else if (one_line)
        std::cout << escaped(line_of_who(status)) << '\n';
    else
        print(std::cout, status);
    return exit_status_of(status);
}

}  // namespace

void add_status_and_who(CommandLine& line) {
    line.add("status", "Show who holds a lock, node by node", show<false>);
    line.add("who", "Show who holds a lock, in one line", show<true>);
}

}  // namespace redlock::tool
