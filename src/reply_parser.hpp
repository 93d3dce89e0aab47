// hiredis: the bytes of a connected socket in, replies out. Nothing is allocated for a reply but its text.
#pragma once

#include "reply.hpp"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string_view>

struct redisContext;

namespace redlock {

class ReplyParser {
public:
    /// The socket is hiredis' from now on, and closed with it. Parses into `reply`, which must outlive it.
    /// Throws std::bad_alloc.
    ReplyParser(int fd, wire::Reply& reply);

    int fd() const noexcept;

    /// Takes flat lists of up to 16 texts and numbers as replies, too; else an array is nonsense.
    void admit_lists() noexcept;

    /// What has come in. False: no memory for it.
    bool feed(std::string_view bytes);

    enum class Progress : std::uint8_t { incomplete, complete, nonsense };

    /// Goes on with the reply that is under way. Complete: it is in `reply`.
    Progress next();

    /// Bytes of a reply that is not complete.
    std::size_t unparsed() const noexcept;

private:
    struct FreeContext {
        void operator()(redisContext* context) const noexcept;
    };

    std::unique_ptr<redisContext, FreeContext> context_;
    wire::Reply& reply_;
};

}  // namespace redlock
