// One Redis master in memory: keys that expire by its own wall clock, the scripts of src/scripts.hpp, each as
// one step, and everything that can happen to such a server.
#pragma once

#include "chronicle.hpp"
#include "drifting_clock.hpp"
#include "flaws.hpp"
#include "letter.hpp"
#include "timeline.hpp"

#include <redlock/nodes.hpp>

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace redlock::sim {

/// What a restarted server finds of its data.
enum class Data : std::uint8_t {
    kept,     ///< all: every write was on disk before it was answered
    old,      ///< those of the last snapshot, if there was one
    nothing,  ///< none
};

class SimNode {
public:
    /// Somebody connected to it, who notices when it dies.
    class Peer {
    public:
        virtual void node_died() = 0;

    protected:
        ~Peer() = default;
    };

    SimNode(Timeline& timeline, Chronicle& chronicle, std::string name, DriftingClock wall, Flaws flaws);

    const std::string& name() const noexcept { return name_; }

    // ---- What befalls it.
    void crash();
    void restart(Data data);
    void flush();
    void evict_marker();
    void take_snapshot();
    void freeze_for(nanoseconds span);
    void step_clock(nanoseconds by);
    /// Its data have been whole for long: somebody placed the marker ahead of time.
    void trust_since(nanoseconds ago);

    // ---- For those connected to it.
    bool up() const noexcept { return up_; }
    bool frozen() const noexcept { return timeline_.now() < frozen_until_; }
    Instant frozen_until() const noexcept { return frozen_until_; }
    /// Which life of the server this is: a connection does not survive it.
    int life() const noexcept { return life_; }
    const std::string& run() const noexcept { return run_; }
    void attach(std::weak_ptr<Peer> peer);

    /// Executes what came over a connection that learned in its greeting that it talks to `run`.
    Reply execute(const Letter& letter, const std::string& run);

    // ---- For who looks from outside.
    /// Who has `resource`; empty if nobody.
    std::string_view owner(const std::string& resource) const;
    /// Whether any of its keys will never expire, or only later than `span` from now.
    bool holds_longer_than(nanoseconds span) const;

private:
    struct Entry {
        std::string owner;
        std::int64_t number;  // of a counter or a marker
        std::int64_t expiry;  // ms of the wall clock
    };
    using Keys = std::map<std::string, Entry, std::less<>>;

    nanoseconds wall() const noexcept { return wall_.read(timeline_.now()); }
    std::int64_t wall_ms() const noexcept { return wall() / 1ms; }
    std::int64_t wall_us() const noexcept { return wall() / 1us; }
    Entry* find(std::string_view key);
    const Entry* find(std::string_view key) const;
    void put(const std::string& key, std::string owner, std::int64_t number, std::int64_t ttl);
    bool holds(std::string_view owner, Resources resources);
    bool young(const Letter& letter, const std::string& run);
    std::string marker_of(const std::string& run) const;
    std::string counter_of(const std::string& resource, const std::string& run) const;

    Reply execute(const Command& command, const std::string& run);
    Reply set(const Command& set);
    Reply set_and_count(const Command& set, const std::string& run);
    Reply raise_count(const Command& raise, const std::string& run);
    Reply expire(const Command& expire);
    Reply erase(const Command& erase);
    void note_reply(const Letter& letter, const Reply& reply);

    Timeline& timeline_;
    Chronicle& chronicle_;
    std::string name_;
    DriftingClock wall_;
    Flaws flaws_;
    Keys keys_{};
    Keys snapshot_{};
    bool up_ = true;
    Instant frozen_until_{};
    int life_ = 1;
    std::string run_{};
    std::vector<std::weak_ptr<Peer>> peers_{};
};

}  // namespace redlock::sim
