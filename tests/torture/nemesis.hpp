// Does to nodes, links and workers what happens to them in a bad year, at random, and undoes it.
#pragma once

#include "crew.hpp"

#include "support/cluster.hpp"
#include "support/tcp_proxy.hpp"

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <random>
#include <string>

namespace redlock::torture {

class Nemesis {
public:
    /// Two links to each node: those of node i are links 2 i and 2 i + 1.
    Nemesis(support::Cluster& nodes, std::deque<support::TcpProxy>& links, Crew& crew, std::uint64_t seed);

    /// One misfortune, and the end of those whose time is over.
    void strike();

    /// All is well again.
    void relent();

    /// How often each thing was done.
    const std::map<std::string, int>& deeds() const noexcept { return deeds_; }

private:
    /// Whatever has been done to a node, a link or a worker, and how to undo it.
    struct Misfortune {
        Instant until;
        std::size_t node;  // no_node for a worker
        std::function<void()> undo;
    };
    static constexpr std::size_t no_node = SIZE_MAX;

    void crash_node();
    void crash_majority();
    void flush_node();
    void freeze_node();
    void pause_node();
    void cut_link();
    void silence_link();
    void stop_worker();
    void kill_worker();

    void note(const std::string& deed) { ++deeds_[deed]; }
    void later(std::size_t node, std::chrono::milliseconds at_most, std::function<void()> undo);
    void undo_what_is_over(Instant now);
    bool troubled(std::size_t node) const;
    std::size_t sound_node();
    std::size_t below(std::size_t count);

    support::Cluster& nodes_;
    std::deque<support::TcpProxy>& links_;
    Crew& crew_;
    std::mt19937_64 randomness_;
    std::deque<Misfortune> misfortunes_{};
    std::map<std::string, int> deeds_{};
};

}  // namespace redlock::torture
