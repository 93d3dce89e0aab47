#include "raw_client.hpp"

#include <algorithm>

namespace redlock::bench {

RawClient::RawClient(const std::vector<std::string>& uris, Way way, const std::vector<std::string>& resources)
    : LocalClient(way == Way::sequential ? "raw sequential" : "raw multiplexed"), way_(way), nodes_(uris) {
    const auto owner = any_owner();
    commands_.reserve(2 * resources.size());
    for (const auto& resource : resources) {
        sets_.push_back(&commands_.emplace_back(RawCommand::set(resource, owner)));
        releases_.push_back(&commands_.emplace_back(RawCommand::compare_and_delete(resource, owner)));
    }
}

bool RawClient::acquire() {
    send(sets_);
    return std::ranges::all_of(sets_, [&](const RawCommand* set) { return set->granted >= nodes_.quorum(); });
}

void RawClient::send(const std::vector<RawCommand*>& commands) {
    if (way_ == Way::sequential) return nodes_.send_in_turn(*commands.front());
    nodes_.send_to_all(commands);
}

}  // namespace redlock::bench
