// The resources of the workers, as bits, and which of them each mode uses.
//
// Plain, several, watched, fair and shared locks use the first three, which are in one slot of a Redis
// Cluster. The fourth is always locked with
// fencing, because a holder without a token could not be compared. The fifth belongs to the leaders. The
// sixth is a semaphore, and each of the remaining ones is one of its slots.
#pragma once

#include "hold_log.hpp"

#include <array>
#include <cstdint>
#include <random>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace redlock::torture {

inline constexpr std::size_t semaphore_limit = 3;
inline constexpr unsigned resource_count = 6 + semaphore_limit;
inline constexpr std::uint64_t fenced_resource = 1U << 3U;
inline constexpr std::uint64_t leader_resource = 1U << 4U;
inline constexpr std::uint64_t semaphore_resource = 1U << 5U;

inline std::uint64_t slot_resource(std::size_t slot) {
    return 1U << (6U + slot);
}

/// Returns how many workers may hold it at once.
inline std::size_t capacity_of(unsigned resource) {
    return 1U << resource == semaphore_resource ? semaphore_limit : 1;
}

inline std::string name_of(unsigned resource) {
    if (resource > 5) return "{torture:5}:slot:" + std::to_string(resource - 6);
    return (resource < 3 ? "{torture}:" : "torture:") + std::to_string(resource);
}

/// Returns the keys of its lock, its readers and its queue of waiters.
inline std::array<std::string, 3> keys_of(unsigned resource) {
    const auto name = name_of(resource);
    const auto beside = name.front() == '{' ? name : "{" + name + "}";
    return {name, beside + ":readers", beside + ":queue"};
}

inline std::vector<std::string> names_of(std::uint64_t resources) {
    std::vector<std::string> names;
    for (unsigned resource = 0; resource < resource_count; ++resource)
        if ((resources >> resource & 1U) != 0) names.push_back(name_of(resource));
    return names;
}

inline std::uint64_t choose(Mode mode, std::mt19937& randomness) {
    const auto one = 1U << std::uniform_int_distribution<unsigned>{0, 2}(randomness);
    switch (mode) {
        case Mode::fenced: return fenced_resource;
        case Mode::several: return 7U ^ one;  // two of the three
        case Mode::semaphore: return semaphore_resource;
        case Mode::leader: return leader_resource;
        default: return one;
    }
}

inline std::string_view name_of(Mode mode) {
    switch (mode) {
        case Mode::plain: return "plain";
        case Mode::fenced: return "fenced";
        case Mode::several: return "several";
        case Mode::watched: return "watched";
        case Mode::fair: return "fair";
        case Mode::shared: return "shared";
        case Mode::semaphore: return "semaphore";
        case Mode::leader: return "leader";
        case Mode::loop: return "loop";
    }
    throw std::invalid_argument("no such mode");
}

inline Mode mode_of(std::string_view name) {
    for (const auto mode : modes)
        if (name_of(mode) == name) return mode;
    throw std::invalid_argument("no mode " + std::string{name});
}

}  // namespace redlock::torture
