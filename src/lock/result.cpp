// Result::message(): the text of a result for logs and people.
#include <redlock/result.hpp>

namespace redlock {
namespace {

std::string describe(const NodeReport& node) {
    auto text = std::string{node.name} + " " + node.cause.message();
    if (node.cause == Errc::timed_out)
        text += " after " + std::to_string(std::chrono::round<std::chrono::milliseconds>(node.took).count()) +
                " ms";
    if (!node.detail.empty()) text += " (" + node.detail + ")";
    return text;
}

std::string describe(const QueuePlace& place) {
    auto text = std::to_string(place.in_front) + " in front";
    if (place.held_for > std::chrono::milliseconds::zero())
        text = "for at most " + std::to_string(place.held_for.count()) + " ms more, " + text;
    return text;
}

}  // namespace

std::string Result::message() const {
    auto text = error_ ? error_.message() : std::string{"ok"};
    if (tally_.size() > 0) {
        const bool refused = error_ == Errc::held_by_other || (error_ == Errc::lost && tally_.refused() > 0);
        text += refused ? " on " : ": granted by ";
        text += std::to_string(refused ? tally_.refused() : tally_.granted());
        text += " of " + std::to_string(tally_.size()) + " nodes";
    }
    if (error_ == Errc::held_by_other && place_) text += ", " + describe(*place_);
    if (attempts_ > 1) text += ", " + std::to_string(attempts_) + " attempts";
    for (const auto& node : nodes())
        if (detail::failed_to_vote(node) || node.cause == Errc::wrong_type) text += "; " + describe(node);
    for (const auto& node : queue_refusals()) text += "; no queue: " + describe(node);
    return text;
}

}  // namespace redlock
