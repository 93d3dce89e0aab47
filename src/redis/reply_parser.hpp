// Parses replies with hiredis. Only the text of a reply needs memory from the heap.
#pragma once

#include "../wire/reply.hpp"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string_view>

struct redisReader;

namespace redlock {

class ReplyParser {
public:
    /// Parses into `reply`, which must outlive the parser. Throws std::bad_alloc.
    explicit ReplyParser(detail::Reply& reply);

    /// From now on, flat lists of up to 16 texts and numbers are accepted. Before, an array is a protocol
    /// error.
    void admit_lists() noexcept;

    /// Takes bytes that were received. Returns false if there is no memory for them.
    bool feed(std::string_view bytes);

    enum class Progress : std::uint8_t { incomplete, complete, protocol_error };

    /// Continues to parse the current reply. If the result is `complete`, the reply is in `reply`.
    Progress next();

    /// Returns the number of bytes that are not parsed yet.
    std::size_t unparsed() const noexcept;

private:
    std::unique_ptr<redisReader, void (*)(redisReader*)> reader_;
    detail::Reply& reply_;
};

}  // namespace redlock
