#include "slot_moves.hpp"

#include "hold_log.hpp"
#include "resources.hpp"

#include "round/hash_slot.hpp"
#include "support/wait_until.hpp"

#include <stdexcept>
#include <thread>

namespace redlock::torture {

using namespace std::chrono_literals;

SlotMoves::SlotMoves(support::RedisClusterServers& servers, std::uint64_t seed)
    : servers_(servers), random_(seed + 2), thread_(std::async(std::launch::async, [this] { run(); })) {}

void SlotMoves::stop() {
    stopped_ = true;
    thread_.get();
}

void SlotMoves::run() {
    while (!stopped_) {
        pause(300ms);
        const auto choice = below(10);
        if (choice < 7)
            move_a_slot();
        else if (choice < 9)
            lose_a_server();
        else
            cut_connections();
    }
}

void SlotMoves::move_a_slot() {
    using Servers = support::RedisClusterServers;
    ++counts_["slots moved"];
    const auto resource = static_cast<unsigned>(below(resource_count));
    const auto slot = detail::hash_slot_of(name_of(resource));
    auto& place = places_.try_emplace(slot, slot / 5462U).first->second;
    const auto& from = servers_[place];
    place = (place + 1 + below(Servers::masters - 1)) % Servers::masters;
    const auto& to = servers_[place];
    Servers::begin_move(slot, from, to);
    for (const auto& key : keys_of(resource)) {
        pause(150ms);
        Servers::move_key(key, from, to);
    }
    pause(150ms);
    Servers::end_move(slot, from, to);
}

void SlotMoves::lose_a_server() {
    auto& server = servers_[below(support::RedisClusterServers::masters)];
    if (below(2) == 0) {
        ++counts_["server of the Cluster frozen"];
        server.freeze();
        pause(1500ms);
        server.thaw();
    } else {
        ++counts_["server of the Cluster killed and restarted"];
        server.kill();
        pause(1500ms);
        server.restart();
    }
    const auto is_well = [&] {
        return server.command({"CLUSTER", "INFO"}).find("cluster_state:ok") != std::string::npos;
    };
    if (!support::wait_until(is_well, 1min)) throw std::runtime_error("a server does not come back");
}

void SlotMoves::cut_connections() {
    ++counts_["connections of a server of the Cluster closed"];
    const auto& server = servers_[below(support::RedisClusterServers::masters)];
    (void)server.command({"CLIENT", "KILL", "TYPE", "normal"});
}

void SlotMoves::pause(std::chrono::milliseconds at_most) {
    const auto span = below(static_cast<std::size_t>(std::chrono::nanoseconds{at_most}.count()));
    const auto end = now() + static_cast<Instant>(span);
    while (!stopped_ && now() < end) std::this_thread::sleep_for(5ms);
}

}  // namespace redlock::torture
