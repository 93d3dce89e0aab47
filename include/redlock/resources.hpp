// The names of what is locked: checked, sorted, each once.
#pragma once

#include <algorithm>
#include <cstddef>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace redlock::detail {

inline constexpr std::size_t longest_resource = std::size_t{512} * 1024 * 1024;
inline constexpr std::size_t most_resources = 1000;

/// Throws std::invalid_argument for a list that cannot be locked.
inline std::vector<std::string> checked_resources(std::vector<std::string> resources) {
    if (resources.empty())
        throw std::invalid_argument("redlock: the list of resources is empty; name what is locked");
    if (resources.size() > most_resources)
        throw std::invalid_argument("redlock: the list of resources has " + std::to_string(resources.size()) +
                                    " entries; at most " + std::to_string(most_resources) +
                                    " go into one script without holding up the servers");
    for (const auto& resource : resources) {
        if (resource.empty()) throw std::invalid_argument("redlock: resource is empty; name what is locked");
        if (resource.size() > longest_resource)
            throw std::invalid_argument("redlock: resource has " + std::to_string(resource.size()) +
                                        " bytes; Redis takes keys up to 512 MiB");
    }
    std::ranges::sort(resources);
    resources.erase(std::unique(resources.begin(), resources.end()), resources.end());
    return resources;
}

}  // namespace redlock::detail
