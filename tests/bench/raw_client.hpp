// The lower bound: hiredis sends the same bytes as redlock, without any logic. There is no deadline, no check
// of the validity, no new owner for each op, and no recovery from faults. Only the replies are checked, so
// that errors are not measured.
#pragma once

#include "client.hpp"

#include <array>
#include <cstddef>
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
    RawClient(const std::vector<std::string>& uris, Way way, const std::string& resource)
        : RawClient(uris, way, std::vector{resource}) {}

    /// With several resources, an op acquires all of them, each by a command of its own, and releases them.
    /// The commands are pipelined: each node gets all of them in one write. Requires Way::multiplexed.
    RawClient(const std::vector<std::string>& uris, Way way, const std::vector<std::string>& resources);

    bool acquire() override;
    void release() override { ask(releases_); }

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

    /// Sends the commands to all nodes. Then `granted_` has, for each command, how many nodes have replied OK
    /// or 1.
    void ask(const std::vector<Command>& commands);
    void ask_in_turn(const Command& command);
    void ask_all_at_once(const std::vector<Command>& commands);

    Way way_;
    std::string owner_;
    std::vector<std::unique_ptr<redisContext, FreeContext>> contexts_{};
    std::vector<Command> sets_{};
    std::vector<Command> releases_{};
    std::vector<std::size_t> granted_;
};

}  // namespace redlock::bench
