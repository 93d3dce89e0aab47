// The rounds of an event loop that can continue. A *round* sends a command to N Redis masters and counts
// their votes. The replies come on connections that many rounds share. Whoever reads them wakes the rounds
// that they belong to, and the event loop continues with these rounds.
#pragma once

#include <utility>

namespace redlock {

class WokenRounds {
public:
    /// The base class of a round. It can be in the list once.
    class Round {
    public:
        Round(const Round&) = delete;
        Round& operator=(const Round&) = delete;

        void* owner = nullptr;  ///< for the event loop: the operation that makes the round

    protected:
        Round() = default;
        ~Round() = default;

    private:
        friend WokenRounds;
        Round* next_ = nullptr;
        bool woken_ = false;
    };

    /// Adds the round at the end, unless it is in the list already.
    void wake(Round& round) noexcept {
        if (std::exchange(round.woken_, true)) return;
        *end_ = &round;
        end_ = &round.next_;
    }

    /// Removes the first round, and returns it, or null.
    Round* take() noexcept {
        auto* const first = first_;
        if (first) remove(*first);
        return first;
    }

    void remove(Round& round) noexcept {
        if (!std::exchange(round.woken_, false)) return;
        auto** at = &first_;
        while (*at != &round) at = &(*at)->next_;
        *at = std::exchange(round.next_, nullptr);
        if (*at == nullptr) end_ = at;
    }

private:
    Round* first_ = nullptr;
    Round** end_ = &first_;  // where the next one is attached
};

}  // namespace redlock
