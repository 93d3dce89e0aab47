// The work of a leader, from its begin to its end. The checker sees both, and each stop request.
#pragma once

#include "checker.hpp"
#include "client.hpp"

#include <redlock/leader.hpp>

#include <functional>
#include <optional>
#include <stop_token>
#include <string>

namespace redlock::sim {

/// The resource of all leaders.
inline constexpr auto leadership = "leader";

class AtWork final : public Checker::Leading, detail::NotCopied {
public:
    /// `options` are those of the leader.
    AtWork(Client& client, Term term, const LeaderOptions& options);
    ~AtWork();

    // ---- For the checker.
    const Process& process() const override { return client_.process(); }
    bool check_valid() override;
    const std::string& owner() const override { return owner_; }

private:
    void told();

    Client& client_;
    Checker& checker_;
    const Term term_;
    const milliseconds margin_;
    const nanoseconds longest_timer_;  // of the watchdog: a pause before its start makes the stop late
    const std::string owner_;
    std::optional<std::stop_callback<std::function<void()>>> on_stop_{};
};

}  // namespace redlock::sim
