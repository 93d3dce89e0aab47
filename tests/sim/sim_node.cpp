#include "sim_node.hpp"

#include <algorithm>
#include <cstddef>
#include <iterator>

#include "round/hash_slot.hpp"
#include "wire/command_encoding.hpp"

namespace redlock::sim {

SimNode::SimNode(Timeline& timeline, Log& log, std::string name, DriftingClock wall)
    : timeline_(timeline), log_(log), name_(std::move(name)), wall_(wall), model_(run()) {
    model_.on_publish([this](auto channel, auto message) { return publish(channel, message); });
    model_.on_numsub([this](auto channel) { return listeners_of(channel); });
}

// ---- Faults.

void SimNode::crash() {
    if (!up_) return;
    up_ = false;
    log_.note(name_, [] { return "crashes"; });
    subscribers_.clear();
    for (const auto& peer : std::exchange(peers_, {}))
        if (const auto it = peer.lock()) it->node_died();
}

void SimNode::restart(Data data) {
    crash();
    up_ = true;
    frozen_until_ = {};
    ++life_;
    auto keys = data == Data::kept ? model_.keys() : data == Data::old ? snapshot_ : Model::Keys{};
    model_.restart(run(), std::move(keys));
    log_.note(name_, [&] {
        const char* const with[] = {"all its data", "old data", "no data"};
        return std::string{"starts with "} + with[static_cast<int>(data)];
    });
}

void SimNode::flush() {
    model_.keys().clear();
    log_.note(name_, [] { return "FLUSHALL"; });
}

void SimNode::evict_marker() {
    model_.keys().erase(std::string{detail::marker_key});
    log_.note(name_, [] { return "evicts its marker"; });
}

void SimNode::promote_again() {
    model_.promote(snapshot_);
    log_.note(name_, [] { return "is promoted again, with what it had of its master's data"; });
}

void SimNode::take_snapshot() {
    snapshot_ = model_.keys();
    log_.note(name_, [] { return "takes a snapshot"; });
}

void SimNode::forget_scripts() {
    model_.restart(run(), std::move(model_.keys()));
    log_.note(name_, [] { return "SCRIPT FLUSH"; });
}

void SimNode::freeze_for(nanoseconds span) {
    frozen_until_ = std::max(frozen_until_, timeline_.now() + span);
    log_.note(name_, [&] { return "is frozen for " + text(span); });
}

void SimNode::step_clock(nanoseconds by) {
    wall_.step(timeline_.now(), by);
    log_.note(name_, [&] { return "has its clock set by " + text(by); });
}

void SimNode::trust_since(nanoseconds ago) {
    constexpr auto weeks = "2419200000";
    const auto since = std::to_string((wall() - std::chrono::duration_cast<Model::Time>(ago)).count());
    (void)model_.execute({"SET", std::string{detail::marker_key}, model_.data() + since, "PX", weeks},
                         wall());
}

void SimNode::attach(std::weak_ptr<Peer> peer) {
    if (peers_.size() > 32) std::erase_if(peers_, [](const auto& it) { return it.expired(); });
    peers_.push_back(std::move(peer));
}

// ---- Messages

void SimNode::subscribe(std::string channel, std::weak_ptr<Peer> peer) {
    subscribers_.emplace_back(std::move(channel), std::move(peer));
}

std::size_t SimNode::listeners_of(std::string_view channel) const {
    return static_cast<std::size_t>(std::ranges::count_if(
        subscribers_, [&](const auto& it) { return it.first == channel && !it.second.expired(); }));
}

std::size_t SimNode::publish(std::string_view channel, std::string_view message) {
    std::erase_if(subscribers_, [](const auto& it) { return it.second.expired(); });
    std::size_t heard = 0;
    for (const auto& [theirs, peer] : subscribers_) {
        if (theirs != channel) continue;
        peer.lock()->published(channel, message);
        ++heard;
    }
    return heard;
}

// ---- Keys

bool SimNode::knows(std::string_view owner, const std::string& resource) const {
    const auto* const value = model_.find(resource, wall());
    const auto* const readers =
        model_.find(detail::key_of(detail::KeyKind::readers, resource).text(), wall());
    return (value && value->text == owner) || (readers && readers->scores.contains(owner));
}

/// Counters and markers live on for days, queues for seconds.
bool SimNode::holds_longer_than(nanoseconds span) const {
    const auto is_lock = [](std::string_view key) {
        return key != detail::marker_key && !key.ends_with(":fence") && !key.ends_with(":queue") &&
               !key.ends_with(":queue:signs");
    };
    return std::ranges::any_of(model_.keys(), [&](const auto& entry) {
        const auto& [key, value] = entry;
        const auto until = (wall() + span) / 1ms;
        return value.expiry == Model::Value::never || (is_lock(key) && value.expiry > until);
    });
}

// ---- Commands

std::string SimNode::execute(const Words& words, bool asking) {
    using support::RedisReply;
    if (in_cluster() && words[0] == "CLUSTER")
        return support::to_resp(RedisReply::of_bulk(list_of_servers()));
    auto error = in_cluster() ? redirection_of(keys_of(words), asking) : std::string{};
    const auto reply = error.empty() ? model_.execute(words, wall()) : RedisReply::of_error(std::move(error));
    if (const auto owner = owner_of(words); !owner.empty())
        log_.note(name_,
                  [&] { return text(words) + " " + log_.nickname(owner) + ": " + support::text_of(reply); });
    return support::to_resp(reply);
}

// ---- The slots of a Redis Cluster

void SimNode::join_cluster(SimNode& other, Slots slots, int port) {
    other_ = &other;
    slots_ = slots;
    port_ = port;
}

void SimNode::set_slots(Slots slots) {
    slots_ = slots;
    log_.note(name_, [&] {
        const char* const states[] = {"has the slots", "begins to move the slots", "begins to get the slots",
                                      "has no slots any more"};
        return states[static_cast<int>(slots)];
    });
}

void SimNode::move_slots(Rng& rng) {
    auto& from = slots_ == Slots::leaving || (slots_ == Slots::served && other_->slots_ != Slots::leaving)
                     ? *this
                     : *other_;
    auto& to = *from.other_;
    if (!up_ || !other_->up_ || frozen() || other_->frozen()) return;
    if (from.slots_ == Slots::served) {
        if (timeline_.now() < from.next_move_) return;
        to.set_slots(Slots::coming);
        from.set_slots(Slots::leaving);
    } else if (to.slots_ == Slots::served) {
        from.set_slots(Slots::elsewhere);
        to.next_move_ = timeline_.now() + 1s;
    } else if (from.model_.keys().empty()) {
        to.set_slots(Slots::served);
    } else {
        from.move_a_key(rng);
    }
}

void SimNode::move_a_key(Rng& rng) {
    auto& keys = model_.keys();
    const auto it = std::next(keys.begin(), static_cast<std::ptrdiff_t>(rng.below(keys.size())));
    log_.note(name_, [&] { return "moves the key " + it->first; });
    if (auto* const value = model_.find(it->first, wall())) {
        auto moved = *value;
        if (moved.expiry != Model::Value::never) moved.expiry += (other_->wall() - wall()) / 1ms;
        other_->model_.keys().insert_or_assign(it->first, std::move(moved));
    }
    keys.erase(it);
}

std::string SimNode::list_of_servers() const {
    const auto line = [this](const SimNode& server) {
        const bool has = has_slots() == (&server == this);
        return server.name_.substr(5) + " 127.0.0.1:" + std::to_string(server.port_) + "@1 " +
               (&server == this ? "myself,master" : "master") + " - 0 0 1 connected" +
               (has ? " 0-16383\n" : "\n");
    };
    return line(*this) + line(*other_);
}

/// Returns the error of a server that does not execute a command with these keys, or an empty text.
std::string SimNode::redirection_of(const std::vector<std::string>& keys, bool asking) const {
    const auto missing = static_cast<std::size_t>(
        std::ranges::count_if(keys, [this](const auto& key) { return !model_.find(key, wall()); }));
    const auto to_other = [&](const std::string& error) {
        return error + " " + std::to_string(detail::hash_slot_of(keys.front())) +
               " 127.0.0.1:" + std::to_string(other_->port_);
    };
    const std::string try_again = "TRYAGAIN Multiple keys request during rehashing of slot";
    if (keys.empty() || slots_ == Slots::served) return {};
    if (slots_ == Slots::leaving)
        return missing == 0 ? "" : missing < keys.size() ? try_again : to_other("ASK");
    if (slots_ == Slots::coming && asking) return missing > 0 && keys.size() > 1 ? try_again : "";
    return to_other("MOVED");
}

}  // namespace redlock::sim
