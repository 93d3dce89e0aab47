// The sorted sets of the model of Redis.
#include "support/redis_model.hpp"
#include "support/redis_words.hpp"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <optional>
#include <string>
#include <utility>

namespace redlock::support {
namespace {

/// One end of a range of scores: "5", "(5" (which excludes 5), "-inf".
struct Bound {
    double score;
    bool excluded;
};

/// Redis accepts leading blanks, and an empty text for 0.
std::optional<Bound> bound_in(std::string_view word) {
    const bool excluded = word.starts_with('(');
    const std::string copy{word.substr(excluded ? 1 : 0)};
    char* end = nullptr;
    const double score = std::strtod(copy.c_str(), &end);
    if (end != copy.c_str() + copy.size() || std::isnan(score)) return {};
    return Bound{score, excluded};
}

struct Range {
    Bound least;
    Bound most;

    bool has(double score) const noexcept {
        return (least.excluded ? score > least.score : score >= least.score) &&
               (most.excluded ? score < most.score : score <= most.score);
    }
};

std::optional<Range> range_in(std::string_view least, std::string_view most) {
    const auto from = bound_in(least);
    const auto to = bound_in(most);
    if (!from || !to) return {};
    return Range{*from, *to};
}

RedisReply no_range() {
    return error("min or max is not a float");
}

}  // namespace

std::vector<std::pair<double, std::string_view>> RedisModel::Value::in_order() const {
    std::vector<std::pair<double, std::string_view>> result;
    for (const auto& [member, score] : scores) result.emplace_back(score, member);
    std::ranges::sort(result);
    return result;
}

RedisReply RedisModel::zadd(Words words) {
    const bool absent_only = is(words[2], "nx");
    const auto pairs = words.subspan(absent_only ? 3 : 2);
    if (pairs.empty() || pairs.size() % 2 != 0) return syntax_error();
    for (std::size_t i = 0; i < pairs.size(); i += 2)
        if (!number_in(pairs[i])) return error("value is not a valid float");
    auto* value = live(words[1]);
    if (value && value->scores.empty()) return wrong_type();
    if (!value) value = &(keys_[std::string{words[1]}] = {});
    const auto before = value->scores.size();
    for (std::size_t i = 0; i < pairs.size(); i += 2) {
        const auto [entry, added] = value->scores.try_emplace(std::string{pairs[i + 1]}, 0);
        if (added || !absent_only) entry->second = *number_in(pairs[i]);
    }
    return RedisReply::of_integer(static_cast<long long>(value->scores.size() - before));
}

RedisReply RedisModel::zcard(Words words) {
    const auto* const value = live(words[1]);
    if (value && value->scores.empty()) return wrong_type();
    return RedisReply::of_integer(value ? static_cast<long long>(value->scores.size()) : 0);
}

RedisReply RedisModel::zcount(Words words) {
    const auto range = range_in(words[2], words[3]);
    if (!range) return no_range();
    const auto* const value = live(words[1]);
    if (!value) return RedisReply::of_integer(0);
    if (value->scores.empty()) return wrong_type();
    return RedisReply::of_integer(
        std::ranges::count_if(value->scores, [&](const auto& it) { return range->has(it.second); }));
}

RedisReply RedisModel::zpopmin(Words words) {
    auto* const value = live(words[1]);
    if (!value) return RedisReply::of_array({});
    if (value->scores.empty()) return wrong_type();
    const auto [score, first] = value->in_order().front();
    auto reply =
        RedisReply::of_array({RedisReply::of_bulk(std::string{first}), RedisReply::of_bulk(text(score))});
    remove_member(words[1], first);
    return reply;
}

RedisReply RedisModel::zrank(Words words) {
    const auto* const value = live(words[1]);
    if (!value) return {};
    if (value->scores.empty()) return wrong_type();
    const auto members = value->in_order();
    const auto entry = std::ranges::find(members, words[2], &std::pair<double, std::string_view>::second);
    return entry == members.end() ? RedisReply{} : RedisReply::of_integer(entry - members.begin());
}

RedisReply RedisModel::zrem(Words words) {
    const auto* const value = live(words[1]);
    if (!value) return RedisReply::of_integer(0);
    if (value->scores.empty()) return wrong_type();
    long long removed = 0;
    for (const auto member : words.subspan(2)) removed += remove_member(words[1], member) ? 1 : 0;
    return RedisReply::of_integer(removed);
}

/// Removes a sorted set that has no members left.
bool RedisModel::remove_member(std::string_view key, std::string_view member) {
    const auto set = keys_.find(key);
    if (set == keys_.end()) return false;
    auto& scores = set->second.scores;
    const auto entry = scores.find(member);
    if (entry == scores.end()) return false;
    scores.erase(entry);
    if (scores.empty()) keys_.erase(set);
    return true;
}

RedisReply RedisModel::zscore(Words words) {
    const auto* const value = live(words[1]);
    if (!value) return {};
    if (value->scores.empty()) return wrong_type();
    const auto entry = value->scores.find(words[2]);
    return entry == value->scores.end() ? RedisReply{} : RedisReply::of_bulk(text(entry->second));
}

/// Returns a range by index only. A negative index counts from the end.
RedisReply RedisModel::zrange(Words words) {
    const bool with_scores = words.size() == 5 && is(words[4], "withscores");
    const auto from = integer_in(words[2]);
    const auto to = integer_in(words[3]);
    if (words.size() > (with_scores ? 5U : 4U)) return syntax_error();
    if (!from || !to) return not_an_integer();
    const auto* const value = live(words[1]);
    if (!value) return RedisReply::of_array({});
    if (value->scores.empty()) return wrong_type();
    const auto members = value->in_order();
    const auto size = static_cast<std::int64_t>(members.size());
    const auto first = std::max<std::int64_t>(*from < 0 ? *from + size : *from, 0);
    const auto last = std::min(*to < 0 ? *to + size : *to, size - 1);
    std::vector<RedisReply> found;
    for (auto i = first; i <= last; ++i) {
        const auto& [score, member] = members[static_cast<std::size_t>(i)];
        found.push_back(RedisReply::of_bulk(std::string{member}));
        if (with_scores) found.push_back(RedisReply::of_bulk(text(score)));
    }
    return RedisReply::of_array(std::move(found));
}

RedisReply RedisModel::zremrangebyscore(Words words) {
    const auto range = range_in(words[2], words[3]);
    if (!range) return no_range();
    const auto* const value = live(words[1]);
    if (!value) return RedisReply::of_integer(0);
    if (value->scores.empty()) return wrong_type();
    std::vector<std::string> doomed;
    for (const auto& [member, score] : value->scores)
        if (range->has(score)) doomed.push_back(member);
    for (const auto& member : doomed) remove_member(words[1], member);
    return RedisReply::of_integer(static_cast<long long>(doomed.size()));
}

}  // namespace redlock::support
