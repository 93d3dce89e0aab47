// The watchdog of an event loop: makes the passes of a RenewalQueue, and makes the rounds in steps. It
// reports losses also while a round is under way.
#pragma once

#include <redlock/detail/renewer.hpp>

#include "../lock/renewal_queue.hpp"
#include "scheduler.hpp"

#include <memory>

namespace redlock::loop {

class Context;
class RoundRunner;

class Renewals final : public detail::Renewer, Task {
public:
    explicit Renewals(Context& context);
    ~Renewals() override;

    void add(detail::Acquisition acquisition) override;
    /// Ends the extension of an acquisition. An extension may be under way (rule B7 in docs/rules.md).
    void remove(const detail::Acquisition& acquisition) noexcept override;
    /// Ends all extensions, at the shutdown of the loop.
    void shut_down() noexcept;

private:
    void proceed() override;
    void go_on();

    detail::RenewalQueue queue_;
    std::unique_ptr<RoundRunner> runner_;  // null after shut_down()
};

}  // namespace redlock::loop
