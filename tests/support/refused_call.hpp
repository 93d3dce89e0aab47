// A system call that fails for the rest of the process.
#pragma once

#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>

#include <array>
#include <cstddef>
#include <cstdint>

namespace redlock::support {

/// From now on, also behind exec(), this system call fails with this error. `allows` is a statement of BPF
/// that looks at an argument of the call, and allows the call if it jumps over one statement. Returns false
/// if the kernel does not take the filter.
inline bool refuse_call(std::uint32_t call, int error, std::size_t argument = 0,
                        sock_filter allows = BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, 0, 1, 0)) {
    const auto offset = offsetof(seccomp_data, args) + argument * sizeof(seccomp_data::args[0]);
    std::array<sock_filter, 6> program{
        {BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
         BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, call, 0, 3),
         BPF_STMT(BPF_LD | BPF_W | BPF_ABS, static_cast<std::uint32_t>(offset)), allows,
         BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | static_cast<std::uint32_t>(error)),
         BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)}};
    const sock_fprog filter{program.size(), program.data()};
    return ::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
           ::prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter) == 0;
}

}  // namespace redlock::support
