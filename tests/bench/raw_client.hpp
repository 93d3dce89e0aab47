// The lower bound: hiredis sends the same bytes as redlock, without any logic. There is no deadline, no check
// of the validity, no new owner for each op, and no recovery from faults. Only the replies are checked, so
// that errors are not measured.
#pragma once

#include "client.hpp"

#include <array>
#include <memory>
#include <string>
#include <vector>

struct redisContext;

namespace redlock::bench {

class RawClient final : public LocalClient {
public:
    enum class Way : bool {
        sequential,   ///< one blocking command after the other, for the SETs and for the EVALSHAs
        multiplexed,  ///< all SETs written, then all replies read; the EVALSHAs likewise
    };

    /// Throws std::runtime_error if a node cannot be reached.
    RawClient(const std::vector<std::string>& uris, Way way, const std::string& resource);

    bool acquire() override { return ask(set_) >= contexts_.size() / 2 + 1; }
    void release() override { (void)ask(release_); }

private:
    using Words = std::vector<std::string>;
    struct FreeContext {
        void operator()(redisContext* context) const noexcept;
    };
    struct Command {
        explicit Command(Words words);
        Words words;
        std::vector<const char*> texts;
        std::vector<std::size_t> lengths;
    };

    /// Returns how many nodes have replied OK or 1.
    std::size_t ask(const Command& command);
    std::size_t ask_in_turn(const Command& command);
    std::size_t ask_all_at_once(const Command& command);

    Way way_;
    std::string owner_;
    std::vector<std::unique_ptr<redisContext, FreeContext>> contexts_{};
    Command set_;
    Command release_;
};

}  // namespace redlock::bench
