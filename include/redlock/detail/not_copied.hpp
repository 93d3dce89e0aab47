// The base class of objects that are neither copied nor moved.
#pragma once

namespace redlock::detail {

class NotCopied {
public:
    NotCopied(const NotCopied&) = delete;
    NotCopied& operator=(const NotCopied&) = delete;

protected:
    constexpr NotCopied() = default;
    ~NotCopied() = default;
};

}  // namespace redlock::detail
