#include "status.hpp"

#include "exit_status.hpp"
#include "json.hpp"
#include "lock_status.hpp"
#include "node_arguments.hpp"
#include "redis/admin_connection.hpp"
#include "server_info.hpp"
#include "span.hpp"
#include "table.hpp"

#include <redlock/detail/command_encoding.hpp>
#include <redlock/redis_nodes.hpp>
#include <redlock/resources.hpp>

#include <algorithm>
#include <charconv>
#include <iostream>
#include <memory>
#include <string>
#include <vector>

namespace redlock::tool {
namespace {

using Kind = detail::Reply::Kind;
using State = KeyFacts::State;

struct Request {
    NodeArguments nodes{};
    std::string resource{};
    bool json = false;
};

// ---- Asking

KeyFacts silent(KeyFacts key, const Answer& answer) {
    key.state = State::unknown;
    key.cause = answer.cause ? answer.cause : make_error_code(Errc::unexpected_reply);
    key.detail = answer.detail;
    return key;
}

/// What no lock of anybody looks like.
KeyFacts no_lock(KeyFacts key, AdminConnection& admin, const std::string& resource) {
    key.state = State::no_lock;
    const auto type = admin.ask({"TYPE", resource});
    key.type = type ? type.reply.text : "another type";
    return key;
}

/// What is read as a text; its expiry may have come since.
KeyFacts with_expiry(KeyFacts key, AdminConnection& admin, const std::string& resource) {
    const auto expiry = admin.ask({"PTTL", resource});
    if (!expiry || expiry.reply.kind != Kind::integer) return silent(std::move(key), expiry);
    constexpr long long gone = -2;
    if (expiry.reply.integer == gone) {
        key.owner.clear();
        key.state = State::free;
    } else if (expiry.reply.integer < 0) {
        key.type = "string without an expiry";
        key.state = State::no_lock;
    } else {
        key.expires_in = std::chrono::milliseconds{expiry.reply.integer};
        key.state = State::held;
    }
    return key;
}

void count_holders(KeyFacts& key, AdminConnection& admin, const std::string& resource) {
    const auto info = admin.ask({"INFO", "server"});
    const auto run_id = info ? ServerInfo::parse(info.reply.text).run_id : std::string{};
    if (run_id.empty()) return;
    const auto answer = admin.ask({"GET", detail::counter_of(resource, run_id)});
    const auto& text = answer.reply.text;
    std::uint64_t number = 0;
    const auto [rest, error] = std::from_chars(text.data(), text.data() + text.size(), number);
    if (answer && error == std::errc{} && rest == text.data() + text.size()) key.holders_counted = number;
}

KeyFacts key_on(const Endpoint& endpoint, const std::string& resource, std::chrono::milliseconds budget) {
    AdminConnection admin{endpoint, budget};
    KeyFacts key{.name = endpoint.name()};
    const auto value = admin.ask({"GET", resource});
    key.took = value.took;
    if (value.cause == Errc::wrong_type) return no_lock(std::move(key), admin, resource);
    if (!value || (value.reply.kind != Kind::nil && value.reply.kind != Kind::text))
        return silent(std::move(key), value);
    key.state = State::free;
    if (value.reply.kind == Kind::text) {
        key.owner = value.reply.text;
        key = with_expiry(std::move(key), admin, resource);
    }
    if (key.state != State::unknown) count_holders(key, admin, resource);
    return key;
}

// ---- Telling

std::string told(const KeyFacts& key) {
    if (key.state == State::unknown)
        return key.cause.message() + (key.detail.empty() ? "" : ": " + key.detail);
    if (key.state == State::no_lock) return "no lock: " + key.type;
    return key.state == State::held ? shown(key.owner) : std::string{};
}

void print(std::ostream& out, const std::vector<KeyFacts>& keys, const LockStatus& status) {
    const bool counted =
        std::ranges::any_of(keys, [](const KeyFacts& it) { return it.holders_counted.has_value(); });
    std::vector<std::string> headings{"NODE", "STATE", "EXPIRES IN", "OWNER"};
    if (counted) headings.insert(headings.begin() + 3, "FENCING COUNT");
    Table table{headings};
    for (const auto& key : keys) {
        const bool odd = key.state == State::no_lock;
        std::vector<std::string> row{key.name, odd ? "no lock" : name_of(key.state),
                                     key.expires_in ? text_of(*key.expires_in) : "", told(key)};
        if (counted)
            row.insert(row.begin() + 3, key.holders_counted ? std::to_string(*key.holders_counted) : "");
        table.add(std::move(row));
    }
    out << table << summary_of(status) << '\n';
}

int status(const Request& request) {
    const auto endpoints = request.nodes.endpoints();
    (void)RedisNodes{endpoints, request.nodes.options()};  // refuses what no lock can use
    (void)detail::checked_resources({request.resource});
    std::vector<KeyFacts> keys;
    keys.reserve(endpoints.size());
    for (const auto& endpoint : endpoints)
        keys.push_back(key_on(endpoint, request.resource, request.nodes.options().node_timeout));
    const auto status = lock_status_of(keys);
    if (request.json)
        print_json(std::cout, request.resource, keys, status);
    else
        print(std::cout, keys, status);
    return status.answered >= quorum(keys.size()) ? 0 : exit_status::no_quorum;
}

}  // namespace

void add_status(CommandLine& line) {
    auto request = std::make_shared<Request>();
    auto& arguments =
        line.add("status", "Tell who holds a lock, node by node", [request] { return status(*request); });
    arguments.required_text("RESOURCE", request->resource, "What is locked: the key on the nodes");
    arguments.flag("--json", request->json, "One JSON object on stdout");
    request->nodes.add_to(arguments);
}

}  // namespace redlock::tool
