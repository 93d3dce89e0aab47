// The Lua variant of redis-plus-plus, if CMake has found it, with the timeouts of redlock.
#pragma once

#include "client.hpp"

#include <memory>
#include <string>
#include <vector>

namespace redlock::bench {

/// Returns true if this was built with redis-plus-plus.
bool has_redis_plus_plus() noexcept;

/// Returns null if this was built without redis-plus-plus.
std::unique_ptr<LocalClient> redis_plus_plus_client(const std::vector<std::string>& uris,
                                                    const std::string& resource);

}  // namespace redlock::bench
