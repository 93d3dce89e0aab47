// Checks the list of resources of a lock, sorts it, and removes duplicates.
#include <redlock/resources.hpp>

#include <algorithm>
#include <stdexcept>

namespace redlock::detail {

std::vector<std::string> checked_resources(std::vector<std::string> resources) {
    if (resources.empty())
        throw std::invalid_argument(
            "redlock: the list of resources is empty; it must have at least one entry");
    if (resources.size() > max_resources)
        throw std::invalid_argument("redlock: the list of resources has " + std::to_string(resources.size()) +
                                    " entries; at most " + std::to_string(max_resources) +
                                    " are allowed, because a longer script would block the servers");
    for (const auto& resource : resources) {
        if (resource.empty())
            throw std::invalid_argument("redlock: resource is empty; it must have at least one byte");
        if (resource.size() > longest_resource)
            throw std::invalid_argument("redlock: resource has " + std::to_string(resource.size()) +
                                        " bytes; Redis takes keys up to 512 MiB");
    }
    std::ranges::sort(resources);
    resources.erase(std::unique(resources.begin(), resources.end()), resources.end());
    return resources;
}

}  // namespace redlock::detail
