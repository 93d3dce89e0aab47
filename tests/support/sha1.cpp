#include "support/sha1.hpp"

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>

namespace redlock::support {
namespace {

using State = std::array<std::uint32_t, 5>;
constexpr std::size_t block_size = 64;

std::array<std::uint32_t, 80> words_of(std::string_view block) {
    std::array<std::uint32_t, 80> words{};
    for (std::size_t i = 0; i < block_size; ++i)
        words.at(i / 4) = words.at(i / 4) << 8U | static_cast<unsigned char>(block[i]);
    for (std::size_t i = 16; i < words.size(); ++i)
        words.at(i) = std::rotl(words.at(i - 3) ^ words.at(i - 8) ^ words.at(i - 14) ^ words.at(i - 16), 1);
    return words;
}

/// Returns the function and the constant of the step, added.
std::uint32_t mixed(std::size_t step, const State& s) {
    if (step < 20) return ((s[1] & s[2]) | (~s[1] & s[3])) + 0x5A827999U;
    if (step < 40) return (s[1] ^ s[2] ^ s[3]) + 0x6ED9EBA1U;
    if (step < 60) return ((s[1] & s[2]) | (s[1] & s[3]) | (s[2] & s[3])) + 0x8F1BBCDCU;
    return (s[1] ^ s[2] ^ s[3]) + 0xCA62C1D6U;
}

void add_block(State& state, std::string_view block) {
    const auto words = words_of(block);
    auto s = state;
    for (std::size_t step = 0; step < words.size(); ++step)
        s = {std::rotl(s[0], 5) + mixed(step, s) + s[4] + words.at(step), s[0], std::rotl(s[1], 30), s[2],
             s[3]};
    for (std::size_t i = 0; i < state.size(); ++i) state.at(i) += s.at(i);
}

}  // namespace

std::string sha1_of(std::string_view text) {
    std::string padded{text};
    padded += '\x80';
    while (padded.size() % block_size != block_size - sizeof(std::uint64_t)) padded += '\0';
    for (unsigned shift = 64; shift > 0; shift -= 8)
        padded += static_cast<char>(text.size() * 8 >> (shift - 8) & 0xFFU);
    State state{0x67452301U, 0xEFCDAB89U, 0x98BADCFEU, 0x10325476U, 0xC3D2E1F0U};
    for (std::size_t at = 0; at < padded.size(); at += block_size)
        add_block(state, std::string_view{padded}.substr(at, block_size));
    std::string digest;
    for (const auto word : state)
        for (unsigned shift = 32; shift > 0; shift -= 4)
            digest += "0123456789abcdef"[word >> (shift - 4) & 0xFU];
    return digest;
}

}  // namespace redlock::support
