// redis-plus-plus, where CMake has found it: its Lua variant, with the timeouts that redlock has.
#pragma once

#include "client.hpp"

#include <memory>
#include <string>
#include <vector>

namespace redlock::bench {

/// Whether this was built with it.
bool has_redis_plus_plus() noexcept;

/// Null where this was built without redis-plus-plus.
std::unique_ptr<LocalClient> redis_plus_plus_client(const std::vector<std::string>& uris,
                                                    const std::string& resource);

}  // namespace redlock::bench
