#include "field.hpp"

#include "raw_client.hpp"
#include "redis_plus_plus_client.hpp"
#include "redlock_client.hpp"

#include <utility>

namespace redlock::bench {
namespace {

std::string program(const std::string& file) {
    return std::string{REDLOCK_BENCH_PEERS} + "/" + file;
}

}  // namespace

std::unique_ptr<Peer> node_redlock(const std::vector<std::string>& uris) {
    std::vector<std::string> words{"node", program("node_redlock.js")};
    words.insert(words.end(), uris.begin(), uris.end());
    return Peer::start("node-redlock", std::move(words));
}

Field::Field(std::vector<std::string> uris) : uris_(std::move(uris)) {
    add(std::make_unique<RedlockClient>(uris_, Round::sequential, "bench:ours-one"));
    add(std::make_unique<RawClient>(uris_, RawClient::Way::sequential, "bench:raw--one"));
    add(std::make_unique<RedlockClient>(uris_, Round::all_at_once, "bench:ours-all"));
    add(std::make_unique<RawClient>(uris_, RawClient::Way::multiplexed, "bench:raw--all"));
    add(std::make_unique<ScopedRedlockClient>(uris_, "bench:ours-all"));
    auto nodes = std::make_shared<RedisNodes>(uris_, NodesOptions{.round = Round::all_at_once});
    add(std::make_unique<RedlockClient>("redlock fair", nodes, "bench:ours-all", LockOptions{.fair = true}));
    add(std::make_unique<RedlockClient>("redlock shared", std::move(nodes), "bench:ours-all",
                                        LockOptions{.shared = true}));
}

void Field::add_peers() {
    add(redis_plus_plus_client(uris_, "bench:rpp--one"));
    add(node_redlock(uris_));
    add_program("redis-py x1", {"/usr/bin/python3", program("redis_py.py")}, 1);
}

void Field::add_program(const std::string& name, std::vector<std::string> words, std::size_t nodes) {
    words.insert(words.end(), uris_.begin(), uris_.begin() + static_cast<std::ptrdiff_t>(nodes));
    add(Peer::start(name, std::move(words)));
}

void Field::add(std::unique_ptr<Client> client) {
    if (!client) return;
    clients_.push_back(client.get());
    owned_.push_back(std::move(client));
}

}  // namespace redlock::bench
