#include "sim_node.hpp"

#include <algorithm>
#include <utility>

namespace redlock::sim {
namespace {

constexpr std::int64_t a_day = 24 * 3600 * 1000;  // in ms, as Redis counts expiry
const Reply granted{.vote = Vote::granted};
const Reply refused{.vote = Vote::refused};

}  // namespace

SimNode::SimNode(Timeline& timeline, Chronicle& chronicle, std::string name, DriftingClock wall, Flaws flaws)
    : timeline_(timeline),
      chronicle_(chronicle),
      name_(std::move(name)),
      wall_(wall),
      flaws_(flaws),
      run_(name_ + ".1") {}

// ---- What befalls it

void SimNode::crash() {
    if (!up_) return;
    up_ = false;
    chronicle_.note(name_, [] { return "crashes"; });
    for (const auto& peer : std::exchange(peers_, {}))
        if (const auto it = peer.lock()) it->node_died();
}

void SimNode::restart(Data data) {
    crash();
    if (data == Data::old) keys_ = snapshot_;
    if (data == Data::nothing) keys_.clear();
    up_ = true;
    frozen_until_ = {};
    run_ = name_ + "." + std::to_string(++life_);
    chronicle_.note(name_, [&] {
        const char* const with[] = {"all its data", "old data", "no data"};
        return std::string{"starts with "} + with[static_cast<int>(data)];
    });
}

void SimNode::flush() {
    keys_.clear();
    chronicle_.note(name_, [] { return "FLUSHALL"; });
}

void SimNode::evict_marker() {
    keys_.erase(marker_of(run_));
    chronicle_.note(name_, [] { return "evicts its marker"; });
}

void SimNode::take_snapshot() {
    snapshot_ = keys_;
    chronicle_.note(name_, [] { return "takes a snapshot"; });
}

void SimNode::freeze_for(nanoseconds span) {
    frozen_until_ = std::max(frozen_until_, timeline_.now() + span);
    chronicle_.note(name_, [&] { return "is frozen for " + text(span); });
}

void SimNode::step_clock(nanoseconds by) {
    wall_.step(timeline_.now(), by);
    chronicle_.note(name_, [&] { return "has its clock set by " + text(by); });
}

void SimNode::trust_since(nanoseconds ago) {
    put(marker_of(run_), {}, (wall() - ago) / 1us, 28 * a_day);
}

void SimNode::attach(std::weak_ptr<Peer> peer) {
    if (peers_.size() > 32) std::erase_if(peers_, [](const auto& it) { return it.expired(); });
    peers_.push_back(std::move(peer));
}

// ---- Keys

const SimNode::Entry* SimNode::find(std::string_view key) const {
    const auto entry = keys_.find(key);
    // Redis keeps a key until the millisecond after; the harsher reading does no harm to what is right.
    return entry != keys_.end() && wall_ms() < entry->second.expiry ? &entry->second : nullptr;
}

SimNode::Entry* SimNode::find(std::string_view key) {
    return const_cast<Entry*>(std::as_const(*this).find(key));
}

void SimNode::put(const std::string& key, std::string owner, std::int64_t number, std::int64_t ttl) {
    keys_[key] = {std::move(owner), number, wall_ms() + ttl};
}

std::string_view SimNode::owner(const std::string& resource) const {
    const auto* const entry = find(resource);
    return entry ? std::string_view{entry->owner} : std::string_view{};
}

bool SimNode::holds_longer_than(nanoseconds span) const {
    return std::ranges::any_of(keys_, [&](const auto& entry) {
        return !entry.second.owner.empty() && entry.second.expiry > wall_ms() + span / 1ms;
    });
}

bool SimNode::holds(std::string_view owner, Resources resources) {
    return std::ranges::all_of(resources, [&](const auto& it) { return this->owner(it) == owner; });
}

std::string SimNode::marker_of(const std::string& run) const {
    return "redlock:since:" + (flaws_.marker_without_run ? std::string{} : run);
}

std::string SimNode::counter_of(const std::string& resource, const std::string& run) const {
    return "{" + resource + "}:fence:" + (flaws_.counter_without_run ? std::string{} : run);
}

// ---- The scripts

bool SimNode::young(const Letter& letter, const std::string& run) {
    const auto quarantine = letter.quarantine() / 1us;
    if (quarantine == 0 || letter.erases()) return false;
    const auto marker = marker_of(run);
    if (!find(marker)) put(marker, {}, wall_us(), std::max(28 * a_day, quarantine / 500));
    return find(marker)->number + quarantine > wall_us();
}

Reply SimNode::execute(const Letter& letter, const std::string& run) {
    Reply reply{.vote = Vote::unknown, .cause = Errc::quarantined};
    const bool careless = flaws_.extend_makes_keys && letter.extends();
    if (!young(letter, run) || careless) reply = execute(letter.command(), run);
    note_reply(letter, reply);
    return reply;
}

Reply SimNode::execute(const Command& command, const std::string& run) {
    switch (command.verb) {
        case Verb::set_if_absent: return set(command);
        case Verb::set_and_count: return set_and_count(command, run);
        case Verb::raise_count: return raise_count(command, run);
        case Verb::compare_and_expire: return expire(command);
        case Verb::compare_and_delete: return erase(command);
    }
    return refused;
}

Reply SimNode::set(const Command& set) {
    if (!holds({}, set.resources)) return refused;
    const auto ttl = flaws_.set_without_expiry ? 365 * a_day : set.ttl.count();
    for (const auto& resource : set.resources) put(resource, std::string{set.owner}, 0, ttl);
    return granted;
}

Reply SimNode::set_and_count(const Command& set, const std::string& run) {
    if (!holds({}, set.resources)) return refused;
    std::int64_t fence = 0;
    for (const auto& resource : set.resources) {
        const auto* const counter = find(counter_of(resource, run));
        const auto seed = flaws_.seed_zero ? 0 : wall_us();
        fence = std::max(fence, counter ? counter->number + 1 : seed);
    }
    for (const auto& resource : set.resources) {
        put(counter_of(resource, run), {}, fence, a_day);
        put(resource, std::string{set.owner}, 0, set.ttl.count());
    }
    return {.vote = Vote::granted, .count = static_cast<std::uint64_t>(fence)};
}

Reply SimNode::raise_count(const Command& raise, const std::string& run) {
    if (!holds(raise.owner, raise.resources) && !flaws_.raise_ignores_owner) return refused;
    for (const auto& resource : raise.resources)
        if (!find(counter_of(resource, run))) return refused;
    for (const auto& resource : raise.resources) {
        auto& count = find(counter_of(resource, run))->number;
        count = std::max(count, static_cast<std::int64_t>(raise.fence));
    }
    return granted;
}

Reply SimNode::expire(const Command& expire) {
    const auto ttl = expire.ttl.count();
    if (flaws_.extend_makes_keys && holds({}, expire.resources))
        for (const auto& resource : expire.resources) put(resource, std::string{expire.owner}, 0, ttl);
    if (flaws_.extend_ignores_owner &&
        std::ranges::all_of(expire.resources, [&](const auto& it) { return find(it); }))
        return granted;
    if (!holds(expire.owner, expire.resources)) return refused;
    for (const auto& resource : expire.resources) {
        auto& expiry = find(resource)->expiry;
        if (expiry < wall_ms() + ttl || flaws_.extend_shortens) expiry = wall_ms() + ttl;
    }
    return granted;
}

Reply SimNode::erase(const Command& erase) {
    const bool all = holds(erase.owner, erase.resources);
    for (const auto& resource : erase.resources)
        if (owner(resource) == erase.owner || flaws_.release_ignores_owner) keys_.erase(resource);
    return all ? granted : refused;
}

void SimNode::note_reply(const Letter& letter, const Reply& reply) {
    chronicle_.note(name_, [&] {
        const auto head = verb_of(letter.command()) + " " + chronicle_.nickname(letter.owner()) + ": ";
        if (reply.vote == Vote::refused) return head + "refused";
        if (reply.vote == Vote::unknown) return head + reply.cause.message();
        return head + "granted" + (reply.count ? ", counted " + std::to_string(reply.count) : "");
    });
}

}  // namespace redlock::sim
