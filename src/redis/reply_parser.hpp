// hiredis: the bytes of a connection in, replies out. Nothing is allocated for a reply but its text.
#pragma once

#include <redlock/detail/reply.hpp>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string_view>

struct redisReader;

namespace redlock {

class ReplyParser {
public:
    /// Parses into `reply`, which must outlive it. Throws std::bad_alloc.
    explicit ReplyParser(detail::Reply& reply);

    /// Takes flat lists of up to 16 texts and numbers as replies, too; else an array is a protocol error.
    void admit_lists() noexcept;

    /// What has come in. False: no memory for it.
    bool feed(std::string_view bytes);

    enum class Progress : std::uint8_t { incomplete, complete, protocol_error };

    /// Goes on with the reply that is under way. Complete: it is in `reply`.
    Progress next();

    /// Bytes of a reply that is not complete.
    std::size_t unparsed() const noexcept;

private:
    struct FreeReader {
        void operator()(redisReader* reader) const noexcept;
    };

    std::unique_ptr<redisReader, FreeReader> reader_;
    detail::Reply& reply_;
};

}  // namespace redlock
