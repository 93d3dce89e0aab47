// Checks the options of a lock. Each error names the field, its value, and what it must be.
#include <redlock/detail/quarantine.hpp>
#include <redlock/options.hpp>

#include <chrono>
#include <stdexcept>
#include <string>

namespace redlock {
namespace detail {

[[noreturn]] void throw_invalid_argument(const std::string& field, const std::string& has,
                                         const std::string& must) {
    throw std::invalid_argument("redlock: " + field + " is " + has + "; it must " + must);
}

std::string to_string(std::chrono::milliseconds span) {
    return std::to_string(span.count()) + " ms";
}

void check_ttl(const std::string& field, std::chrono::milliseconds ttl, double drift_factor,
               std::chrono::milliseconds node_timeout, std::chrono::milliseconds quarantine) {
    if (ttl <= std::chrono::milliseconds::zero())
        throw_invalid_argument(field, to_string(ttl), "be positive");
    if (ttl > longest_ttl)
        throw_invalid_argument(field, to_string(ttl),
                               "be at most " + to_string(longest_ttl) + " (100 years)");
    const auto least = drift(ttl, drift_factor) + node_timeout;
    if (ttl <= least)
        throw_invalid_argument(field, to_string(ttl),
                               "exceed " + to_string(std::chrono::ceil<std::chrono::milliseconds>(least)) +
                                   " (the drift and NodesOptions::node_timeout), or no validity is left");
    check_covered(field, ttl, quarantine);
}

namespace {

/// The time before the margin must be long enough for an extension.
void check_margin(const std::string& field, const LockOptions& options,
                  std::chrono::milliseconds node_timeout) {
    const auto margin = options.margin;
    if (margin < margin.zero() || margin >= options.ttl - margin)
        throw_invalid_argument(field, to_string(margin),
                               "be less than half of the ttl, " + to_string(options.ttl));
    const auto least = drift(options.ttl, options.drift_factor) + node_timeout;
    if (margin > margin.zero() && options.ttl - margin <= least)
        throw_invalid_argument(field, to_string(margin),
                               "leave more of the ttl than " +
                                   to_string(std::chrono::ceil<std::chrono::milliseconds>(least)) +
                                   " (the drift and NodesOptions::node_timeout)");
    if (margin > margin.zero() && !options.watchdog)
        throw_invalid_argument(field, to_string(margin),
                               "be used with LockOptions::watchdog, which reports the loss");
}

}  // namespace
}  // namespace detail

void check(const LockOptions& options, std::chrono::milliseconds node_timeout,
           std::chrono::milliseconds quarantine, const std::string& type) {
    using namespace std::chrono_literals;
    if (!(options.drift_factor >= 0 && options.drift_factor < 1))
        detail::throw_invalid_argument(type + "::drift_factor", std::to_string(options.drift_factor),
                                       "be in [0, 1)");
    detail::check_ttl(type + "::ttl", options.ttl, options.drift_factor, node_timeout, quarantine);
    if (options.retry.attempts < 1)
        detail::throw_invalid_argument(type + "::retry.attempts", std::to_string(options.retry.attempts),
                                       "be at least 1");
    if (options.retry.delay < 1ms || options.retry.delay > 24h)
        detail::throw_invalid_argument(type + "::retry.delay", detail::to_string(options.retry.delay),
                                       "be from 1 ms to 24 h");
    if (options.queue_timeout.value_or(0ms) < 0ms)
        detail::throw_invalid_argument(type + "::queue_timeout", detail::to_string(*options.queue_timeout),
                                       "be 0 or positive");
    if (options.shared && options.fair)
        detail::throw_invalid_argument(type + "::shared", "set", "not be combined with LockOptions::fair");
    if (options.min_hold < 0ms || options.min_hold > options.ttl)
        detail::throw_invalid_argument(type + "::min_hold", detail::to_string(options.min_hold),
                                       "be from 0 to LockOptions::ttl, " + detail::to_string(options.ttl));
    if (options.shared && options.min_hold > 0ms)
        detail::throw_invalid_argument(type + "::min_hold", detail::to_string(options.min_hold),
                                       "be 0 with LockOptions::shared");
    constexpr std::size_t longest_description = 1000;
    if (options.holder.size() > longest_description)
        detail::throw_invalid_argument(type + "::holder",
                                       std::to_string(options.holder.size()) + " bytes long",
                                       "have at most " + std::to_string(longest_description));
    if (options.max_hold <= 0ns)
        detail::throw_invalid_argument(type + "::max_hold", std::to_string(options.max_hold.count()) + " ns",
                                       "be positive");
    detail::check_margin(type + "::margin", options, node_timeout);
    if (options.on_lost && !options.watchdog)
        detail::throw_invalid_argument(type + "::on_lost", "set",
                                       "be used with LockOptions::watchdog, which calls it");
}

}  // namespace redlock
