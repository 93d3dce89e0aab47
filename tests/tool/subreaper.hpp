// The parent of processes whose own parents have ended.
#pragma once

#include <redlock/detail/not_copied.hpp>

#include <sys/prctl.h>

namespace redlock::test {

/// While this lives, this process becomes the parent of every descendant whose parent ends, unless a nearer
/// ancestor does.
class Subreaper : detail::NotCopied {
public:
    Subreaper() { ::prctl(PR_SET_CHILD_SUBREAPER, 1UL); }
    ~Subreaper() { ::prctl(PR_SET_CHILD_SUBREAPER, 0UL); }
};

}  // namespace redlock::test
