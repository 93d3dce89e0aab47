// Connections of hiredis to N nodes, and the commands of a lock as words. RawClient and RawSharingClient send
// the same bytes as redlock, without any logic.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

struct redisContext;

namespace redlock::bench {

/// A command that a RawClient sends, divided into words.
struct RawCommand {
    explicit RawCommand(std::vector<std::string> the_words);
    RawCommand(RawCommand&&) = default;  // a copy would point to the words of the original
    /// Returns the SET of an acquisition, and the compare-and-delete script of a release.
    static RawCommand set(const std::string& resource, const std::string& owner);
    static RawCommand compare_and_delete(const std::string& resource, const std::string& owner);

    std::vector<std::string> words;
    std::vector<const char*> texts{};
    std::vector<std::size_t> lengths{};
    std::size_t granted = 0;  ///< how many nodes have replied OK or 1 when it was sent last
};

/// Returns 40 digits, the only owner of a client.
std::string any_owner();

/// One connection to each node. Its functions block, and throw std::runtime_error if a connection breaks or a
/// server replies with an error.
class RawNodes {
public:
    /// Also loads the script of a release.
    explicit RawNodes(const std::vector<std::string>& uris);

    std::size_t quorum() const noexcept { return contexts_.size() / 2 + 1; }
    /// Sends the command to one node after the other.
    void send_in_turn(RawCommand& command);
    /// Sends the commands to all nodes at once. Each node gets all of them in one write.
    void send_to_all(const std::vector<RawCommand*>& commands);

private:
    struct FreeContext {
        void operator()(redisContext* context) const noexcept;
    };
    std::vector<std::unique_ptr<redisContext, FreeContext>> contexts_{};
};

}  // namespace redlock::bench
