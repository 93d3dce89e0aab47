// One Redis master of the simulated world: the Redis model, whose scripts are run by Lua, under a wall clock
// of its own; and everything that can happen to such a server.
#pragma once

#include "drifting_clock.hpp"
#include "log.hpp"
#include "message.hpp"
#include "rng.hpp"
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

/// The slots of a server of a Redis Cluster that has one other server. All slots have the same state.
enum class Slots : std::uint8_t {
    served,     ///< The server has them.
    leaving,    ///< It has them, and they are being moved to the other server.
    coming,     ///< The other one has them, and they are being moved here.
    elsewhere,  ///< The other one has them.
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

    /// Executes a command; the reply as it goes over the wire. `asking` is true behind ASKING.
    std::string execute(const Words& words, bool asking = false);

    // ---- The slots of a Redis Cluster.

    /// Makes the server and the other one a Cluster. Its address has this port.
    void join_cluster(SimNode& other, Slots slots, int port);
    bool in_cluster() const noexcept { return other_ != nullptr; }
    bool moves_slots() const noexcept { return slots_ == Slots::leaving || other_->slots_ == Slots::leaving; }
    /// Makes the next step of moving the slots to the server that does not have them: the begin, one key, or
    /// the end, which the two servers learn one after the other. Does nothing if a server is down or frozen,
    /// and in the second after a move. (A client that was idle meanwhile may keep a release that is to be
    /// sent behind ASKING. If the slots were moved back before, the server would not find the key.)
    void move_slots(Rng& rng);

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

    /// Returns the present instant of the wall clock of this server.
    support::RedisModel::Time wall() const noexcept {
        return std::chrono::duration_cast<support::RedisModel::Time>(wall_.read(timeline_.now()));
    }

private:
    using Model = support::RedisModel;

    std::string run() const { return name_ + "." + std::to_string(life_); }
    std::size_t publish(std::string_view channel, std::string_view message);
    std::size_t listeners_of(std::string_view channel) const;
    bool has_slots() const noexcept { return slots_ == Slots::served || slots_ == Slots::leaving; }
    void set_slots(Slots slots);
    void move_a_key(Rng& rng);
    std::string list_of_servers() const;
    std::string redirection_of(const std::vector<std::string>& keys, bool asking) const;

    Timeline& timeline_;
    Log& log_;
    std::string name_;
    int life_ = 1;
    DriftingClock wall_;
    Model model_;
    Model::Keys snapshot_{};
    bool up_ = true;
    Instant frozen_until_{};
    SimNode* other_ = nullptr;  // the other server of the Cluster
    Slots slots_ = Slots::served;
    int port_ = 0;
    Instant next_move_{};  // if it has the slots: they are not moved before
    std::vector<std::weak_ptr<Peer>> peers_{};
    std::vector<std::pair<std::string, std::weak_ptr<Peer>>> subscribers_{};
};

}  // namespace redlock::sim
