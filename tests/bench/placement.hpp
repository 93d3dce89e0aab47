// Which CPU does the work. On few cores the scheduler puts a client and its servers now here, now there, and
// the same program is twice as fast or not; with all of them on one CPU what is compared is the work per op.
#pragma once

#include <sched.h>
#include <sys/types.h>

#include <span>

namespace redlock::bench {

/// This thread, and the threads it starts from now on, and all threads of `processes`, on one CPU for as long
/// as it lives.
class OnOneCpu {
public:
    explicit OnOneCpu(std::span<const pid_t> processes);
    ~OnOneCpu();
    OnOneCpu(const OnOneCpu&) = delete;
    OnOneCpu& operator=(const OnOneCpu&) = delete;

private:
    std::span<const pid_t> processes_;
    cpu_set_t before_{};
};

}  // namespace redlock::bench
