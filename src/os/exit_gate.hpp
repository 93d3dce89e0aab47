// Prevents threads from using another library while that library is taken down because the process exits.
//
//     ExitGate gate;                      // never destroyed
//     if (const ExitGate::Permit permit{gate}) use_the_library();
//     std::atexit([] { gate.close(); });  // runs before the library's own handler
#pragma once

#include <redlock/detail/not_copied.hpp>
#include <redlock/process.hpp>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <thread>

namespace redlock {

class ExitGate : detail::NotCopied {
public:
    /// The permission of one thread to use the library. It is false after close().
    class Permit : detail::NotCopied {
    public:
        explicit Permit(ExitGate& gate) noexcept : gate_(gate), inside_(gate.enter()) {}
        ~Permit() {
            if (inside_) gate_.state_.fetch_sub(1, std::memory_order_release);
        }
        explicit operator bool() const noexcept { return inside_; }

    private:
        ExitGate& gate_;
        const bool inside_;
    };

    /// Admits no further thread, and blocks until all threads have left. Blocks for one second at most,
    /// because a signal handler may have called exit() while its own thread was inside.
    void close() noexcept {
        using namespace std::chrono_literals;
        if (!enter()) return;  // it was closed before; otherwise the state now belongs to this process
        state_.fetch_add(closed - 1);
        for (int wait = 0; wait < 1000 && (state_.load(std::memory_order_acquire) & count) != 0; ++wait)
            std::this_thread::sleep_for(1ms);
    }

private:
    // The state consists of the number of threads inside, the bit `closed`, and the number of the process to
    // which both belong. In a child of fork(), a state of the parent counts as empty.
    static constexpr std::uint64_t closed = 0x8000;
    static constexpr std::uint64_t count = closed - 1;
    static std::uint64_t process() noexcept { return static_cast<std::uint64_t>(this_process()) << 16; }

    bool enter() noexcept {
        auto state = state_.load(std::memory_order_relaxed);
        for (;;) {
            const auto mine = (state & ~(closed | count)) == process() ? state : process();
            if ((mine & closed) != 0) return false;
            if (state_.compare_exchange_weak(state, mine + 1, std::memory_order_acquire)) return true;
        }
    }

    std::atomic<std::uint64_t> state_{0};
};

}  // namespace redlock
