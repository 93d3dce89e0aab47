// Finds the server of a node by asking all its Sentinels at the same time. Redis Sentinels are processes that
// watch some servers and name its master. More than half of the distinct Sentinels have to name the same
// server (docs/protocol.md, Promotion).
#pragma once

#include "../os/network.hpp"
#include "../os/resolution.hpp"
#include "node_config.hpp"

#include <cstddef>
#include <span>
#include <stop_token>
#include <string>

namespace redlock {

/// What one entry in the configured list of Sentinels has answered. Two entries can be addresses of the same
/// Sentinel.
struct SentinelAnswer {
    std::string address{};  ///< bytes of the address that was used to reach it; empty if not known
    std::string id{};       ///< the id that the Sentinel reports; empty if not known
    std::string master{};   ///< the server that it names; empty if it has named none
    bool refused = false;   ///< it has refused the login
};

/// The result of counting the answers of all entries.
struct SentinelCount {
    std::size_t sentinels = 0;      ///< distinct Sentinels
    std::size_t named = 0;          ///< distinct Sentinels that name a server
    std::string master{};           ///< the server that a majority names; empty if there is none
    bool refused_for_good = false;  ///< no majority is possible without the Sentinels that refuse the login
};

/// Decides which server a majority of the Sentinels names. Two entries are the same Sentinel if they have the
/// same address or the same id. Each Sentinel has one vote, however often it is listed.
///
/// Examples with the Sentinels S1, S2 and S3. "-" has not answered, and "!" has refused the login:
///
///     entries and the servers that they name | distinct | master
///     ---------------------------------------+----------+--------------------------------------------
///     S1: a    S2: a    S3: -                |    3     | a: two of three
///     S1: a    S2: b    S3: -                |    3     | none
///     S1: a    S2: b                         |    2     | none: half is not more than half
///     S1: a    S1: a    S2: -                |    2     | none: S1 has one vote
///     S1: a    S1: a                         |    1     | a: one of one
///     S1: a    S1: -    (the same address)   |    1     | a: one of one
///     S1: a    S1: b    S2: a    S3: a       |    3     | a: S1 contradicts itself and has no vote
///     S1: a    S2: !    S3: -                |    3     | none yet
///     S1: a    S2: !    S3: !                |    3     | none, for good: S1 is not more than half
///
/// An entry that has neither an address nor an id counts as a Sentinel of its own. That can only prevent a
/// majority.
SentinelCount count_sentinels(std::span<const SentinelAnswer> answers);

/// Asks all Sentinels of `node` over `network`, and returns the addresses of the server they name. Blocks for
/// `node_timeout` or one second at most. Returns without addresses soon after `stop` is requested. Call it at
/// the end of a thread of its own, because it frees what OpenSSL keeps for the thread.
Resolution::Found query_sentinels(const NodeConfig& node, const std::stop_token& stop, Network& network);

}  // namespace redlock
