// What must not be found in the ledger, nor on the nodes.
#pragma once

#include "crew.hpp"
#include "ledger.hpp"

#include "support/cluster.hpp"

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace redlock::torture {

/// Two claims on one resource at once.
struct Overlap {
    unsigned resource;
    Claim earlier;
    Claim later;
};
std::vector<Overlap> overlaps(const std::vector<Claim>& claims);

/// A claim whose token is not larger than that of a claim that had ended before it began.
struct Disorder {
    Claim earlier;
    Claim later;
};
std::vector<Disorder> disorders(const std::vector<Claim>& claims);

/// How long after the promised validity each loss was told, in nanoseconds, sorted: those of workers that
/// were running at the time.
std::vector<std::int64_t> lateness(const std::vector<Claim>& claims, const std::vector<Stop>& stops);

/// Keys of the resources that are there though every ttl is over.
std::vector<std::string> stray_keys(support::Cluster& nodes);

std::string text(const Overlap& overlap);
std::string text(const Disorder& disorder);

}  // namespace redlock::torture
