#include "server_info.hpp"

#include <algorithm>
#include <charconv>

namespace redlock::tool {
namespace {

std::string value_of(std::string_view info, const std::string& name) {
    return std::string{detail::line_of_info(info, name + ":")};
}

std::optional<std::uint64_t> number_of(std::string_view info, const std::string& name) {
    return detail::whole_number<std::uint64_t>(value_of(info, name));
}

}  // namespace

std::optional<std::uint64_t> sentinels_in(std::string_view info, const std::string& master) {
    // A line for each master: "master0:name=mymaster,status=ok,...,sentinels=3".
    constexpr std::string_view field = ",sentinels=";
    info.remove_prefix(std::min(info.find(":name=" + master + ","), info.size()));
    info = info.substr(0, info.find_first_of("\r\n"));
    const auto at = info.find(field);
    if (at == info.npos) return std::nullopt;
    info.remove_prefix(at + field.size());
    return detail::whole_number<std::uint64_t>(info.substr(0, info.find(',')));
}

Version parse_version(std::string_view text) {
    Version version{};
    const char* at = text.data();
    const char* const end = at + text.size();
    for (int& part : version) {
        at = std::from_chars(at, end, part).ptr;
        if (at != end && *at == '.') ++at;
    }
    return version;
}

std::string text_of_age(std::chrono::seconds age) {
    using namespace std::chrono_literals;
    if (age < 2min) return std::to_string(age / 1s) + " s";
    if (age < 2h) return std::to_string(age / 1min) + " min";
    if (age < 48h) return std::to_string(age / 1h) + " h";
    return std::to_string(age / 24h) + " d";
}

ServerInfo ServerInfo::parse(std::string_view info) {
    ServerInfo it;
    // All makes of servers report a redis_version, and some also report a version of their own.
    it.redis_version = value_of(info, "redis_version");
    it.make = it.redis_version.empty() ? "" : "redis";
    it.version = it.redis_version;
    if (value_of(info, "executable").find("keydb") != std::string::npos) it.make = "keydb";
    for (const std::string make : {"dragonfly", "valkey"})
        if (auto version = value_of(info, make + "_version"); !version.empty()) {
            it.make = make;
            it.version = std::move(version);
        }
    it.run_id = value_of(info, "run_id");
    it.replication_id = value_of(info, "master_replid");
    it.mode = value_of(info, "redis_mode");
    it.role = value_of(info, "role");
    if (it.role == "slave") it.role = "replica";
    it.replicas = number_of(info, "connected_slaves");
    it.uptime = duration_of<std::chrono::seconds>(value_of(info, "uptime_in_seconds"));
    if (const auto enabled = number_of(info, "aof_enabled")) it.appendonly = *enabled != 0;
    it.used_memory = number_of(info, "used_memory");
    it.max_memory = number_of(info, "maxmemory");
    it.eviction = value_of(info, "maxmemory_policy");
    return it;
}

}  // namespace redlock::tool
