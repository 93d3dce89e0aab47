// Checks the list of resources of a lock, sorts it, and removes duplicates.
#include <redlock/resources.hpp>

#include "../wire/key_names.hpp"
#include "option_checks.hpp"

#include <algorithm>
#include <stdexcept>

namespace redlock::detail {
namespace {

/// Throws if two names collide: one resource is the key of the queue, the readers or the counter of another
/// one. A lock that needs such a key could never be acquired, because each resource would find the data of
/// the other one there. The key of a description is possible, because the description is not written then.
void check_keys_beside(const std::vector<std::string>& sorted) {
    for (const auto& resource : sorted) {
        std::vector<std::string> keys{key_of(KeyKind::queue, resource).text() + ":signs"};
        for (const auto kind : {KeyKind::queue, KeyKind::readers, KeyKind::counter})
            keys.push_back(key_of(kind, resource).text());
        for (const auto& key : keys)
            if (std::ranges::binary_search(sorted, key))
                throw std::invalid_argument(std::string{"redlock: resource "}
                                                .append(key)
                                                .append(" is the name of a key beside the resource ")
                                                .append(resource)
                                                .append("; they cannot be locked together"));
    }
}

}  // namespace

std::vector<std::string> checked_resources(std::vector<std::string> resources) {
    require(!resources.empty(), "the list of resources", "empty", "have at least one entry");
    if (resources.size() > max_resources)
        throw std::invalid_argument("redlock: the list of resources has " + std::to_string(resources.size()) +
                                    " entries; at most " + std::to_string(max_resources) +
                                    " are allowed, because a longer script would block the servers");
    for (const auto& resource : resources) {
        require(!resource.empty(), "resource", "empty", "have at least one byte");
        if (resource.size() > longest_resource)
            throw std::invalid_argument("redlock: resource has " + std::to_string(resource.size()) +
                                        " bytes; Redis takes keys up to 512 MiB");
        require(resource != marker_key, "resource", resource,
                "have another name, because nodes with a quarantine keep the age of their data in the key of "
                "this name");
    }
    std::ranges::sort(resources);
    resources.erase(std::unique(resources.begin(), resources.end()), resources.end());
    if (resources.size() > 1) check_keys_beside(resources);
    return resources;
}

}  // namespace redlock::detail
