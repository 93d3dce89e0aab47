// The rounds that can continue. The replies come on connections that many rounds share. The thread that reads
// a reply, which is that of an event loop or the leading one of Lane, wakes the round to which the reply
// belongs. Then the same thread continues with the woken rounds.
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

        void* owner = nullptr;  ///< for the reading thread: the operation or the thread that makes the round

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
