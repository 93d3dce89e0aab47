#include "nemesis.hpp"

#include "decimal.hpp"

namespace flash_sale {

namespace {

std::string name(std::size_t node) {
    return "node " + std::to_string(node + 1);
}

}  // namespace

std::string Nemesis::plan() const {
    return name(deeds_[0].node) + " is killed after " + in_seconds(deeds_[0].due) + " and comes back after " +
           in_seconds(deeds_[2].due) + "; " + name(deeds_[1].node) + " is frozen from " +
           in_seconds(deeds_[1].due) + " to " + in_seconds(deeds_[3].due) + ".";
}

std::string Nemesis::act(Time now) {
    if (done() || now < deeds_[next_].due) return {};
    auto& deed = deeds_[next_++];
    deed.done = now;
    return name(deed.node) + perform(deed);
}

std::string Nemesis::perform(const Deed& deed) {
    auto& node = nodes_[deed.node];
    switch (deed.verb) {
        case Verb::kill: node.kill(); return " killed with SIGKILL";
        case Verb::freeze: node.freeze(); return " frozen with SIGSTOP: two of five are down";
        case Verb::restart: node.restart(); return " restarted, with the keys it had on disk";
        case Verb::thaw: node.thaw(); return " thawed with SIGCONT: all are up";
    }
    return {};
}

std::vector<std::string> Nemesis::downtimes() const {
    const auto downtime = [](const Deed& from, const Deed& until, const std::string& how) {
        return name(from.node) + " " + how + ", " + in_seconds(from.done) + " to " + in_seconds(until.done);
    };
    return {downtime(deeds_[0], deeds_[2], "killed"), downtime(deeds_[1], deeds_[3], "frozen")};
}

}  // namespace flash_sale
