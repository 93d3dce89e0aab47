// One Redis master of the simulated world: the Redis model, whose scripts are run by Lua, under a wall clock
// of its own; and everything that can happen to such a server.
#pragma once

#include "drifting_clock.hpp"
#include "log.hpp"
#include "message.hpp"
#include "timeline.hpp"

#include "support/redis_model.hpp"

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
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
    /// A connection to it, which notices when it dies.
    class Peer {
    public:
        virtual void node_died() = 0;
        /// A message has come on a channel that it listens to.
        virtual void published(std::string_view channel, std::string_view message) = 0;

    protected:
        ~Peer() = default;
    };

    SimNode(Timeline& timeline, Log& log, std::string name, DriftingClock wall);

    const std::string& name() const noexcept { return name_; }

    // ---- Faults.
    void crash();
    void restart(Data data);
    void flush();
    void evict_marker();
    void take_snapshot();
    /// It was demoted, and is the master again, without a restart: with the data of the last snapshot, as far
    /// as the other master had replicated them to it.
    void promote_again();
    void forget_scripts();
    void freeze_for(nanoseconds span);
    void step_clock(nanoseconds by);
    /// Its data have been complete for long: the marker is older than the world.
    void trust_since(nanoseconds ago);

    // ---- For those connected to it.
    bool up() const noexcept { return up_; }
    bool frozen() const noexcept { return timeline_.now() < frozen_until_; }
    Instant frozen_until() const noexcept { return frozen_until_; }
    /// Which life of the server this is: a connection does not survive it.
    int life() const noexcept { return life_; }
    void attach(std::weak_ptr<Peer> peer);

    /// From now on `peer` hears what is published on `channel`, for as long as it lives.
    void subscribe(std::string channel, std::weak_ptr<Peer> peer);

    /// Executes a command; the reply as it goes over the wire.
    std::string execute(const Words& words);

    // ---- For the checker.
    bool has(const std::string& resource) const { return model_.find(resource, wall()) != nullptr; }
    /// The owner that has `resource` alone; empty if there is none.
    std::string holder_of(const std::string& resource) const {
        const auto* const value = model_.find(resource, wall());
        return value ? value->text : std::string{};
    }
    /// Whether `owner` has `resource`, alone or as a reader.
    bool knows(std::string_view owner, const std::string& resource) const;
    /// Whether any of its keys will never expire, or only later than `span` from now.
    bool holds_longer_than(nanoseconds span) const;

private:
    using Model = support::RedisModel;

    Model::Time wall() const noexcept {
        return std::chrono::duration_cast<Model::Time>(wall_.read(timeline_.now()));
    }
    std::string run() const { return name_ + "." + std::to_string(life_); }
    std::size_t publish(std::string_view channel, std::string_view message);
    std::size_t listeners_of(std::string_view channel) const;

    Timeline& timeline_;
    Log& log_;
    std::string name_;
    int life_ = 1;
    DriftingClock wall_;
    Model model_;
    Model::Keys snapshot_{};
    bool up_ = true;
    Instant frozen_until_{};
    std::vector<std::weak_ptr<Peer>> peers_{};
    std::vector<std::pair<std::string, std::weak_ptr<Peer>>> subscribers_{};
};

}  // namespace redlock::sim
